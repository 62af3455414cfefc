from __future__ import annotations

from typing import Any

from karpenter_linode.lifecycle.effects import CloudDelete, Count, Delete, LogLine, Patch, Requeue
from karpenter_linode.lifecycle.finalization import finalize
from karpenter_linode.lifecycle.step import termination_mode
from karpenter_linode.model.core import Node

DELETED = {"deletionTimestamp": "2026-01-01T12:00:00Z"}
REGISTERED = {"Launched": "True", "Registered": "True", "Initialized": "True"}
WITH_ID = {"status": {"providerID": "linode://1"}}


def of(effects: Any, kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def finalizers(effects: Any) -> list[Any]:
    return [patch.patch["metadata"] for patch in of(effects, Patch) if "metadata" in patch.patch]


def test_every_node_of_a_registered_claim_is_deleted_first(claim: Any, node: Any, cluster: Any, now: Any) -> None:
    made = claim(REGISTERED, **WITH_ID, metadata=DELETED)
    leaving = node(metadata={"name": "lke2", "uid": "u2", **DELETED})
    effects = finalize(made, cluster(node(), leaving), now, instance_gone=None)
    assert [(effect.kind, effect.name) for effect in effects] == [(Node, "lke1")]


def test_nodes_of_an_unregistered_claim_are_left_alone(claim: Any, node: Any, cluster: Any, now: Any) -> None:
    effects = finalize(
        claim({"Launched": "True"}, **WITH_ID, metadata=DELETED), cluster(node()), now, instance_gone=None
    )
    assert not of(effects, Delete)
    assert effects == [CloudDelete("linode://1")]


def test_a_claim_that_was_never_launched_asks_nobody(claim: Any, node: Any, cluster: Any, now: Any) -> None:
    effects = finalize(claim(metadata=DELETED), cluster(node(spec={"providerID": ""})), now, instance_gone=None)
    assert not of(effects, CloudDelete)
    assert finalizers(effects) == [{"finalizers": None}]


def test_the_finalizer_stays_while_the_instance_exists(claim: Any, cluster: Any, now: Any) -> None:
    effects = finalize(claim(REGISTERED, **WITH_ID, metadata=DELETED), cluster(), now, instance_gone=False)
    (status,) = of(effects, Patch)
    terminating = next(item for item in status.patch["status"]["conditions"] if item["type"] == "InstanceTerminating")
    assert terminating["status"] == "True"
    assert of(effects, Requeue)[0].after.total_seconds() == 5


def test_instance_terminating_does_not_make_ready_unknown(claim: Any, cluster: Any, now: Any) -> None:
    made = claim(REGISTERED, **WITH_ID, metadata={**DELETED, "generation": 2})
    (status,) = of(finalize(made, cluster(), now, instance_gone=False), Patch)
    by_type = {item["type"]: item for item in status.patch["status"]["conditions"]}
    assert by_type["Ready"]["status"] == "True"
    assert {item["observedGeneration"] for item in by_type.values()} == {2}


def test_the_finalizer_goes_with_the_instance(claim: Any, cluster: Any, now: Any) -> None:
    effects = finalize(claim(REGISTERED, **WITH_ID, metadata=DELETED), cluster(), now, instance_gone=True)
    assert finalizers(effects) == [{"finalizers": None}]
    assert of(effects, LogLine)[0].message == "deleted nodeclaim"
    assert of(effects, Count)[0].name == "karpenter_nodeclaims_terminated_total"


def test_a_grace_period_sets_the_deadline_once(claim: Any, cluster: Any, now: Any) -> None:
    key = "karpenter.sh/nodeclaim-termination-timestamp"
    made = claim(metadata=DELETED, spec={"terminationGracePeriod": "1h"})
    (patch,) = of(finalize(made, cluster(), now, instance_gone=None), Patch)
    assert patch.patch == {"metadata": {"annotations": {key: "2026-01-01T13:00:00Z"}}}
    assert patch.lock == "10"
    kept = claim(
        metadata={**DELETED, "annotations": {key: "2030-01-01T00:00:00Z"}}, spec={"terminationGracePeriod": "1h"}
    )
    assert all("annotations" not in item for item in finalizers(finalize(kept, cluster(), now, instance_gone=None)))


def test_without_our_finalizer_there_is_nothing_to_do(claim: Any, cluster: Any, now: Any) -> None:
    assert finalize(claim(metadata={**DELETED, "finalizers": []}), cluster(), now, instance_gone=None) == []


def test_a_grace_period_that_no_duration_can_hold_is_no_limit(claim: Any, cluster: Any, now: Any) -> None:
    made = claim(REGISTERED, **WITH_ID, metadata=DELETED, spec={"terminationGracePeriod": "9999999h"})
    assert finalize(made, cluster(), now, instance_gone=None) == [CloudDelete("linode://1")]
    assert termination_mode(made) == "graceful"
