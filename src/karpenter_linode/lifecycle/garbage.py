"""Garbage collection in both directions: NodeClaims without an instance, instances without a NodeClaim.

Sources: spec/karpenter-lifecycle.md 1.7, spec/linode-provider.md 5.4.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from karpenter_linode.cluster.view import is_supported
from karpenter_linode.lifecycle.effects import CloudDelete, Count, Delete, Effect, LogLine
from karpenter_linode.lifecycle.expiration import reschedulable_count
from karpenter_linode.lifecycle.step import NODE_CLAIMS_DISRUPTED, PODS_DISRUPTION_INITIATED, disruption_labels
from karpenter_linode.model.condition_types import REGISTERED
from karpenter_linode.model.core import Node
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.model.meta import is_true

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.instance import CloudInstance

ORPHAN_AGE: Final = timedelta(seconds=30)
UNCLAIMED_AGE: Final = timedelta(minutes=10)
_TAG_PREFIX: Final = 18  # what a tag keeps of a long NodeClaim name


def claims_without_instance(
    claims: Iterable[NodeClaim], instances: Iterable[CloudInstance], view: View
) -> list[Effect]:
    """Delete registered NodeClaims whose instance is gone.

    Args:
        claims: NodeClaims as they were *before* the cloud was asked, so that a new one can't look like a lost one.
        instances: what the cloud listed after that.
        view: the cluster.

    A node that still reports Ready is evidently alive: its NodeClaim stays.
    """
    alive = {item.provider_id for item in instances if not item.deleting}
    effects: list[Effect] = []
    for claim in claims:
        if not _is_candidate(claim) or claim.status.provider_id in alive:
            continue
        node = view.node_of(claim)
        if node is not None and is_true(node.status.conditions, "Ready"):
            continue
        fields = {
            "NodeClaim": claim.name,
            "Node": node.name if node is not None else "",
            "provider-id": claim.status.provider_id,
        }
        counted = disruption_labels(claim, "garbage_collected")
        effects += [
            Delete(NodeClaim, claim.name, uid=claim.uid),
            LogLine("debug", "garbage collecting nodeclaim with no cloudprovider representation", fields),
            Count(NODE_CLAIMS_DISRUPTED, counted),
            Count(PODS_DISRUPTION_INITIATED, counted, reschedulable_count(claim, view)),
        ]
    return effects


def _is_candidate(claim: NodeClaim) -> bool:
    return (
        is_supported(claim.spec.node_class_ref)
        and claim.metadata.deletion_timestamp is None
        and bool(claim.status.provider_id)
        and is_true(claim.status.conditions, REGISTERED)
    )


def orphans(
    instances: Iterable[CloudInstance],
    claims: Iterable[NodeClaim],
    seen_before: frozenset[str],
    now: datetime,
) -> tuple[CloudInstance, ...]:
    """Instances that no NodeClaim stands behind.

    Args:
        instances: what the cloud listed, *before* the NodeClaims were.
        claims: every NodeClaim.
        seen_before: provider ids that were orphans the last time too. Only they are returned: one sighting alone never
            costs an instance its life.
        now: the time.

    An instance whose NodeClaim exists but doesn't know its provider id yet is about to be adopted. One that nobody
    claimed gets more time, since a launch may be about to claim it.
    """
    claims = tuple(claims)
    expected = {
        claim.name[:_TAG_PREFIX]
        for claim in claims
        if not claim.status.provider_id and claim.metadata.deletion_timestamp is None
    }
    return tuple(
        item
        for item in _unclaimed(instances, claims)
        if item.provider_id in seen_before
        and item.node_claim[:_TAG_PREFIX] not in expected
        and (item.created is None or now - item.created > (ORPHAN_AGE if item.node_claim else UNCLAIMED_AGE))
    )


def suspects(instances: Iterable[CloudInstance], claims: Iterable[NodeClaim]) -> frozenset[str]:
    """Provider ids without a NodeClaim at this sighting."""
    return frozenset(item.provider_id for item in _unclaimed(instances, claims))


def _unclaimed(instances: Iterable[CloudInstance], claims: Iterable[NodeClaim]) -> Iterator[CloudInstance]:
    known = {claim.status.provider_id for claim in claims}
    return (item for item in instances if not item.deleting and item.provider_id not in known)


def collect_orphan(item: CloudInstance, view: View) -> list[Effect]:
    """Remove an orphaned instance and the Node it left behind."""
    effects: list[Effect] = []
    for node in view.nodes_of(item.provider_id):
        effects += [
            Delete(Node, node.name, uid=node.uid),
            LogLine("debug", "garbage collected node", {"Node": node.name, "provider-id": item.provider_id}),
        ]
    told = LogLine("debug", "garbage collected cloudprovider instance", {"provider-id": item.provider_id})
    return [*effects, told, CloudDelete(item.provider_id)]
