"""Instances: what a cloud built for a NodeClaim, and what it lists (spec/karpenter-scheduling.md 5.1)."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field

from karpenter_linode.model.core import ResourceList


class Launched(Struct, frozen=True):
    """What the cloud built for a NodeClaim, or found that it had built before."""

    provider_id: str
    instance_type: str = ""
    capacity: ResourceList = field(default_factory=dict)
    allocatable: ResourceList = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    image_id: str = ""


class CloudInstance(Struct, frozen=True):
    """An instance that belongs to this cluster and provider.

    Args:
        node_claim: the NodeClaim it was built for, as far as the cloud keeps a long name; "" while none has claimed it.
        created: when it was built; None counts as long ago.
        deleting: whether it is on its way out.
    """

    provider_id: str
    instance_type: str = ""
    node_claim: str = ""
    node_pool: str = ""
    created: datetime | None = None
    deleting: bool = False
