"""From a snapshot to a ``Problem``: everything that a scheduling decision may depend on, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from karpenter_linode.cluster.assumed import Launches
from karpenter_linode.cluster.pending import displaced_pods
from karpenter_linode.model import core, karpenter, resource, workloads
from karpenter_linode.scheduling.default_spread import with_default_spread
from karpenter_linode.scheduling.pods import is_scheduled
from karpenter_linode.scheduling.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from karpenter_linode.cluster.pending import Pending
    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.scheduling.default_spread import Workload
    from karpenter_linode.scheduling.problem import SchedulingOptions, StateNode


def build_problem(
    view: View,
    pending: Pending,
    instance_types: Mapping[str, tuple[InstanceType, ...]],
    options: SchedulingOptions,
    now: datetime,
) -> Problem:
    """Pose the provisioning problem of this moment.

    Args:
        view: a snapshot.
        pending: its pods that call for capacity.
        instance_types: plans of each NodePool, by pool name.
        options: settings that change scheduling.
        now: the time of the decision.

    NodeClaims that aren't launched yet count as the plan that the launch would choose, so that a slow launch neither
    stops provisioning nor causes a second node.
    """
    displaced, launches = displaced_pods(view, now), Launches(instance_types)
    return Problem(
        pods=with_default_spread(
            (*pending.pods, *displaced), options.default_spread, view.all(workloads.Service), replicated(view)
        ),
        node_pools=view.all(karpenter.NodePool),
        instance_types=dict(sorted(instance_types.items())),
        nodes=tuple(_assumed(state, launches) for state in view.state_nodes(now)),
        bound_pods=tuple(pod for pod in view.all(core.Pod) if is_scheduled(pod)),
        daemon_sets=view.all(core.DaemonSet),
        namespaces=view.all(core.Namespace),
        resource_claims=view.all(resource.ResourceClaim),
        device_classes=view.all(resource.DeviceClass),
        resource_slices=view.all(resource.ResourceSlice),
        persistent_volume_claims=view.all(core.PersistentVolumeClaim),
        persistent_volumes=view.all(core.PersistentVolume),
        storage_classes=view.all(core.StorageClass),
        csi_nodes=view.all(core.CSINode),
        deleting_pod_uids=frozenset(pod.uid for pod in displaced),
        nominations=view.nominations,
        options=options,
        now=now,
    )


def replicated(view: View) -> tuple[Workload, ...]:
    """Controllers of replicated pods; none unless a default topology spread is set."""
    return (
        *view.all(workloads.ReplicationController),
        *view.all(workloads.ReplicaSet),
        *view.all(workloads.StatefulSet),
    )


def _assumed(state: StateNode, launches: Launches) -> StateNode:
    claim = state.node_claim
    if claim is None or claim.status.provider_id:
        return state
    return replace(state, node_claim=launches.assume(claim))
