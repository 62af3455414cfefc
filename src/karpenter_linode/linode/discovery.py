"""Finds the LKE cluster that this process serves (spec/linode-provider.md 2.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from karpenter_linode.linode.plan_filter import ENTERPRISE, STANDARD
from karpenter_linode.ports import CloudError

if TYPE_CHECKING:
    from karpenter_linode.linode.client import LinodeClient


class Cluster(Struct, frozen=True):
    """The cluster, as far as pools and instances depend on it."""

    id: int
    label: str
    region: str
    tier: str
    k8s_version: str = ""


async def discover_cluster(client: LinodeClient, name: str, region: str = "") -> Cluster:
    """Find the cluster by its label.

    Args:
        client: the API.
        name: cluster label (``CLUSTER_NAME``).
        region: overrides the cluster's own region (``CLUSTER_REGION``).

    Raises:
        CloudError: not exactly one cluster has the label, or its tier is unknown, as it is with API version ``v4``.
        LinodeApiError: the API failed.
    """
    found = [cluster for cluster in await client.list_clusters(name) if cluster.label == name]
    if len(found) != 1:
        raise CloudError(f"could not determine LKE cluster with name: {name}")
    cluster = found[0]
    if cluster.tier not in {STANDARD, ENTERPRISE}:
        raise CloudError(
            f"LKE cluster {name} has tier {cluster.tier!r}, expected {STANDARD!r} or {ENTERPRISE!r}; "
            "LINODE_API_VERSION must be v4beta",
        )
    return Cluster(cluster.id, cluster.label, region or cluster.region, cluster.tier, cluster.k8s_version)
