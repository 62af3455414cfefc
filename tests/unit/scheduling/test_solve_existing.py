"""Existing and in-flight nodes (spec/karpenter-scheduling.md 8.9, 8.10)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.scheduling.state_node import NodeView, is_marked_for_deletion

TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}


def places(solution: Any) -> dict[str, list[str]]:
    return {item.node: [pod.name for pod in item.pods] for item in solution.existing}


def test_a_node_with_room_is_used_before_a_new_one_is_made(make: Any) -> None:
    solution = make.solve([make.pod("a", requests={"cpu": "1"})], nodes=[make.node("n")])
    assert places(solution) == {"n": ["a"]}
    assert solution.new_node_claims == ()


@pytest.mark.parametrize(
    "pod",
    [
        {"requests": {"cpu": "5"}},
        {"nodeSelector": {"kubernetes.io/arch": "arm64"}},
        {"nodeSelector": {"kubernetes.io/hostname": "other"}},
    ],
)
def test_a_node_that_does_not_suit_is_not_used(make: Any, pod: dict[str, Any]) -> None:
    assert make.solve([make.pod(**pod)], nodes=[make.node("n")]).existing == ()


def test_running_pods_take_room_finished_ones_do_not(make: Any) -> None:
    running = make.running("n", requests={"cpu": "3"})
    finished = make.pod(nodeName="n", requests={"cpu": "3"}, status={"phase": "Succeeded"})
    pod = make.pod("a", requests={"cpu": "2"})
    assert places(make.solve([pod], nodes=[make.node("n")], bound_pods=[running])) == {}
    assert places(make.solve([pod], nodes=[make.node("n")], bound_pods=[finished])) == {"n": ["a"]}


def test_initialized_nodes_come_first_then_names(make: Any) -> None:
    nodes = [make.node("a", initialized=False), make.node("c"), make.node("b")]
    assert places(make.solve([make.pod("p")], nodes=nodes)) == {"b": ["p"]}


def test_an_in_flight_claim_is_used_by_its_own_name(make: Any) -> None:
    node = make.node("n", with_node=False)
    (placement,) = make.solve([make.pod("p")], nodes=[node]).existing
    assert (placement.node, placement.node_claim, placement.initialized) == ("claim-of-n", "claim-of-n", False)


def test_unmanaged_nodes_are_usable(make: Any) -> None:
    assert places(make.solve([make.pod("p")], nodes=[make.node("n", managed=False)])) == {"n": ["p"]}


def test_nodes_on_their_way_out_give_no_room(make: Any) -> None:
    assert make.solve([make.pod()], nodes=[make.node("n", marked_for_deletion=True)]).existing == ()


def test_deleting_claims_are_marked_without_being_told(make: Any) -> None:
    from karpenter_linode.model import codec  # noqa: PLC0415 - only here

    state = make.node("n")
    assert not is_marked_for_deletion(state)
    plain = codec.to_plain(state)
    plain["nodeClaim"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert is_marked_for_deletion(codec.convert(plain, type(state)))


@pytest.mark.parametrize(("initialized", "used"), [(False, True), (True, False)])
def test_ephemeral_taints_vanish_only_until_the_node_is_initialized(
    make: Any, *, initialized: bool, used: bool
) -> None:
    node = make.node("n", taints=[TAINT], initialized=initialized)
    assert bool(make.solve([make.pod()], nodes=[node]).existing) is used


@pytest.mark.parametrize(("initialized", "used"), [(False, True), (True, False)])
def test_startup_taints_vanish_only_until_the_node_is_initialized(make: Any, *, initialized: bool, used: bool) -> None:
    taint = {"key": "cni", "effect": "NoSchedule"}
    node = make.node("n", taints=[taint], startup_taints=[taint], initialized=initialized)
    assert bool(make.solve([make.pod()], nodes=[node]).existing) is used


def test_a_foreign_taint_blocks(make: Any) -> None:
    node = make.node("n", taints=[{"key": "foreign", "effect": "NoSchedule"}], initialized=False)
    assert make.solve([make.pod()], nodes=[node]).existing == ()


def test_a_nodes_own_prefer_no_schedule_is_never_relaxed(make: Any) -> None:
    node = make.node("n", taints=[{"key": "soft", "effect": "PreferNoSchedule"}])
    assert make.solve([make.pod()], nodes=[node]).existing == ()


def test_until_registered_the_claims_taints_count(make: Any) -> None:
    node = make.node("n", registered=False, initialized=False, claim_taints=[{"key": "gpu", "effect": "NoSchedule"}])
    assert make.solve([make.pod()], nodes=[node]).existing == ()


def test_what_a_starting_node_does_not_report_yet_comes_from_its_claim(make: Any) -> None:
    from karpenter_linode.model import codec  # noqa: PLC0415 - only here

    plain = codec.to_plain(make.node("n", initialized=False, allocatable={"fake.com/gpu": "2"}))
    plain["node"]["status"]["allocatable"] = {"cpu": "3", "fake.com/gpu": "0"}
    view = NodeView(codec.convert(plain, type(make.node("n"))))
    assert {name: amount // 10**9 for name, amount in view.allocatable.items()} == {
        "cpu": 3,
        "memory": 4 * 1024**3,
        "pods": 5,
        "fake.com/gpu": 2,
    }


def test_room_is_kept_for_daemons_that_will_come(make: Any) -> None:
    daemon = make.daemon_set("ds", requests={"cpu": "3"})
    pod = make.pod(requests={"cpu": "2"})
    assert make.solve([pod], nodes=[make.node("n")], daemon_sets=[daemon]).existing == ()


def test_a_daemon_that_is_there_already_is_not_reckoned_twice(make: Any) -> None:
    daemon = make.daemon_set("ds", requests={"cpu": "2"})
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ds", "uid": "uid-ds", "controller": True}
    there = make.running("n", requests={"cpu": "2"}, metadata={"ownerReferences": [owner]})
    pod = make.pod("p", requests={"cpu": "2"})
    solution = make.solve([pod], nodes=[make.node("n")], daemon_sets=[daemon], bound_pods=[there])
    assert places(solution) == {"n": ["p"]}


def test_unexpected_daemon_pods_do_not_make_the_reserve_negative(make: Any) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "old", "uid": "gone", "controller": True}
    there = make.running("n", requests={"cpu": "3"}, metadata={"ownerReferences": [owner]})
    daemon = make.daemon_set("ds", requests={"cpu": "1"})
    pod = make.pod(requests={"cpu": "2"})
    assert make.solve([pod], nodes=[make.node("n")], daemon_sets=[daemon], bound_pods=[there]).existing == ()


def test_a_daemon_with_a_label_the_node_lacks_reserves_nothing_there(make: Any) -> None:
    daemon = make.daemon_set("ds", requests={"cpu": "4"}, nodeSelector={"team": "a"})
    assert make.solve([make.pod(requests={"cpu": "2"})], nodes=[make.node("n")], daemon_sets=[daemon]).existing


def test_an_overdrawn_node_takes_nothing(make: Any) -> None:
    running = make.running("n", requests={"memory": "5Gi"})
    assert make.solve([make.pod(requests={"cpu": "1"})], nodes=[make.node("n")], bound_pods=[running]).existing == ()


def test_pods_of_a_leaving_node_share_one_new_node_with_pending_ones(make: Any) -> None:
    node = make.node("n", marked_for_deletion=True)
    moving = [make.running("n", requests={"cpu": "1"}) for _ in range(3)]
    pods = [make.pod(requests={"cpu": "1"}) for _ in range(2)]
    uids = frozenset(pod.uid for pod in moving)
    plans = make.sized_plans(8)
    solution = make.solve([*moving, *pods], plans=plans, nodes=[node], bound_pods=moving, deleting_pod_uids=uids)
    (claim,) = solution.new_node_claims
    assert len(claim.pods) == 5


def test_host_ports_of_running_pods_are_taken(make: Any) -> None:
    container = {"name": "app", "ports": [{"hostPort": 80, "containerPort": 80}]}
    running = make.running("n", containers=[container])
    assert make.solve([make.pod(containers=[container])], nodes=[make.node("n")], bound_pods=[running]).existing == ()


def test_a_thousand_small_pods_spread_over_nodes_in_order(make: Any) -> None:
    nodes = [make.node(f"n-{index:02}", allocatable={"pods": "5"}) for index in range(20)]
    solution = make.solve([make.pod(requests={"cpu": "10m"}) for _ in range(100)], nodes=nodes)
    assert [len(item.pods) for item in solution.existing] == [5] * 20


def test_while_consolidating_running_pods_stay_off_nodes_that_wait(make: Any) -> None:
    from karpenter_linode.model import codec  # noqa: PLC0415 - only here

    plain = codec.to_plain(make.node("n"))
    plain["nodeClaim"]["status"]["conditions"] = [
        {"type": "Initialized", "status": "True", "lastTransitionTime": "2025-12-31T23:59:30Z"}
    ]
    node = codec.convert(plain, type(make.node("n")))
    pool = make.pool(disruption={"consolidateAfter": "1m"})
    running = make.pod(status={"phase": "Running", "conditions": []})
    for pod, used in ((running, False), (make.pod(), True)):
        solution = make.solve([pod], [pool], nodes=[node], options={"enforce_consolidate_after": True})
        assert bool(solution.existing) is used


def test_a_pod_is_tried_first_where_it_was_sent_before(make: Any) -> None:
    nodes = [make.node(name, with_node=False) for name in ("a", "b")]
    pods = [make.pod("p", uid="u")]
    assert places(make.solve(pods, nodes=nodes)) == {"claim-of-a": ["p"]}
    assert places(make.solve(pods, nodes=nodes, nominations={"u": "claim-of-b"})) == {"claim-of-b": ["p"]}


@pytest.mark.parametrize("sent_to", ["gone", "full", "claim-of-small"])
def test_where_it_does_not_fit_any_more_it_goes_elsewhere(make: Any, sent_to: str) -> None:
    nodes = [make.node("free"), make.node("full", managed=False), make.node("small")]
    running = [make.running(name, requests={"cpu": "3"}) for name in ("full", "small")]
    pod = make.pod("p", uid="u", requests={"cpu": "2"})
    solution = make.solve([pod], nodes=nodes, bound_pods=running, nominations={"u": sent_to})
    assert places(solution) == {"free": ["p"]}


def test_equal_pods_that_were_sent_apart_stay_apart(make: Any) -> None:
    nodes = [make.node(name, with_node=False) for name in ("a", "b", "c")]
    pods = [make.pod(f"p{number}", uid=f"u{number}") for number in range(5)]
    sent = {"u0": "claim-of-b", "u1": "claim-of-b", "u3": "claim-of-c", "u4": "claim-of-b"}
    found = places(make.solve(pods, nodes=nodes, nominations=sent))
    assert found == {"claim-of-a": ["p2"], "claim-of-b": ["p0", "p1", "p4"], "claim-of-c": ["p3"]}
