from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from karpenter_linode.disruption.budgets import PoolBudget
from karpenter_linode.disruption.candidates import eviction_cost, survey_candidates
from karpenter_linode.disruption.emptiness import eligible, plan_emptiness, validate_emptiness
from karpenter_linode.model import kinds

if TYPE_CHECKING:
    from fractions import Fraction

DAEMON = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet"}]}
MIRROR = {"ownerReferences": [{"apiVersion": "v1", "kind": "Node"}]}
STATEFUL = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet"}]}
TERMINATING = {"deletionTimestamp": "2026-01-01T12:00:00Z"}
PROTECTED = {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}
ROOM = {"gpu": PoolBudget(10, 0, 10)}


def budget(name: str, allowed: int = 0, **spec: Any) -> Any:
    return kinds.from_manifest(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {}, **spec},
            "status": {"disruptionsAllowed": allowed},
        }
    )


@pytest.fixture
def survey(claim: Any, node: Any, pool: Any, cluster: Any, now: Any) -> Any:
    """Look at one node with the given objects beside it; returns the survey."""

    def look(*objects: Any, eventual: bool = False, moment: Any = None, **changes: Any) -> Any:
        parts = {"claim": claim(), "node": node(), "pool": pool(), **changes}
        state = cluster(*(part for part in parts.values() if part is not None), *objects)
        return survey_candidates(state, (), moment or now, eventual=eventual)

    return look


def why(result: Any) -> str:
    (blocked,) = result.blocked
    return str(blocked.reason.message)


def test_a_quiet_node_is_a_candidate(survey: Any) -> None:
    (candidate,) = survey().candidates
    assert (candidate.id, candidate.name, candidate.is_empty) == ("nodeclaim/gpu-1", "lke1", True)


def test_nodes_that_are_none_say_why(survey: Any, claim: Any, node: Any) -> None:
    assert why(survey(claim=None)) == "node isn't managed by karpenter"
    assert why(survey(node=None)) == "nodeclaim does not have an associated node"
    starting = node(metadata={"labels": {"karpenter.sh/initialized": ""}})
    assert why(survey(node=starting)) == "node isn't initialized"
    leaving = claim(metadata={"deletionTimestamp": "2026-01-01T12:00:00Z"})
    assert why(survey(claim=leaving)) == "node is deleting or marked for deletion"
    assert why(survey(node=node(metadata=PROTECTED))) == (
        'disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation'
    )
    homeless = node(metadata={"labels": {"karpenter.sh/nodepool": ""}})
    assert why(survey(node=homeless)) == "node doesn't have required label (label=karpenter.sh/nodepool)"
    assert why(survey(pool=None)) == "NodePool not found (NodePool=gpu)"


def test_the_annotation_false_or_a_duration_does_not_protect_a_node(survey: Any, node: Any) -> None:
    for value in ("false", "1h"):
        assert survey(node=node(metadata={"annotations": {"karpenter.sh/do-not-disrupt": value}})).candidates


def test_nominated_marked_and_queued_nodes_are_none(claim: Any, node: Any, pool: Any, cluster: Any, now: Any) -> None:
    state = cluster(claim(), node(), pool())
    assert why(survey_candidates(state, ("nodeclaim/gpu-1",), now)) == "candidate is already being disrupted"
    state.nominate("nodeclaim/gpu-1", now + timedelta(seconds=20))
    assert why(survey_candidates(state, (), now)) == "node is nominated for a pending pod"
    assert survey_candidates(state, (), now + timedelta(seconds=20)).candidates
    state.mark_for_deletion("nodeclaim/gpu-1")
    assert why(survey_candidates(state, (), now + timedelta(minutes=1))) == "node is deleting or marked for deletion"


@pytest.mark.parametrize("metadata", [PROTECTED, {**PROTECTED, **DAEMON}, {**PROTECTED, **MIRROR}])
def test_a_protected_pod_keeps_its_node_whoever_owns_it(survey: Any, pod: Any, metadata: Any) -> None:
    assert why(survey(pod(metadata=metadata))) == 'pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/p)'


def test_protection_by_duration_ends(survey: Any, pod: Any, now: Any) -> None:
    brief = pod(
        metadata={"annotations": {"karpenter.sh/do-not-disrupt": "10m"}}, status={"startTime": "2026-01-01T12:00:00Z"}
    )
    assert survey(brief, moment=now + timedelta(minutes=9)).blocked
    assert survey(brief, moment=now + timedelta(minutes=10)).candidates
    invalid = pod(metadata={"annotations": {"karpenter.sh/do-not-disrupt": "soon"}})
    assert survey(invalid).candidates


@pytest.mark.parametrize(
    "changes", [{"metadata": {**PROTECTED, **TERMINATING}}, {"metadata": PROTECTED, "status": {"phase": "Failed"}}]
)
def test_pods_on_their_way_out_protect_nothing(survey: Any, pod: Any, changes: Any) -> None:
    assert survey(pod(**changes)).candidates


def test_budgets_of_pods_block(survey: Any, pod: Any) -> None:
    assert why(survey(pod(), budget("a"))) == "pdb prevents pod evictions (PodDisruptionBudget=[default/a])"
    assert survey(pod(), budget("a", allowed=1)).candidates
    assert why(survey(pod(), budget("b", 1), budget("a", 1))) == (
        "eviction does not support multiple PDBs (PodDisruptionBudget(s)=[default/a default/b])"
    )
    assert survey(pod(metadata=MIRROR), budget("a")).candidates
    unready = pod(status={"conditions": [{"type": "Ready", "status": "False"}]})
    assert survey(unready, budget("a", unhealthyPodEvictionPolicy="AlwaysAllow")).candidates


def test_for_drift_a_grace_period_makes_pods_wait_instead_of_block(survey: Any, pod: Any, claim: Any) -> None:
    patient = claim(spec={"terminationGracePeriod": "1h"})
    assert survey(pod(metadata=PROTECTED), claim=patient, eventual=True).candidates
    assert survey(pod(metadata=PROTECTED), claim=patient).blocked
    assert survey(pod(metadata=PROTECTED), eventual=True).blocked


@pytest.mark.parametrize(
    ("pods", "empty"),
    [
        ([], True),
        ([{"metadata": DAEMON}], True),
        ([{"metadata": MIRROR}], True),
        ([{"metadata": TERMINATING}], True),
        ([{"status": {"phase": "Succeeded"}}], True),
        ([{"metadata": {**TERMINATING, **STATEFUL}}], False),
        ([{}], False),
        ([{"spec": {"priority": -(2**25)}}], True),
    ],
)
def test_what_counts_as_empty(survey: Any, pod: Any, pods: Any, empty: Any) -> None:
    (candidate,) = survey(*(pod(f"p{number}", **changes) for number, changes in enumerate(pods))).candidates
    assert candidate.is_empty is empty


def test_the_cost_of_an_eviction(pod: Any) -> None:
    def cost(text: str | None = None, priority: int | None = None) -> Fraction:
        annotations = {"controller.kubernetes.io/pod-deletion-cost": text} if text is not None else {}
        return eviction_cost(pod(metadata={"annotations": annotations}, spec={"priority": priority}))

    assert cost() == 1
    assert cost("-100") < cost("0") == 1 < cost("100")
    assert cost(priority=-1000) < 1 < cost(priority=1000)
    assert cost("9e999999") == 10
    assert cost("-9e999999") == -10
    assert cost("1e-999999") == cost("nan") == cost("many") == 1


@pytest.mark.parametrize("policy", ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"])
def test_emptiness_serves_every_policy(survey: Any, pool: Any, policy: str) -> None:
    made = pool(spec={"disruption": {"consolidationPolicy": policy}})
    assert len(eligible(survey(pool=made))) == 1


def test_emptiness_needs_the_condition_and_a_dynamic_pool(survey: Any, pool: Any, claim: Any) -> None:
    assert eligible(survey(claim=claim({"Initialized": "True"}))) == ()
    assert eligible(survey(pool=pool(spec={"replicas": 1}))) == ()
    assert eligible(survey(pool=pool(spec={"disruption": {"consolidateAfter": "Never"}}))) == ()


@pytest.fixture
def three(claim: Any, node: Any, pool: Any, cluster: Any, now: Any) -> Any:
    state = cluster(pool())
    for name in "abc":
        state.observe(claim(metadata={"name": name, "uid": name}, status={"providerID": name}))
        state.observe(node(metadata={"name": f"n-{name}", "uid": f"n-{name}"}, spec={"providerID": name}))
    return state


def test_as_many_nodes_go_as_the_budget_lets(three: Any, now: Any) -> None:
    candidates = eligible(survey_candidates(three, (), now))
    for remaining, expected in ((0, 0), (2, 2), (5, 3)):
        command = plan_emptiness(candidates, {"gpu": PoolBudget(3, 0, remaining)})
        assert len(command.candidates) == expected
    assert command.describe("x") == "Empty/x: delete: nodepools=[gpu]: [n-a, n-b, n-c]"


def test_validation_keeps_what_is_empty_still(three: Any, pod: Any, now: Any) -> None:
    command = plan_emptiness(eligible(survey_candidates(three, (), now)), ROOM)
    three.observe(pod(spec={"nodeName": "n-b"}))
    three.nominate("nodeclaim/c", now + timedelta(seconds=20))
    valid = validate_emptiness(command, survey_candidates(three, (), now), ROOM)
    assert [candidate.name for candidate in valid.command.candidates] == ["n-a"]
    assert valid.dropped == 2


def test_validation_says_why_nothing_is_left(three: Any, now: Any) -> None:
    command = plan_emptiness(eligible(survey_candidates(three, (), now)), ROOM)
    fresh = survey_candidates(three, (), now)
    spent = validate_emptiness(command, fresh, {"gpu": PoolBudget(3, 3, 3)})
    assert (spent.command, spent.failure) == (None, "budget")
    three.mark_for_deletion("nodeclaim/a", "nodeclaim/b", "nodeclaim/c")
    churned = validate_emptiness(command, survey_candidates(three, (), now), ROOM)
    assert (churned.failure, churned.message) == ("churn", "3 candidates are no longer valid")
