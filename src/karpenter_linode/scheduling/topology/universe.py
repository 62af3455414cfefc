"""Which domains exist for a topology key: what the pools can build (spec/karpenter-scheduling.md 2.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from karpenter_linode.model.core import Taint
from karpenter_linode.model.requirements import Requirements
from karpenter_linode.scheduling.plans import PlanSet
from karpenter_linode.scheduling.taints import untolerated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karpenter_linode.model.core import Toleration


class PoolDomains(Struct, frozen=True):
    """What one pool can build.

    Args:
        requirements: the pool's own requirements and labels.
        taints: the pool's taints.
        plans: all its plans.
    """

    requirements: Requirements
    taints: tuple[Taint, ...]
    plans: PlanSet


class Universe:
    """Domains by key, each with the taints under which it can be had.

    Args:
        pools: every usable pool.
    """

    def __init__(self, pools: Sequence[PoolDomains]) -> None:
        self._pools = tuple(pools)
        self._domains: dict[str, dict[str, tuple[tuple[Taint, ...], ...]]] = {}

    def domains(self, key: str, tolerations: tuple[Toleration, ...] | None = None) -> tuple[str, ...]:
        """The domains of a key, sorted; with tolerations only those of a pool whose taints they cover."""
        known = self._known(key)
        if tolerations is None:
            return tuple(known)
        return tuple(
            domain
            for domain, taint_sets in known.items()
            if any(not untolerated(taints, tolerations) for taints in taint_sets)
        )

    def has_tainted(self, key: str) -> bool:
        """Whether some domain of a key exists only behind taints."""
        return any(() not in taint_sets for taint_sets in self._known(key).values())

    def _known(self, key: str) -> dict[str, tuple[tuple[Taint, ...], ...]]:
        found = self._domains.get(key)
        if found is None:
            collected: dict[str, set[tuple[Taint, ...]]] = {}
            for pool in self._pools:
                for domain in _values(pool, key):
                    collected.setdefault(domain, set()).add(pool.taints)
            found = {domain: tuple(sorted(collected[domain], key=repr)) for domain in sorted(collected)}
            self._domains[key] = found
        return found


def _values(pool: PoolDomains, key: str) -> set[str]:
    own = pool.requirements.find(key)
    values: set[str] = set()
    for item in pool.plans.values(key):
        both = item if own is None else own.intersection(item)
        if not both.complement:
            values |= both.values
    if own is not None and not own.complement:
        values |= own.values
    return values
