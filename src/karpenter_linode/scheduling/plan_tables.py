"""What is worth keeping of a catalog from one simulation to the next.

A controller asks about the same plans every few seconds; reading them and meeting them with a pool's requirements costs
far more than placing a handful of pods. Nothing kept here depends on pods, nodes or time, so answers stay the same.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from karpenter_linode.scheduling.plans import PlanSet, read_plans

if TYPE_CHECKING:
    from karpenter_linode.model.instance_type import InstanceType

_Key = tuple[int, frozenset[str]]

CATALOGS: Final = 32
FINDINGS: Final = 20_000


class PlanTables:
    """Plans that were read, by the identity of the tuple that they came in.

    One object belongs to one caller; it is not shared between threads.

    Args:
        catalogs: how many are kept; the one that was not asked for the longest goes first.
        findings: how many masks and markets one catalog may have learnt before it is read anew: pods can ask for
            endlessly many different things.
    """

    def __init__(self, catalogs: int = CATALOGS, findings: int = FINDINGS) -> None:
        self._catalogs = catalogs
        self._findings = findings
        self._kept: OrderedDict[_Key, tuple[tuple[InstanceType, ...], PlanSet]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def plan_set(self, types: tuple[InstanceType, ...], well_known: frozenset[str]) -> PlanSet:
        """The plans of a catalog.

        Args:
            types: the catalog; the same object gives the same plan set while it is kept.
            well_known: label keys that requirements may leave undefined.
        """
        key = (id(types), well_known)
        kept = self._kept.get(key)
        if kept is None or kept[1].findings > self._findings:
            # The tuple is kept with what was read from it: while it lives, nothing else has its identity.
            kept = self._kept[key] = (types, PlanSet(tuple(read_plans(types)), well_known))
        self._kept.move_to_end(key)
        if len(self._kept) > self._catalogs:
            self._kept.popitem(last=False)
        return kept[1]
