from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from karpenter_linode.lifecycle.effects import (
    CloudDelete,
    CloudGet,
    Count,
    Delete,
    Evict,
    LogLine,
    Patch,
    PublishEvent,
    Requeue,
)
from karpenter_linode.lifecycle.termination import InstanceAnswers, terminate_node
from karpenter_linode.model import kinds
from karpenter_linode.model.karpenter import NodeClaim

DELETED = {"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["karpenter.sh/termination"]}
NOT_READY = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
DEADLINE = "karpenter.sh/nodeclaim-termination-timestamp"


def of(effects: Any, kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def released(effects: Any) -> bool:
    return any(patch.patch_kind == "strategic" for patch in of(effects, Patch))


@pytest.fixture
def leaving(node: Any) -> Any:
    return lambda **changes: node(metadata={**DELETED, **changes.pop("metadata", {})}, **changes)


@pytest.fixture
def drained(claim: Any) -> Any:
    """A deleting NodeClaim whose drain ended."""
    return lambda **changes: claim(
        {"Launched": "True", "Registered": "True", "Drained": "True", "VolumesDetached": "True"},
        status={"providerID": "linode://1"},
        metadata={"deletionTimestamp": "2026-01-01T12:00:00Z", **changes},
    )


def test_deleting_a_node_deletes_its_node_claim(claim: Any, leaving: Any, cluster: Any, now: Any) -> None:
    state = cluster(claim(status={"providerID": "linode://1"}))
    doomed = of(terminate_node(leaving(), state, now), Delete)
    assert [(effect.kind, effect.name) for effect in doomed] == [(NodeClaim, "gpu-1")]


def test_the_node_is_tainted_under_a_lock_and_leaves_the_load_balancers(leaving: Any, cluster: Any, now: Any) -> None:
    effects = terminate_node(leaving(), cluster(), now)
    patch = of(effects, Patch)[0]
    assert patch.lock == "20"
    assert {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"} in patch.patch["spec"]["taints"]
    assert patch.patch["metadata"]["labels"] == {"node.kubernetes.io/exclude-from-external-load-balancers": "karpenter"}
    assert of(effects, LogLine)[0].message == "tainted node"


def test_a_disrupted_taint_with_another_effect_is_replaced(leaving: Any, cluster: Any, now: Any) -> None:
    marked = leaving(spec={"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoExecute"}]})
    patch = of(terminate_node(marked, cluster(), now), Patch)[0]
    assert patch.patch["spec"]["taints"] == [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]


def test_pods_are_evicted_and_the_node_waits(leaving: Any, pod: Any, cluster: Any, now: Any) -> None:
    effects = terminate_node(leaving(), cluster(pod()), now)
    assert of(effects, Evict)[0].pods == (("default", "p", "uid-p"),)
    event = of(effects, PublishEvent)[0]
    assert (event.reason, event.message) == (
        "FailedDraining",
        "Failed to drain node, 1 pods are waiting to be evicted",
    )
    assert of(effects, Requeue)[0].after == timedelta(seconds=1)
    assert not released(effects)


def test_a_node_without_pods_still_takes_five_seconds(claim: Any, leaving: Any, cluster: Any, now: Any) -> None:
    fresh = claim({"Launched": "True", "Drained": "Unknown"}, status={"providerID": "linode://1"}, metadata=DELETED)
    early = terminate_node(leaving(), cluster(fresh), now + timedelta(seconds=4))
    assert of(early, Requeue)
    assert not of(early, CloudDelete)
    late = terminate_node(leaving(), cluster(fresh), now + timedelta(seconds=5))
    assert of(late, CloudDelete)


def test_a_node_without_node_claim_is_drained_and_let_go_at_once(leaving: Any, cluster: Any, now: Any) -> None:
    effects = terminate_node(leaving(), cluster(), now)
    assert released(effects)
    assert not of(effects, CloudDelete)


def test_duplicate_node_claims_count_as_none(claim: Any, leaving: Any, cluster: Any, now: Any) -> None:
    twins = [claim(status={"providerID": "linode://1"}, metadata={"name": name, "uid": name}) for name in ("a", "b")]
    effects = terminate_node(leaving(), cluster(*twins), now)
    assert released(effects)
    assert not of(effects, Delete)


def test_the_finalizer_waits_for_the_instance(drained: Any, leaving: Any, cluster: Any, now: Any) -> None:
    state = cluster(drained())
    assert of(terminate_node(leaving(), state, now), CloudDelete)
    going = terminate_node(leaving(), state, now, InstanceAnswers(gone=False))
    assert not released(going)
    assert of(going, Requeue)[0].after == timedelta(seconds=5)
    gone = terminate_node(leaving(), state, now, InstanceAnswers(gone=True))
    assert released(gone)
    assert "karpenter_nodes_terminated_total" in [count.name for count in of(gone, Count)]


def test_a_drain_is_counted_when_it_ends(claim: Any, leaving: Any, cluster: Any, now: Any) -> None:
    fresh = claim({"Drained": "Unknown"}, status={"providerID": "linode://1"}, metadata=DELETED)
    later = now + timedelta(minutes=1)
    for answers in (InstanceAnswers(), InstanceAnswers(gone=False)):
        effects = terminate_node(leaving(), cluster(fresh), later, answers)
        assert [count.name for count in of(effects, Count)] == ["karpenter_nodes_drained_total"]
        kinds = [type(effect) for effect in effects]
        assert kinds.index(Patch) < kinds.index(Count)  # a write that fails counts nothing


def test_a_drain_that_is_known_to_have_ended_is_not_counted_again(
    drained: Any, leaving: Any, cluster: Any, now: Any
) -> None:
    assert not of(terminate_node(leaving(), cluster(drained()), now), Count)


def test_a_dead_node_without_instance_goes_undrained(
    drained: Any, leaving: Any, pod: Any, cluster: Any, now: Any
) -> None:
    state, dead = cluster(drained(), pod()), leaving(status=NOT_READY)
    assert of(terminate_node(dead, state, now), CloudGet)
    assert released(terminate_node(dead, state, now, InstanceAnswers(exists=False)))
    assert of(terminate_node(dead, state, now, InstanceAnswers(exists=True)), Evict)


def test_a_ready_node_is_drained_whatever_the_cloud_says(leaving: Any, pod: Any, cluster: Any, now: Any) -> None:
    effects = terminate_node(leaving(), cluster(pod()), now, InstanceAnswers(exists=False))
    assert of(effects, Evict)
    assert not released(effects)


def _attachment(name: str = "pv-1", volume: str = "vol") -> Any:
    return kinds.from_manifest(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": name},
            "spec": {"nodeName": "lke1", "source": {"persistentVolumeName": volume}},
        }
    )


def test_volumes_are_waited_for(drained: Any, leaving: Any, cluster: Any, now: Any) -> None:
    effects = terminate_node(leaving(), cluster(drained(), _attachment()), now)
    assert of(effects, PublishEvent)[-1].message == "Awaiting deletion of bound volumeattachments (pv-1)"
    assert not of(effects, CloudDelete)


def test_after_the_deadline_nobody_waits_for_volumes(drained: Any, leaving: Any, cluster: Any, now: Any) -> None:
    state = cluster(drained(annotations={DEADLINE: "2026-01-01T11:59:00Z"}), _attachment())
    effects = terminate_node(leaving(), state, now)
    assert of(effects, CloudDelete)
    detached = [
        item
        for patch in of(effects, Patch)
        for item in patch.patch.get("status", {}).get("conditions", ())
        if item["type"] == "VolumesDetached"
    ]
    assert detached[0]["reason"] == "TerminationGracePeriodElapsed"


def test_volumes_of_pods_that_no_drain_removes_are_not_waited_for(
    drained: Any, leaving: Any, pod: Any, cluster: Any, now: Any
) -> None:
    staying = pod(
        spec={
            "tolerations": [{"key": "karpenter.sh/disrupted", "operator": "Exists"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        }
    )
    volume_claim = kinds.from_manifest(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {"volumeName": "vol"},
        }
    )
    effects = terminate_node(leaving(), cluster(drained(), staying, volume_claim, _attachment()), now)
    assert of(effects, CloudDelete)


def test_a_deadline_that_nobody_can_read_is_an_error(drained: Any, leaving: Any, cluster: Any, now: Any) -> None:
    effects = terminate_node(leaving(), cluster(drained(annotations={DEADLINE: "soon"})), now)
    assert "parsing expiration time" in effects[-1].message


@pytest.mark.parametrize("changes", [{"deletionTimestamp": None}, {"finalizers": []}])
def test_other_nodes_are_left_alone(node: Any, cluster: Any, now: Any, changes: Any) -> None:
    assert terminate_node(node(metadata={**DELETED, **changes}), cluster(), now) == []
