"""What a scrape reads from the mirrored cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from karpenter_linode.cluster.state import ClusterState
from karpenter_linode.controllers.pod_times import PodTimes
from karpenter_linode.model import kinds
from karpenter_linode.operator.metric_table import METRICS
from karpenter_linode.operator.scrape import read_cluster

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
Series = dict[tuple[tuple[str, str], ...], float]


def at(minutes: float) -> str:
    return (NOW - timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def cluster(*objects: dict[str, Any]) -> ClusterState:
    state = ClusterState()
    for number, plain in enumerate(objects):
        metadata = {"uid": f"uid-{plain['kind']}-{plain['metadata']['name']}", "resourceVersion": str(number + 1)}
        state.observe(kinds.from_manifest({**plain, "metadata": {**metadata, **plain["metadata"]}}))
    return state


def read(state: ClusterState, **times: PodTimes) -> dict[str, Series]:
    """Values by metric and labels; labels without a value are left out."""
    found: dict[str, Series] = {}
    for name, values, value in read_cluster(state.snapshot(), times, NOW):
        spec = METRICS[name]
        assert spec.read
        labels = tuple((label, text) for label, text in zip(spec.labels, values, strict=True) if text)
        series = found.setdefault(name, {})
        assert labels not in series, f"{name} {labels} twice"
        series[labels] = value
    return found


def by(series: Series, label: str) -> dict[str, float]:
    return {dict(labels)[label]: value for labels, value in series.items()}


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "n",
        "creationTimestamp": at(60),
        "labels": {
            "karpenter.sh/nodepool": "gpu",
            "karpenter.k8s.linode/linodenodeclass": "default",
            "karpenter.sh/initialized": "true",
            "node.kubernetes.io/instance-type": "g6-standard-2",
            "topology.kubernetes.io/region": "us-ord",
            "topology.kubernetes.io/zone": "us-ord",
            "karpenter.sh/capacity-type": "on-demand",
            "kubernetes.io/arch": "amd64",
        },
    },
    "spec": {"providerID": "linode://1"},
    "status": {
        "capacity": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"},
        "allocatable": {"cpu": "1500m", "memory": "3Gi", "nvidia.com/gpu": "1"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": at(50)}],
    },
}


def pod(name: str, node: str = "", phase: str = "Pending", **metadata: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": "250m"}, "limits": {"cpu": "500m"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "creationTimestamp": at(10), **metadata},
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": resources}]},
        "status": {"phase": phase},
    }


DAEMON = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "d"}]}


def test_a_node_is_told_with_its_labels_and_what_its_pods_ask_for() -> None:
    found = read(
        cluster(NODE, pod("a", "n", "Running"), pod("b", "n", "Running", **DAEMON), pod("done", "n", "Succeeded"))
    )
    (labels,) = found["karpenter_nodes_current_lifetime_seconds"]
    assert dict(labels) == {
        "node_name": "n",
        "managed": "true",
        "nodepool": "gpu",
        "instance_type": "g6-standard-2",
        "region": "us-ord",
        "zone": "us-ord",
        "capacity_type": "on-demand",
        "arch": "amd64",
    }
    assert found["karpenter_nodes_current_lifetime_seconds"][labels] == 3600
    allocatable = by(found["karpenter_nodes_allocatable"], "resource_type")
    assert allocatable == {"cpu": 1.5, "memory": 3 * 2**30, "nvidia.com/gpu": 1}
    assert by(found["karpenter_nodes_system_overhead"], "resource_type")["memory"] == 2**30
    assert by(found["karpenter_nodes_total_pod_requests"], "resource_type") == {"cpu": 0.5, "pods": 2}
    assert by(found["karpenter_nodes_total_pod_limits"], "resource_type") == {"cpu": 1}
    assert by(found["karpenter_nodes_total_daemon_requests"], "resource_type") == {"cpu": 0.25, "pods": 1}
    assert by(found["karpenter_nodes_total_daemon_limits"], "resource_type") == {"cpu": 0.5}
    utilization = by(found["karpenter_cluster_utilization_percent"], "resource_type")
    assert utilization["cpu"] == pytest.approx(100 / 3)
    assert utilization["memory"] == 0


def test_nodes_of_others_are_told_too() -> None:
    found = read(cluster({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "m", "creationTimestamp": at(1)}}))
    (labels,) = found["karpenter_nodes_current_lifetime_seconds"]
    assert dict(labels) == {"node_name": "m", "managed": "false"}
    assert "karpenter_cluster_utilization_percent" not in found


def test_limits_count_the_start_of_a_pod() -> None:
    heavy = pod("a", "n", "Running")
    heavy["spec"]["initContainers"] = [
        {"name": "sidecar", "restartPolicy": "Always", "resources": {"limits": {"cpu": "100m"}}},
        {"name": "setup", "resources": {"limits": {"cpu": "2"}}},
    ]
    found = read(cluster(NODE, heavy))
    assert by(found["karpenter_nodes_total_pod_limits"], "resource_type") == {"cpu": 2.1}


def test_a_pod_is_told_with_where_and_how_it_is() -> None:
    owner = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r"}]}
    running = pod("web-1", "n", "Running", **owner)
    running["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "True"},
        {"type": "Ready", "status": "True"},
    ]
    state = cluster(NODE, running)
    (labels,) = read(state)["karpenter_pods_state"]
    assert dict(labels) == {
        "name": "web-1",
        "namespace": "team",
        "owner": "/apis/apps/v1/namespaces/team/replicasets/web",
        "node": "n",
        "scheduled": "true",
        "nodepool": "gpu",
        "zone": "us-ord",
        "arch": "amd64",
        "capacity_type": "on-demand",
        "instance_type": "g6-standard-2",
        "phase": "Running",
        "ready": "true",
        "managed": "true",
    }
    assert "karpenter_pods_unstarted_time_seconds" not in read(state)
    state.forget(kinds.from_manifest(running))
    assert "karpenter_pods_state" not in read(state)


def test_pods_that_do_not_run_tell_how_long_they_have_waited() -> None:
    state = cluster(NODE, pod("free"), pod("bound", "n"), pod("new"))
    times = {
        "uid-Pod-free": PodTimes(seen=NOW - timedelta(minutes=9), decided=NOW, schedulable=NOW - timedelta(minutes=2)),
        "uid-Pod-bound": PodTimes(schedulable=NOW - timedelta(minutes=3), bound=True),
        "uid-Pod-new": PodTimes(seen=NOW - timedelta(minutes=4)),
    }
    found = {
        name.removeprefix("karpenter_pods_"): by(series, "name")
        for name, series in read(state, **times).items()
        if name.startswith("karpenter_pods_") and name != "karpenter_pods_state"
    }
    assert found == {
        "unbound_time_seconds": {"free": 600, "new": 600},
        "unstarted_time_seconds": {"free": 600, "bound": 600, "new": 600},
        "provisioning_unbound_time_seconds": {"free": 120},
        "provisioning_unstarted_time_seconds": {"free": 120, "bound": 180},
        "provisioning_scheduling_undecided_time_seconds": {"new": 240},
    }


def test_a_node_pool_tells_its_limits_its_usage_and_the_room_for_disruption() -> None:
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {"limits": {"cpu": "10"}, "disruption": {"budgets": [{"nodes": "1"}]}},
        "status": {"resources": {"cpu": "2500m", "ephemeral-storage": "1Gi", "nodes": "1"}},
    }
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "gpu-1", "labels": {**NODE["metadata"]["labels"]}},
        "status": {"providerID": "linode://1", "conditions": [{"type": "Initialized", "status": "True"}]},
    }
    found = read(cluster(pool, claim, NODE))
    assert by(found["karpenter_nodepools_limit"], "resource_type") == {"cpu": 10}
    assert by(found["karpenter_nodepools_usage"], "resource_type") == {
        "cpu": 2.5,
        "ephemeral_storage": 2**30,
        "nodes": 1,
    }
    assert found["karpenter_nodepools_allowed_disruptions"] == {(("nodepool", "gpu"), ("reason", "Empty")): 1}
    assert found["karpenter_nodepools_nodes_consuming_budgets"] == {(("nodepool", "gpu"), ("reason", "Empty")): 0}


def test_conditions_and_deletions_are_told_as_long_as_the_object_is_there() -> None:
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": "gpu-1",
            "deletionTimestamp": at(1),
            "labels": {"karpenter.sh/nodepool": "gpu", "karpenter.k8s.linode/linodenodeclass": "default"},
        },
        "status": {
            "conditions": [{"type": "Launched", "status": "True", "reason": "Launched", "lastTransitionTime": at(5)}]
        },
    }
    state = cluster(claim, NODE)
    found = read(state)
    extra = {"karpenter_k8s_linode_linodenodeclass": "default", "karpenter_sh_nodepool": "gpu"}
    condition = {"name": "gpu-1", "type": "Launched", "status": "True", "reason": "Launched"}
    whole = {"group": "karpenter.sh", "kind": "NodeClaim"}
    for prefix, labels in (("operator_nodeclaim_", extra), ("operator_", whole)):
        (series,) = found[f"{prefix}status_condition_count"].items()
        assert (dict(series[0]), series[1]) == ({**condition, **labels}, 1)
        assert list(found[f"{prefix}status_condition_current_status_seconds"].values()) == [300]
        ((deleting, seconds),) = found[f"{prefix}termination_current_time_seconds"].items()
        assert (dict(deleting), seconds) == ({"name": "gpu-1", **labels}, 60)
    (node,) = found["operator_node_status_condition_current_status_seconds"].items()
    assert dict(node[0])["karpenter_sh_initialized"] == "true"
    assert node[1] == 3000
    state.forget(kinds.from_manifest(claim))
    assert "operator_nodeclaim_status_condition_count" not in read(state)
