"""Everything that the controller does to the API server, as RBAC sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.cluster.view import mirrored_kinds
from karpenter_linode.kube.cluster_info import Permission
from karpenter_linode.model import core, karpenter

if TYPE_CHECKING:
    from karpenter_linode.model.meta import KubeObject

LEASES = "coordination.k8s.io"


def permissions(
    *, with_devices: bool, with_spread: bool = False, lease_namespace: str = "", lease_name: str = ""
) -> tuple[Permission, ...]:
    """What must be allowed.

    Args:
        with_devices: whether DRA is on.
        with_spread: whether a default topology spread is set.
        lease_namespace: namespace of the lease, "" without leader election.
        lease_name: name of the lease.
    """
    mirrored = mirrored_kinds(with_devices=with_devices, with_spread=with_spread)
    reads = [_of(kind, verb) for kind in mirrored for verb in ("list", "watch")]
    writes = [
        _of(karpenter.LinodeNodeClass, "get"),
        _of(karpenter.LinodeNodeClass, "patch"),
        _of(karpenter.LinodeNodeClass, "patch", "status"),
        _of(karpenter.NodePool, "patch"),
        _of(karpenter.NodePool, "patch", "status"),
        *(_of(karpenter.NodeClaim, verb) for verb in ("create", "patch", "delete")),
        _of(karpenter.NodeClaim, "patch", "status"),
        _of(core.Node, "patch"),
        _of(core.Node, "delete"),
        _of(core.Pod, "delete"),
        _of(core.Pod, "create", "eviction"),
        _of(core.Event, "create"),
        _of(core.Event, "patch"),
    ]
    leases = [
        Permission(LEASES, "leases", "create", lease_namespace),
        *(Permission(LEASES, "leases", verb, lease_namespace, lease_name) for verb in ("get", "patch")),
    ]
    return (*reads, *writes, *(leases if lease_namespace else ()))


def _of(kind: type[KubeObject], verb: str, subresource: str = "") -> Permission:
    group, slash, _ = kind.API_VERSION.partition("/")
    return Permission(group if slash else "", f"{kind.PLURAL}/{subresource}" if subresource else kind.PLURAL, verb)
