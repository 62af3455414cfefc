from __future__ import annotations

from typing import Any

import msgspec
import pytest

from karpenter_linode.model.core import TopologySpreadConstraint
from karpenter_linode.model.meta import LabelSelector, ObjectMeta
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
from karpenter_linode.model.workloads import (
    PlainSelectorSpec,
    ReplicaSet,
    ReplicationController,
    SelectorSpec,
    Service,
    StatefulSet,
)
from karpenter_linode.scheduling.default_spread import SpreadSelectors, constraint_errors, with_default_spread

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
DEFAULT = TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway")


def owned(make: Any, kind: str, api_version: str = "apps/v1", *, controller: bool = True, **given: Any) -> Any:
    owner = {"apiVersion": api_version, "kind": kind, "name": "o", "uid": "u", "controller": controller}
    return make.pod(metadata={"ownerReferences": [owner]}, **given)


def service(namespace: str, selector: dict[str, str] | None = None) -> Service:
    return Service(ObjectMeta(name="s", namespace=namespace), PlainSelectorSpec(selector))


META = ObjectMeta(name="o", namespace="default")
OWNERS = (
    ReplicaSet(META, SelectorSpec(LabelSelector({"app": "x"}))),
    StatefulSet(META, SelectorSpec(LabelSelector({}, (NodeSelectorRequirement("tier", "Exists"),)))),
    ReplicationController(META, PlainSelectorSpec({"app": "x"})),
)


def test_a_replica_sets_selector_is_added_as_expressions(make: Any) -> None:
    pod = owned(make, "ReplicaSet", labels={"app": "x", "volatile": "1"})
    assert SpreadSelectors((), OWNERS).of(pod) == LabelSelector({}, (NodeSelectorRequirement("app", "In", ("x",)),))


def test_a_stateful_sets_selector_is_added_to_that_of_services(make: Any) -> None:
    pod = owned(make, "StatefulSet", labels={"app": "y", "tier": "db"})
    found = SpreadSelectors([service("default", {"app": "y"})], OWNERS).of(pod)
    assert found == LabelSelector({"app": "y"}, (NodeSelectorRequirement("tier", "Exists"),))


def test_a_controller_that_is_not_there_is_named(make: Any) -> None:
    pod = owned(make, "ReplicaSet", labels={"app": "x"})
    assert SpreadSelectors((), ()).of(pod) is None
    assert SpreadSelectors((), ()).lost_owner(pod) == "ReplicaSet default/o"
    assert SpreadSelectors((), OWNERS).lost_owner(pod) == ""
    assert SpreadSelectors((), ()).lost_owner(owned(make, "Job", "batch/v1")) == ""


def test_a_replication_controllers_selector_overwrites_labels(make: Any) -> None:
    pod = owned(make, "ReplicationController", "v1", labels={"app": "y"})
    services = (service("default", {"app": "y"}),)
    assert SpreadSelectors(services, OWNERS).of(pod) == LabelSelector({"app": "x"})


@pytest.mark.parametrize(("kind", "controller"), [("Job", True), ("ReplicaSet", False)])
def test_other_owners_say_nothing(make: Any, kind: str, *, controller: bool) -> None:
    assert SpreadSelectors((), OWNERS).of(owned(make, kind, controller=controller)) is None


def test_services_that_select_the_pod_are_merged_others_are_not(make: Any) -> None:
    pod = make.pod(labels={"app": "x", "tier": "web"})
    services = [
        service("default", {"app": "x"}),
        service("default", {"tier": "web"}),
        service("default", {"app": "y"}),
        service("default"),
        service("default", {}),
    ]
    assert SpreadSelectors(services, ()).of(pod) == LabelSelector({"app": "x", "tier": "web"})


def test_pods_with_rules_of_their_own_and_pods_nobody_selects_stay_as_they_are(make: Any) -> None:
    own = make.pod(
        topologySpreadConstraints=[{"topologyKey": ZONE, "maxSkew": 5, "whenUnsatisfiable": "DoNotSchedule"}]
    )
    unknown = make.pod()
    other = make.pod(namespace="other", labels={"app": "x"})
    services = [service("default", {"app": "x"})]
    assert with_default_spread([own, unknown, other], [DEFAULT], services, ()) == (own, unknown, other)


def test_the_selected_pod_is_spread(make: Any) -> None:
    pods = [make.pod(labels={"app": "x"}) for _ in range(4)]
    spread = with_default_spread(pods, [DEFAULT], [service("default", {"app": "x"})], ())
    claims = make.solve(spread).new_node_claims
    assert sorted(len(claim.pods) for claim in claims) == [1, 1, 2]


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (TopologySpreadConstraint(max_skew=0, topology_key=ZONE), ".maxSkew must be greater than 0"),
        (TopologySpreadConstraint(), ".topologyKey must be set"),
        (TopologySpreadConstraint(topology_key="-"), '.topologyKey "-" is not a valid label name'),
        (
            TopologySpreadConstraint(topology_key="a", when_unsatisfiable="Never"),
            '.whenUnsatisfiable "Never" must be one of "DoNotSchedule" or "ScheduleAnyway"',
        ),
        (
            TopologySpreadConstraint(topology_key="a", label_selector=LabelSelector()),
            ".labelSelector must not be set, as selectors are deduced for each pod",
        ),
        (
            TopologySpreadConstraint(topology_key="a", match_label_keys=("b",)),
            ".matchLabelKeys must not be set, as it has no effect on default constraints",
        ),
    ],
)
def test_faulty_defaults(constraint: TopologySpreadConstraint, text: str) -> None:
    prefix = "validating scheduler config, podTopologySpread.defaultConstraints[1]"
    assert constraint_errors([DEFAULT, constraint]).startswith(prefix + text)


def test_duplicate_defaults() -> None:
    assert constraint_errors([DEFAULT, DEFAULT]).endswith(f"[1] is a duplicate of [0], {{{ZONE}, ScheduleAnyway}}")
    assert constraint_errors([DEFAULT]) == ""


def replica_set(name: str, **labels: str) -> ReplicaSet:
    return ReplicaSet(ObjectMeta(name=name, namespace="default"), SelectorSpec(LabelSelector(labels)))


def of_set(make: Any, name: str, count: int, **labels: str) -> list[Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"uid-{name}", "controller": True}
    return [
        make.pod(metadata={"ownerReferences": [owner]}, labels={**labels, "volatile": str(number)})
        for number in range(count)
    ]


def constraint(key: str, action: str = "DoNotSchedule", **more: Any) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(topology_key=key, when_unsatisfiable=action, **more)


def counts(solution: Any) -> list[int]:
    return sorted(len(claim.pods) for claim in solution.new_node_claims)


def test_a_default_for_hosts_gives_each_pod_a_node(make: Any) -> None:
    pods = of_set(make, "web", 4, app="web")
    spread = with_default_spread(pods, [constraint(HOSTNAME)], (), [replica_set("web", app="web")])
    assert counts(make.solve(spread)) == [1, 1, 1, 1]
    assert len(make.solve(pods).new_node_claims) == 1


@pytest.mark.parametrize(("action", "placed"), [("DoNotSchedule", 1), ("ScheduleAnyway", 3)])
def test_a_default_that_cannot_be_met_holds_pods_back_only_where_it_says_so(
    make: Any, action: str, placed: int
) -> None:
    pool = make.pool(requirements=[(ZONE, "In", "test-zone-1")])
    default = constraint(ZONE, action, min_domains=2 if action == "DoNotSchedule" else None)
    pods = with_default_spread(of_set(make, "web", 3, app="web"), [default], (), [replica_set("web", app="web")])
    assert sum(counts(make.solve(pods, [pool]))) == placed


def test_running_pods_of_the_workload_count(make: Any) -> None:
    nodes = [make.node(f"n{zone}", labels={ZONE: f"test-zone-{zone}"}, allocatable={"pods": "1"}) for zone in (1, 2)]
    running = [make.running(node.node.name, labels={"app": "web"}) for node in nodes]
    pods = with_default_spread(
        of_set(make, "web", 1, app="web"), [constraint(ZONE)], (), [replica_set("web", app="web")]
    )
    (claim,) = make.solve(pods, nodes=nodes, bound_pods=running).new_node_claims
    (zone,) = [item for item in claim.node_claim.spec.requirements if item.key == ZONE]
    assert zone.values == ("test-zone-3",)


def test_workloads_and_revisions_of_one_are_spread_each_by_itself(make: Any) -> None:
    sets = [
        replica_set("web-1", app="web", **{"pod-template-hash": "1"}),
        replica_set("web-2", app="web", **{"pod-template-hash": "2"}),
        replica_set("db", app="db"),
    ]
    pods = [
        *of_set(make, "web-1", 2, app="web", **{"pod-template-hash": "1"}),
        *of_set(make, "web-2", 2, app="web", **{"pod-template-hash": "2"}),
        *of_set(make, "db", 2, app="db"),
    ]
    spread = with_default_spread(pods, [constraint(HOSTNAME)], (), sets)
    assert counts(make.solve(spread)) == [3, 3]
    wanted = [
        NodeSelectorRequirement(key, "In", (value,)) for key, value in (("app", "web"), ("pod-template-hash", "1"))
    ]
    assert spread[0].spec.topology_spread_constraints[0].label_selector == LabelSelector({}, tuple(wanted))


def test_a_replica_set_that_contradicts_a_service_selects_nothing(make: Any) -> None:
    pods = with_default_spread(
        of_set(make, "web", 3, app="web"),
        [constraint(HOSTNAME)],
        [service("default", {"app": "web"})],
        [replica_set("web", app="other")],
    )
    assert counts(make.solve(pods)) == [3]  # no pod counts, so none is apart from another


def test_what_was_deduced_for_one_pod_is_not_taken_for_another(make: Any) -> None:
    services = [service("default", {"app": "web"}), service("other", {"app": "web", "tier": "x"})]
    labels = {"app": "web", "tier": "x"}
    pods = [make.pod(labels=labels), make.pod(labels=labels, namespace="other"), make.pod(labels={"app": "db"})]
    selectors = SpreadSelectors(services, ())
    assert [selectors.of(pod) for pod in pods] == [LabelSelector({"app": "web"}), LabelSelector(labels), None]


def test_every_field_of_a_default_is_kept(make: Any) -> None:
    default = constraint(ZONE, max_skew=4, min_domains=2, node_affinity_policy="Ignore", node_taints_policy="Honor")
    (pod,) = with_default_spread(of_set(make, "web", 1, app="web"), [default], (), [replica_set("web", app="web")])
    (found,) = pod.spec.topology_spread_constraints
    assert msgspec.structs.replace(found, label_selector=None) == default
