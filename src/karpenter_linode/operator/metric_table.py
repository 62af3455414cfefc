"""Every metric of the controller, under the contract's name where there is one.

Sources: spec/karpenter-lifecycle.md 7.1, spec/linode-provider.md 5.6, and for controllers and work queues the names of
controller-runtime. ``NOT_THERE`` says which of the contract's metrics are not here, and why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from karpenter_linode.model import core, karpenter, labels

if TYPE_CHECKING:
    from karpenter_linode.model.meta import KubeObject

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400
DURATIONS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0),
    *(40.0, 50.0, 60.0, 120.0, 150.0, 300.0, 450.0, 600.0),
)
_DEFAULT: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_RECONCILES: Final = tuple(bound for bound in DURATIONS if bound <= _MINUTE)
_QUEUES: Final = tuple(float(f"1e{exponent}") for exponent in range(-8, 4))
_TRANSITIONS: Final = tuple(0.5 * (1 << exponent) for exponent in range(15))
_LIFETIMES: Final = (
    *(float(minutes * _MINUTE) for minutes in (15, 30, 45)),
    *(float(hours * _HOUR) for hours in (1, 2, 4, 6, 8, 10, 12, 16, 20)),
    *(float(days * _DAY) for days in (1, 2, 3, 5, 10, 15, 20, 25, 30)),
)
_DISRUPTED: Final = ("reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode")
_DECISION: Final = ("decision", "reason", "consolidation_type")
_POD: Final = ("name", "namespace")


class MetricSpec(Struct, frozen=True):
    """A metric.

    Args:
        kind: its type.
        labels: its labels.
        help: what it tells.
        buckets: of a histogram.
        read: made up from the mirrored cluster at each scrape, so that a series ends with its object; nobody sets it.
    """

    kind: Literal["counter", "gauge", "histogram", "summary"]
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()
    read: bool = False


def label_name(key: str) -> str:
    """A Kubernetes label key as a Prometheus label: ``karpenter.sh/nodepool`` is ``karpenter_sh_nodepool``."""
    return "".join("_" if sign in "/.-" else sign for sign in key)


def _node_label(key: str) -> str:
    return key.partition("/")[2].replace("-", "_").lower()


NODE_LABELS: Final = {
    _node_label(key): tuple(other for other in sorted(labels.WELL_KNOWN) if _node_label(other) == _node_label(key))
    for key in sorted(labels.WELL_KNOWN)
}
"""Labels of the metrics of nodes, and the node labels that each is taken from: the first that is there."""

CONDITION_KINDS: Final[dict[type[KubeObject], tuple[str, ...]]] = {
    karpenter.NodeClaim: (labels.LINODE_NODE_CLASS, labels.NODEPOOL),
    karpenter.NodePool: (),
    core.Node: (labels.LINODE_NODE_CLASS, labels.NODEPOOL, labels.INITIALIZED),
    karpenter.LinodeNodeClass: (),
}
"""Kinds whose conditions are counted, and the labels of their objects that the metrics carry."""


def _counter(names: tuple[str, ...], text: str) -> MetricSpec:
    return MetricSpec("counter", names, text)


def _gauge(names: tuple[str, ...], text: str) -> MetricSpec:
    return MetricSpec("gauge", names, text)


def _read(names: tuple[str, ...], text: str) -> MetricSpec:
    return MetricSpec("gauge", names, text, read=True)


def _histogram(names: tuple[str, ...], text: str, buckets: tuple[float, ...] = DURATIONS) -> MetricSpec:
    return MetricSpec("histogram", names, text, buckets)


def _doubling(count: int) -> tuple[float, ...]:
    return tuple(float(1 << exponent) for exponent in range(count))


_PROCESS: Final[dict[str, MetricSpec]] = {
    "karpenter_build_info": _read(
        ("version", "goversion", "goarch", "commit"), "1, labelled with what this program is."
    ),
    "leader_election_master_status": _read(("name",), "1 while this process leads."),
    "client_go_request_total": _counter(("code", "method"), "Requests to the API server."),
    "client_go_request_duration_seconds": _histogram(
        ("verb", "group", "version", "kind", "subresource"), "How long they took."
    ),
    "rest_client_requests_total": _counter(("code", "method", "host"), "Requests to the API server, by its host."),
    "controller_runtime_reconcile_total": _counter(
        ("controller", "result"), "Reconciles, by outcome: success, requeue, requeue_after or error."
    ),
    "controller_runtime_reconcile_errors_total": _counter(("controller",), "Reconciles that failed."),
    "controller_runtime_reconcile_panics_total": _counter(
        ("controller",), "Reconciles that failed by a fault of this program."
    ),
    "controller_runtime_reconcile_time_seconds": _histogram(("controller",), "How long they took.", _RECONCILES),
    "controller_runtime_active_workers": _read(("controller",), "Workers that are busy now."),
    "controller_runtime_max_concurrent_reconciles": _read(("controller",), "Objects worked on at a time, at most."),
    "workqueue_depth": _read(("name", "controller"), "Objects that wait for a worker now."),
    "workqueue_unfinished_work_seconds": _read(
        ("name", "controller"), "How long the work that is under way has taken so far, in all."
    ),
    "workqueue_longest_running_processor_seconds": _read(
        ("name", "controller"), "How long the oldest work that is under way has taken so far."
    ),
    "workqueue_adds_total": _counter(("name", "controller"), "Objects put into the queue."),
    "workqueue_retries_total": _counter(("name", "controller"), "Objects put back after a failure."),
    "workqueue_queue_duration_seconds": _histogram(
        ("name", "controller"), "How long objects waited for a worker.", _QUEUES
    ),
    "workqueue_work_duration_seconds": _histogram(("name", "controller"), "How long workers took.", _QUEUES),
}

_NODE_CLAIMS: Final[dict[str, MetricSpec]] = {
    "karpenter_nodeclaims_created_total": _counter(("reason", "nodepool", "min_values_relaxed"), "NodeClaims created."),
    "karpenter_nodeclaims_terminated_total": _counter(
        ("nodepool", "capacity_type", "zone"), "NodeClaims whose end is complete."
    ),
    "karpenter_nodeclaims_disrupted_total": _counter(_DISRUPTED, "NodeClaims given up, by reason."),
    "karpenter_nodeclaims_termination_duration_seconds": _histogram(
        ("nodepool",), "From the deletion of a NodeClaim to its end.", _doubling(12)
    ),
    "karpenter_nodeclaims_instance_termination_duration_seconds": _histogram(
        ("nodepool",), "From the call that deletes an instance to its end.", _doubling(11)
    ),
}

_NODES: Final[dict[str, MetricSpec]] = {
    "karpenter_nodes_created_total": _counter(("nodepool", "zone"), "Nodes that joined."),
    "karpenter_nodes_terminated_total": _counter(("nodepool", "zone"), "Nodes whose end is complete."),
    "karpenter_nodes_termination_duration_seconds": MetricSpec(
        "summary", ("nodepool",), "From the deletion of a Node to its end."
    ),
    "karpenter_nodes_drained_total": _counter(("nodepool",), "Nodes drained."),
    "karpenter_nodes_lifetime_duration_seconds": _histogram(("nodepool",), "How long Nodes lived.", _LIFETIMES),
    **{
        f"karpenter_nodes_{name}": _read((*NODE_LABELS, "node_name", "phase", "managed", "resource_type"), text)
        for name, text in (
            ("allocatable", "What a node offers to pods."),
            ("total_pod_requests", "What the pods of a node ask for."),
            ("total_pod_limits", "What the pods of a node are limited to."),
            ("total_daemon_requests", "What the DaemonSet pods of a node ask for."),
            ("total_daemon_limits", "What the DaemonSet pods of a node are limited to."),
            ("system_overhead", "What a node has and does not offer to pods."),
        )
    },
    "karpenter_nodes_current_lifetime_seconds": _read((*NODE_LABELS, "node_name", "phase", "managed"), "A node's age."),
    "karpenter_cluster_utilization_percent": _read(
        ("resource_type",), "What all pods ask for, in hundredths of what all nodes offer."
    ),
}

_PODS: Final[dict[str, MetricSpec]] = {
    "karpenter_pods_state": _read(
        (
            *("name", "namespace", "owner", "node", "scheduled", "nodepool", "zone", "arch"),
            *("capacity_type", "instance_type", "phase", "ready", "managed"),
        ),
        "1 for each pod, labelled with where and how it is.",
    ),
    "karpenter_pods_startup_duration_seconds": MetricSpec(
        "summary", (), "From the creation of a pod to its readiness, for pods that were seen pending."
    ),
    "karpenter_pods_bound_duration_seconds": _histogram((), "From the creation of a pod to its binding."),
    "karpenter_pods_provisioning_bound_duration_seconds": _histogram(
        (), "From the first scheduling decision that had a place for a pod to its binding."
    ),
    "karpenter_pods_provisioning_startup_duration_seconds": _histogram(
        (), "From the first scheduling decision that had a place for a pod to its readiness."
    ),
    "karpenter_pods_scheduling_decision_duration_seconds": _histogram(
        (), "From the moment a pod was first seen pending to the first scheduling decision about it."
    ),
    "karpenter_pods_unbound_time_seconds": _read(_POD, "Age of a pod that is not bound."),
    "karpenter_pods_unstarted_time_seconds": _read(_POD, "Age of a pod that is not running."),
    "karpenter_pods_provisioning_unbound_time_seconds": _read(
        _POD, "Since the first scheduling decision that had a place for a pod that is not bound."
    ),
    "karpenter_pods_provisioning_unstarted_time_seconds": _read(
        _POD, "Since the first scheduling decision that had a place for a pod that is not running."
    ),
    "karpenter_pods_provisioning_scheduling_undecided_time_seconds": _read(
        _POD, "Since a pod without any scheduling decision was first seen pending."
    ),
    "karpenter_pods_eviction_requests_total": _counter(("code",), "Evictions asked for, by answer."),
    "karpenter_pods_drained_total": _counter(("reason",), "Pods drained, by reason."),
    "karpenter_pods_disruption_initiated_total": _counter(
        _DISRUPTED, "Pods that had to move because their node was given up."
    ),
}

_DISRUPTION: Final[dict[str, MetricSpec]] = {
    "karpenter_voluntary_disruption_decision_evaluation_duration_seconds": _histogram(
        ("reason", "consolidation_type"), "How long a decision took, the wait before it is looked at again included."
    ),
    "karpenter_voluntary_disruption_decisions_total": _counter(_DECISION, "Disruptions decided."),
    "karpenter_voluntary_disruption_decisions_by_nodepool_total": _counter(
        ("nodepool", *_DECISION), "Disruptions decided, by NodePool."
    ),
    "karpenter_voluntary_disruption_eligible_nodes": _gauge(("reason",), "Nodes that could be disrupted now."),
    "karpenter_voluntary_disruption_failed_validations_total": _counter(
        ("consolidation_type",), "Disruptions that did not hold when looked at again."
    ),
    "karpenter_nodepools_allowed_disruptions": _read(
        ("nodepool", "reason"), "Nodes that the budgets allow to disrupt now."
    ),
    "karpenter_nodepools_nodes_consuming_budgets": _read(
        ("nodepool", "reason"), "Nodes that count against the budgets now."
    ),
    "karpenter_nodepools_limit": _read(("nodepool", "resource_type"), "Limit of a NodePool."),
    "karpenter_nodepools_usage": _read(("nodepool", "resource_type"), "What the nodes of a NodePool come to."),
}

_STATE: Final[dict[str, MetricSpec]] = {
    "karpenter_cluster_state_node_count": _read((), "Nodes and NodeClaims that are known."),
    "karpenter_cluster_state_synced": _read((), "1 once every kind was listed."),
    "karpenter_cluster_state_unsynced_time_seconds": _read((), "How long kinds have been waited for; 0 once synced."),
    "karpenter_scheduler_scheduling_duration_seconds": _histogram(
        ("controller",), "How long a scheduling simulation took."
    ),
    "karpenter_scheduler_queue_depth": _read(
        ("controller", "scheduling_id"), "Pods that wait for their turn in the simulation that is under way."
    ),
    "karpenter_scheduler_unfinished_work_seconds": _read(
        ("controller", "scheduling_id"), "How long the simulation that is under way has taken so far."
    ),
    "karpenter_scheduler_ignored_pods_count": _gauge((), "Pods that scheduling does not look at."),
    "karpenter_scheduler_unschedulable_pods_count": _gauge(
        ("controller",), "Pods without a place in the last simulation."
    ),
    "karpenter_scheduler_pending_pods_by_effective_zone_count": _gauge(
        ("controller", "zone"), "Pending pods by the zone that they can run in, `flexible` or `none`."
    ),
}

_CLOUD: Final[dict[str, MetricSpec]] = {
    "karpenter_cloudprovider_duration_seconds": _histogram(
        ("controller", "method", "provider"), "How long calls of the cloud provider took.", _DEFAULT
    ),
    "karpenter_cloudprovider_errors_total": _counter(
        ("controller", "method", "provider", "error"), "Calls of the cloud provider that failed."
    ),
    "karpenter_cloudprovider_instance_type_cpu_cores": _read(("instance_type",), "CPUs of a plan."),
    "karpenter_cloudprovider_instance_type_memory_bytes": _read(("instance_type",), "Memory of a plan."),
    "karpenter_cloudprovider_instance_type_offering_available": _read(
        ("instance_type", "capacity_type", "region"), "1 where any NodePool can have the plan now."
    ),
    "karpenter_cloudprovider_instance_type_offering_price_estimate": _read(
        ("instance_type", "capacity_type", "region"), "Dollars per hour."
    ),
    "karpenter_linode_api_requests_total": _counter(("method", "route", "code"), "Requests to the Linode API."),
    "karpenter_linode_api_request_duration_seconds": _histogram(("method", "route"), "How long they took."),
    "karpenter_linode_api_ratelimit_remaining": _gauge(
        ("method", "route"), "Requests that the Linode API allows until its window ends."
    ),
    "karpenter_linode_create_duration_seconds": _histogram(
        ("tier", "outcome"), "How long one attempt to create a node took: created, retried, no_capacity or failed."
    ),
    "karpenter_linode_pool_members": _read(
        ("nodepool", "type", "state"), "Members of our LKE pools: claimed by a NodeClaim, unclaimed, or leaving."
    ),
    "karpenter_linode_watch_staleness_seconds": _read(("resource",), "Since a watch last heard of the API server."),
    "karpenter_linode_watch_reconnects": _read((), "Watches opened again after a fault, in all."),
    "karpenter_linode_unreadable_objects": _read((), "Objects that could not be read, in all."),
    "karpenter_linode_events_dropped": _read((), "Events dropped by rate limits or faults, in all."),
}


def _of_conditions(prefix: str, extra: tuple[str, ...], of: str) -> dict[str, MetricSpec]:
    each = ("namespace", "name", "type", "status", "reason", *extra)
    return {
        f"{prefix}status_condition_transition_seconds": _histogram(
            ("type", "status", *extra), f"How long conditions of {of} kept a status.", _TRANSITIONS
        ),
        f"{prefix}status_condition_count": _read(each, f"1 for each condition of {of}."),
        f"{prefix}status_condition_current_status_seconds": _read(each, f"How long conditions of {of} have been so."),
        f"{prefix}status_condition_transitions_total": _counter(
            ("type", "status", "reason", *extra), f"Conditions of {of} that changed their status."
        ),
        f"{prefix}termination_current_time_seconds": _read(
            ("namespace", "name", *extra), f"How long the deletion of {of} has taken so far."
        ),
        f"{prefix}termination_duration_seconds": _histogram(extra, f"How long the deletion of {of} took.", _DEFAULT),
    }


_CONDITIONS: Final[dict[str, MetricSpec]] = {
    name: spec
    for kind, keys in CONDITION_KINDS.items()
    for name, spec in _of_conditions(
        f"operator_{kind.KIND.lower()}_", tuple(map(label_name, keys)), f"{kind.KIND} objects"
    ).items()
} | _of_conditions("operator_", ("group", "kind"), "objects of every kind but Node")

METRICS: Final[dict[str, MetricSpec]] = {
    **_PROCESS,
    **_NODE_CLAIMS,
    **_NODES,
    **_PODS,
    **_DISRUPTION,
    **_STATE,
    **_CLOUD,
    **_CONDITIONS,
}
"""Every metric, by name."""

NOT_THERE: Final = {
    "karpenter_nodeclaims_unhealthy_disrupted_total": "unhealthy nodes are not repaired",
    "karpenter_voluntary_disruption_consolidation_timeouts_total": "nodes are not consolidated",
    "karpenter_voluntary_disruption_queue_failures_total": "there is no queue: a disruption ends within its pass",
    "karpenter_consolidation_score": "nodes are not consolidated",
    "karpenter_consolidation_moves_total": "nodes are not consolidated",
    "karpenter_nodepools_cost_total": "costs are not tracked",
    "karpenter_nodepools_cost_tracker_errors_total": "costs are not tracked",
    "operator_capacitybuffer_*": "there are no capacity buffers",
}
"""Metrics of the contract that are not registered, and why."""
