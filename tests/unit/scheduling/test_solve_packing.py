"""Packing, daemons, host ports, minValues, price (spec/karpenter-scheduling.md 8.3, 8.8, 8.14)."""

from __future__ import annotations

from typing import Any

import pytest

INSTANCE_TYPE, INTEGER = "node.kubernetes.io/instance-type", "karpenter/numerical-value"


def cpu_requests(claim: Any) -> str:
    return str(claim.node_claim.spec.resources.requests["cpu"])


def test_tiny_pods_fill_one_node_after_the_other(make: Any) -> None:
    pods = [make.pod(requests={"cpu": "10m"}, nodeSelector={"kubernetes.io/arch": "amd64"}) for _ in range(25)]
    claims = make.solve(pods).new_node_claims
    assert [len(claim.pods) for claim in claims] == [5] * 5
    assert {claim.instance_types[0] for claim in claims} == {"small-instance-type"}


def test_single_pod_plan_takes_one_pod_each(make: Any) -> None:
    pool = make.pool(requirements=[(INSTANCE_TYPE, "In", "single-pod-instance-type")])
    assert len(make.solve([make.pod() for _ in range(3)], [pool]).new_node_claims) == 3


def test_a_pod_that_fits_nowhere_is_told_what_is_too_small(make: Any) -> None:
    (unplaced,) = make.solve([make.pod(requests={"cpu": "512"})]).unplaced
    reason = unplaced.reason
    assert reason.message.startswith("no instance type has enough resources, requirements=")
    assert reason.message.endswith('resources={"cpu":"512","pods":"1"}')
    assert "at most 15900m on arm-instance-type" in {item.message.split(", ")[-1] for item in reason.walk()}


def test_only_resources_that_every_plan_lacks_are_told(make: Any) -> None:
    (unplaced,) = make.solve([make.pod(requests={"cpu": "512", "memory": "3Gi"})]).unplaced
    (lacking,) = [item for item in unplaced.reason.walk() if item.code == "resource"]
    assert lacking.message == "cpu: 512 needed with daemons, at most 15900m on arm-instance-type"


def test_resources_that_are_there_on_different_plans_only_are_told_together(make: Any) -> None:
    (unplaced,) = make.solve([make.pod(requests={"fake.com/vendor-a": "1", "cpu": "10"})]).unplaced
    (lacking,) = [item for item in unplaced.reason.walk() if item.code == "resource"]
    assert lacking.message == "no plan has all at once: cpu 10, fake.com/vendor-a 1 needed with daemons"


def test_the_requirement_that_no_plan_meets_is_named_with_what_plans_have(make: Any) -> None:
    pod = make.pod(nodeSelector={"topology.kubernetes.io/zone": "moon", "kubernetes.io/os": "linux"})
    (unplaced,) = make.solve([pod]).unplaced
    (unmet,) = [item for item in unplaced.reason.walk() if item.code == "requirement"]
    assert unmet.message == ("topology.kubernetes.io/zone In [moon]: plans have test-zone-1, test-zone-2, test-zone-3")


def test_a_cpu_request_of_a_million_is_taken_for_a_typo(make: Any) -> None:
    (unplaced,) = make.solve([make.pod(requests={"cpu": "1M"})]).unplaced
    assert unplaced.reason.message.endswith(" (CPU request >= 1 Million, m vs M typo?)")


def test_resources_that_no_single_plan_has_together(make: Any) -> None:
    pod = make.pod(requests={"fake.com/vendor-a": "1", "cpu": "10"})
    assert make.solve([pod]).new_node_claims == ()


def test_limits_without_requests_choose_the_plan_with_the_device(make: Any) -> None:
    (claim,) = make.solve([make.pod(limits={"fake.com/vendor-a": "1"})]).new_node_claims
    assert claim.instance_types == ("gpu-vendor-instance-type",)


def test_different_architectures_need_different_nodes(make: Any) -> None:
    pods = [make.pod(nodeSelector={"kubernetes.io/arch": arch}) for arch in ("amd64", "arm64")]
    assert len(make.solve(pods).new_node_claims) == 2


def test_large_pods_come_first_whatever_their_order(make: Any) -> None:
    pods = [make.pod("small", requests={"cpu": "1"}), make.pod("large", requests={"cpu": "4500m"})]
    claims = make.solve(pods, plans=make.sized_plans(1, 2, 3, 4, 5)).new_node_claims
    assert [[pod.name for pod in claim.pods] for claim in claims] == [["large"], ["small"]]


def test_unavailable_offerings_are_not_bought(make: Any) -> None:
    offering = {
        "price": 1,
        "available": False,
        "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}],
    }
    (unplaced,) = make.solve([make.pod()], plans=[make.plan("it", offerings=[offering])]).unplaced
    assert unplaced.reason.code == "no-templates"


def test_the_cheapest_available_compatible_offering_is_the_price(make: Any) -> None:
    def offering(price: int, kind: str) -> dict[str, Any]:
        return {
            "price": price,
            "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": [kind]}],
        }

    plan = make.plan("it", offerings=[offering(9, "on-demand"), offering(5, "spot")])
    pool = make.pool(requirements=[("karpenter.sh/capacity-type", "In", "on-demand")])
    assert make.solve([make.pod()], plans=[plan]).new_node_claims[0].price == 5
    assert make.solve([make.pod()], [pool], [plan]).new_node_claims[0].price == 9


# Daemons


def test_daemon_overhead_is_reckoned_once_per_node(make: Any) -> None:
    daemon = make.daemon_set("ds", requests={"cpu": "1", "memory": "1Gi"})
    one = make.solve([make.pod(requests={"cpu": "1"})], daemon_sets=[daemon])
    assert cpu_requests(one.new_node_claims[0]) == "2"
    two = make.solve([make.pod(requests={"cpu": "1"}) for _ in range(2)], daemon_sets=[daemon])
    assert cpu_requests(two.new_node_claims[0]) == "3"


def test_daemons_make_a_larger_plan_necessary(make: Any) -> None:
    daemon = make.daemon_set("ds", requests={"cpu": "2", "memory": "2Gi"})
    (claim,) = make.solve([make.pod(requests={"cpu": "1", "memory": "1Gi"})], daemon_sets=[daemon]).new_node_claims
    assert "small-instance-type" not in claim.instance_types


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"unknown": "label"}},
        {"nodeSelector": {"kubernetes.io/arch": "riscv"}},
    ],
)
def test_daemons_that_do_not_run_there_take_nothing(make: Any, spec: dict[str, Any]) -> None:
    daemon = make.daemon_set("ds", requests={"cpu": "1"}, **spec)
    (claim,) = make.solve([make.pod(requests={"cpu": "1"})], daemon_sets=[daemon]).new_node_claims
    assert cpu_requests(claim) == "1"


def test_daemons_do_not_tolerate_pool_taints_but_any_prefer_no_schedule(make: Any) -> None:
    daemon = make.daemon_set("ds", requests={"cpu": "1"})
    pod = make.pod(requests={"cpu": "1"}, tolerations=[{"operator": "Exists"}])
    hard = make.pool(taints=[{"key": "a", "effect": "NoSchedule"}])
    soft = make.pool(taints=[{"key": "a", "effect": "PreferNoSchedule"}])
    startup = make.pool(startup_taints=[{"key": "a", "effect": "NoSchedule"}])
    found = [
        cpu_requests(make.solve([pod], [pool], daemon_sets=[daemon]).new_node_claims[0])
        for pool in (hard, soft, startup)
    ]
    assert found == ["1", "2", "2"]


def test_daemons_that_want_a_registered_node_count_but_leave_no_trace(make: Any) -> None:
    selector = {"karpenter.sh/initialized": "true", "karpenter.sh/registered": "true"}
    daemon = make.daemon_set("ds", requests={"cpu": "3"}, nodeSelector=selector)
    (claim,) = make.solve([make.pod(requests={"cpu": "3"})], daemon_sets=[daemon]).new_node_claims
    assert claim.instance_types == ("arm-instance-type",)
    assert not {"karpenter.sh/initialized", "karpenter.sh/registered"} & {
        item.key for item in claim.node_claim.spec.requirements
    }


def test_any_required_term_of_a_daemon_may_match(make: Any) -> None:
    def term(value: str) -> dict[str, Any]:
        return {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": [value]}]}

    terms = {"nodeSelectorTerms": [term("riscv"), term("amd64")]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    daemon = make.daemon_set("ds", requests={"cpu": "1"}, affinity=affinity)
    pod = make.pod(requests={"cpu": "1"}, nodeSelector={"kubernetes.io/arch": "amd64"})
    (claim,) = make.solve([pod], daemon_sets=[daemon]).new_node_claims
    assert cpu_requests(claim) == "2"


def test_daemons_for_one_size_only_burden_that_size(make: Any) -> None:
    plans = [make.plan(f"it-{size}", extra=[("size", "In", size)], price=price) for size, price in (("s", 1), ("l", 2))]
    daemon = make.daemon_set("ds", requests={"cpu": "3"}, nodeSelector={"size": "s"})
    pool = make.pool(requirements=[("size", "Exists")])
    (claim,) = make.solve([make.pod(requests={"cpu": "3"})], [pool], plans, daemon_sets=[daemon]).new_node_claims
    assert claim.instance_types == ("it-l",)


def test_the_newest_pod_of_a_daemon_set_stands_for_it(make: Any) -> None:
    daemon = make.daemon_set("ds", requests={"cpu": "3"})
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ds", "uid": "uid-ds", "controller": True}
    real = make.running("elsewhere", requests={"cpu": "1"}, metadata={"ownerReferences": [owner]})
    (claim,) = make.solve([make.pod(requests={"cpu": "1"})], daemon_sets=[daemon], bound_pods=[real]).new_node_claims
    assert cpu_requests(claim) == "2"


def test_a_daemons_host_port_is_taken_on_every_new_node(make: Any) -> None:
    port = {"hostPort": 8080, "containerPort": 8080, "protocol": "TCP"}
    daemon = make.daemon_set("ds", ports=[port])
    pod = make.pod(containers=[{"name": "app", "ports": [port]}])
    (unplaced,) = make.solve([pod], daemon_sets=[daemon]).unplaced
    assert "host-ports" in {reason.code for reason in unplaced.reason.walk()}


def test_equal_host_ports_need_different_nodes(make: Any) -> None:
    container = {"name": "app", "ports": [{"hostPort": 80, "containerPort": 80}]}
    pods = [make.pod(containers=[container]) for _ in range(3)]
    assert len(make.solve(pods).new_node_claims) == 3


# minValues


def plans_with_values(make: Any, count: int) -> list[Any]:
    return [
        make.plan(
            f"it-{index}", price=index + 1, extra=[(INTEGER, "In", str(index))], capacity={"cpu": str(2 + 2 * index)}
        )
        for index in range(count)
    ]


def min_values_pool(make: Any, wanted: int) -> Any:
    from karpenter_linode.model import codec  # noqa: PLC0415 - only here

    pool = make.pool(requirements=[(INTEGER, "Exists")])
    plain = codec.to_plain(pool)
    plain["spec"]["template"]["spec"]["requirements"][0]["minValues"] = wanted
    return codec.convert(plain, type(pool))


def test_min_values_keep_a_second_pod_off_a_claim(make: Any) -> None:
    plans, pool = plans_with_values(make, 2), min_values_pool(make, 2)
    pods = [make.pod(requests={"cpu": "1500m"}) for _ in range(2)]
    assert len(make.solve(pods, [pool], plans, options={"well_known_labels": (INTEGER,)}).new_node_claims) == 2


def test_min_values_that_cannot_be_met_are_named(make: Any) -> None:
    solution = make.solve([make.pod()], [min_values_pool(make, 3)], plans_with_values(make, 2))
    assert solution.new_node_claims == ()
    note = "minValues requirement is not met for label(s) (label(s)=[karpenter/numerical-value])"
    assert note in solution.notes[0].message
    pods = [make.pod(requests={"cpu": "3"})]
    (unplaced,) = make.solve(pods, [min_values_pool(make, 2)], plans_with_values(make, 2)).unplaced
    assert unplaced.reason.code == "min-values"
    assert unplaced.reason.message == note


def test_best_effort_lowers_min_values_to_what_there_is(make: Any) -> None:
    pods = [make.pod(requests={"cpu": "3"})]
    options = {"min_values_policy": "BestEffort"}
    (claim,) = make.solve(pods, [min_values_pool(make, 3)], plans_with_values(make, 3), options=options).new_node_claims
    (item,) = [item for item in claim.node_claim.spec.requirements if item.key == INTEGER]
    assert item.min_values == 2
    assert claim.node_claim.metadata.annotations["karpenter.sh/nodeclaim-min-values-relaxed"] == "true"


def test_no_more_than_six_hundred_plans_are_listed_the_cheapest(make: Any) -> None:
    plans = [
        make.plan(f"it-{index:04}", price=1000 - index, zones=("z",), capacity_types=("spot",)) for index in range(605)
    ]
    (claim,) = make.solve([make.pod()], plans=plans).new_node_claims
    assert len(claim.instance_types) == 600
    assert claim.instance_types[0] == "it-0604"
