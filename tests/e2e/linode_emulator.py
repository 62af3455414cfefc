"""The Linode emulator in a thread of its own: HTTP on loopback, in real time, with short delays."""

from __future__ import annotations

import asyncio
import queue
import re
import socket
import threading
from typing import TYPE_CHECKING, Any, Self

import uvicorn

from karpenter_linode.linode.tables import bundled_availability, bundled_regions, bundled_types
from karpenter_linode.sim.clock import WallClock
from karpenter_linode.sim.linode.app import create_app
from karpenter_linode.sim.linode.delays import LinodeDelays
from karpenter_linode.sim.linode.world import DEFAULT_CLUSTER, LinodeWorld
from karpenter_linode.sim.seeded import SeededRandom

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.sim.linode.events import CloudEvent

DELAYS = LinodeDelays(
    api=(0.01, 0.03),
    instance_id=(0.1, 0.3),
    enterprise_instance=(0.2, 0.5),
    enterprise_listing=(0.5, 1),
    provisioning=(0.2, 0.4),
    booting=(0.2, 0.4),
    join=(1, 2),
    join_gpu=(1, 2),
    member_ready=(0.2, 0.4),
    deletion=(0.3, 0.6),
)


class CallNotes:
    """An ASGI app in front of another one that keeps the calls which change something, without numbers."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.lines: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] == "GET":
            await self._app(scope, receive, send)
            return
        path = re.sub(r"/[0-9][0-9a-f-]*(?=/|$)", "/*", scope["path"].removeprefix("/v4").removeprefix("beta"))

        async def note(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.lines.append(f"{scope['method']} {path}: {message['status']}")
            await send(message)

        await self._app(scope, receive, note)


class LinodeEmulator:
    """A context manager; inside, `url` answers and `events` tells what machines do."""

    def __init__(self) -> None:
        self.events: queue.SimpleQueue[CloudEvent] = queue.SimpleQueue()
        self.cluster_name = DEFAULT_CLUSTER.label
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        regions = bundled_regions()
        self.world = LinodeWorld(
            WallClock(),
            SeededRandom(7),
            types=bundled_types(),
            regions=regions,
            availability=[row for region in regions for row in bundled_availability(region.id)],
            delays=DELAYS,
        )
        self.world.subscribe(self.events.put)
        self.calls = CallNotes(create_app(self.world))
        config = uvicorn.Config(self.calls, log_level="warning", lifespan="off")
        self._server = uvicorn.Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="linode", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()

    def call(self, work: Callable[[], None]) -> None:
        """Runs `work` in the emulator's thread, where its world may be touched."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(work)

    def machines(self) -> int:
        """Linodes that are paid for now."""
        return len(self.world.billing.running())

    def bought(self) -> int:
        """Linodes that were ever paid for."""
        return len(self.world.billing.charges)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._server.serve(sockets=[self._socket])
        await self.world.close()
