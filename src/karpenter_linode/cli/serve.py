"""``simulate --serve``: the embedded world in accelerated real time, open to kubectl."""

from __future__ import annotations

import asyncio
import secrets
import shlex
import signal
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from karpenter_linode.cli import kubeconfig
from karpenter_linode.cli.errors import EXIT_BAD_INPUT, EXIT_PLACED
from karpenter_linode.cli.outcome_view import show_outcome, story_text
from karpenter_linode.cli.output import ReaderGoneError, print_lines
from karpenter_linode.explain.text import Line
from karpenter_linode.operator.embedded import EmbeddedWorld
from karpenter_linode.operator.history import told
from karpenter_linode.ports import KubeError
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.events import forget_oldest
from karpenter_linode.sim.face.app import Face
from karpenter_linode.sim.face.server import LOOPBACK, FaceServer, listen
from karpenter_linode.sim.real_time import run_accelerated

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Sequence

    from karpenter_linode.operator.options import Options
    from karpenter_linode.operator.outcome import Outcome
    from karpenter_linode.sim.cluster import SimSettings
    from karpenter_linode.sim.journal import Entry

DEFAULT_SPEED: Final = 20
KEEP: Final = 2_000
EVENT_TTL: Final = timedelta(hours=1)
# kubectl tells some ages by its own clock, and a world that runs ahead of it would lie in the future. It starts so far
# back that it stays behind for this long.
_BEHIND: Final = timedelta(hours=12)
_SECRET_BYTES: Final = 24
_SOURCE_WIDTH: Final = 25
_REMEMBERED: Final = 1_000


class Serving:
    """A world to serve, and how.

    Args:
        objects: what is applied at the start.
        seed, options, scenario, settings: as for ``EmbeddedWorld``.
        speed: the world's seconds in a real one.
        port: 0 for any free one.
        kubeconfig_file: where the kubeconfig goes; printed without one.
        limit: the world's time after which it ends by itself; None for never.
        output: ``table``, ``json`` or ``yaml``, of what it came to.
        story: tell what happens while it happens.
    """

    def __init__(  # noqa: PLR0913 - what the command's options say
        self,
        objects: Sequence[dict[str, Any]],
        *,
        seed: int,
        options: Options,
        scenario: Callable[[EmbeddedWorld], Awaitable[None]],
        settings: SimSettings,
        speed: int,
        port: int,
        kubeconfig_file: str | None,
        limit: timedelta | None,
        output: str,
        story: bool,
    ) -> None:
        self._objects, self._seed, self._options = objects, seed, options
        self._scenario, self._settings = scenario, settings
        self._speed, self._port, self._file = speed, port, kubeconfig_file
        self._written = ""
        self._limit, self._output = limit, output
        self._story = story and output == "table"

    def run(self, assumptions: list[str], warnings: list[str]) -> int:
        """Serve until interrupted or until the limit, and print what it came to.

        Args:
            assumptions: what was taken for granted about the input.
            warnings: what looks wrong in the input.

        Returns:
            The exit code: 0 however the world ended, 2 where it could not begin.

        Raises:
            InputError: the kubeconfig cannot be written.
            ReaderGoneError: nobody reads the story any more.
        """
        if self._file is not None:
            kubeconfig.check_target(self._file)
        try:
            listener = listen(self._port)
        except OSError as error:
            click.echo(f"error: cannot listen on {LOOPBACK} port {self._port}: {error.strerror}", err=True)
            return EXIT_BAD_INPUT
        try:
            outcome = run_accelerated(lambda: self._live(listener), self._speed)
        except KubeError as error:
            click.echo(f"error: the world refuses an object of the input: {error}", err=True)
            return EXIT_BAD_INPUT
        finally:
            listener.close()
            if self._file is not None and self._written:
                kubeconfig.remove(self._file, self._written)
        if self._story:
            click.echo()
        show_outcome(outcome, self._output, story=False, assumptions=assumptions, warnings=warnings)
        return EXIT_PLACED

    async def _live(self, listener: socket.socket) -> Outcome:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        start = datetime.now(UTC) - (self._speed - 1) * _BEHIND
        world = EmbeddedWorld(
            self._objects,
            seed=self._seed,
            options=self._options,
            scenario=self._scenario,
            settings=self._settings,
            clock=VirtualClock(loop, start.replace(microsecond=0)),
        )
        address = f"{LOOPBACK}:{listener.getsockname()[1]}"
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        face = Face(
            world.cluster.store,
            world.clock,
            version=world.cluster.kubernetes_version,
            secret=secret,
            hosts=frozenset({address, f"localhost:{address.rpartition(':')[2]}"}),
            speed=self._speed,
            journal=world.cluster.journal,
        )
        server, teller = FaceServer(face, listener, self._speed), _Teller(world, ended)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, _end, loop, ended)
        await world.start()
        self._tell_how(f"http://{address}/{secret}", address, world.cluster.kubernetes_version)
        if self._story:
            for entry in world.cluster.journal.entries:
                teller.tell(entry)
            world.cluster.journal.listen(teller.tell)
        serving = asyncio.ensure_future(server.run_until_stopped())
        serving.add_done_callback(lambda _: ended.set())
        try:
            outcome = await world.live(ended, self._limit.total_seconds() if self._limit is not None else None)
        finally:
            server.stop()
            await serving
        if teller.gone:
            raise ReaderGoneError
        return outcome

    def _tell_how(self, url: str, address: str, version: str) -> None:
        text = kubeconfig.kubeconfig(url)
        pace = "in real time" if self._speed == 1 else f"{self._speed} times as fast as real time"
        lines = [f"Kubernetes {version} on {address}, {pace}. In another terminal:"]
        if self._file is None:
            click.echo(text, nl=False, err=self._output != "table")
            lines.append("  save the lines above as FILE  (or start with --kubeconfig FILE)")
        else:
            kubeconfig.write(self._file, text)
            self._written = text
        file = "FILE" if self._file is None else shlex.quote(self._file)
        lines += [
            f"  export KUBECONFIG={file}",
            "  kubectl get nodepools,nodeclaims,nodes,pods,resourceclaims",
            "  kubectl apply -f examples/one-gpu",
            "  kubectl get nodeclaims --watch",
            "Ctrl-C ends it.",
        ]
        for line in lines:
            click.echo(line, err=True)


class _Teller:
    """Tells the story as it happens; what a part says over and over of one object is told once."""

    def __init__(self, world: EmbeddedWorld, ended: asyncio.Event) -> None:
        self._started, self._ended = world.started, ended
        self._last: dict[tuple[str, str], str] = {}
        self.gone = False

    def tell(self, entry: Entry) -> None:
        """Print a line of the story."""
        if entry.level == "debug" or self.gone:
            return
        line = told(entry)
        who = (line.source, line.subject)
        if line.subject and self._last.get(who) == line.text:
            return
        self._last.pop(who, None)
        self._last[who] = line.text
        forget_oldest(self._last, _REMEMBERED)
        try:
            print_lines([Line(story_text(line, self._started, _SOURCE_WIDTH))])
        except ReaderGoneError:
            self.gone = True
            self._ended.set()


def _end(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    """End in good order; another signal ends at once."""
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)
    ended.set()
