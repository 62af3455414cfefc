"""What a scenario may do and see, in whichever world it plays, and the two worlds."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from karpenter_world import CLAIMS, DRA_OFF, KarpenterWorld
from kube_api import wait_for
from linode_emulator import DELAYS as LINODE_DELAYS
from linode_emulator import CallNotes
from played_nodes import DELAYS
from stories import Notes

from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.operator.embedded import EmbeddedWorld
from karpenter_linode.operator.options import Options
from karpenter_linode.ports import NotFoundError
from karpenter_linode.sim.cluster import SimSettings
from karpenter_linode.sim.faults import KubeCalls, KubeWatches, play_fault
from karpenter_linode.sim.loop import run_virtual
from karpenter_linode.sim.nvidia import DriverBehaviour
from karpenter_linode.sim.resource_types import RESOURCE_TYPES

if TYPE_CHECKING:
    from pathlib import Path

    from controlplane import ControlPlane

    from karpenter_linode.sim.watches import Change

Object: TypeAlias = dict[str, Any]
_KINDS = {served.kind: served for served in RESOURCE_TYPES}
_DOWN_SECONDS = 2.0
_LAST_WORDS_SECONDS = 2.0  # events are written a little after what they tell of


class Until(NamedTuple):
    """A scenario goes on once `probe` finds something; it fails where nothing is found for `seconds`."""

    what: str
    probe: Callable[[], Any]
    seconds: float = 300.0
    every: float = 0.2


class Pause(NamedTuple):
    """A scenario lets time pass, to see that nothing happens."""

    seconds: float


Wish: TypeAlias = Until | Pause | Awaitable[None] | None
Script: TypeAlias = Iterator[Wish]


class Stage(Protocol):
    """A cluster and a cloud, with one controller that works."""

    def apply(self, *manifests: Object) -> None:
        """Creates objects."""

    def delete(self, kind: str, name: str) -> None:
        """As `kubectl delete`, without waiting."""

    def find(self, kind: str, name: str) -> Object | None:
        """An object, or None."""

    def all(self, kind: str) -> list[Object]:
        """All objects of a kind."""

    def bought(self) -> int:
        """Linodes that were ever paid for."""

    def machines(self) -> int:
        """Linodes that are paid for now."""

    def kill_controller(self) -> Wish:
        """The controller ends wherever it stands. To be yielded, as the two that follow."""

    def start_controller(self) -> Wish:
        """A controller starts."""

    def restart_api_server(self) -> Wish:
        """The API server ends as in a crash, and comes back after two seconds; watches cannot go on where they were."""


class Scenario(NamedTuple):
    """What is played in both worlds.

    Args:
        script: yields what it waits for; between, it acts and asserts.
        dra: whether the controller looks at device claims.
        driver: how the DRA driver publishes devices.
        many: whether there are so many objects that chance decides which of them meets what.
        releases: Kubernetes releases on which it makes sense; empty for all.
    """

    script: Callable[[Stage], Script]
    dra: bool = True
    driver: DriverBehaviour = DriverBehaviour()
    many: bool = False
    releases: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """In words."""
        return self.script.__name__.replace("_", " ")


class RealStage:
    """The real control plane."""

    def __init__(self, world: KarpenterWorld) -> None:
        self._world = world

    def apply(self, *manifests: Object) -> None:
        self._world.apply(*manifests)

    def delete(self, kind: str, name: str) -> None:
        self._world.delete(kind, name)

    def find(self, kind: str, name: str) -> Object | None:
        return self._world.api.find(f"{self._world.path(kind)}/{name}")

    def all(self, kind: str) -> list[Object]:
        return list(self._world.api.get(self._world.path(kind))["items"])

    def bought(self) -> int:
        return self._world.cloud.bought()

    def machines(self) -> int:
        return self._world.cloud.machines()

    def kill_controller(self) -> None:
        for controller in self._world.controllers:
            controller.kill()

    def start_controller(self) -> None:
        self._world.start_controller()

    def restart_api_server(self) -> None:
        self._world.control_plane.api_server.kill()
        time.sleep(_DOWN_SECONDS)
        self._world.control_plane.start_api_server()
        wait_for("our kinds to be served", lambda: self._world.client.get(CLAIMS).is_success)


def play_for_real(scenario: Scenario, control_plane: ControlPlane, directory: Path) -> Notes:
    """Plays a scenario on the real control plane and returns what was seen."""
    environment = {} if scenario.dra else DRA_OFF
    with KarpenterWorld(control_plane, directory, environment, driver=scenario.driver) as world:
        for wish in scenario.script(RealStage(world)):
            match wish:
                case Until(what, probe, seconds, every):
                    world.wait(what, probe, seconds, every)
                case Pause(seconds):
                    time.sleep(seconds)
        time.sleep(_LAST_WORDS_SECONDS)
        notes = world.notes()
        for pod in world.api.get(world.path("Pod"))["items"]:
            notes.pod(pod)
        return notes


class EmbeddedStage:
    """The embedded world, in virtual time."""

    def __init__(self, world: EmbeddedWorld) -> None:
        self.world = world
        self._cluster = world.cluster

    def apply(self, *manifests: Object) -> None:
        self._cluster.apply(manifests)

    def delete(self, kind: str, name: str) -> None:
        self._cluster.delete(_KINDS[kind].api_version, kind, name)

    def find(self, kind: str, name: str) -> Object | None:
        served = _KINDS[kind]
        try:
            return self._cluster.store.get(served, name, "default" if served.namespaced else "").plain
        except NotFoundError:
            return None

    def all(self, kind: str) -> list[Object]:
        return [stored.plain for stored in self._cluster.store.list(_KINDS[kind])]

    def bought(self) -> int:
        return len(self._cluster.linode.billing.charges)

    def machines(self) -> int:
        return len(self._cluster.linode.billing.running())

    def kill_controller(self) -> Awaitable[None]:
        return self.world.kill_controller()

    def start_controller(self) -> Awaitable[None]:
        return self.world.start_controller()

    async def restart_api_server(self) -> None:
        rules = self._cluster.faults.rules
        before = list(rules)
        play_fault(self._cluster, KubeCalls(status=503, times=1_000_000))
        play_fault(self._cluster, KubeWatches("compact"))
        await self.world.clock.sleep(_DOWN_SECONDS)
        rules[:] = before


def play_embedded(scenario: Scenario) -> Notes:
    """Plays a scenario in the embedded world and returns what was seen."""
    return run_virtual(_play_embedded(scenario))


async def _play_embedded(scenario: Scenario) -> Notes:
    world = EmbeddedWorld(
        [],
        seed=7,
        options=Options(ignore_dra_requests=not scenario.dra),
        settings=SimSettings(delays=DELAYS, linode_delays=LINODE_DELAYS, driver=scenario.driver),
    )
    calls = CallNotes(world.cluster.linode_app)
    world.cluster.linode_app = calls
    notes = Notes(namespace="default", calls=calls.lines)
    store = world.cluster.store
    store.listen(_KINDS["Event"], lambda change: _note_event(notes, change))
    store.listen(NodeClaim, lambda change: _note_claim(notes, change))
    world.cluster.start()
    await world.start_controller()
    try:
        for wish in scenario.script(EmbeddedStage(world)):
            await _grant(wish, world)
        await world.clock.sleep(_LAST_WORDS_SECONDS)
        for stored in store.list(_KINDS["Pod"]):
            notes.pod(stored.plain)
    finally:
        await world.stop()
    return notes


async def _grant(wish: Wish, world: EmbeddedWorld) -> None:
    match wish:
        case Until(what, probe, seconds, every):
            came = await world.run_until(lambda: bool(probe()), seconds, every)
            story = "\n".join(f"{entry.at} {entry.subject}: {entry.message}" for entry in world.cluster.journal.entries)
            assert came, f"waited {seconds} virtual seconds for {what}\n{story[-4000:]}"
        case Pause(seconds):
            await world.clock.sleep(seconds)
        case None:
            pass
        case _:
            await wish


def _note_event(notes: Notes, change: Change) -> None:
    if change.type == "ADDED" and change.stored is not None:
        notes.event(change.stored.plain)


def _note_claim(notes: Notes, change: Change) -> None:
    if change.stored is not None:
        notes.node_claim(change.stored.plain, gone=change.type == "DELETED")
