from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from karpenter_linode.dra.claims import has_dra_requirements
from karpenter_linode.model import codec
from karpenter_linode.model.core import Pod, PodDisruptionBudget
from karpenter_linode.scheduling import pods

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
UNSCHEDULABLE = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


def pod(metadata: dict[str, Any] | None = None, spec: dict[str, Any] | None = None, **status: Any) -> Pod:
    meta = {"name": "p", "namespace": "default", **(metadata or {})}
    return codec.convert({"metadata": meta, "spec": spec or {}, "status": status}, Pod)


def owned(kind: str, api_version: str = "apps/v1") -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": "o", "uid": "u"}]}


def test_provisionable_pods_are_unschedulable_unbound_and_free_to_go() -> None:
    assert pods.is_provisionable(pod(**UNSCHEDULABLE))
    assert not pods.is_provisionable(pod())
    assert not pods.is_provisionable(pod(spec={"nodeName": "n"}, **UNSCHEDULABLE))
    assert not pods.is_provisionable(pod(nominatedNodeName="n", **UNSCHEDULABLE))
    assert not pods.is_provisionable(pod(owned("DaemonSet"), **UNSCHEDULABLE))
    assert not pods.is_provisionable(pod(owned("Node", "v1"), **UNSCHEDULABLE))


def test_a_gated_pod_is_not_provisionable() -> None:
    gated = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}
    assert not pods.is_provisionable(pod(**gated))


def test_owner_kinds_need_the_exact_api_version() -> None:
    assert not pods.owned_by_daemon_set(pod(owned("DaemonSet", "extensions/v1beta1")))


def test_terminating_stateful_set_pods_come_back_others_do_not() -> None:
    gone = {"deletionTimestamp": "2026-01-01T11:00:00Z"}
    assert pods.is_reschedulable(pod({**gone, **owned("StatefulSet")}))
    assert not pods.is_reschedulable(pod({**gone, **owned("ReplicaSet")}))
    assert not pods.is_reschedulable(pod(owned("DaemonSet")))
    assert pods.is_reschedulable(pod())


def test_stuck_terminating_after_a_minute() -> None:
    assert not pods.is_stuck_terminating(pod({"deletionTimestamp": "2026-01-01T11:59:30Z"}), NOW)
    assert pods.is_stuck_terminating(pod({"deletionTimestamp": "2026-01-01T11:58:59Z"}), NOW)


@pytest.mark.parametrize(
    ("value", "started", "in_force", "invalid"),
    [
        ("true", None, True, ""),
        ("false", None, False, 'failed to parse "false" as a duration'),
        ("30m", NOW - timedelta(minutes=10), True, ""),
        ("30m", NOW - timedelta(minutes=40), False, ""),
        ("30m", None, True, ""),
        ("0s", None, False, 'duration "0s" must be positive'),
        ("-5m", None, False, 'duration "-5m" must be positive'),
    ],
)
def test_do_not_disrupt(value: str, started: datetime | None, invalid: str, *, in_force: bool) -> None:
    status = {"startTime": started.isoformat()} if started is not None else {}
    found = pods.do_not_disrupt(pod({"annotations": {"karpenter.sh/do-not-disrupt": value}}, **status), NOW)
    assert found.in_force is in_force
    assert found.invalid.startswith(invalid)
    assert bool(found.invalid) is bool(invalid)


def test_do_not_disrupt_tells_when_it_ends() -> None:
    started = NOW - timedelta(minutes=10)
    item = pod({"annotations": {"karpenter.sh/do-not-disrupt": "30m"}}, startTime=started.isoformat())
    assert pods.do_not_disrupt(item, NOW).until == started + timedelta(minutes=30)


def test_evictable_pods_do_not_tolerate_the_disruption_taint() -> None:
    assert pods.is_evictable(pod(), NOW)
    tolerating = {"tolerations": [{"key": "karpenter.sh/disrupted", "operator": "Exists"}]}
    assert not pods.is_evictable(pod(spec=tolerating), NOW)
    assert not pods.is_evictable(pod(phase="Succeeded"), NOW)


def budget(**spec: Any) -> PodDisruptionBudget:
    plain = {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {}, **spec}}
    return codec.convert(plain, PodDisruptionBudget)


@pytest.mark.parametrize(
    ("spec", "blocked"),
    [
        ({"maxUnavailable": 0}, True),
        ({"maxUnavailable": "0%"}, True),
        ({"maxUnavailable": 1}, False),
        ({"minAvailable": "100%"}, True),
        ({"minAvailable": 1}, False),
    ],
)
def test_budgets_that_never_allow_an_eviction_block(spec: dict[str, Any], *, blocked: bool) -> None:
    assert pods.is_fully_blocked(pod(), [budget(**spec)], NOW) is blocked
    assert pods.is_currently_reschedulable(pod(), [budget(**spec)], NOW) is not blocked


def test_two_budgets_on_one_pod_block() -> None:
    assert pods.is_fully_blocked(pod(), [budget(maxUnavailable=1), budget(maxUnavailable=1)], NOW)


def test_unhealthy_pods_may_go_where_the_budget_says_so() -> None:
    item = pod(conditions=[{"type": "Ready", "status": "False"}])
    assert not pods.is_fully_blocked(item, [budget(maxUnavailable=0, unhealthyPodEvictionPolicy="AlwaysAllow")], NOW)
    assert pods.is_fully_blocked(item, [budget(maxUnavailable=0)], NOW)


@pytest.mark.parametrize(
    "spec",
    [
        {"resourceClaims": [{"name": "gpu"}]},
        {"containers": [{"name": "c", "resources": {"claims": [{"name": "gpu"}]}}]},
        {"initContainers": [{"name": "c", "resources": {"claims": [{"name": "gpu"}]}}]},
    ],
)
def test_claims_anywhere_are_dra_requirements(spec: dict[str, Any]) -> None:
    assert has_dra_requirements(pod(spec=spec))
    assert not has_dra_requirements(pod())
