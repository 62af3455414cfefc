"""What the emulated cloud tells a cluster: machines that have become nodes, and machines that are gone."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from karpenter_linode.model.linode import LKETaint


class NodeBooted(Struct, frozen=True):
    """A machine has booted: its Kubernetes node appears now.

    Args:
        node_name: Kubernetes node name, the Linode's label too.
        provider_id: ``linode://<id>``.
        instance_type: plan id.
        region: region id.
        cluster_id: LKE cluster.
        pool_id: LKE pool.
        labels: labels that LKE and the cloud controller manager set (no zone among them), and those of the pool.
        taints: the pool's taints.
        host_uuid: the host that the machine runs on.
        created: when the machine was built.
    """

    node_name: str
    provider_id: str
    instance_type: str
    region: str
    cluster_id: int
    pool_id: int
    labels: dict[str, str]
    taints: tuple[LKETaint, ...]
    host_uuid: str
    created: datetime


class NodeGone(Struct, frozen=True):
    """A machine doesn't exist any more, whether or not it had become a node."""

    node_name: str
    provider_id: str


CloudEvent = NodeBooted | NodeGone
