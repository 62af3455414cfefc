"""Taints and tolerations (spec/karpenter-scheduling.md 4.1 and 4.2)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from karpenter_linode.model import labels
from karpenter_linode.model.core import Taint, Toleration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"

DISRUPTED: Final = Taint(key=labels.DISRUPTED_TAINT, effect=NO_SCHEDULE)
UNREGISTERED: Final = Taint(key=labels.UNREGISTERED_TAINT, effect=NO_EXECUTE)
TOLERATE_PREFER_NO_SCHEDULE: Final = Toleration(operator="Exists", effect=PREFER_NO_SCHEDULE)

_EPHEMERAL: Final = frozenset(
    {
        ("node.kubernetes.io/not-ready", NO_SCHEDULE),
        ("node.kubernetes.io/not-ready", NO_EXECUTE),
        ("node.kubernetes.io/unreachable", NO_SCHEDULE),
        ("node.cloudprovider.kubernetes.io/uninitialized", NO_SCHEDULE),
        (labels.UNREGISTERED_TAINT, NO_EXECUTE),
    },
)
_READINESS_PREFIX: Final = "readiness.k8s.io/"
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]{0,18})")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration covers one taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt":
            return _compares(toleration, taint)
        case _:
            return False


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> tuple[Taint, ...]:
    """The taints that no toleration covers, whatever their effect (PreferNoSchedule counts until it is relaxed)."""
    return tuple(taint for taint in taints if not any(tolerates(toleration, taint) for toleration in tolerations))


def refusal(taints: Iterable[Taint]) -> str:
    """The contract text for untolerated taints."""
    return "; ".join(f"did not tolerate taint (taint={taint})" for taint in taints)


def carries(taints: Iterable[Taint], wanted: Taint) -> bool:
    """Whether a taint of that key and effect is among them, whatever its value."""
    return any((taint.key, taint.effect) == (wanted.key, wanted.effect) for taint in taints)


def merge(taints: Sequence[Taint], more: Iterable[Taint]) -> tuple[Taint, ...]:
    """``taints`` and those of ``more`` whose key and effect are not there yet."""
    merged = list(taints)
    present = {(taint.key, taint.effect) for taint in taints}
    for taint in more:
        if (taint.key, taint.effect) not in present:
            merged.append(taint)
            present.add((taint.key, taint.effect))
    return tuple(merged)


def without(taints: Iterable[Taint], dropped: Iterable[Taint]) -> tuple[Taint, ...]:
    """``taints`` without those that match one of ``dropped`` in key and effect."""
    gone = {(taint.key, taint.effect) for taint in dropped}
    return tuple(taint for taint in taints if (taint.key, taint.effect) not in gone)


def is_ephemeral(taint: Taint) -> bool:
    """Whether a taint is expected to vanish while a node starts, so that planning may look past it."""
    return (taint.key, taint.effect) in _EPHEMERAL or taint.key.startswith(_READINESS_PREFIX)


def _compares(toleration: Toleration, taint: Taint) -> bool:
    if not (_INTEGER.fullmatch(toleration.value) and _INTEGER.fullmatch(taint.value)):
        return False
    have, bound = int(taint.value), int(toleration.value)
    return have < bound if toleration.operator == "Lt" else have > bound
