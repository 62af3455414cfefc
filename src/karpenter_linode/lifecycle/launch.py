"""Launch: from a NodeClaim without an instance to one with a provider id (spec/karpenter-lifecycle.md 1.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from karpenter_linode.lifecycle.conditions import of_node_claim, with_conditions
from karpenter_linode.lifecycle.effects import CloudCreate, Count, Delete, Effect, Fail, LogLine, PublishEvent
from karpenter_linode.lifecycle.step import NODE_CLAIMS_DISRUPTED, Step, disruption_labels
from karpenter_linode.model import labels
from karpenter_linode.model.condition_types import LAUNCHED
from karpenter_linode.model.instance import Launched
from karpenter_linode.model.karpenter import NodeClaim

if TYPE_CHECKING:
    from datetime import datetime

_MAX_MESSAGE: Final = 300


class LaunchFailed(Struct, frozen=True):
    """Why the cloud built nothing.

    Args:
        kind: the first two end the NodeClaim, the others are tried again.
        message: the error's text.
        reason: reason for the ``Launched`` condition, for ``create-error``.
    """

    kind: Literal["insufficient-capacity", "node-class-not-ready", "create-error", "error"]
    message: str
    reason: str = ""


LaunchAnswer = Launched | LaunchFailed
_ENDS_CLAIM: Final = frozenset({"insufficient-capacity", "node-class-not-ready"})


def ends_claim(answer: LaunchAnswer) -> bool:
    """Whether the NodeClaim is deleted for this answer, so that its pods are scheduled anew."""
    return isinstance(answer, LaunchFailed) and answer.kind in _ENDS_CLAIM


def launch(claim: NodeClaim, answer: LaunchAnswer | None, now: datetime) -> Step:
    """Ask the cloud for an instance, or take in its answer.

    Args:
        claim: a NodeClaim with our finalizer.
        answer: what the cloud said to the ``CloudCreate`` of the call before; None before it was asked.
        now: the time.
    """
    conditions = of_node_claim(claim, now)
    if conditions.status(LAUNCHED) != "Unknown":
        return Step(with_conditions(claim, conditions.refresh(LAUNCHED)))
    if answer is None:
        return Step(with_conditions(claim, conditions), (CloudCreate(claim),), stop=True)
    if isinstance(answer, Launched):
        return _launched(claim, answer, now)
    if ends_claim(answer):
        return Step(claim, _given_up(claim, answer), stop=True)
    reason = answer.reason if answer.kind == "create-error" else "LaunchFailed"
    failed = conditions.set_unknown(LAUNCHED, reason, _truncated(answer.message))
    return Step(with_conditions(claim, failed), (Fail(f"launching nodeclaim, {answer.message}"),))


def _launched(claim: NodeClaim, answer: Launched, now: datetime) -> Step:
    metadata = replace(
        claim.metadata,
        labels={**answer.labels, **claim.metadata.labels},
        annotations={**claim.metadata.annotations, **answer.annotations},
    )
    status = replace(
        claim.status,
        provider_id=answer.provider_id,
        image_id=answer.image_id,
        capacity=answer.capacity,
        allocatable=answer.allocatable,
    )
    launched = replace(claim, metadata=metadata, status=status)
    line = LogLine(
        "info",
        "launched nodeclaim",
        {
            "NodeClaim": claim.name,
            "provider-id": answer.provider_id,
            "instance-type": launched.metadata.labels.get(labels.INSTANCE_TYPE, answer.instance_type),
            "zone": launched.metadata.labels.get(labels.ZONE, ""),
            "capacity-type": launched.metadata.labels.get(labels.CAPACITY_TYPE, ""),
            "allocatable": {name: str(amount) for name, amount in sorted(answer.allocatable.items())},
        },
    )
    return Step(with_conditions(launched, of_node_claim(launched, now).set_true(LAUNCHED)), (line,))


def _given_up(claim: NodeClaim, answer: LaunchFailed) -> tuple[Effect, ...]:
    insufficient = answer.kind == "insufficient-capacity"
    event = PublishEvent(
        claim,
        "Warning",
        "InsufficientCapacityError",
        f"NodeClaim {claim.name} event: {_truncated(answer.message)}",
        (claim.uid,),
    )
    return (
        *((event,) if insufficient else ()),
        LogLine("error", "failed launching nodeclaim", {"NodeClaim": claim.name, "error": answer.message}),
        Delete(NodeClaim, claim.name, uid=claim.uid),
        Count(
            NODE_CLAIMS_DISRUPTED,
            disruption_labels(claim, "insufficient_capacity" if insufficient else "nodeclass_not_ready"),
        ),
    )


def _truncated(message: str) -> str:
    return message if len(message) < _MAX_MESSAGE else message[:_MAX_MESSAGE] + "..."
