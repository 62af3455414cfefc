"""Domains: which there are, which count, and what rules together leave (spec/karpenter-scheduling.md 8.11 and 8.12)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

ZONE, HOSTNAME, ARCH = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "kubernetes.io/arch"
CAPACITY_TYPE, TIER = "karpenter.sh/capacity-type", "example.com/tier"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
X, Y = {"app": "x"}, {"app": "y"}


def constraint(key: str = ZONE, labels: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    selector = {"matchLabels": labels or X}
    rule = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {**rule, **more}


def term(key: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels or X}}


def apart(key: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: [term(key, labels)]}}


def spread_pods(make: Any, count: int, *rules: dict[str, Any], **given: Any) -> list[Any]:
    given = {"labels": X, **given}
    return [make.pod(topologySpreadConstraints=list(rules), **given) for _ in range(count)]


def domain(claim: Any, key: str) -> str | None:
    values = next((item.values for item in claim.node_claim.spec.requirements if item.key == key), ())
    return values[0] if len(values) == 1 else None


def per_domain(solution: Any, key: str = ZONE) -> list[int]:
    """Pods of new claims by domain, ascending; those of claims without a settled one together."""
    counts: Counter[str | None] = Counter()
    for claim in solution.new_node_claims:
        counts[domain(claim, key)] += len(claim.pods)
    return sorted(counts.values())


def one_pod_nodes(make: Any, *zones: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """Full nodes in some zones, each with a pod that counts."""
    nodes = [make.node(f"n{index}", labels={ZONE: zone}, allocatable={"cpu": "0"}) for index, zone in enumerate(zones)]
    return {
        "nodes": nodes,
        "bound_pods": [make.running(f"n{index}", labels=labels or X) for index in range(len(zones))],
    }


SOME_CPU = {"cpu": "100m"}

# Which domains there are


def test_a_label_of_the_pool_is_its_only_zone(make: Any) -> None:
    pool = make.pool(labels={ZONE: "test-zone-2"})
    assert per_domain(make.solve(spread_pods(make, 4, constraint()), [pool])) == [4]


def test_the_skew_holds_against_zones_that_no_pool_can_build_in(make: Any) -> None:
    pool = make.pool(requirements=[(ZONE, "In", "test-zone-3")])
    given = one_pod_nodes(make, "test-zone-1", "test-zone-2")
    solution = make.solve(spread_pods(make, 10, constraint(maxSkew=5), requests=SOME_CPU), [pool], **given)
    assert per_domain(solution) == [6]
    assert len(solution.unplaced) == 4


def test_a_skew_that_is_violated_already_is_not_made_worse(make: Any) -> None:
    given = one_pod_nodes(make, "test-zone-1", "test-zone-1", "test-zone-1")
    assert per_domain(make.solve(spread_pods(make, 3, constraint(), requests=SOME_CPU), **given)) == [1, 2]


def test_pods_on_nodes_without_the_key_do_not_count(make: Any) -> None:
    node = make.node("n", managed=False, allocatable={"cpu": "0"}, labels={TIER: ""})
    del node.node.metadata.labels[TIER]
    pool = make.pool(requirements=[(TIER, "In", "a", "b")])
    pods = spread_pods(make, 2, constraint(TIER), requests=SOME_CPU)
    solution = make.solve(pods, [pool], nodes=[node], bound_pods=[make.running("n", labels=X)])
    assert sorted(domain(claim, TIER) or "" for claim in solution.new_node_claims) == ["a", "b"]


def test_pods_that_their_own_rule_does_not_select_stay_together(make: Any) -> None:
    assert per_domain(make.solve(spread_pods(make, 4, constraint(labels=Y)))) == [4]


@pytest.mark.parametrize("minimum", [2, 3])
def test_enough_domains_are_filled_evenly(make: Any, minimum: int) -> None:
    assert per_domain(make.solve(spread_pods(make, 11, constraint(minDomains=minimum)))) == [3, 4, 4]


def test_a_label_of_one_pool_only_spreads_over_its_values(make: Any) -> None:
    """Five values of a pool's label, shared out over capacity types one to four."""
    pools = [
        make.pool("spot", requirements=[(TIER, "In", "2", "3", "4", "5"), (CAPACITY_TYPE, "In", "spot")]),
        make.pool("demand", requirements=[(TIER, "In", "1"), (CAPACITY_TYPE, "In", "on-demand")]),
    ]
    solution = make.solve(spread_pods(make, 20, constraint(TIER)), pools)
    assert per_domain(solution, TIER) == [4, 4, 4, 4, 4]
    assert per_domain(solution, CAPACITY_TYPE) == [4, 16]


# Hosts


@pytest.mark.parametrize(("skew", "hosts"), [(1, [1, 1, 1, 1]), (4, [4])])
def test_the_skew_bounds_the_pods_of_a_host(make: Any, skew: int, hosts: list[int]) -> None:
    solution = make.solve(spread_pods(make, 4, constraint(HOSTNAME, maxSkew=skew)))
    assert [len(claim.pods) for claim in solution.new_node_claims] == hosts


def test_two_workloads_share_the_hosts_that_each_is_spread_over(make: Any) -> None:
    pods = [pod for app in (X, Y) for pod in spread_pods(make, 2, constraint(HOSTNAME, app), labels=app)]
    assert [len(claim.pods) for claim in make.solve(pods).new_node_claims] == [2, 2]


def test_workloads_for_different_architectures_share_no_host(make: Any) -> None:
    pods = [
        pod
        for app, arch in ((X, "amd64"), (Y, "arm64"))
        for pod in spread_pods(make, 2, constraint(HOSTNAME, app), labels=app, nodeSelector={ARCH: arch})
    ]
    assert len(make.solve(pods).new_node_claims) == 4


# Other keys


def one_spot_node(make: Any) -> dict[str, Any]:
    node = make.node("n", labels={CAPACITY_TYPE: "spot"}, allocatable={"cpu": "0"})
    return {"nodes": [node], "bound_pods": [make.running("n", labels=X)]}


@pytest.mark.parametrize(("when", "placed"), [("DoNotSchedule", 2), ("ScheduleAnyway", 5)])
def test_capacity_types_that_no_pool_can_build_hold_back_hard_rules_only(make: Any, when: str, placed: int) -> None:
    pool = make.pool(requirements=[(CAPACITY_TYPE, "In", "on-demand")])
    rule = constraint(CAPACITY_TYPE, whenUnsatisfiable=when)
    solution = make.solve(spread_pods(make, 5, rule, requests=SOME_CPU), [pool], **one_spot_node(make))
    assert per_domain(solution, CAPACITY_TYPE) == [placed]
    assert len(solution.unplaced) == 5 - placed


def test_what_a_pod_selects_bounds_the_capacity_types_it_is_measured_by(make: Any) -> None:
    pods = spread_pods(make, 5, constraint(CAPACITY_TYPE), requests=SOME_CPU, nodeSelector={CAPACITY_TYPE: "on-demand"})
    assert per_domain(make.solve(pods, **one_spot_node(make)), CAPACITY_TYPE) == [5]


def test_architectures_are_spread_over_like_any_label(make: Any) -> None:
    pool = make.pool(requirements=[(ARCH, "In", "amd64", "arm64")])
    assert per_domain(make.solve(spread_pods(make, 3, constraint(ARCH)), [pool]), ARCH) == [1, 2]


def test_rules_on_three_keys_hold_at_once(make: Any) -> None:
    rules = [constraint(ZONE), constraint(CAPACITY_TYPE), constraint(HOSTNAME, maxSkew=3)]
    solution = make.solve(spread_pods(make, 11, *rules))
    assert solution.unplaced == ()
    for key in (ZONE, CAPACITY_TYPE):
        counts = per_domain(solution, key)
        assert counts[-1] - counts[0] <= 1
    assert max(len(claim.pods) for claim in solution.new_node_claims) <= 3


def test_match_label_keys_that_a_pod_lacks_change_nothing(make: Any) -> None:
    solution = make.solve(spread_pods(make, 4, constraint(HOSTNAME, matchLabelKeys=["revision"])))
    assert [len(claim.pods) for claim in solution.new_node_claims] == [1, 1, 1, 1]


# Policies


@pytest.mark.parametrize(("policy", "placed"), [("Ignore", 1), ("Honor", 2)])
def test_domains_of_a_tainted_pool_count_unless_taints_are_honoured(make: Any, policy: str, placed: int) -> None:
    taint = {"key": "dedicated", "effect": "NoSchedule"}
    pools = [
        make.pool("open", requirements=[(TIER, "In", "a")]),
        make.pool("closed", requirements=[(TIER, "In", "b")], taints=[taint]),
    ]
    solution = make.solve(spread_pods(make, 2, constraint(TIER, nodeTaintsPolicy=policy)), pools)
    assert per_domain(solution, TIER) == [placed]


def test_with_taints_honoured_each_workload_has_the_domains_it_can_reach(make: Any) -> None:
    """Two pools that exclude each other's pods share one domain; counts there are of both."""
    pools = [
        make.pool(
            name,
            taints=[{"key": name, "effect": "NoSchedule"}],
            requirements=[(TIER, "In", *tiers)],
        )
        for name, tiers in (("one", ("a", "b")), ("two", ("b", "c")))
    ]
    rule = constraint(TIER, nodeTaintsPolicy="Honor")
    pods = [
        pod
        for name in ("one", "two")
        for pod in spread_pods(make, 3, rule, tolerations=[{"key": name, "operator": "Exists"}])
    ]
    solution = make.solve(pods, pools)
    assert solution.unplaced == ()
    counts = Counter(domain(claim, TIER) for claim in solution.new_node_claims for _ in claim.pods)
    assert sum(counts.values()) == 6
    assert set(counts) == {"a", "b", "c"}


@pytest.mark.parametrize(("policy", "placed"), [("Ignore", 1), ("Honor", 5)])
def test_a_selector_bounds_the_domains_unless_affinity_is_ignored(make: Any, policy: str, placed: int) -> None:
    node = make.node("n", labels={TIER: "b", ZONE: "test-zone-2"}, allocatable={"cpu": "0"})
    pool = make.pool(requirements=[(TIER, "In", "a")])
    pods = spread_pods(
        make,
        5,
        constraint(TIER, nodeAffinityPolicy=policy),
        requests=SOME_CPU,
        nodeSelector={ZONE: "test-zone-1"},
    )
    solution = make.solve(pods, [pool], nodes=[node])
    assert sum(len(claim.pods) for claim in solution.new_node_claims) == placed


@pytest.mark.parametrize(
    "given",
    [
        {"nodeSelector": {ZONE: "test-zone-1"}},
        {
            "affinity": {
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["test-zone-1"]}]}
                        ]
                    }
                }
            }
        },
    ],
)
def test_what_is_required_bounds_the_zones_to_spread_over(make: Any, given: dict[str, Any]) -> None:
    assert per_domain(make.solve(spread_pods(make, 5, constraint(), **given))) == [5]


def test_what_is_preferred_does_not_bound_the_zones_to_spread_over(make: Any) -> None:
    preference = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["test-zone-1", "test-zone-2"]}]}
    affinity = {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": preference}]}}
    assert per_domain(make.solve(spread_pods(make, 6, constraint(), affinity=affinity))) == [2, 2, 2]


# Affinity


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity", "nodeAffinity"])
def test_empty_terms_ask_for_nothing(make: Any, kind: str) -> None:
    empty: Any = {"nodeSelectorTerms": []} if kind == "nodeAffinity" else []
    solution = make.solve([make.pod(affinity={kind: {PREFERRED: [], REQUIRED: empty}})])
    assert solution.unplaced == ()


def test_pods_share_an_architecture_while_a_rule_separates_their_hosts(make: Any) -> None:
    affinity = {"podAffinity": {REQUIRED: [term(ARCH)]}}
    solution = make.solve(spread_pods(make, 3, constraint(HOSTNAME), affinity=affinity))
    assert [len(claim.pods) for claim in solution.new_node_claims] == [1, 1, 1]
    assert len({domain(claim, ARCH) for claim in solution.new_node_claims} - {None}) == 1


def test_company_on_a_host_that_the_pod_may_not_be_on_is_company_still(make: Any) -> None:
    """A pod of the group in another zone: those that must be in this zone cannot begin a second host."""
    affinity = {"podAffinity": {REQUIRED: [term(HOSTNAME)]}}
    node = make.node("n", labels={ZONE: "test-zone-1"})
    pods = [make.pod(labels=X, affinity=affinity, nodeSelector={ZONE: "test-zone-2"}) for _ in range(2)]
    solution = make.solve(pods, nodes=[node], bound_pods=[make.running("n", labels=X)])
    assert len(solution.unplaced) == 2


def test_a_preference_for_company_gives_way_to_a_hard_spread(make: Any) -> None:
    soft = {"podAffinity": {PREFERRED: [{"weight": 50, "podAffinityTerm": term(HOSTNAME)}]}}
    solution = make.solve(spread_pods(make, 3, constraint(HOSTNAME), affinity=soft))
    assert [len(claim.pods) for claim in solution.new_node_claims] == [1, 1, 1]


def test_a_pod_waits_while_every_zone_holds_what_it_keeps_away_from(make: Any) -> None:
    given = one_pod_nodes(make, "test-zone-1", "test-zone-2", "test-zone-3")
    (unplaced,) = make.solve([make.pod(labels=Y, requests=SOME_CPU, affinity=apart(ZONE))], **given).unplaced
    assert unplaced.reason.code == "pod-anti-affinity"


def test_a_pod_waits_while_the_zone_of_what_it_keeps_away_from_is_open(make: Any) -> None:
    pods = [make.pod("target", labels=X, requests={"cpu": "2"}), make.pod("away", affinity=apart(ZONE))]
    solution = make.solve(pods)
    assert [item.pod.name for item in solution.unplaced] == ["away"]


@pytest.mark.parametrize(("weight", "unplaced"), [(None, ["plain"]), (1, [])])
def test_averse_pods_of_the_batch_in_every_zone_keep_others_out_if_they_must(
    make: Any, weight: int | None, unplaced: list[str]
) -> None:
    soft = {"podAntiAffinity": {PREFERRED: [{"weight": weight or 1, "podAffinityTerm": term(ZONE)}]}}
    pods = [
        make.pod(
            labels=Y,
            requests={"cpu": "2"},
            nodeSelector={ZONE: f"test-zone-{index}"},
            affinity=soft if weight else apart(ZONE),
        )
        for index in (1, 2, 3)
    ]
    solution = make.solve([*pods, make.pod("plain", labels=X)])
    assert [item.pod.name for item in solution.unplaced] == unplaced


def test_an_averse_pod_without_a_zone_keeps_others_out_of_all_until_it_has_one(make: Any) -> None:
    averse = make.pod("averse", labels=Y, requests={"cpu": "2"}, affinity=apart(ZONE))
    solution = make.solve([averse, make.pod("plain", labels=X)])
    assert [item.pod.name for item in solution.unplaced] == ["plain"]
    node = make.node("n", labels={ZONE: "test-zone-1"}, allocatable={"cpu": "0"})
    settled = make.pod("averse", labels=Y, nodeName="n", affinity=apart(ZONE), status={"phase": "Running"})
    later = make.solve([make.pod("plain", labels=X, requests=SOME_CPU)], nodes=[node], bound_pods=[settled])
    (claim,) = later.new_node_claims
    (item,) = [item for item in claim.node_claim.spec.requirements if item.key == ZONE]
    assert item.values == ("test-zone-2", "test-zone-3")


# What is told


def test_rules_that_exclude_each_other_are_told_in_the_contracts_words(make: Any) -> None:
    """Company in one zone, and the other kind of company in another: each rule alone leaves a zone."""
    given = one_pod_nodes(make, "test-zone-1")
    more = make.node("m", labels={ZONE: "test-zone-2"}, allocatable={"cpu": "0"})
    bound = [*given["bound_pods"], make.running("m", labels=Y)]
    affinity = {"podAffinity": {REQUIRED: [term(ZONE), term(ZONE, Y)]}}
    pod = make.pod(requests=SOME_CPU, affinity=affinity)
    (unplaced,) = make.solve([pod], nodes=[*given["nodes"], more], bound_pods=bound).unplaced
    assert unplaced.reason.message.startswith(
        "no instance type met the scheduling requirements or had enough resources or had a required offering"
    )
    assert f"{ZONE} DoesNotExist" in unplaced.reason.message
    causes = [
        item.message for item in unplaced.reason.walk() if item.code == "pod-affinity" and "counts" in item.message
    ]
    assert len(causes) == 2


def test_a_domain_without_a_plan_is_told_as_what_the_plans_lack(make: Any) -> None:
    pool = make.pool(requirements=[(TIER, "In", "a")])
    given = one_pod_nodes(make, "test-zone-1")
    affinity = {"podAffinity": {REQUIRED: [term(ZONE)]}}
    pod = make.pod(requests=SOME_CPU, affinity=affinity)
    plans = [make.plan("elsewhere", zones=("test-zone-2",))]
    (unplaced,) = make.solve([pod], [pool], plans, **given).unplaced
    assert unplaced.reason.message.startswith("no instance type met the scheduling requirements or had")
    assert f"{ZONE} In [test-zone-1]" in unplaced.reason.message


def test_no_more_than_twenty_five_domains_are_listed(make: Any) -> None:
    tiers = [f"t{index:02}" for index in range(30)]
    pool = make.pool(requirements=[(TIER, "In", *tiers)])
    pod = make.pod(affinity={"podAffinity": {REQUIRED: [term(TIER, {"app": "nobody"})]}})
    (unplaced,) = make.solve([pod], [pool]).unplaced
    assert "t24: 0 and 5 other(s), podDomains = example.com/tier Exists" in unplaced.reason.message
