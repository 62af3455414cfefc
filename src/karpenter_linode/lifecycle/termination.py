"""Termination of a Node: taint, drain, volumes, instance, finalizer (spec/karpenter-lifecycle.md 2.1)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from karpenter_linode.cluster.view import is_managed_node
from karpenter_linode.lifecycle.conditions import ConditionSet, of_node_claim, with_conditions
from karpenter_linode.lifecycle.drain import plan_drain
from karpenter_linode.lifecycle.effects import (
    CloudDelete,
    CloudGet,
    Count,
    Delete,
    Effect,
    Evict,
    Fail,
    LogLine,
    Observe,
    Patch,
    PublishEvent,
    Requeue,
)
from karpenter_linode.lifecycle.patches import object_patch, status_patch
from karpenter_linode.lifecycle.timing import INSTANCE_POLL, NODE_POLL
from karpenter_linode.lifecycle.volumes import blocking_attachments
from karpenter_linode.model import labels
from karpenter_linode.model.condition_types import DRAINED, INSTANCE_TERMINATING, VOLUMES_DETACHED
from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.model.meta import is_true
from karpenter_linode.model.timestamps import parse_rfc3339
from karpenter_linode.model.wording import few
from karpenter_linode.scheduling.taints import DISRUPTED

if TYPE_CHECKING:
    from karpenter_linode.cluster.view import View

_MINIMUM_DRAIN: Final = timedelta(seconds=5)


class InstanceAnswers(Struct, frozen=True):
    """What the cloud answered in this round of deciding.

    Args:
        exists: to ``CloudGet``; None before it was asked.
        gone: to ``CloudDelete``: whether nothing is left; None before it was asked.
    """

    exists: bool | None = None
    gone: bool | None = None


class _Wait(Struct, frozen=True):
    """Where the sequence stands: conditions so far, effects, and whether the next stage may begin."""

    conditions: ConditionSet | None
    effects: tuple[Effect, ...] = ()
    passed: bool = True


def terminate_node(node: Node, view: View, now: datetime, answers: InstanceAnswers | None = None) -> list[Effect]:
    """Decide the next steps of a deleted Node that is ours.

    Args:
        node: the Node.
        view: the cluster.
        now: the time.
        answers: what the cloud said, when the call before ended with a question.

    A node that is not Ready and whose instance is gone has nobody to drain. Any other is drained, even if the cloud
    says that its instance is gone.
    """
    answers = answers or InstanceAnswers()
    if node.metadata.deletion_timestamp is None or labels.TERMINATION_FINALIZER not in node.metadata.finalizers:
        return []
    if not is_managed_node(node):
        return []
    claim = view.node_claim_of(node)
    effects: list[Effect] = []
    if claim is not None and claim.metadata.deletion_timestamp is None:
        effects.append(Delete(NodeClaim, claim.name, uid=claim.uid))
    if not is_true(node.status.conditions, "Ready") and node.spec.provider_id:
        if answers.exists is None:
            return [*effects, CloudGet(node.spec.provider_id)]
        if not answers.exists:
            return [*effects, *_released(node, claim, now)]
    try:
        deadline = _deadline(claim)
    except ValueError as error:
        return [*effects, Fail(f"parsing expiration time, {error}")]
    effects += _deadline_event(node, claim)
    effects += _tainted(node)
    return [*effects, *_sequence(node, claim, view, deadline, now, answers)]


def _sequence(
    node: Node,
    claim: NodeClaim | None,
    view: View,
    deadline: datetime | None,
    now: datetime,
    answers: InstanceAnswers,
) -> list[Effect]:
    conditions = of_node_claim(claim, now) if claim is not None else None
    stage = _drain(node, conditions, view.pods_on(node.name), deadline, now)
    effects = list(stage.effects)
    if stage.passed:
        stage = _detach(node, stage.conditions, view, deadline, now)
        effects += stage.effects
    if stage.passed and claim is not None:
        if answers.gone is None:
            return [*effects, *_recorded(claim, stage.conditions), CloudDelete(claim.status.provider_id)]
        stage = _terminate_instance(stage.conditions, gone=answers.gone)
        effects += stage.effects
    effects += _recorded(claim, stage.conditions)
    if stage.passed:
        effects += _released(node, claim, now)
    return effects


def _recorded(claim: NodeClaim | None, conditions: ConditionSet | None) -> list[Effect]:
    """The NodeClaim's new conditions, and the count of drained nodes where they say so for the first time."""
    effects = list(_claim_patch(claim, conditions))
    if claim is not None and conditions is not None and _newly_drained(claim, conditions):
        pool = claim.metadata.labels.get(labels.NODEPOOL, "")
        effects.append(Count("karpenter_nodes_drained_total", {"nodepool": pool}))
    return effects


def _drain(
    node: Node,
    conditions: ConditionSet | None,
    pods: tuple[Pod, ...],
    deadline: datetime | None,
    now: datetime,
) -> _Wait:
    if conditions is not None and not conditions.status(DRAINED):
        conditions = conditions.set_unknown(DRAINED, "Draining")
    drain = plan_drain(pods, deadline, now)
    if drain.waiting:
        due = tuple((pod.namespace, pod.name, pod.uid) for pod in (*drain.forced, *drain.evicted))
        message = f"Failed to drain node, {len(drain.waiting)} pods are waiting to be evicted"
        return _Wait(
            conditions,
            (
                Evict(due, deadline),
                PublishEvent(node, "Warning", "FailedDraining", message, (node.name,)),
                Requeue(NODE_POLL),
            ),
            passed=False,
        )
    if conditions is None:
        return _Wait(None)
    since = conditions.since(DRAINED)
    if conditions.status(DRAINED) == "Unknown" and since is not None and now - since < _MINIMUM_DRAIN:
        return _Wait(conditions, (Requeue(NODE_POLL),), passed=False)
    return _Wait(conditions.set_true(DRAINED))


def _detach(
    node: Node,
    conditions: ConditionSet | None,
    view: View,
    deadline: datetime | None,
    now: datetime,
) -> _Wait:
    attachments = blocking_attachments(node.name, view, now)
    if not attachments:
        return _Wait(conditions.set_true(VOLUMES_DETACHED) if conditions is not None else None)
    if deadline is not None and now > deadline:
        late = conditions.set_false(VOLUMES_DETACHED, "TerminationGracePeriodElapsed") if conditions else None
        return _Wait(late)
    message = f"Awaiting deletion of bound volumeattachments ({few([item.name for item in attachments])})"
    waiting = conditions.set_unknown(VOLUMES_DETACHED, "AwaitingVolumeDetachment") if conditions else None
    event = PublishEvent(node, "Normal", "AwaitingVolumeDetachment", message, (node.name,))
    return _Wait(waiting, (event, Requeue(NODE_POLL)), passed=False)


def _terminate_instance(conditions: ConditionSet | None, *, gone: bool) -> _Wait:
    terminating = conditions.set_true(INSTANCE_TERMINATING) if conditions is not None else None
    return _Wait(terminating, () if gone else (Requeue(INSTANCE_POLL),), passed=gone)


def _claim_patch(claim: NodeClaim | None, conditions: ConditionSet | None) -> list[Effect]:
    if claim is None or conditions is None:
        return []
    return [*status_patch(claim, with_conditions(claim, conditions))]


def _newly_drained(claim: NodeClaim, conditions: ConditionSet) -> bool:
    return conditions.is_true(DRAINED) and not is_true(claim.status.conditions, DRAINED)


def _tainted(node: Node) -> list[Effect]:
    tainted = cordoned(node)
    patches = object_patch(node, tainted, locked=True)
    if not patches or tainted.spec.taints == node.spec.taints:
        return [*patches]
    fields = {"taint.Key": DISRUPTED.key, "taint.Value": DISRUPTED.value, "taint.Effect": DISRUPTED.effect}
    return [*patches, LogLine("info", "tainted node", {"Node": node.name, **fields})]


def cordoned(node: Node) -> Node:
    """The Node with the disrupted taint, and out of load balancers."""
    kept = tuple(taint for taint in node.spec.taints if taint.key != DISRUPTED.key or taint.effect == DISRUPTED.effect)
    taints = kept if any(taint.key == DISRUPTED.key for taint in kept) else (*kept, DISRUPTED)
    excluded = {**node.metadata.labels, labels.EXCLUDE_FROM_LOAD_BALANCERS: "karpenter"}
    return replace(
        node,
        metadata=replace(node.metadata, labels=excluded),
        spec=replace(node.spec, taints=taints),
    )


def _deadline(claim: NodeClaim | None) -> datetime | None:
    text = claim.metadata.annotations.get(labels.TERMINATION_TIMESTAMP, "") if claim is not None else ""
    return parse_rfc3339(text) if text else None


def _deadline_event(node: Node, claim: NodeClaim | None) -> list[Effect]:
    text = claim.metadata.annotations.get(labels.TERMINATION_TIMESTAMP, "") if claim is not None else ""
    if not text:
        return []
    message = f"All pods will be deleted by {text}"
    return [PublishEvent(node, "Warning", "TerminationGracePeriodExpiring", message, (node.name,))]


def _released(node: Node, claim: NodeClaim | None, now: datetime) -> list[Effect]:
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": [labels.TERMINATION_FINALIZER]}}
    pool = node.metadata.labels.get(labels.NODEPOOL, "")
    deleted, created = node.metadata.deletion_timestamp or now, node.metadata.creation_timestamp or now
    fields = {"Node": node.name, **({"NodeClaim": claim.name} if claim is not None else {})}
    return [
        Patch(Node, node.name, patch, patch_kind="strategic"),
        LogLine("info", "deleted node", fields),
        Observe("karpenter_nodes_termination_duration_seconds", {"nodepool": pool}, now - deleted),
        Observe("karpenter_nodes_lifetime_duration_seconds", {"nodepool": pool}, now - created),
        Count(
            "karpenter_nodes_terminated_total",
            {"nodepool": pool, "zone": node.metadata.labels.get(labels.ZONE, "")},
        ),
    ]
