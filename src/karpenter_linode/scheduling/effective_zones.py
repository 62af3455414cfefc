"""In which zones pending pods could go, for ``karpenter_scheduler_pending_pods_by_effective_zone_count``.

Rule: spec/karpenter-scheduling.md 2.17. Preferred node affinity does not count.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from karpenter_linode.model import labels

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.model.requirement import Requirement
    from karpenter_linode.scheduling.shape import Shape
    from karpenter_linode.scheduling.world import World

FLEXIBLE: Final = "flexible"
NONE: Final = "none"


def count_by_zone(world: World, shapes: Iterable[Shape]) -> dict[str, int]:
    """How many pods can go to one zone only (by its name), to several (``flexible``) or to none (``none``).

    Args:
        world: the simulation before any pod is placed; it has learnt the rules of all pods.
        shapes: the shape of each pod.
    """
    counts: Counter[str] = Counter()
    for shape, pods in Counter(shapes).items():
        counts[_effective_zone(world, shape)] += pods
    return dict(sorted(counts.items()))


def _effective_zone(world: World, shape: Shape) -> str:
    wanted = shape.strict.requirements.find(labels.ZONE)
    sets = [
        None if wanted is None or wanted.complement else set(wanted.values),
        _volume_zones(shape),
        _topology_zones(world, shape),
    ]
    concrete = [zones for zones in sets if zones is not None]
    if not concrete:
        return FLEXIBLE
    left = set.intersection(*concrete)
    if wanted is not None:
        left = {zone for zone in left if wanted.has(zone)}
    if len(left) == 1:
        return left.pop()
    return FLEXIBLE if left else NONE


def _volume_zones(shape: Shape) -> set[str] | None:
    """Zones of any place of the volumes; None where some place names no zone."""
    zones: set[str] = set()
    for alternative in shape.volumes.alternatives:
        item: Requirement | None = alternative.requirements.find(labels.ZONE)
        if item is None or item.complement:
            return None
        zones |= item.values
    return zones


def _topology_zones(world: World, shape: Shape) -> set[str] | None:
    if not world.topology.active:
        return None
    zones: set[str] | None = None
    for check in world.topology.of(shape).domains:
        if check.group.topology_key == labels.ZONE:
            options = check.group.options(counts_itself=check.counts_itself, pod_domains=check.pod_domains)
            allowed = set(options.domains)
            zones = allowed if zones is None else zones & allowed
    return zones
