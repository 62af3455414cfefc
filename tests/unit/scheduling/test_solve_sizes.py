"""Sizes: what fits together, limits, minValues (spec/karpenter-scheduling.md 8.1, 8.2, 8.8, 8.14)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.model import codec
from karpenter_linode.model.karpenter import NodePool
from karpenter_linode.scheduling import render

ARCH, HOSTNAME, ZONE = "kubernetes.io/arch", "kubernetes.io/hostname", "topology.kubernetes.io/zone"
INTEGER, INSTANCE_TYPE = "example.com/integer", "node.kubernetes.io/instance-type"
KNOWN = {"well_known_labels": (INTEGER,)}


def claims(solution: Any) -> list[int]:
    return sorted(len(claim.pods) for claim in solution.new_node_claims)


def container(cpu: str, name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}, **more}


# What a pod needs


@pytest.mark.parametrize(
    ("app", "start"),
    [
        ("6", [("10", False), ("4900m", True)]),
        ("6", [("4900m", True), ("5", False)]),
        ("5", [("4900m", True), ("6", False)]),
    ],
)
def test_sidecars_and_init_containers_need_the_plan_that_holds_their_peak(
    make: Any, app: str, start: list[tuple[str, bool]]
) -> None:
    init = [
        container(cpu, f"init-{index}", **({"restartPolicy": "Always"} if sidecar else {}))
        for index, (cpu, sidecar) in enumerate(start)
    ]
    plans = [
        make.plan(f"it-{cpu}", price=cpu, capacity={"cpu": str(cpu), "memory": memory}, overhead={"cpu": "100m"})
        for cpu, memory in ((10, "4Gi"), (11, "5Gi"), (12, "6Gi"))
    ]
    pod = make.pod(containers=[container(app, "app")], initContainers=init)
    assert make.solve([pod], plans=plans).new_node_claims[0].instance_types[0] == "it-11"


def test_requests_of_the_pod_as_a_whole_override_those_of_its_containers(make: Any) -> None:
    plans = [
        make.plan(f"it-{cpu}", price=cpu, capacity={"cpu": str(cpu), "memory": memory}, overhead={"cpu": "100m"})
        for cpu, memory in ((10, "4Gi"), (11, "5Gi"), (12, "6Gi"))
    ]
    pod = make.pod(containers=[container("11", "app")], resources={"requests": {"cpu": "9900m", "memory": "3900Mi"}})
    assert make.solve([pod], plans=plans).new_node_claims[0].instance_types[0] == "it-10"


def test_the_overhead_of_a_runtime_class_counts(make: Any) -> None:
    plain, sandboxed = make.pod(requests={"cpu": "1"}), make.pod(requests={"cpu": "1"}, overhead={"cpu": "1"})
    for pod, cheapest in ((plain, "it-2"), (sandboxed, "it-4")):
        (claim,) = make.solve([pod], plans=make.sized_plans(2, 4)).new_node_claims
        assert claim.instance_types[0] == cheapest


@pytest.mark.parametrize(
    "given",
    [
        {"requests": {"memory": "2Ti"}},
        {"requests": {"cpu": "512"}},
        {"initContainers": [container("512", "init")]},
    ],
)
def test_what_no_plan_holds_has_no_place(make: Any, given: dict[str, Any]) -> None:
    (unplaced,) = make.solve([make.pod(**given)]).unplaced
    assert unplaced.reason.message.startswith("no instance type has enough resources")


def test_none_of_a_resource_that_nobody_knows_can_be_had_anywhere(make: Any) -> None:
    assert make.solve([make.pod(requests={"example.com/odd": "0"})]).unplaced == ()


# Filling nodes


def test_five_small_pods_share_the_small_plan(make: Any) -> None:
    (claim,) = make.solve([make.pod(requests={"memory": "10M"}) for _ in range(5)]).new_node_claims
    assert claim.instance_types[0] == "small-instance-type"


def test_forty_middling_pods_take_twenty_nodes_and_small_ones_fit_between_them(make: Any) -> None:
    middling = [make.pod(requests={"memory": "1.8G"}, nodeSelector={ARCH: "amd64"}) for _ in range(40)]
    small = [make.pod(requests={"memory": "400M"}, nodeSelector={ARCH: "amd64"}) for _ in range(20)]
    assert claims(make.solve(middling)) == [2] * 20
    assert len(make.solve([*middling, *small]).new_node_claims) == 20


def test_twenty_five_tiny_pods_fill_nodes_of_five(make: Any) -> None:
    pods = [make.pod(requests={"memory": "1M"}, nodeSelector={ARCH: "amd64"}) for _ in range(25)]
    assert claims(make.solve(pods)) == [5] * 5


def test_a_large_and_a_small_pod_that_do_not_fit_together_get_a_plan_each(make: Any) -> None:
    pods = [make.pod(requests={"cpu": cpu}) for cpu in ("4500m", "1")]
    solution = make.solve(pods, plans=make.sized_plans(1, 2, 3, 4, 5))
    assert sorted(claim.instance_types[0] for claim in solution.new_node_claims) == ["it-2", "it-5"]


def test_the_order_of_plans_is_that_of_prices_whatever_their_size(make: Any) -> None:
    plans = [
        make.plan(f"it-{cpu}", price=price, capacity={"cpu": cpu}) for cpu, price in (("2", 3), ("8", 1), ("4", 2))
    ]
    assert make.solve([make.pod()], plans=plans).new_node_claims[0].instance_types == ("it-8", "it-4", "it-2")


# Limits


@pytest.mark.parametrize(("cpu", "placed"), [("1750m", True), ("2100m", False)])
def test_a_limit_holds_the_largest_plan_that_is_allowed(make: Any, cpu: str, *, placed: bool) -> None:
    solution = make.solve([make.pod(requests={"cpu": cpu})], [make.pool(limits={"cpu": "2"})])
    assert bool(solution.new_node_claims) is placed
    if not placed:
        text = "no instance type has enough resources"
        assert solution.unplaced[0].reason.message.startswith(text)


def test_of_two_nodes_a_limit_may_leave_room_for_one(make: Any) -> None:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "x"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [make.pod(labels={"app": "x"}, requests={"cpu": "1500m"}, affinity=apart) for _ in range(2)]
    solution = make.solve(pods, [make.pool(limits={"cpu": "3"})])
    assert (claims(solution), len(solution.unplaced)) == ([1], 1)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"cpu": "2"}, "all available instance types exceed limits for nodepool (NodePool=default)"),
        ({"nodes": "1"}, "node limits have been exhausted for nodepool (NodePool=default)"),
    ],
)
def test_what_exists_uses_up_a_limit(make: Any, limits: dict[str, str], text: str) -> None:
    node = make.node("n", allocatable={"cpu": "2"})
    bound = [make.running("n", requests={"cpu": "2"})]
    pod = make.pod(requests={"cpu": "1750m"})
    (unplaced,) = make.solve([pod], [make.pool(limits=limits)], nodes=[node], bound_pods=bound).unplaced
    assert unplaced.reason.message == text


# minValues


def with_min_values(make: Any, *wanted: tuple[str, str, tuple[str, ...], int]) -> NodePool:
    plain = codec.to_plain(make.pool())
    plain["spec"]["template"]["spec"]["requirements"] = [
        {"key": key, "operator": operator, "values": list(values), "minValues": least}
        for key, operator, values, least in wanted
    ]
    return codec.convert(plain, NodePool)


def numbered(make: Any, *sizes: int) -> list[Any]:
    return [
        make.plan(f"it-{cpu}", price=cpu, capacity={"cpu": str(cpu)}, extra=[(INTEGER, "In", str(cpu))])
        for cpu in sizes
    ]


@pytest.mark.parametrize(
    ("operator", "bound"), [("Gt", "1"), ("Lt", "99"), ("Gte", "2"), ("Lte", "16"), ("Exists", "")]
)
def test_a_second_pod_does_not_join_where_too_few_values_would_be_left(make: Any, operator: str, bound: str) -> None:
    pool = with_min_values(make, (INTEGER, operator, (bound,) if bound else (), 2))
    pods = [make.pod(requests={"cpu": "1500m"}) for _ in range(2)]
    assert claims(make.solve(pods, [pool], numbered(make, 2, 4), options=KNOWN)) == [1, 1]


@pytest.mark.parametrize(("least", "placed"), [((1, 2), True), ((1, 3), False)])
def test_of_two_demands_on_one_key_the_greater_counts(make: Any, least: tuple[int, int], *, placed: bool) -> None:
    pool = with_min_values(make, (INTEGER, "Exists", (), least[0]), (INTEGER, "Gt", ("0",), least[1]))
    assert bool(make.solve([make.pod()], [pool], numbered(make, 2, 4), options=KNOWN).new_node_claims) is placed


@pytest.mark.parametrize(("least", "placed"), [(2, True), (3, False)])
def test_every_key_with_a_demand_must_be_met(make: Any, least: int, *, placed: bool) -> None:
    pool = with_min_values(make, (INTEGER, "Exists", (), 2), (INSTANCE_TYPE, "In", ("it-2", "it-4", "it-8"), least))
    solution = make.solve([make.pod()], [pool], numbered(make, 2, 4), options=KNOWN)
    assert bool(solution.new_node_claims) is placed


def test_ten_plans_do_not_have_eleven_names(make: Any) -> None:
    names = tuple(f"it-{cpu}" for cpu in range(2, 13))
    pool = with_min_values(make, (INSTANCE_TYPE, "In", names, 11))
    assert make.solve([make.pod()], [pool], numbered(make, *range(2, 12))).new_node_claims == ()


@pytest.mark.parametrize(("policy", "placed"), [("Strict", False), ("BestEffort", True)])
def test_plans_cut_off_a_long_list_are_missed_by_min_values(
    make: Any, monkeypatch: pytest.MonkeyPatch, policy: str, *, placed: bool
) -> None:
    monkeypatch.setattr(render, "MAX_INSTANCE_TYPES", 1)
    pool = with_min_values(make, (INSTANCE_TYPE, "Exists", (), 2))
    options = {"min_values_policy": policy}
    solution = make.solve([make.pod()], [pool], numbered(make, 2, 4), options=options)
    assert bool(solution.new_node_claims) is placed
    if not placed:
        assert solution.unplaced[0].reason.message == (
            "pod didn\u2019t schedule because NodePool couldn\u2019t meet minValues requirements, "
            "validating minValues, minValues requirement is not met for label(s) "
            f"(label(s)=[{INSTANCE_TYPE}]) (NodePool=default)"
        )


def test_the_demand_is_lowered_before_a_lower_pool_is_used(make: Any) -> None:
    plain = codec.to_plain(with_min_values(make, (INTEGER, "Exists", (), 3)))
    plain["metadata"]["name"], plain["spec"]["weight"] = "high", 9
    pools = [codec.convert(plain, NodePool), make.pool("low")]
    options = {**KNOWN, "min_values_policy": "BestEffort"}
    (claim,) = make.solve([make.pod()], pools, numbered(make, 2, 4), options=options).new_node_claims
    assert claim.node_pool == "high"
    assert claim.node_claim.metadata.annotations["karpenter.sh/nodeclaim-min-values-relaxed"] == "true"
    least = {item.key: item.min_values for item in claim.node_claim.spec.requirements}
    assert least[INTEGER] == 2


def test_zones_and_plans_are_lowered_together_each_to_what_there_is(make: Any) -> None:
    pool = with_min_values(make, (ZONE, "Exists", (), 4), (INSTANCE_TYPE, "Exists", (), 3))
    options = {"min_values_policy": "BestEffort"}
    (claim,) = make.solve([make.pod()], [pool], numbered(make, 2, 4), options=options).new_node_claims
    least = {item.key: item.min_values for item in claim.node_claim.spec.requirements}
    assert (least[ZONE], least[INSTANCE_TYPE]) == (3, 2)


def test_a_demand_is_never_lowered_to_none(make: Any) -> None:
    pool = with_min_values(make, (INTEGER, "Exists", (), 2))
    options = {**KNOWN, "min_values_policy": "BestEffort"}
    plans = [make.plan("it")]  # says nothing of the label
    (claim,) = make.solve([make.pod(), make.pod()], [pool], plans, options=options).new_node_claims
    assert len(claim.pods) == 2  # what no plan promises does not keep a second pod away
    assert {item.key: item.min_values for item in claim.node_claim.spec.requirements}[INTEGER] == 1


def test_with_best_effort_a_claim_keeps_what_it_promised_when_pods_join(make: Any) -> None:
    pool = with_min_values(make, (INTEGER, "Exists", (), 2))
    options = {**KNOWN, "min_values_policy": "BestEffort"}
    pods = [make.pod(requests={"cpu": "1500m"}) for _ in range(2)]
    assert claims(make.solve(pods, [pool], numbered(make, 2, 4), options=options)) == [1, 1]
