"""NodePools: selection, weights, labels, taints, limits (spec/karpenter-scheduling.md 8.1, 8.2, 8.4, 8.7)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.model.core import Toleration

ZONE, INSTANCE_TYPE, NODEPOOL = (
    "topology.kubernetes.io/zone",
    "node.kubernetes.io/instance-type",
    "karpenter.sh/nodepool",
)


def affinity(*terms: list[tuple[str, str, list[str]]], preferred: Any = ()) -> dict[str, Any]:
    def term(items: list[tuple[str, str, list[str]]]) -> dict[str, Any]:
        return {"matchExpressions": [{"key": key, "operator": op, "values": values} for key, op, values in items]}

    node: dict[str, Any] = {}
    if terms:
        node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [term(item) for item in terms]}
    if preferred:
        node["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": weight, "preference": term(items)} for weight, items in preferred
        ]
    return {"nodeAffinity": node}


def test_one_pod_gets_one_claim_with_every_plan_that_fits_cheapest_first(make: Any) -> None:
    solution = make.solve([make.pod("a", requests={"cpu": "1"})])
    (claim,) = solution.new_node_claims
    assert claim.instance_types == (
        "small-instance-type",
        "default-instance-type",
        "single-pod-instance-type",
        "gpu-vendor-instance-type",
        "arm-instance-type",
    )
    assert claim.price == 400_000_000
    assert [pod.key for pod in claim.pods] == ["default/a"]
    assert solution.unplaced == ()


def test_the_highest_weight_comes_first_and_ties_go_by_name_descending(make: Any) -> None:
    pools = [make.pool("a"), make.pool("b", weight=10), make.pool("c", weight=10)]
    (claim,) = make.solve([make.pod()], pools).new_node_claims
    assert claim.node_pool == "c"


def test_an_explicit_choice_of_pool_beats_its_weight(make: Any) -> None:
    pools = [make.pool("a"), make.pool("b", weight=10)]
    (claim,) = make.solve([make.pod(nodeSelector={NODEPOOL: "a"})], pools).new_node_claims
    assert claim.node_pool == "a"


@pytest.mark.parametrize(
    ("pool", "code"),
    [
        ({"replicas": 3}, "static-pool"),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "deleting-pool"),
        ({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "pool-not-ready"),
    ],
)
def test_pools_that_cannot_be_used_are_left_out_with_a_note(make: Any, pool: dict[str, Any], code: str) -> None:
    solution = make.solve([make.pod()], [make.pool(**pool)])
    assert [note.code for note in solution.notes] == [code]
    (unplaced,) = solution.unplaced
    assert unplaced.reason.message == "no dynamic nodepools found"


def test_requirements_that_leave_no_plan_are_told_for_each_pod(make: Any) -> None:
    pool = make.pool(requirements=[(INSTANCE_TYPE, "In", "no-such-type")])
    solution = make.solve([make.pod(), make.pod()], [pool])
    assert [item.reason.message for item in solution.unplaced] == [
        "nodepool requirements filtered out all available instance types"
    ] * 2


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [("Gt", "8", "16"), ("Lt", "8", "2"), ("Gte", "16", "16"), ("Lte", "2", "2")],
)
def test_bounds_on_a_whole_number_label(make: Any, operator: str, value: str, expected: str) -> None:
    plans = [make.plan(f"it-{size}", extra=[("integer", "In", size)]) for size in ("2", "16")]
    pod = make.pod(affinity=affinity([("integer", operator, [value])]))
    pool = make.pool(requirements=[("integer", "Exists")])
    (claim,) = make.solve([pod], [pool], plans).new_node_claims
    assert claim.instance_types == (f"it-{expected}",)


@pytest.mark.parametrize(
    ("operator", "placed"), [("In", False), ("Exists", False), ("NotIn", True), ("DoesNotExist", True)]
)
def test_undefined_custom_labels(make: Any, operator: str, *, placed: bool) -> None:
    values = ["x"] if operator in {"In", "NotIn"} else []
    solution = make.solve([make.pod(affinity=affinity([("example.com/team", operator, values)]))])
    assert bool(solution.new_node_claims) is placed
    if not placed:
        assert solution.unplaced[0].reason.message == (
            'incompatible requirements, label "example.com/team" does not have known values'
        )


def test_custom_labels_of_the_pool_are_pinned_by_the_pods_that_ask_for_them(make: Any) -> None:
    pool = make.pool(requirements=[("example.com/team", "Exists")])
    pods = [make.pod(nodeSelector={"example.com/team": team}) for team in ("a", "b")]
    claims = make.solve(pods, [pool]).new_node_claims
    assert sorted(claim.node_claim.metadata.labels["example.com/team"] for claim in claims) == ["a", "b"]


def test_not_in_beside_in_on_one_key_is_a_contradiction(make: Any) -> None:
    pod = make.pod(nodeSelector={"example.com/x": "b"}, affinity=affinity([("example.com/x", "In", ["a"])]))
    assert make.solve([pod]).new_node_claims == ()


def test_required_terms_are_tried_in_order_and_the_last_is_never_given_up(make: Any) -> None:
    good, bad = [(ZONE, "In", ["test-zone-2"])], [(ZONE, "In", ["nowhere"])]
    (claim,) = make.solve([make.pod(affinity=affinity(bad, bad, good))]).new_node_claims
    zones = [item for item in claim.node_claim.spec.requirements if item.key == ZONE]
    assert zones[0].values == ("test-zone-2",)
    assert make.solve([make.pod(affinity=affinity(bad))]).new_node_claims == ()


def test_preferences_are_given_up_heaviest_first(make: Any) -> None:
    preferred = [(1, [(ZONE, "In", ["test-zone-3"])]), (9, [(ZONE, "In", ["nowhere"])])]
    (claim,) = make.solve([make.pod(affinity=affinity(preferred=preferred))]).new_node_claims
    zones = [item for item in claim.node_claim.spec.requirements if item.key == ZONE]
    assert zones[0].values == ("test-zone-3",)


def test_with_policy_ignore_preferences_do_not_count(make: Any) -> None:
    pod = make.pod(affinity=affinity(preferred=[(1, [(ZONE, "In", ["test-zone-3"])])]))
    (claim,) = make.solve([pod], options={"preference_policy": "Ignore"}).new_node_claims
    assert not [item for item in claim.node_claim.spec.requirements if item.key == ZONE]


def test_pool_taints_must_be_tolerated_startup_taints_not(make: Any) -> None:
    taint = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
    solution = make.solve([make.pod()], [make.pool(taints=[taint])])
    assert solution.unplaced[0].reason.message == "did not tolerate taint (taint=gpu=true:NoSchedule)"
    tolerant = make.pod(tolerations=[{"key": "gpu", "operator": "Exists"}])
    assert make.solve([tolerant], [make.pool(taints=[taint])]).new_node_claims
    assert make.solve([make.pod()], [make.pool(startup_taints=[taint])]).new_node_claims


def test_prefer_no_schedule_is_tolerated_only_after_all_else(make: Any) -> None:
    taint = {"key": "soft", "effect": "PreferNoSchedule"}
    (claim,) = make.solve([make.pod()], [make.pool("b", taints=[taint]), make.pool("a")]).new_node_claims
    assert claim.node_pool == "a"
    (claim,) = make.solve([make.pod()], [make.pool("b", taints=[taint])]).new_node_claims
    assert claim.node_pool == "b"


def test_the_node_claim_has_the_contracts_shape(make: Any) -> None:
    pool = make.pool(labels={"team": "a"}, annotations={"note": "x"}, taints=[{"key": "t", "effect": "NoSchedule"}])
    pod = make.pod(requests={"cpu": "1", "memory": "1Gi"}, tolerations=[{"operator": "Exists"}])
    (planned,) = make.solve([pod], [pool]).new_node_claims
    claim = planned.node_claim
    assert claim.metadata.generate_name == "default-"
    assert claim.metadata.labels == {
        "team": "a",
        "karpenter.sh/nodepool": "default",
        "karpenter.test.sh/testnodeclass": "default",
    }
    (owner,) = claim.metadata.owner_references
    assert (owner.api_version, owner.kind, owner.name, owner.uid) == (
        "karpenter.sh/v1",
        "NodePool",
        "default",
        "uid-default",
    )
    assert (owner.block_owner_deletion, owner.controller) == (True, None)
    annotations = claim.metadata.annotations
    assert annotations["note"] == "x"
    assert annotations["karpenter.sh/nodepool-hash-version"] == "v3"
    assert annotations["karpenter.sh/nodeclaim-min-values-relaxed"] == "false"
    assert {name: str(value) for name, value in claim.spec.resources.requests.items()} == {
        "cpu": "1",
        "memory": "1Gi",
        "pods": "1",
    }
    keys = {item.key for item in claim.spec.requirements}
    assert {INSTANCE_TYPE, "karpenter.sh/capacity-type", NODEPOOL, "team"} <= keys
    assert not {"karpenter.sh/registered", "karpenter.sh/initialized", "kubernetes.io/hostname"} & keys


def test_exclusions_of_a_bounded_label_are_not_lost_when_the_claim_is_written(make: Any) -> None:
    pool = make.pool(requirements=[("tier", "Exists")])
    pods = [
        make.pod(affinity=affinity([("tier", "NotIn", ["0"])])),
        make.pod(affinity=affinity([("tier", "Lt", ["4"])])),
    ]
    (claim,) = make.solve(pods, [pool]).new_node_claims
    assert claim.node_claim.metadata.labels["tier"] == "1"
    (item,) = [item for item in claim.node_claim.spec.requirements if item.key == "tier"]
    assert (item.operator, item.values) == ("In", ("1",))


def test_limits_leave_room_for_four_of_five(make: Any) -> None:
    plans = [make.plan("it-4", capacity={"pods": "1"})]
    solution = make.solve([make.pod() for _ in range(5)], [make.pool("gpu", limits={"cpu": "16"})], plans)
    assert len(solution.new_node_claims) == 4
    (unplaced,) = solution.unplaced
    assert unplaced.reason.message == "all available instance types exceed limits for nodepool (NodePool=gpu)"
    assert [reason.code for reason in unplaced.reason.walk()][:3] == ["limits", "limits", "limit"]


def test_limits_count_what_exists(make: Any) -> None:
    plans = make.sized_plans(2, 4)
    pools = [make.pool(limits={"cpu": "7"})]
    full = make.node("n", allocatable={"cpu": "4", "pods": "0"})
    (claim,) = make.solve([make.pod()], pools, plans, nodes=[full]).new_node_claims
    assert claim.instance_types == ("it-2",)


def test_a_limit_of_pods_counts_the_plans_capacity(make: Any) -> None:
    assert make.solve([make.pod()], [make.pool(limits={"pods": "1"})], make.sized_plans(2)).new_node_claims == ()


def test_the_node_limit_counts_existing_nodes_and_notes_claims_beyond_it(make: Any) -> None:
    plans, pods = [make.plan("it", capacity={"pods": "1"})], [make.pod() for _ in range(3)]
    full = make.node("n", allocatable={"cpu": "4", "pods": "0"})
    solution = make.solve(pods, [make.pool(limits={"nodes": "2"})], plans, nodes=[full])
    assert len(solution.new_node_claims) == 3
    (note,) = solution.notes
    assert note.subject == "NodePool default"
    assert note.message == "3 NodeClaims planned, limits.nodes has room for 1: the others are not created"
    within = make.solve(pods[:1], [make.pool(limits={"nodes": "2"})], plans, nodes=[full])
    assert within.notes == ()
    exhausted = make.solve(pods, [make.pool(limits={"nodes": "1"})], plans, nodes=[full])
    message = "node limits have been exhausted for nodepool (NodePool=default)"
    assert [item.reason.message for item in exhausted.unplaced] == [message] * 3


def test_a_lower_pool_takes_what_the_first_has_no_limit_left_for(make: Any) -> None:
    pools = [make.pool("first", weight=5, limits={"cpu": "4"}), make.pool("second")]
    plans = [make.plan("it", capacity={"pods": "1"})]
    claims = make.solve([make.pod(), make.pod()], pools, plans).new_node_claims
    assert [claim.node_pool for claim in claims] == ["first", "second"]


def test_equal_problems_give_equal_solutions_byte_for_byte(make: Any) -> None:
    from karpenter_linode.model import codec  # noqa: PLC0415 - only here
    from karpenter_linode.scheduling import solve  # noqa: PLC0415 - only here

    problem = make.problem([make.pod(requests={"cpu": "1"}) for _ in range(7)])
    again = codec.decode(codec.encode(problem), type(problem))
    assert codec.encode(solve(problem)) == codec.encode(solve(again))


def test_out_of_steps_leaves_the_rest_for_the_next_round(make: Any) -> None:
    pods = [make.pod(requests={"cpu": f"{index}m"}) for index in range(9)]
    solution = make.solve(pods, options={"scheduling_steps": 3})
    assert solution.new_node_claims
    assert {item.reason.code for item in solution.unplaced} == {"out-of-steps"}


def test_a_tolerated_taint_is_on_the_claim(make: Any) -> None:
    taint = {"key": "t", "effect": "NoExecute"}
    pod = make.pod(tolerations=[{"key": "t", "operator": "Exists"}])
    (claim,) = make.solve([pod], [make.pool(taints=[taint])]).new_node_claims
    assert [str(item) for item in claim.node_claim.spec.taints] == ["t:NoExecute"]
    assert Toleration("t", "Exists") in pod.spec.tolerations


def test_a_preference_that_cannot_be_read_is_given_up_and_harms_nobody(make: Any) -> None:
    preferred = [(1, [("kubernetes.io/os", "Gt", ["many"])])]
    solution = make.solve([make.pod(affinity=affinity(preferred=preferred)), make.pod()])
    assert solution.unplaced == ()


def test_a_pool_that_cannot_be_read_is_left_out_with_a_note(make: Any) -> None:
    solution = make.solve([make.pod()], [make.pool("bad", requirements=[("a", "Gt", "x")]), make.pool("good")])
    assert [note.code for note in solution.notes] == ["pool-invalid"]
    assert [claim.node_pool for claim in solution.new_node_claims] == ["good"]


def test_the_tree_tells_what_was_given_up_and_why_other_places_refuse(make: Any) -> None:
    preferred = [(1, [(ZONE, "In", ["test-zone-3"])])]
    pod = make.pod(requests={"cpu": "100"}, affinity=affinity(preferred=preferred))
    solution = make.solve([pod, make.pod(requests={"cpu": "3"})], nodes=[make.node("n", allocatable={"cpu": "1"})])
    (unplaced,) = solution.unplaced
    assert [child.code for child in unplaced.reason.children] == [
        "instance-types",
        "existing-nodes",
        "planned-claims",
        "relaxation",
    ]
    messages = [reason.message for reason in unplaced.reason.walk()]
    assert "exceeds node resources (cpu)" in messages
    assert "no allowed plan has room for one more" in messages
    assert messages[-1].startswith("removing: spec.affinity.nodeAffinity.preferredDuringScheduling")
