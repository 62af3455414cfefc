"""Tags, the only record that Linode keeps for us: who owns a pool or instance, and which NodeClaim it serves.

A tag is a flat string of at most 50 characters; ours are ``key=value``. A value that is too long ends in a hash; the
full names also stand in the labels of a pool (spec/linode-provider.md 1.5, 4.5 and trap 5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.model import labels
from karpenter_linode.model.linode import MAX_TAG, MIN_TAG
from karpenter_linode.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CLUSTER_NAME: Final = "lke-cluster-name"
TEMPLATE_HASH: Final = "karpenter.k8s.linode/template-hash"
MANAGED: Final = f"{labels.LINODE_LKE_MANAGED}=true"
_HASH_DIGITS: Final = 8
_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193


class PoolIdentity(Struct, frozen=True, order=True):
    """What a pool is for. Two NodeClaims share a pool only if all of it is equal.

    Args:
        node_pool: NodePool name.
        instance_type: plan id.
        template: hash of labels, taints and the settings of the NodeClass that a pool carries.
    """

    node_pool: str
    instance_type: str
    template: str


def fnv1a(text: str) -> str:
    """32-bit FNV-1a as eight hexadecimal digits."""
    value = _FNV_OFFSET
    for byte in text.encode():
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return f"{value:0{_HASH_DIGITS}x}"


def tag(key: str, value: str, suffix: str = "") -> str:
    """``key=value`` within 50 characters; a value that is too long keeps its start and ends in its hash.

    Args:
        key: the tag's key.
        value: the part that may be shortened.
        suffix: goes behind the value and is never cut.
    """
    room = MAX_TAG - len(key) - 1 - len(suffix)
    if len(value) > room:
        value = f"{value[: room - _HASH_DIGITS - 1]}-{fnv1a(value)}"
    return f"{key}={value}{suffix}"


def claim_tag(node_claim: str) -> str:
    """The tag of an instance that serves a NodeClaim."""
    return tag(labels.NODECLAIM_TAG, node_claim)


def cluster_tag(cluster: str) -> str:
    """``kubernetes.io/cluster/<name>=owned``; here the name stands in the key."""
    prefix, suffix = "kubernetes.io/cluster/", "=owned"
    room = MAX_TAG - len(prefix) - len(suffix)
    name = cluster if len(cluster) <= room else f"{cluster[: room - _HASH_DIGITS - 1]}-{fnv1a(cluster)}"
    return f"{prefix}{name}{suffix}"


def pool_tags(identity: PoolIdentity, cluster: str, node_class: str, extra: Sequence[str] = ()) -> tuple[str, ...]:
    """The tags of a pool, without duplicates, in a fixed order.

    Args:
        identity: what the pool is for.
        cluster: cluster label.
        node_class: NodeClass name.
        extra: tags that the operator wants on every pool, so that other tools know to leave it alone.
    """
    return tuple(
        dict.fromkeys(
            (
                cluster_tag(cluster),
                tag(labels.NODEPOOL, identity.node_pool),
                tag(CLUSTER_NAME, cluster),
                tag(labels.LINODE_NODE_CLASS, node_class),
                MANAGED,
                tag(TEMPLATE_HASH, identity.template),
                *extra,
            ),
        ),
    )


def split(text: str) -> tuple[str, str] | None:
    """Key and value of ``key=value``, or None for an opaque tag (no ``=``, or one at either end)."""
    key, equals, value = text.partition("=")
    return (key, value) if equals and key and value else None


def value_of(tags: Iterable[str], key: str) -> str | None:
    """The value of the first ``key=value`` tag with that key."""
    pairs = (split(text) for text in tags)
    return next((pair[1] for pair in pairs if pair is not None and pair[0] == key), None)


def claimed_by(tags: Iterable[str]) -> tuple[str, ...]:
    """Claim tags on an instance, sorted; more than one is a fault of somebody."""
    prefix = f"{labels.NODECLAIM_TAG}="
    return tuple(sorted(text for text in tags if text.startswith(prefix) and len(text) > len(prefix)))


def merge(instance: Sequence[str], pool: Sequence[str], node_class: Sequence[str], claim: str) -> tuple[str, ...]:
    """The tags of a claimed instance: for equal keys the later wins, opaque tags stay, sorted, no duplicates.

    Opaque tags of the pool don't go to the instance (spec/linode-provider.md 4.5).
    """
    pairs: dict[str, str] = {}
    for text in (*instance, *pool, *node_class, claim):
        if (pair := split(text)) is not None:
            pairs[pair[0]] = text
    opaque = (text for text in (*instance, *node_class) if split(text) is None)
    return tuple(sorted({*pairs.values(), *opaque}))


def refuse_tags(node_class: str, tags: Iterable[str]) -> Reason | None:
    """Why the API would refuse the tags of a NodeClass, or None."""
    bad = tuple(text for text in tags if not MIN_TAG <= len(text) <= MAX_TAG)
    if not bad:
        return None
    message = f"LinodeNodeClass {node_class}: spec.tags must have {MIN_TAG} to {MAX_TAG} characters, found {list(bad)}"
    return Reason("tag-length", message, subject=f"LinodeNodeClass {node_class}")
