from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from karpenter_linode.lifecycle.drain import needs_force_delete, plan_drain
from karpenter_linode.lifecycle.effects import Delete, PublishEvent
from karpenter_linode.lifecycle.eviction import MULTIPLE_BUDGETS, decide_eviction, evicted, eviction_refused

DAEMON = [{"apiVersion": "apps/v1", "kind": "DaemonSet"}]
TERMINATING = {"deletionTimestamp": "2026-01-01T12:00:00Z"}


def test_tiers_go_one_after_another_and_wait_for_terminating_pods(pod: Any, now: Any) -> None:
    plain = pod("plain", metadata=TERMINATING)
    daemon = pod("daemon", metadata={"ownerReferences": DAEMON})
    critical = pod("critical", spec={"priorityClassName": "system-cluster-critical"})
    node_daemon = pod("nd", metadata={"ownerReferences": DAEMON}, spec={"priorityClassName": "system-node-critical"})
    order = []
    left = [node_daemon, critical, daemon, plain]
    while left:
        tier = plan_drain(left, None, now).evicted
        order.append([item.name for item in tier])
        left = [item for item in left if item not in tier]
    assert order == [["plain"], ["daemon"], ["critical"], ["nd"]]


@pytest.mark.parametrize("toleration", [{"operator": "Exists"}, {"operator": "Equal", "effect": "NoSchedule"}])
def test_pods_that_tolerate_the_taint_are_not_drained(pod: Any, now: Any, toleration: Any) -> None:
    staying = pod(spec={"tolerations": [{"key": "karpenter.sh/disrupted", **toleration}]})
    assert plan_drain([staying], None, now).waiting == ()


def test_mirror_finished_and_stuck_pods_are_not_waited_for(pod: Any, now: Any) -> None:
    mirror = pod("m", metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Node"}]})
    finished = pod("f", status={"phase": "Succeeded"})
    stuck = pod("s", metadata=TERMINATING)
    later = now + timedelta(seconds=61)
    assert plan_drain([mirror, finished, stuck], None, later).waiting == ()


def test_a_do_not_disrupt_pod_keeps_the_drain_waiting(pod: Any, now: Any) -> None:
    protected = pod(metadata={"annotations": {"karpenter.sh/do-not-disrupt": "true"}})
    assert plan_drain([protected], None, now).waiting == (protected,)


def test_pods_are_deleted_early_enough_to_end_by_the_deadline(pod: Any, now: Any) -> None:
    deadline = now + timedelta(seconds=60)
    patient, quick = pod(spec={"terminationGracePeriodSeconds": 61}), pod("q")
    assert needs_force_delete(patient, deadline, now)
    assert not needs_force_delete(quick, deadline, now + timedelta(seconds=30))
    assert needs_force_delete(quick, deadline, now + timedelta(seconds=31))
    assert not needs_force_delete(patient, None, now)


def test_terminating_pods_are_deleted_again_only_when_they_would_be_late(pod: Any, now: Any) -> None:
    late = pod(metadata={"deletionTimestamp": "2026-01-01T12:10:00Z"})
    assert needs_force_delete(late, now + timedelta(minutes=9), now)
    assert not needs_force_delete(late, now + timedelta(minutes=10), now)


def test_late_critical_pods_do_not_wait_for_their_tier(pod: Any, now: Any) -> None:
    critical = pod("c", spec={"priorityClassName": "system-node-critical", "terminationGracePeriodSeconds": 600})
    drain = plan_drain([pod("plain"), critical], now + timedelta(minutes=1), now)
    assert [item.name for item in drain.forced] == ["c"]
    assert [item.name for item in drain.evicted] == ["plain"]


@pytest.mark.parametrize(
    ("changes", "action"),
    [
        ({}, "evict"),
        ({"status": {"phase": "Failed"}}, "drop"),
        ({"metadata": TERMINATING}, "drop"),
        ({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}, "wait"),
        ({"metadata": {"uid": "another"}}, "drop"),
    ],
)
def test_what_becomes_of_a_queued_pod(pod: Any, cluster: Any, now: Any, changes: Any, action: str) -> None:
    assert decide_eviction(pod(**changes), "uid-p", None, cluster(), now).action == action


def test_a_pod_that_is_gone_is_dropped(cluster: Any, now: Any) -> None:
    assert decide_eviction(None, "uid", None, cluster(), now).action == "drop"


def test_a_forced_delete_never_has_a_grace_of_zero(pod: Any, cluster: Any, now: Any) -> None:
    decision = decide_eviction(pod(), "uid-p", now - timedelta(minutes=5), cluster(), now)
    event, _, delete, _ = decision.effects
    assert isinstance(event, PublishEvent)
    assert event.reason == "Disrupted"
    assert "was granted 1 seconds of grace-period of its 30" in event.message
    assert isinstance(delete, Delete)
    assert (delete.uid, delete.grace_period_seconds) == ("uid-p", 1)


@pytest.mark.parametrize(("condition", "reason"), [("Empty", "Empty"), ("", "Forceful Termination")])
def test_an_eviction_is_told_with_its_reason(
    claim: Any, node: Any, pod: Any, cluster: Any, condition: str, reason: str
) -> None:
    status: dict[str, Any] = {"providerID": "linode://1"}
    if condition:
        status["conditions"] = [{"type": "DisruptionReason", "status": "True", "reason": condition}]
    event, count = evicted(pod(), cluster(claim(status=status), node()))
    assert event.message == f"Evicted pod: {reason}"
    assert count.labels == {"reason": reason}


def test_a_refused_eviction_is_told_on_the_node(node: Any, pod: Any, cluster: Any) -> None:
    (event,) = eviction_refused(pod(), "too many", cluster(node()))
    assert event.message == "Failed to drain node, evicting pod violates a PDB (Pod=default/p)"
    (event,) = eviction_refused(pod(), MULTIPLE_BUDGETS, cluster(node()))
    assert event.message == "Failed to drain node, eviction does not support multiple PDBs (Pod=default/p)"
