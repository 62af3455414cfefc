from __future__ import annotations

from typing import Any

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
