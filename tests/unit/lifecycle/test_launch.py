from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from karpenter_linode.lifecycle.effects import CloudCreate, Count, Delete, Fail, LogLine, Patch, PublishEvent, Requeue
from karpenter_linode.lifecycle.launch import LaunchFailed
from karpenter_linode.lifecycle.node_claim import reconcile_node_claim
from karpenter_linode.lifecycle.step import LifecycleSettings
from karpenter_linode.model.instance import Launched
from karpenter_linode.model.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from karpenter_linode.cluster.state import ClusterState
    from karpenter_linode.lifecycle.effects import Effect
    from karpenter_linode.model.karpenter import NodeClaim

SETTINGS = LifecycleSettings(ignore_dra_requests=False)
BUILT = Launched(
    "linode://1",
    "g2-gpu-rtx4000a1-s",
    {"cpu": Quantity.parse("4")},
    {"cpu": Quantity.parse("3920m")},
    {"topology.kubernetes.io/region": "us-ord", "karpenter.sh/nodepool": "other"},
    {"a": "b"},
)


def of(effects: list[Effect], kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def condition(effects: list[Effect], kind: str) -> dict[str, Any]:
    written = [patch.patch["status"]["conditions"] for patch in of(effects, Patch) if patch.subresource == "status"]
    return next(item for item in written[-1] if item["type"] == kind)


@pytest.fixture
def decide(cluster: Callable[..., ClusterState], now: datetime) -> Callable[..., list[Effect]]:
    def run(claim: NodeClaim, **answers: Any) -> list[Effect]:
        return reconcile_node_claim(claim, cluster(claim), now, SETTINGS, **answers)

    return run


def test_the_finalizer_comes_before_the_cloud_is_asked(claim: Any, decide: Any) -> None:
    effects = decide(claim(metadata={"finalizers": []}))
    assert not of(effects, CloudCreate)
    (patch,) = of(effects, Patch)
    assert patch.patch["metadata"]["finalizers"] == ["karpenter.sh/termination"]
    assert patch.lock == "10"
    assert of(effects, Requeue)


def test_a_new_claim_asks_the_cloud_once_its_conditions_are_written(claim: Any, decide: Any) -> None:
    effects = decide(claim())
    assert isinstance(effects[-1], CloudCreate)
    assert condition(effects, "Launched")["reason"] == "AwaitingReconciliation"


def test_what_the_cloud_built_is_written_and_told(claim: Any, decide: Any) -> None:
    effects = decide(claim(), launched=BUILT)
    metadata, status = of(effects, Patch)
    assert metadata.patch["metadata"] == {
        "labels": {"topology.kubernetes.io/region": "us-ord"},
        "annotations": {"a": "b"},
    }
    assert status.patch["status"]["providerID"] == "linode://1"
    assert condition(effects, "Launched")["status"] == "True"
    assert of(effects, LogLine)[0].message == "launched nodeclaim"


@pytest.mark.parametrize(
    ("kind", "reason", "events"),
    [("insufficient-capacity", "insufficient_capacity", 1), ("node-class-not-ready", "nodeclass_not_ready", 0)],
)
def test_a_claim_that_cannot_be_built_is_deleted(claim: Any, decide: Any, kind: Any, reason: str, events: int) -> None:
    effects = decide(claim(), launched=LaunchFailed(kind, "sold out"))
    assert of(effects, Delete)[0].uid == "claim-uid"
    assert of(effects, Count)[0].labels["reason"] == reason
    assert len(of(effects, PublishEvent)) == events
    assert not of(effects, Fail)


def test_a_create_error_puts_its_own_reason_on_launched(claim: Any, decide: Any) -> None:
    effects = decide(claim(), launched=LaunchFailed("create-error", "waiting", "NodePoolProvisioning"))
    launched = condition(effects, "Launched")
    assert (launched["status"], launched["reason"], launched["message"]) == (
        "Unknown",
        "NodePoolProvisioning",
        "waiting",
    )
    assert of(effects, Fail)[0].message == "launching nodeclaim, waiting"


def test_another_error_is_cut_to_300_characters(claim: Any, decide: Any) -> None:
    effects = decide(claim(), launched=LaunchFailed("error", "x" * 301))
    launched = condition(effects, "Launched")
    assert launched["reason"] == "LaunchFailed"
    assert launched["message"] == "x" * 300 + "..."


def test_a_launched_claim_does_not_ask_again(claim: Any, decide: Any) -> None:
    assert not of(decide(claim({"Launched": "True"}, status={"providerID": "linode://1"})), CloudCreate)


def test_claims_of_other_providers_are_left_alone(claim: Any, decide: Any) -> None:
    assert decide(claim(spec={"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}})) == []


def test_an_instance_built_while_its_claim_was_deleted_is_put_on_record_first(claim: Any, decide: Any) -> None:
    effects = decide(claim(metadata={"deletionTimestamp": "2026-01-01T12:00:05Z"}), launched=BUILT)
    assert any(patch.patch.get("status", {}).get("providerID") == "linode://1" for patch in of(effects, Patch))
    assert of(effects, Requeue)
