"""Topology spread, pod affinity and anti-affinity (spec/karpenter-scheduling.md 8.11 and 8.12)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
APP = {"app": "x"}


def spread(key: str = ZONE, skew: int = 1, when: str = "DoNotSchedule", **more: Any) -> dict[str, Any]:
    constraint = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": when, "labelSelector": {"matchLabels": APP}}
    return {"topologySpreadConstraints": [{**constraint, **more}]}


def term(key: str, labels: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels or APP}, **more}


def together(key: str, labels: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(key, labels, **more)]}}
    }


def apart(key: str, labels: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term(key, labels, **more)]}
    return {"affinity": {"podAntiAffinity": required}}


def domains(solution: Any, key: str = ZONE) -> list[int]:
    """Pods per domain of new claims, ascending; open claims count as None."""
    counts: Counter[str | None] = Counter()
    for claim in solution.new_node_claims:
        values = [item.values for item in claim.node_claim.spec.requirements if item.key == key]
        counts[values[0][0] if values and len(values[0]) == 1 else None] += len(claim.pods)
    return sorted(counts.values())


def hosts(solution: Any) -> list[int]:
    return sorted(len(claim.pods) for claim in solution.new_node_claims)


# Spread


def test_zonal_spread_is_even(make: Any) -> None:
    solution = make.solve([make.pod(labels=APP, **spread()) for _ in range(4)])
    assert domains(solution) == [1, 1, 2]


def test_match_expressions_select_as_well(make: Any) -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]}
    solution = make.solve([make.pod(labels=APP, **spread(labelSelector=selector)) for _ in range(4)])
    assert domains(solution) == [1, 1, 2]


def test_the_pool_limits_the_zones(make: Any) -> None:
    pool = make.pool(requirements=[(ZONE, "In", "test-zone-1", "test-zone-2")])
    assert domains(make.solve([make.pod(labels=APP, **spread()) for _ in range(4)], [pool])) == [2, 2]


def test_zones_of_two_pools_together(make: Any) -> None:
    pools = [make.pool(zone, requirements=[(ZONE, "In", zone)]) for zone in ("test-zone-1", "test-zone-2")]
    assert domains(make.solve([make.pod(labels=APP, **spread()) for _ in range(4)], pools)) == [2, 2]


def test_an_unknown_key_cannot_be_spread_over_others_are_not_hurt(make: Any) -> None:
    solution = make.solve([make.pod("bad", labels=APP, **spread("unknown")), make.pod("good", labels=APP)])
    assert [item.pod.name for item in solution.unplaced] == ["bad"]
    assert solution.unplaced[0].reason.message == (
        "unsatisfiable topology constraint for topology spread, key=unknown "
        "(counts = , podDomains = unknown Exists, nodeDomains = unknown Exists"
    )


def test_no_selector_spreads_nothing(make: Any) -> None:
    pods = [make.pod(labels=APP, **spread(labelSelector=None)) for _ in range(2)]
    assert hosts(make.solve(pods)) == [2]


def test_running_pods_count(make: Any) -> None:
    node = make.node("n", labels={ZONE: "test-zone-3"}, allocatable={"pods": "1"})
    running = make.running("n", labels=APP)
    pool = make.pool(requirements=[(ZONE, "In", "test-zone-1", "test-zone-2")])
    pods = [make.pod(labels=APP, **spread()) for _ in range(6)]
    solution = make.solve(pods, [pool], nodes=[node], bound_pods=[running])
    assert domains(solution) == [2, 2]
    assert len(solution.unplaced) == 2


@pytest.mark.parametrize(
    "running",
    [
        {"status": {"phase": "Succeeded"}},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"namespace": "other"},
        {"labels": {"app": "y"}},
    ],
)
def test_pods_that_do_not_count(make: Any, running: dict[str, Any]) -> None:
    node = make.node("n", labels={ZONE: "test-zone-1"}, allocatable={"cpu": "0"})
    bound = make.pod(nodeName="n", **{"labels": APP, **running})
    pool = make.pool(requirements=[(ZONE, "In", "test-zone-1", "test-zone-2")])
    pods = [make.pod(labels=APP, requests={"cpu": "1"}, **spread()) for _ in range(2)]
    solution = make.solve(pods, [pool], nodes=[node], bound_pods=[bound])
    assert domains(solution) == [1, 1]


def test_pods_that_are_placed_now_are_not_counted_where_they_were(make: Any) -> None:
    node = make.node("n", labels={ZONE: "test-zone-1"}, marked_for_deletion=True)
    moving = make.pod("moving", nodeName="n", labels=APP, status={"phase": "Running", "conditions": []}, **spread())
    pool = make.pool(requirements=[(ZONE, "In", "test-zone-1")])
    solution = make.solve(
        [moving], [pool], nodes=[node], bound_pods=[moving], deleting_pod_uids=frozenset({moving.uid})
    )
    assert [pod.name for claim in solution.new_node_claims for pod in claim.pods] == ["moving"]


@pytest.mark.parametrize(("minimum", "placed"), [(None, 4), (2, 4), (3, 2)])
def test_missing_domains_count_as_empty_ones(make: Any, minimum: int | None, placed: int) -> None:
    pool = make.pool(requirements=[(ZONE, "In", "test-zone-1", "test-zone-2")])
    pods = [make.pod(labels=APP, **spread(minDomains=minimum)) for _ in range(4)]
    solution = make.solve(pods, [pool])
    assert sum(hosts(solution)) == placed


@pytest.mark.parametrize(("skew", "expected"), [(1, [1, 1, 1, 1]), (4, [4])])
def test_hostname_spread(make: Any, skew: int, expected: list[int]) -> None:
    assert hosts(make.solve([make.pod(labels=APP, **spread(HOSTNAME, skew)) for _ in range(4)])) == expected


def test_capacity_type_spread(make: Any) -> None:
    solution = make.solve([make.pod(labels=APP, **spread(CAPACITY_TYPE)) for _ in range(4)])
    assert domains(solution, CAPACITY_TYPE) == [2, 2]


def test_schedule_anyway_gives_way(make: Any) -> None:
    pool = make.pool(requirements=[(ZONE, "In", "test-zone-1")])
    node = make.node("n", labels={ZONE: "test-zone-2"}, allocatable={"pods": "0"})
    pods = [make.pod(labels=APP, **spread(when="ScheduleAnyway")) for _ in range(4)]
    assert make.solve(pods, [pool], nodes=[node]).unplaced == ()
    hard = [make.pod(labels=APP, **spread()) for _ in range(4)]
    assert len(make.solve(hard, [pool], nodes=[node]).unplaced) == 3


def test_zone_and_capacity_type_together(make: Any) -> None:
    both = spread()["topologySpreadConstraints"] + spread(CAPACITY_TYPE)["topologySpreadConstraints"]
    solution = make.solve([make.pod(labels=APP, topologySpreadConstraints=both) for _ in range(6)])
    assert solution.unplaced == ()
    assert domains(solution) == [2, 2, 2]
    assert domains(solution, CAPACITY_TYPE) == [3, 3]


def test_match_label_keys_separate_revisions(make: Any) -> None:
    pods = [
        make.pod(labels={**APP, "rev": rev}, **spread(HOSTNAME, matchLabelKeys=["rev", "absent"]))
        for rev in ("1", "1", "2", "2")
    ]
    assert hosts(make.solve(pods)) == [2, 2]


@pytest.mark.parametrize(("policy", "placed"), [("Ignore", 1), ("Honor", 2)])
def test_node_taints_policy(make: Any, policy: str, placed: int) -> None:
    tainted = make.pool(
        "tainted", requirements=[(ZONE, "In", "test-zone-2")], taints=[{"key": "t", "effect": "NoSchedule"}]
    )
    pools = [tainted, make.pool(requirements=[(ZONE, "In", "test-zone-1")])]
    pods = [make.pod(labels=APP, **spread(nodeTaintsPolicy=policy)) for _ in range(2)]
    assert sum(hosts(make.solve(pods, pools))) == placed


@pytest.mark.parametrize(("policy", "placed"), [("Ignore", 1), ("Honor", 2)])
def test_node_affinity_policy(make: Any, policy: str, placed: int) -> None:
    node = make.node("n", labels={"group": "other", "rack": "y"}, allocatable={"pods": "0"})
    pool = make.pool(labels={"group": "mine", "rack": "x"})
    rule = spread("rack", nodeAffinityPolicy=policy)
    pods = [make.pod(labels=APP, nodeSelector={"group": "mine"}, **rule) for _ in range(2)]
    assert sum(hosts(make.solve(pods, [pool], nodes=[node]))) == placed


def test_a_domain_is_settled_where_it_is_cheapest(make: Any) -> None:
    plans = [make.plan("a", zones=("test-zone-1",), price=3), make.plan("b", zones=("test-zone-2",), price=2)]
    (claim,) = make.solve([make.pod(labels=APP, **spread())], plans=plans).new_node_claims
    assert claim.instance_types == ("b",)


def test_a_rule_that_is_new_after_relaxing_counts_what_is_placed(make: Any) -> None:
    pool = make.pool(taints=[{"key": "soft", "effect": "PreferNoSchedule"}])
    pods = [make.pod(labels=APP, **spread(HOSTNAME, nodeTaintsPolicy="Honor")) for _ in range(3)]
    assert hosts(make.solve(pods, [pool])) == [1, 1, 1]


# Affinity


def test_pods_follow_their_target_to_its_host(make: Any) -> None:
    pods = [make.pod("target", labels=APP, requests={"cpu": "1"}), make.pod("follower", **together(HOSTNAME))]
    (claim,) = make.solve(pods).new_node_claims
    assert [pod.name for pod in claim.pods] == ["target", "follower"]


def test_a_follower_that_comes_first_waits_for_its_target(make: Any) -> None:
    pods = [make.pod("follower", requests={"cpu": "1"}, **together(HOSTNAME)), make.pod("target", labels=APP)]
    (claim,) = make.solve(pods).new_node_claims
    assert [pod.name for pod in claim.pods] == ["target", "follower"]


def test_a_chain_of_followers_is_placed_in_one_round(make: Any) -> None:
    names = ["db", "web", "cache", "ui"]
    pods = [
        make.pod(name, labels={"name": name}, **(together(HOSTNAME, {"name": names[index - 1]}) if index else {}))
        for index, name in enumerate(names)
    ]
    (claim,) = make.solve(reversed(pods)).new_node_claims
    assert {pod.name for pod in claim.pods} == set(names)


def test_self_affinity_fills_one_host_and_no_other(make: Any) -> None:
    solution = make.solve([make.pod(labels=APP, **together(HOSTNAME)) for _ in range(10)])
    assert hosts(solution) == [5]
    assert len(solution.unplaced) == 5


def test_self_affinity_by_zone_settles_one_zone(make: Any) -> None:
    solution = make.solve([make.pod(labels=APP, **together(ZONE)) for _ in range(10)])
    assert domains(solution) == [10]
    assert solution.unplaced == ()


def test_two_self_affine_pods_bound_to_different_zones_both_find_a_place(make: Any) -> None:
    pods = [
        make.pod(labels=APP, nodeSelector={ZONE: zone}, **together(ZONE)) for zone in ("test-zone-1", "test-zone-2")
    ]
    assert domains(make.solve(pods)) == [1, 1]


def test_affinity_to_nobody_stays_unplaced(make: Any) -> None:
    (unplaced,) = make.solve([make.pod(**together(ZONE))]).unplaced
    assert unplaced.reason.code == "pod-affinity"


def test_followers_of_an_open_zone_wait_a_round(make: Any) -> None:
    pods = [make.pod("target", labels=APP, requests={"cpu": "1"}), make.pod("follower", **together(ZONE))]
    assert [item.pod.name for item in make.solve(pods).unplaced] == ["follower"]
    settled = [
        make.pod("target", labels=APP, requests={"cpu": "1"}, nodeSelector={ZONE: "test-zone-2"}),
        make.pod("follower", **together(ZONE)),
    ]
    assert domains(make.solve(settled)) == [2]


def test_preferred_affinity_gives_way(make: Any) -> None:
    weighted = [{"weight": 1, "podAffinityTerm": term(HOSTNAME, {"no": "body"})}]
    pod = make.pod(affinity={"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}})
    assert make.solve([pod]).unplaced == ()


# Anti-affinity


def test_anti_affinity_by_host(make: Any) -> None:
    assert hosts(make.solve([make.pod(labels=APP, **apart(HOSTNAME)) for _ in range(3)])) == [1, 1, 1]


@pytest.mark.parametrize("requests", [({"cpu": "2"}, {"cpu": "1"}), ({"cpu": "1"}, {"cpu": "2"})])
def test_anti_affinity_works_in_both_directions(make: Any, requests: tuple[dict[str, str], dict[str, str]]) -> None:
    pods = [
        make.pod("plain", labels=APP, requests=requests[0]),
        make.pod("averse", requests=requests[1], **apart(HOSTNAME)),
    ]
    assert hosts(make.solve(pods)) == [1, 1]


def test_zonal_anti_affinity_resolves_one_pod_a_round(make: Any) -> None:
    solution = make.solve([make.pod(labels=APP, **apart(ZONE)) for _ in range(3)])
    assert hosts(solution) == [1]
    assert {item.reason.code for item in solution.unplaced} == {"pod-anti-affinity"}


def test_zonal_anti_affinity_with_settled_zones(make: Any) -> None:
    zones = ("test-zone-1", "test-zone-2", "test-zone-3")
    averse = [make.pod(labels=APP, requests={"cpu": "1"}, nodeSelector={ZONE: zone}, **apart(ZONE)) for zone in zones]
    solution = make.solve([*averse, make.pod("late", labels=APP)])
    assert hosts(solution) == [1, 1, 1]
    assert [item.pod.name for item in solution.unplaced] == ["late"]


def test_running_averse_pods_keep_others_away(make: Any) -> None:
    nodes = [make.node(zone, labels={ZONE: zone}, allocatable={"cpu": "0"}) for zone in ("test-zone-1", "test-zone-2")]
    running = [make.running(node.node.name, **apart(ZONE)) for node in nodes]
    pod = make.pod(labels=APP, requests={"cpu": "1"})
    solution = make.solve([pod], nodes=nodes, bound_pods=running)
    (claim,) = solution.new_node_claims
    (zone,) = [item for item in claim.node_claim.spec.requirements if item.key == ZONE]
    assert zone.values == ("test-zone-3",)


@pytest.mark.parametrize(
    ("state", "kept_away"),
    [
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, True),  # kube-scheduler heeds it until it is gone
        ({"status": {"phase": "Succeeded"}}, False),
    ],
)
def test_averse_pods_keep_others_away_until_they_have_ended(
    make: Any, state: dict[str, Any], *, kept_away: bool
) -> None:
    node = make.node("n", labels={ZONE: "test-zone-1"})
    averse = make.pod(nodeName="n", **state, **apart(HOSTNAME))
    solution = make.solve([make.pod("late", labels=APP)], nodes=[node], bound_pods=[averse])
    assert [item.node for item in solution.existing if item.pods] == ([] if kept_away else ["n"])
    assert len(solution.new_node_claims) == kept_away


def test_preferred_anti_affinity_keeps_nobody_away(make: Any) -> None:
    weighted = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term(ZONE)}]}
    pods = [
        make.pod(requests={"cpu": "2"}, nodeSelector={ZONE: zone}, affinity={"podAntiAffinity": weighted})
        for zone in ("test-zone-1", "test-zone-2", "test-zone-3")
    ]
    assert make.solve([*pods, make.pod(labels=APP)]).unplaced == ()


@pytest.mark.parametrize(
    ("more", "apart_hosts"),
    [
        ({"namespaces": ["other"]}, True),
        ({"namespaces": ["third"]}, False),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, False),
        ({}, False),
    ],
)
def test_namespaces_of_a_term(make: Any, more: dict[str, Any], *, apart_hosts: bool) -> None:
    from karpenter_linode.model import codec  # noqa: PLC0415 - only here
    from karpenter_linode.model.core import Namespace  # noqa: PLC0415 - only here

    other = codec.convert({"metadata": {"name": "other", "labels": {"team": "a"}}}, Namespace)
    pods = [make.pod(labels=APP, namespace="other", requests={"cpu": "1"}), make.pod(**apart(HOSTNAME, **more))]
    assert (len(make.solve(pods, namespaces=[other]).new_node_claims) == 2) is apart_hosts


def test_mismatch_label_keys(make: Any) -> None:
    pods = [
        make.pod(labels={**APP, "team": team}, **apart(HOSTNAME, mismatchLabelKeys=["team"]))
        for team in ("a", "a", "b")
    ]
    assert hosts(make.solve(pods)) == [1, 2]
