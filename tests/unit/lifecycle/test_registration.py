from __future__ import annotations

from typing import Any

from karpenter_linode.lifecycle.effects import Count, LogLine, Patch, PublishEvent
from karpenter_linode.lifecycle.registration import register, registered_node
from karpenter_linode.model.core import Node
from karpenter_linode.model.meta import find_condition

LAUNCHED = {"Launched": "True"}
WITH_ID = {"status": {"providerID": "linode://1"}}


def of(step: Any, kind: type) -> list[Any]:
    return [effect for effect in step.effects if isinstance(effect, kind)]


def registered(step: Any) -> Any:
    return find_condition(step.claim.status.conditions, "Registered")


def test_a_claim_without_a_node_waits(claim: Any, cluster: Any, now: Any) -> None:
    step = register(claim(LAUNCHED, **WITH_ID), cluster(), now)
    condition = registered(step)
    assert (condition.status, condition.reason, condition.message) == (
        "Unknown",
        "NodeNotFound",
        "Node not registered with cluster",
    )


def test_an_empty_provider_id_matches_no_node(claim: Any, node: Any, cluster: Any, now: Any) -> None:
    assert registered(register(claim(), cluster(node(spec={"providerID": ""})), now)).reason == "NodeNotFound"


def test_two_nodes_with_one_provider_id_are_a_terminal_error(claim: Any, node: Any, cluster: Any, now: Any) -> None:
    state = cluster(node(), node(metadata={"name": "lke2", "uid": "u2"}))
    step = register(claim(LAUNCHED, **WITH_ID), state, now)
    assert (registered(step).status, registered(step).reason) == ("False", "MultipleNodesFound")
    assert registered(register(step.claim, state, now)).status == "False"


def test_registration_needs_no_launched_condition(claim: Any, node: Any, cluster: Any, now: Any) -> None:
    assert registered(register(claim(**WITH_ID), cluster(node()), now)).status == "True"


def test_one_locked_write_takes_the_node_over(claim: Any, node: Any, cluster: Any, now: Any) -> None:
    made = claim(
        LAUNCHED,
        **WITH_ID,
        metadata={"labels": {"team": "a"}, "annotations": {"note": "x"}},
        spec={
            "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "warm", "effect": "NoSchedule"}],
        },
    )
    step = register(made, cluster(node()), now)
    (patch,) = of(step, Patch)
    assert (patch.kind, patch.lock) == (Node, "20")
    metadata, spec = patch.patch["metadata"], patch.patch["spec"]
    assert metadata["labels"] == {"team": "a", "karpenter.sh/nodepool": "gpu", "karpenter.sh/registered": "true"}
    assert metadata["annotations"] == {"note": "x"}
    assert metadata["finalizers"] == ["karpenter.sh/termination"]
    assert metadata["ownerReferences"][0] == {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "name": "gpu-1",
        "uid": "claim-uid",
        "blockOwnerDeletion": True,
    }
    assert [taint["key"] for taint in spec["taints"]] == ["nvidia.com/gpu", "warm"]
    assert step.claim.status.node_name == "lke1"
    assert of(step, LogLine)[-1].message == "registered nodeclaim"
    assert of(step, Count)[0].name == "karpenter_nodes_created_total"


def test_taints_that_are_there_win_over_those_of_the_claim(claim: Any, node: Any) -> None:
    there = node(spec={"taints": [{"key": "a", "value": "old", "effect": "NoSchedule"}]})
    made = claim(spec={"taints": [{"key": "a", "value": "new", "effect": "NoSchedule"}]})
    assert [taint.value for taint in registered_node(there, made).spec.taints] == ["old"]


def test_the_opt_out_label_keeps_taints_away_but_not_the_unregistered_one(claim: Any, node: Any) -> None:
    there = node(metadata={"labels": {"karpenter.sh/do-not-sync-taints": "true"}})
    made = claim(spec={"taints": [{"key": "a", "effect": "NoSchedule"}]})
    assert registered_node(there, made).spec.taints == ()


def test_the_opt_out_label_with_another_value_counts_for_nothing(claim: Any, node: Any) -> None:
    there = node(metadata={"labels": {"karpenter.sh/do-not-sync-taints": "yes"}})
    made = claim(spec={"startupTaints": [{"key": "a", "effect": "NoSchedule"}]})
    assert [taint.key for taint in registered_node(there, made).spec.taints] == ["a"]


def test_the_owner_is_added_once(claim: Any, node: Any) -> None:
    once = registered_node(node(), claim())
    assert registered_node(once, claim()).metadata.owner_references == once.metadata.owner_references


def test_a_missing_unregistered_taint_is_told_and_does_not_stop_registration(
    claim: Any, node: Any, cluster: Any, now: Any
) -> None:
    step = register(claim(LAUNCHED, **WITH_ID), cluster(node(spec={"taints": []})), now)
    assert registered(step).status == "True"
    assert of(step, PublishEvent)[0].reason == "UnregisteredTaintMissing"
    assert of(step, LogLine)[0].message == "node claim registration error"


def test_a_registered_claim_never_touches_its_node_again(claim: Any, node: Any, cluster: Any, now: Any) -> None:
    made = claim(
        {**LAUNCHED, "Registered": "True"}, **WITH_ID, spec={"startupTaints": [{"key": "a", "effect": "NoSchedule"}]}
    )
    assert of(register(made, cluster(node(spec={"taints": []})), now), Patch) == []
