from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from karpenter_linode.lifecycle.effects import Count, Delete, Requeue
from karpenter_linode.lifecycle.expiration import expire
from karpenter_linode.lifecycle.liveness import check_liveness
from karpenter_linode.lifecycle.step import LifecycleSettings

SETTINGS = LifecycleSettings()


def of(effects: Any, kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


@pytest.mark.parametrize(
    ("conditions", "minutes", "reason"),
    [
        ({}, 5, "launch_timeout"),
        ({"Launched": "True"}, 15, "registration_timeout"),
    ],
)
def test_a_claim_that_gets_nowhere_is_deleted_on_time(
    claim: Any, cluster: Any, now: Any, conditions: Any, minutes: int, reason: str
) -> None:
    made, limit = claim(conditions), timedelta(minutes=minutes)
    early = check_liveness(made, cluster(), SETTINGS, now + limit - timedelta(seconds=1)).effects
    assert of(early, Requeue)[0].after == timedelta(seconds=1)
    assert not of(early, Delete)
    late = check_liveness(made, cluster(), SETTINGS, now + limit).effects
    assert of(late, Delete)[0].uid == "claim-uid"
    assert [count.labels["reason"] for count in of(late, Count)] == [reason]


def test_the_clock_runs_from_the_transition_not_from_creation(claim: Any, cluster: Any, now: Any) -> None:
    made = claim({"Launched": "True"}, metadata={"creationTimestamp": "2026-01-01T10:00:00Z"})
    written = [
        *({"type": item.type, "status": item.status} for item in made.status.conditions),
        {"type": "Registered", "status": "Unknown", "lastTransitionTime": "2026-01-01T12:00:00Z"},
    ]
    flipped = claim(metadata={"creationTimestamp": "2026-01-01T10:00:00Z"}, status={"conditions": written})
    assert of(check_liveness(flipped, cluster(), SETTINGS, now + timedelta(minutes=1)).effects, Requeue)


def test_limits_are_settings(claim: Any, cluster: Any, now: Any) -> None:
    patient = LifecycleSettings(launch_timeout=timedelta(minutes=30))
    assert not of(check_liveness(claim(), cluster(), patient, now + timedelta(minutes=29)).effects, Delete)


def test_a_pool_may_give_its_nodes_more_time_to_join(claim: Any, pool: Any, cluster: Any, now: Any) -> None:
    slow = pool(metadata={"annotations": {"karpenter.k8s.linode/registration-timeout": "40m"}})
    made = claim({"Launched": "True"})
    assert not of(check_liveness(made, cluster(slow), SETTINGS, now + timedelta(minutes=39)).effects, Delete)
    assert of(check_liveness(made, cluster(slow), SETTINGS, now + timedelta(minutes=40)).effects, Delete)


@pytest.mark.parametrize(("annotation", "deletions"), [({}, 0), ({"initialization-timeout": "20m"}, 1)])
def test_a_node_that_never_initializes_lives_on_unless_its_pool_says_otherwise(
    claim: Any, pool: Any, cluster: Any, now: Any, annotation: dict[str, str], deletions: int
) -> None:
    annotations = {f"karpenter.k8s.linode/{key}": value for key, value in annotation.items()}
    state = cluster(pool(metadata={"annotations": annotations}))
    made = claim({"Launched": "True", "Registered": "True"})
    late = check_liveness(made, state, SETTINGS, now + timedelta(minutes=20)).effects
    assert len(of(late, Delete)) == deletions
    assert not of(check_liveness(made, state, SETTINGS, now + timedelta(minutes=19)).effects, Delete)


def test_an_initialized_claim_is_left_alone(claim: Any, cluster: Any, now: Any) -> None:
    made = claim({"Launched": "True", "Registered": "True", "Initialized": "True"})
    assert check_liveness(made, cluster(), SETTINGS, now + timedelta(days=9)).effects == ()


def test_a_claim_expires_by_its_own_age(claim: Any, node: Any, pod: Any, cluster: Any, now: Any) -> None:
    made = claim({"Launched": "True"}, spec={"expireAfter": "1h"}, status={"providerID": "linode://1"})
    daemon = pod("d", metadata={"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet"}]})
    state = cluster(made, node(), pod(), daemon)
    assert expire(made, state, now + timedelta(minutes=59))[0].after == timedelta(minutes=1)
    effects = expire(made, state, now + timedelta(hours=1))
    assert of(effects, Delete)
    counted = {count.name.rsplit("_", 2)[-2]: count for count in of(effects, Count)}
    assert {count.labels["reason"] for count in counted.values()} == {"expired"}
    assert counted["initiated"].by == 1


@pytest.mark.parametrize(
    "changes", [{"spec": {"expireAfter": "Never"}}, {"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z"}}]
)
def test_never_and_leaving_claims_do_not_expire(claim: Any, cluster: Any, now: Any, changes: Any) -> None:
    assert expire(claim(**changes), cluster(), now + timedelta(days=365)) == []


def test_a_node_has_its_time_to_join_from_the_launch_on(claim: Any, cluster: Any, now: Any) -> None:
    made = claim()
    written = [
        *({"type": item.type, "status": item.status} for item in made.status.conditions if item.type != "Launched"),
        {"type": "Launched", "status": "True", "lastTransitionTime": "2026-01-01T15:00:00Z"},
    ]
    late = claim(status={"conditions": written})
    assert not of(check_liveness(late, cluster(), SETTINGS, now + timedelta(hours=3, minutes=14)).effects, Delete)
    assert of(check_liveness(late, cluster(), SETTINGS, now + timedelta(hours=3, minutes=15)).effects, Delete)
