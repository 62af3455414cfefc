"""Room for DaemonSets on nodes that do not exist yet (spec/karpenter-scheduling.md 2.4 and 8.3)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.model import codec
from karpenter_linode.model.core import DaemonSet

HOSTNAME, INSTANCE_TYPE = "kubernetes.io/hostname", "node.kubernetes.io/instance-type"
TEAM = "example.com/team"
SMALL, LARGE = "it-2", "it-8"


def required(*terms: list[tuple[str, str, list[str]]]) -> dict[str, Any]:
    written = [
        {"matchExpressions": [{"key": key, "operator": operator, "values": values} for key, operator, values in term]}
        for term in terms
    ]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": written}}}


def chosen(make: Any, daemon: Any, pod: Any = None, **pool: Any) -> tuple[str, ...]:
    """Plans left for a pod of 1 CPU beside a daemon, of a plan with 2 CPUs and one with 8."""
    pods = [pod or make.pod(requests={"cpu": "1"})]
    (claim,) = make.solve(pods, [make.pool(**pool)], make.sized_plans(2, 8), daemon_sets=[daemon]).new_node_claims
    names: tuple[str, ...] = claim.instance_types
    return names


def test_a_startup_taint_does_not_hide_a_daemon(make: Any) -> None:
    taint = {"key": "booting", "effect": "NoSchedule"}
    assert chosen(make, make.daemon_set("ds", requests={"cpu": "1"}), startup_taints=[taint]) == (LARGE,)


@pytest.mark.parametrize(
    "container",
    [
        {"requests": {"cpu": "8"}},
        {"limits": {"cpu": "8"}},
    ],
)
def test_a_daemon_too_large_for_every_plan_leaves_no_place(make: Any, container: dict[str, Any]) -> None:
    plain = codec.to_plain(make.daemon_set("ds"))
    plain["spec"]["template"]["spec"]["containers"] = [{"name": "d", "resources": container}]
    solution = make.solve([make.pod()], plans=make.sized_plans(2, 8), daemon_sets=[codec.convert(plain, DaemonSet)])
    assert solution.unplaced[0].reason.message.startswith("no instance type has enough resources")


@pytest.mark.parametrize(("init", "plans"), [("500m", (SMALL, LARGE)), ("1", (LARGE,))])
def test_of_a_daemon_the_larger_of_containers_and_init_containers_counts(
    make: Any, init: str, plans: tuple[str, ...]
) -> None:
    first = {"name": "first", "resources": {"requests": {"cpu": init}}}
    daemon = make.daemon_set("ds", requests={"cpu": "500m"}, initContainers=[first])
    assert chosen(make, daemon) == plans


def test_a_daemon_that_asks_for_nothing_takes_one_of_pods(make: Any) -> None:
    solution = make.solve([make.pod()], plans=make.sized_plans(2), daemon_sets=[make.daemon_set("ds")])
    requests = solution.new_node_claims[0].node_claim.spec.resources.requests
    assert str(requests["pods"]) == "2"


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"example.com/unknown": "x"}},
        {"affinity": required([("example.com/unknown", "Exists", [])])},
        {"nodeSelector": {INSTANCE_TYPE: "no-such-type"}},
    ],
)
def test_a_daemon_that_fits_no_plan_takes_nothing(make: Any, spec: dict[str, Any]) -> None:
    assert chosen(make, make.daemon_set("ds", requests={"cpu": "1"}, **spec)) == (SMALL, LARGE)


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {TEAM: "a"}},
        {"affinity": required([("example.com/unknown", "NotIn", ["x"])])},
        {"affinity": required([("example.com/unknown", "Exists", [])], [(TEAM, "In", ["a"])])},
    ],
)
def test_a_daemon_that_selects_what_the_pool_gives_counts(make: Any, spec: dict[str, Any]) -> None:
    assert chosen(make, make.daemon_set("ds", requests={"cpu": "1"}, **spec), labels={TEAM: "a"}) == (LARGE,)


def test_a_preference_of_a_daemon_does_not_keep_it_away(make: Any) -> None:
    preference = {"matchExpressions": [{"key": "example.com/unknown", "operator": "Exists"}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": preference}]}
    daemon = make.daemon_set("ds", requests={"cpu": "1"}, affinity={"nodeAffinity": preferred})
    assert chosen(make, daemon) == (LARGE,)


def test_the_node_that_a_running_daemon_is_pinned_to_does_not_bind_new_nodes(make: Any) -> None:
    """The DaemonSet controller pins each pod to its node; the template's own affinity takes that place."""
    daemon = make.daemon_set("ds", requests={"cpu": "1"}, affinity=required([("kubernetes.io/os", "In", ["linux"])]))
    running = make.running(
        "elsewhere",
        requests={"cpu": "1"},
        affinity=required([(HOSTNAME, "In", ["elsewhere"])]),
        metadata={
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ds", "uid": daemon.uid, "controller": True}
            ]
        },
    )
    solution = make.solve(
        [make.pod(requests={"cpu": "1"})],
        plans=make.sized_plans(2, 8),
        daemon_sets=[daemon],
        bound_pods=[running],
    )
    assert solution.new_node_claims[0].instance_types == (LARGE,)


def test_the_host_port_of_a_daemon_blocks_only_plans_it_runs_on(make: Any) -> None:
    port = {"containerPort": 8080, "hostPort": 8080}
    daemon = make.daemon_set("ds", ports=[port], nodeSelector={INSTANCE_TYPE: LARGE})
    pod = make.pod(containers=[{"name": "c", "ports": [port], "resources": {"requests": {"cpu": "1"}}}])
    assert chosen(make, daemon, pod) == (SMALL,)


def test_a_daemon_that_leaves_an_existing_node_free_still_burdens_new_ones(make: Any) -> None:
    """Existing nodes must carry the label; of new ones the pool's requirement promises it."""
    daemon = make.daemon_set("ds", requests={"cpu": "4"}, nodeSelector={TEAM: "a"})
    pods = [make.pod(requests={"cpu": "3"}) for _ in range(2)]
    pool = make.pool(requirements=[(TEAM, "Exists")])
    node = make.node("n", allocatable={"cpu": "4"})
    solution = make.solve(pods, [pool], make.sized_plans(4, 8), daemon_sets=[daemon], nodes=[node])
    assert [len(item.pods) for item in solution.existing] == [1]
    assert [claim.instance_types for claim in solution.new_node_claims] == [("it-8",)]


def test_overhead_is_the_least_of_the_plans_that_are_left(make: Any) -> None:
    daemon = make.daemon_set("ds", requests={"cpu": "1"}, nodeSelector={INSTANCE_TYPE: LARGE})
    (claim,) = make.solve([make.pod()], plans=make.sized_plans(2, 8), daemon_sets=[daemon]).new_node_claims
    assert claim.instance_types == (SMALL, LARGE)
    assert "cpu" not in claim.node_claim.spec.resources.requests


def test_what_daemons_take_is_told_as_a_range_where_plans_differ(make: Any) -> None:
    daemon = make.daemon_set("ds", requests={"cpu": "1"}, nodeSelector={INSTANCE_TYPE: LARGE})
    pod = make.pod(requests={"memory": "1Ti"})
    (unplaced,) = make.solve([pod], plans=make.sized_plans(2, 8), daemon_sets=[daemon]).unplaced
    assert unplaced.reason.message.endswith(
        'resources=min={"memory":"1Ti","pods":"1"}, max={"cpu":"1","memory":"1Ti","pods":"2"}'
    )
