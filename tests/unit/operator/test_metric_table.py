"""The names, types, labels and buckets that dashboards are made for; and summaries with quantiles."""

from __future__ import annotations

import io
import math

import pytest
from prometheus_client.parser import text_string_to_metric_families

from karpenter_linode.operator.logging import JsonLogger
from karpenter_linode.operator.metric_table import DURATIONS, METRICS, NODE_LABELS, NOT_THERE, label_name
from karpenter_linode.operator.metrics import PrometheusMetrics
from karpenter_linode.operator.quantiles import QuantileSummary

DISRUPTED = "reason nodepool capacity_type consolidation_policy termination_mode"
DECISION = "decision reason consolidation_type"
POD = "name namespace"
CONTRACT = {
    "build_info": ("gauge", "version goversion goarch commit"),
    "nodeclaims_created_total": ("counter", "reason nodepool min_values_relaxed"),
    "nodeclaims_terminated_total": ("counter", "nodepool capacity_type zone"),
    "nodeclaims_disrupted_total": ("counter", DISRUPTED),
    "pods_disruption_initiated_total": ("counter", DISRUPTED),
    "nodeclaims_termination_duration_seconds": ("histogram", "nodepool"),
    "nodeclaims_instance_termination_duration_seconds": ("histogram", "nodepool"),
    "nodeclaims_unhealthy_disrupted_total": ("counter", "condition nodepool capacity_type image_id"),
    "nodes_created_total": ("counter", "nodepool zone"),
    "nodes_terminated_total": ("counter", "nodepool zone"),
    "nodes_termination_duration_seconds": ("summary", "nodepool"),
    "nodes_drained_total": ("counter", "nodepool"),
    "nodes_lifetime_duration_seconds": ("histogram", "nodepool"),
    **{
        f"nodes_{name}": ("gauge", " ".join([*NODE_LABELS, "node_name phase managed resource_type"]))
        for name in (
            *("allocatable", "total_pod_requests", "total_pod_limits", "total_daemon_requests"),
            *("total_daemon_limits", "system_overhead"),
        )
    },
    "nodes_current_lifetime_seconds": ("gauge", " ".join([*NODE_LABELS, "node_name phase managed"])),
    "cluster_utilization_percent": ("gauge", "resource_type"),
    "pods_state": (
        "gauge",
        "name namespace owner node scheduled nodepool zone arch capacity_type instance_type phase ready managed",
    ),
    "pods_startup_duration_seconds": ("summary", ""),
    "pods_unstarted_time_seconds": ("gauge", POD),
    "pods_unbound_time_seconds": ("gauge", POD),
    "pods_bound_duration_seconds": ("histogram", ""),
    "pods_provisioning_bound_duration_seconds": ("histogram", ""),
    "pods_provisioning_startup_duration_seconds": ("histogram", ""),
    "pods_provisioning_unbound_time_seconds": ("gauge", POD),
    "pods_provisioning_unstarted_time_seconds": ("gauge", POD),
    "pods_provisioning_scheduling_undecided_time_seconds": ("gauge", POD),
    "pods_scheduling_decision_duration_seconds": ("histogram", ""),
    "pods_eviction_requests_total": ("counter", "code"),
    "pods_drained_total": ("counter", "reason"),
    "voluntary_disruption_decision_evaluation_duration_seconds": ("histogram", "reason consolidation_type"),
    "voluntary_disruption_decisions_total": ("counter", DECISION),
    "voluntary_disruption_decisions_by_nodepool_total": ("counter", f"nodepool {DECISION}"),
    "voluntary_disruption_eligible_nodes": ("gauge", "reason"),
    "voluntary_disruption_consolidation_timeouts_total": ("counter", "consolidation_type"),
    "voluntary_disruption_failed_validations_total": ("counter", "consolidation_type"),
    "voluntary_disruption_queue_failures_total": ("counter", DECISION),
    "consolidation_score": ("histogram", "decision nodepool policy"),
    "consolidation_moves_total": ("counter", "decision nodepool policy"),
    "nodepools_allowed_disruptions": ("gauge", "nodepool reason"),
    "nodepools_nodes_consuming_budgets": ("gauge", "nodepool reason"),
    "nodepools_limit": ("gauge", "nodepool resource_type"),
    "nodepools_usage": ("gauge", "nodepool resource_type"),
    "nodepools_cost_total": ("gauge", "nodepool"),
    "nodepools_cost_tracker_errors_total": ("counter", "nodepool"),
    "cluster_state_node_count": ("gauge", ""),
    "cluster_state_synced": ("gauge", ""),
    "cluster_state_unsynced_time_seconds": ("gauge", ""),
    "scheduler_scheduling_duration_seconds": ("histogram", "controller"),
    "scheduler_queue_depth": ("gauge", "controller scheduling_id"),
    "scheduler_unfinished_work_seconds": ("gauge", "controller scheduling_id"),
    "scheduler_ignored_pods_count": ("gauge", ""),
    "scheduler_unschedulable_pods_count": ("gauge", "controller"),
    "scheduler_pending_pods_by_effective_zone_count": ("gauge", "controller zone"),
    "cloudprovider_duration_seconds": ("histogram", "controller method provider"),
    "cloudprovider_errors_total": ("counter", "controller method provider error"),
    "cloudprovider_instance_type_cpu_cores": ("gauge", "instance_type"),
    "cloudprovider_instance_type_memory_bytes": ("gauge", "instance_type"),
    "cloudprovider_instance_type_offering_available": ("gauge", "instance_type capacity_type region"),
    "cloudprovider_instance_type_offering_price_estimate": ("gauge", "instance_type capacity_type region"),
    "linode_api_requests_total": ("counter", "method route code"),
    "linode_pool_members": ("gauge", "nodepool type state"),
    "linode_create_duration_seconds": ("histogram", "tier outcome"),
}
OBJECT_LABELS = {
    "nodeclaim": "karpenter_k8s_linode_linodenodeclass karpenter_sh_nodepool",
    "nodepool": "",
    "node": "karpenter_k8s_linode_linodenodeclass karpenter_sh_nodepool karpenter_sh_initialized",
    "linodenodeclass": "",
}


@pytest.mark.parametrize("name", CONTRACT)
def test_a_metric_of_the_contract_is_there_or_it_is_said_why_not(name: str) -> None:
    full = f"karpenter_{name}"
    if full in NOT_THERE:
        assert full not in METRICS
        return
    kind, labels = CONTRACT[name]
    assert (METRICS[full].kind, sorted(METRICS[full].labels)) == (kind, sorted(labels.split()))


def test_nothing_else_is_said_to_be_missing() -> None:
    named = {name for name in NOT_THERE if not name.endswith("*")}
    assert named <= {f"karpenter_{name}" for name in CONTRACT}


@pytest.mark.parametrize("kind", OBJECT_LABELS)
def test_conditions_are_told_for_each_kind(kind: str) -> None:
    extra, prefix = OBJECT_LABELS[kind].split(), f"operator_{kind}_"
    told = {
        name.removeprefix(prefix): (spec.kind, spec.labels) for name, spec in METRICS.items() if name.startswith(prefix)
    }
    each = ("namespace", "name", "type", "status", "reason", *extra)
    assert told == {
        "status_condition_transition_seconds": ("histogram", ("type", "status", *extra)),
        "status_condition_count": ("gauge", each),
        "status_condition_current_status_seconds": ("gauge", each),
        "status_condition_transitions_total": ("counter", ("type", "status", "reason", *extra)),
        "termination_current_time_seconds": ("gauge", ("namespace", "name", *extra)),
        "termination_duration_seconds": ("histogram", tuple(extra)),
    }


def test_names_of_controller_runtime_and_of_clients_are_kept() -> None:
    labels = {name: " ".join(spec.labels) for name, spec in METRICS.items()}
    for name, names in {
        "controller_runtime_reconcile_total": "controller result",
        "controller_runtime_reconcile_errors_total": "controller",
        "controller_runtime_reconcile_time_seconds": "controller",
        "controller_runtime_active_workers": "controller",
        "controller_runtime_max_concurrent_reconciles": "controller",
        "workqueue_depth": "name controller",
        "workqueue_adds_total": "name controller",
        "client_go_request_total": "code method",
        "client_go_request_duration_seconds": "verb group version kind subresource",
        "rest_client_requests_total": "code method host",
        "leader_election_master_status": "name",
    }.items():
        assert labels[name] == names, name


def test_buckets_are_those_of_the_contract() -> None:
    assert len(DURATIONS) == 45
    assert (DURATIONS[0], DURATIONS[-1]) == (0.005, 600)
    assert METRICS["karpenter_nodeclaims_termination_duration_seconds"].buckets[-1] == 2048
    assert METRICS["karpenter_nodeclaims_instance_termination_duration_seconds"].buckets[-1] == 1024
    assert METRICS["operator_node_status_condition_transition_seconds"].buckets[:3] == (0.5, 1, 2)
    assert METRICS["operator_node_status_condition_transition_seconds"].buckets[-1] == 8192
    lifetimes = METRICS["karpenter_nodes_lifetime_duration_seconds"].buckets
    assert (lifetimes[0], lifetimes[3], lifetimes[-1], len(lifetimes)) == (900, 3600, 30 * 86400, 21)
    for spec in METRICS.values():
        assert list(spec.buckets) == sorted(set(spec.buckets))
        assert bool(spec.buckets) is (spec.kind == "histogram")


def test_label_keys_become_names_that_prometheus_takes() -> None:
    assert label_name("karpenter.k8s.linode/linodenodeclass") == "karpenter_k8s_linode_linodenodeclass"
    assert {"nodepool", "capacity_type", "instance_type", "zone", "arch", "instance_gpu_count"} <= set(NODE_LABELS)


def test_every_metric_is_told_once_and_well() -> None:
    metrics = PrometheusMetrics(JsonLogger([io.StringIO()]))
    families = [family.name for family in text_string_to_metric_families(metrics.text().decode())]
    assert len(families) == len(set(families))
    assert {name.removesuffix("_total") for name in METRICS} <= set(families)


def summary() -> tuple[QuantileSummary, list[float]]:
    """A summary and its time."""
    time = [0.0]
    return QuantileSummary("waiting_seconds", "How long.", ("pool",), lambda: time[0]), time


def values(of: QuantileSummary) -> dict[str, float]:
    (family,) = of.collect()
    return {sample.labels.get("quantile", sample.name): sample.value for sample in family.samples}


def test_quantiles_are_values_that_were_seen() -> None:
    told, _ = summary()
    for value in range(100, 0, -1):
        told.observe({"pool": "a"}, value)
    assert values(told) == {
        "0": 1,
        "0.5": 50,
        "0.9": 90,
        "0.99": 99,
        "1": 100,
        "waiting_seconds_count": 100,
        "waiting_seconds_sum": 5050,
    }


def test_quantiles_forget_what_count_and_sum_keep() -> None:
    told, time = summary()
    told.observe({"pool": "a"}, 1000)
    time[0] = 599
    told.observe({"pool": "a"}, 1)
    assert values(told)["1"] == 1000
    time[0] = 601
    assert (values(told)["1"], values(told)["waiting_seconds_sum"]) == (1, 1001)
    time[0] = 2000
    assert math.isnan(values(told)["0.5"])
    assert values(told)["waiting_seconds_count"] == 2


def test_a_flood_of_samples_takes_no_more_memory() -> None:
    told, _ = summary()
    for value in range(10_000):
        told.observe({"pool": "a"}, value)
    assert values(told)["0"] == 9000
    assert values(told)["waiting_seconds_count"] == 10_000
