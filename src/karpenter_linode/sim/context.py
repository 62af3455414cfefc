"""What every part of the embedded cluster works with."""

from __future__ import annotations

from msgspec import Struct, field

from karpenter_linode.ports import Clock
from karpenter_linode.sim.agenda import Agenda
from karpenter_linode.sim.delays import Range, SimDelays
from karpenter_linode.sim.events import EventRecorder
from karpenter_linode.sim.journal import Journal
from karpenter_linode.sim.seeded import SeededRandom
from karpenter_linode.sim.store import Store


class SimContext(Struct, frozen=True):
    """The world's common parts.

    Args:
        store: the API server's store.
        clock: time.
        random: the root stream; parts take children.
        delays: how long things take.
        agenda: things to do later.
        journal: the story.
        keep: how much of what only memory bounds is kept, the latest; None for all.
        managed: UIDs of the workloads whose pods the world's own controllers make, those that are gone included.
    """

    store: Store
    clock: Clock
    random: SeededRandom
    delays: SimDelays
    agenda: Agenda
    journal: Journal
    keep: int | None = None
    managed: dict[str, None] = field(default_factory=dict)

    def draw(self, delay: Range, what: str) -> float:
        """Seconds from a range, decided by the seed and by what waits: other draws do not shift it."""
        return self.random.child(f"delays/{what}").uniform(*delay)

    def recorder(self, component: str) -> EventRecorder:
        """An event recorder for a component."""
        return EventRecorder(self.store, self.clock, self.journal, self.random, component, self.keep)
