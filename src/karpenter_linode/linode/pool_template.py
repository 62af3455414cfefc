"""The LKE pool that a NodeClaim asks for: identity, labels, taints, tags.

Rules: spec/linode-provider.md 4.3 and 4.9, traps 6 and 7.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.linode import tags
from karpenter_linode.linode.client import NewPool
from karpenter_linode.linode.plan_filter import ENTERPRISE
from karpenter_linode.model import codec, labels
from karpenter_linode.model.linode import LKETaint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from karpenter_linode.linode.discovery import Cluster
    from karpenter_linode.model.core import Taint
    from karpenter_linode.model.karpenter import LinodeNodeClass, NodeClaim

_RESERVED_DOMAINS: Final = ("kubernetes.io", "linode.com")
_MAX_LABEL_VALUE: Final = 63
_HASH_DIGITS: Final = 12
_UNREGISTERED: Final = LKETaint(labels.UNREGISTERED_TAINT, "", "NoExecute")


class PoolTemplate(Struct, frozen=True):
    """Everything that decides how a pool is made, and how its members are claimed.

    Args:
        identity: what the pool is for.
        labels: node labels that LKE sets on members, recycled ones too.
        taints: node taints likewise. Startup taints aren't among them: LKE would put them back on a recycled node, and
            Karpenter sets them itself when the node registers.
        tags: tags of the pool.
        node_class_tags: the user's tags, which go to the instances only.
        firewall_id: firewall of the members, or None.
        k8s_version: version of an enterprise pool, or None.
    """

    identity: tags.PoolIdentity
    labels: dict[str, str]
    taints: tuple[LKETaint, ...]
    tags: tuple[str, ...]
    node_class_tags: tuple[str, ...]
    firewall_id: int | None = None
    k8s_version: str | None = None

    def new_pool(self, count: int) -> NewPool:
        """The body that creates the pool."""
        return NewPool(
            type=self.identity.instance_type,
            count=count,
            tags=self.tags,
            labels=self.labels or None,
            taints=self.taints or None,
            firewall_id=self.firewall_id,
            k8s_version=self.k8s_version,
            update_strategy="on_recycle" if self.k8s_version is not None else None,
        )


def pool_template(
    node_claim: NodeClaim,
    node_class: LinodeNodeClass,
    instance_type: str,
    cluster: Cluster,
    extra_tags: Sequence[str] = (),
) -> PoolTemplate:
    """The pool for a NodeClaim on a plan.

    Args:
        node_claim: its labels and taints go to the pool as far as LKE takes them; Karpenter sets the others itself
            when the node registers.
        node_class: firewall, version and tags.
        instance_type: the chosen plan.
        cluster: the cluster.
        extra_tags: tags that the operator wants on every pool.
    """
    spec = node_class.spec
    node_labels = pool_labels(node_claim.metadata.labels)
    taints = pool_taints(node_claim.spec.taints)
    template = _digest(node_class.name, spec.firewall_id, node_labels, taints)
    identity = tags.PoolIdentity(node_claim.metadata.labels.get(labels.NODEPOOL, ""), instance_type, template)
    return PoolTemplate(
        identity=identity,
        labels=node_labels,
        taints=taints,
        tags=tags.pool_tags(identity, cluster.label, node_class.name, extra_tags),
        node_class_tags=spec.tags,
        firewall_id=spec.firewall_id or None,
        k8s_version=spec.lke_k8s_version or None if cluster.tier == ENTERPRISE else None,
    )


def pool_labels(wanted: Mapping[str, str]) -> dict[str, str]:
    """The labels that the API accepts on a pool, sorted by key."""
    return {
        key: wanted[key] for key in sorted(wanted) if not _reserved(key) and 0 < len(wanted[key]) <= _MAX_LABEL_VALUE
    }


def pool_taints(wanted: Sequence[Taint]) -> tuple[LKETaint, ...]:
    """The taints that the API accepts on a pool, behind the one that keeps pods away until the node has registered."""
    accepted = (LKETaint(taint.key, taint.value, taint.effect) for taint in wanted if not _reserved(taint.key))
    return tuple(dict.fromkeys((_UNREGISTERED, *accepted)))


def _reserved(key: str) -> bool:
    return any(domain in key for domain in _RESERVED_DOMAINS)


def _digest(node_class: str, firewall: int | None, node_labels: Mapping[str, str], taints: Sequence[LKETaint]) -> str:
    content = codec.encode([node_class, firewall, sorted(node_labels.items()), sorted(map(_taint_key, taints))])
    return hashlib.sha256(content).hexdigest()[:_HASH_DIGITS]


def _taint_key(taint: LKETaint) -> tuple[str, str, str]:
    return (taint.key, taint.value, taint.effect)
