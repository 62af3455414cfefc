"""Why a pod found no place: one line for the event, and below it every plan (spec/karpenter-scheduling.md 2.7, 2.9)."""

from __future__ import annotations

from typing import Any

ZONE, INSTANCE_TYPE, ARCH = "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type", "kubernetes.io/arch"


def sold_in_one_zone(make: Any, name: str, **given: Any) -> Any:
    """A plan of two zones that can only be bought in the first."""
    offerings = [
        {
            "price": 1,
            "available": zone == "test-zone-1",
            "requirements": [
                {"key": ZONE, "operator": "In", "values": [zone]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            ],
        }
        for zone in ("test-zone-1", "test-zone-2")
    ]
    return make.plan(name, zones=("test-zone-1", "test-zone-2"), offerings=offerings, **given)


def test_each_plan_stands_under_the_first_rule_that_excludes_it(make: Any) -> None:
    port = {"containerPort": 80, "hostPort": 80}
    plans = [
        make.plan("elsewhere", zones=("test-zone-1",)),
        sold_in_one_zone(make, "unsold", capacity={"cpu": "1"}),
        make.plan("small", capacity={"cpu": "1"}),
        make.plan("taken"),
        make.plan("large", capacity={"cpu": "99"}),
        make.plan("excluded", arch=("arm64",)),
        make.plan("gone", offerings=[{"price": 1, "available": False, "requirements": []}]),
    ]
    pool = make.pool(limits={"cpu": "50"}, requirements=[(ARCH, "In", "amd64")])
    daemon = make.daemon_set("ds", ports=[port], nodeSelector={INSTANCE_TYPE: "taken"})
    container = {"name": "c", "ports": [port], "resources": {"requests": {"cpu": "2"}}}
    pod = make.pod(containers=[container], nodeSelector={ZONE: "test-zone-2"})
    (unplaced,) = make.solve([pod], [pool], plans, daemon_sets=[daemon]).unplaced
    (refused,) = unplaced.reason.children
    assert refused.subject == "NodePool default"
    assert {item.code: item.message.rpartition(": ")[2] for item in refused.children if item.fact("plans") == "1"} == {
        "requirements": "elsewhere",
        "offerings": "unsold",
        "resources": "small",
        "host-ports": "taken",
        "nodepool-requirements": "excluded",
    }
    assert {item.code: item.subject for item in refused.children if not item.fact("plans")} == {
        "plan-over-limits": "plan large",
        "plan-not-offered": "plan gone",
    }


def test_the_cheapest_three_stand_for_all(make: Any) -> None:
    plans = [make.plan(f"it-{price}", price=price) for price in (5, 3, 1, 4, 2)]
    (unplaced,) = make.solve([make.pod(requests={"cpu": "9"})], plans=plans).unplaced
    (rule,) = [item for item in unplaced.reason.walk() if item.fact("plans")]
    assert rule.message == "5 plan(s) are too small: it-1, it-2, it-3 and 2 other(s)"


def test_pools_are_told_in_the_order_in_which_they_are_tried(make: Any) -> None:
    pools = [
        make.pool("low", taints=[{"key": "low", "effect": "NoSchedule"}]),
        make.pool("high", weight=9, taints=[{"key": "high", "effect": "NoSchedule"}]),
    ]
    (unplaced,) = make.solve([make.pod()], pools).unplaced
    assert unplaced.reason.message == (
        "did not tolerate taint (taint=high:NoSchedule); did not tolerate taint (taint=low:NoSchedule)"
    )
    assert [item.subject for item in unplaced.reason.children] == ["NodePool high", "NodePool low"]


def test_pools_without_plans_tell_what_became_of_them(make: Any) -> None:
    pools = [make.pool("none", requirements=[(ARCH, "In", "riscv")]), make.pool("few", min_values=(INSTANCE_TYPE, 9))]
    (unplaced,) = make.solve([make.pod()], pools).unplaced
    assert unplaced.reason.code == "no-templates"
    counts = {
        note.subject: [(item.code, item.fact("plans")) for item in note.children]
        for note in unplaced.reason.walk()
        if note.subject.startswith("NodePool ")
    }
    assert counts == {
        "NodePool none": [("nodepool-requirements", "5")],
        "NodePool few": [("min-values", "5")],
    }
