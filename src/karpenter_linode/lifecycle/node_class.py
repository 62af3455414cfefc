"""LinodeNodeClass: finalizer, validation and ``Ready`` (spec/linode-provider.md 1.4, 1.6 and 5.1)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from karpenter_linode.lifecycle.conditions import of_node_class
from karpenter_linode.lifecycle.effects import Effect, PublishEvent, Requeue
from karpenter_linode.lifecycle.patches import object_patch, status_patch
from karpenter_linode.lifecycle.timing import NOW
from karpenter_linode.model import labels
from karpenter_linode.model.condition_types import VALIDATION_SUCCEEDED
from karpenter_linode.model.linode import MAX_TAG, MIN_TAG
from karpenter_linode.model.wording import few

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.karpenter import LinodeNodeClass, NodeClaim

_AGAIN: Final = timedelta(minutes=10)
_RESERVED_TAGS: Final = (
    labels.NODEPOOL,
    labels.LINODE_NODE_CLASS,
    labels.LINODE_LKE_MANAGED,
    labels.NODECLAIM_TAG,
    "lke-cluster-name",
    "Name",
    "nodepool",
)
_RESERVED_TAG_PREFIX: Final = "kubernetes.io/cluster/"


def reconcile_node_class(node_class: LinodeNodeClass, view: View, now: datetime) -> list[Effect]:
    """Decide the next steps of a LinodeNodeClass: a valid one becomes Ready, a deleted one waits for its NodeClaims."""
    if node_class.metadata.deletion_timestamp is not None:
        return _terminate(node_class, view.node_claims_of_class(node_class.name))
    if labels.LINODE_TERMINATION_FINALIZER not in node_class.metadata.finalizers:
        finalizers = (*node_class.metadata.finalizers, labels.LINODE_TERMINATION_FINALIZER)
        kept = replace(node_class, metadata=replace(node_class.metadata, finalizers=finalizers))
        return [*object_patch(node_class, kept, locked=True), Requeue(NOW)]
    conditions = of_node_class(node_class, now)
    error = tag_error(node_class.spec.tags)
    if error is None:
        conditions = conditions.set_true(VALIDATION_SUCCEEDED)
    else:
        conditions = conditions.set_false(VALIDATION_SUCCEEDED, "TagValidationFailed", error)
    judged = replace(node_class, status=replace(node_class.status, conditions=conditions.conditions))
    again = [Requeue(_AGAIN)] if error is None else []
    return [*status_patch(node_class, judged), *again]


def tag_error(tags: Iterable[str]) -> str | None:
    """What is wrong with a node class's tags, or None: the provider's own keys are reserved, and tags have a length."""
    reserved = [tag for tag in tags if _is_reserved(tag)]
    if reserved:
        return f"tags use keys that the provider manages: {', '.join(map(repr, reserved))}"
    misfits = [tag for tag in tags if not MIN_TAG <= len(tag) <= MAX_TAG]
    return f"tags must have {MIN_TAG} to {MAX_TAG} characters: {', '.join(map(repr, misfits))}" if misfits else None


def _is_reserved(tag: str) -> bool:
    key, equals, value = tag.partition("=")
    if not (key and equals and value):
        return False
    return key in _RESERVED_TAGS or key.startswith(_RESERVED_TAG_PREFIX)


def _terminate(node_class: LinodeNodeClass, claims: tuple[NodeClaim, ...]) -> list[Effect]:
    if labels.LINODE_TERMINATION_FINALIZER not in node_class.metadata.finalizers:
        return []
    if claims:
        message = f"Waiting on NodeClaim termination for {few([claim.name for claim in claims])}"
        event = PublishEvent(node_class, "Normal", "WaitingOnNodeClaimTermination", message, (node_class.uid,))
        return [event, Requeue(_AGAIN)]
    finalizers = tuple(item for item in node_class.metadata.finalizers if item != labels.LINODE_TERMINATION_FINALIZER)
    released = replace(node_class, metadata=replace(node_class.metadata, finalizers=finalizers))
    return [*object_patch(node_class, released, locked=True)]
