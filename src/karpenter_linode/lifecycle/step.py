"""What the steps of a NodeClaim's life share: results, settings, and the words of metrics."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.lifecycle.effects import Effect
from karpenter_linode.model import labels
from karpenter_linode.model.duration import DurationError, parse_duration
from karpenter_linode.model.karpenter import NodeClaim

if TYPE_CHECKING:
    from collections.abc import Mapping

NODE_CLAIMS_DISRUPTED: Final = "karpenter_nodeclaims_disrupted_total"
PODS_DISRUPTION_INITIATED: Final = "karpenter_pods_disruption_initiated_total"


class LifecycleSettings(Struct, frozen=True):
    """Settings that the life of a NodeClaim depends on.

    Args:
        ignore_dra_requests: whether the gate on device drivers is off.
        launch_timeout: how long a launch may take.
        registration_timeout: how long a node may take to join.
    """

    ignore_dra_requests: bool = True
    launch_timeout: timedelta = timedelta(minutes=5)
    registration_timeout: timedelta = timedelta(minutes=15)


class Step(Struct, frozen=True):
    """The NodeClaim after a step, what else is to be done, and whether later steps still make sense."""

    claim: NodeClaim
    effects: tuple[Effect, ...] = ()
    stop: bool = False


def termination_grace_period(claim: NodeClaim) -> timedelta | None:
    """How long a NodeClaim's pods may take to leave, or None for as long as they like.

    The CRD's pattern lets numbers through that no duration can hold, such as ``9999999h``. They count as no limit: an
    error would keep the NodeClaim, and its bill, for ever.
    """
    try:
        return parse_duration(claim.spec.termination_grace_period or "")
    except DurationError:
        return None


def termination_mode(claim: NodeClaim) -> str:
    """How patient the termination of a NodeClaim is (spec/karpenter-lifecycle.md 1.10)."""
    period = termination_grace_period(claim)
    if period is None:
        return "graceful"
    return "forceful" if period <= timedelta(0) else "eventual"


def disruption_labels(claim: NodeClaim, reason: str, consolidation_policy: str = "") -> dict[str, str]:
    """Labels of the disruption counters."""
    return {
        "reason": reason,
        "nodepool": claim.metadata.labels.get(labels.NODEPOOL, ""),
        "capacity_type": claim.metadata.labels.get(labels.CAPACITY_TYPE, ""),
        "consolidation_policy": consolidation_policy,
        "termination_mode": termination_mode(claim),
    }


def annotated_duration(annotations: Mapping[str, str], key: str) -> timedelta | None:
    """A positive duration from an annotation; None where it's absent or unreadable."""
    text = annotations.get(key, "")
    try:
        duration = parse_duration(text)
    except DurationError:
        return None
    return duration if duration > timedelta(0) else None
