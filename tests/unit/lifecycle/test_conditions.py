from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from karpenter_linode.lifecycle.conditions import of_node_claim

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.model.karpenter import NodeClaim


def test_missing_conditions_appear_as_unknown_and_dependents_count_from_creation(
    claim: Callable[..., NodeClaim], now: datetime
) -> None:
    later = now + timedelta(minutes=7)
    conditions = of_node_claim(claim(), later)
    launched, ready = conditions.get("Launched"), conditions.get("Ready")
    assert (launched.status, launched.reason, launched.message) == (
        "Unknown",
        "AwaitingReconciliation",
        "object is awaiting reconciliation",
    )
    assert launched.last_transition_time == now
    assert ready.status == "Unknown"


def test_transition_time_changes_with_the_status_only(claim: Callable[..., NodeClaim], now: datetime) -> None:
    later, latest = now + timedelta(minutes=1), now + timedelta(minutes=2)
    first = of_node_claim(claim(), later).set_unknown("Launched", "LaunchFailed", "no")
    assert first.since("Launched") == now
    again = of_node_claim(claim(), latest).set_true("Launched")
    assert again.since("Launched") == latest
    assert again.get("Launched").reason == "Launched"


def test_an_independent_condition_starts_now(claim: Callable[..., NodeClaim], now: datetime) -> None:
    later = now + timedelta(minutes=3)
    assert of_node_claim(claim(), later).set_true("Consolidatable").since("Consolidatable") == later


def test_setting_the_same_changes_nothing(claim: Callable[..., NodeClaim], now: datetime) -> None:
    once = of_node_claim(claim(), now).set_true("Launched")
    assert once.set_true("Launched") == once


def test_ready_needs_every_dependent_at_the_present_generation(claim: Callable[..., NodeClaim], now: datetime) -> None:
    every = {"Launched": "True", "Registered": "True", "Initialized": "True"}
    conditions = of_node_claim(claim(every), now).refresh("Launched").set_true("Consolidatable")
    assert conditions.is_true("Ready")
    newer = of_node_claim(claim(every, metadata={"generation": 2}), now).set_true("Launched")
    assert newer.status("Ready") == "Unknown"
    assert newer.get("Ready").message == "Registered=True, Initialized=True"


def test_a_false_dependent_makes_ready_false(claim: Callable[..., NodeClaim], now: datetime) -> None:
    conditions = of_node_claim(claim({"Launched": "True"}), now).set_false("Registered", "MultipleNodesFound")
    assert conditions.status("Ready") == "False"
    assert conditions.get("Ready").reason == "UnhealthyDependents"
    assert conditions.get("Ready").message.startswith("Registered=False")


def test_dependents_cannot_be_cleared(claim: Callable[..., NodeClaim], now: datetime) -> None:
    conditions = of_node_claim(claim(), now).set_true("Consolidatable")
    assert conditions.clear("Launched") is conditions
    assert conditions.clear("Consolidatable").get("Consolidatable") is None


def test_conditions_are_written_by_transition_time_with_ready_last(
    claim: Callable[..., NodeClaim], now: datetime
) -> None:
    later = now + timedelta(minutes=1)
    conditions = of_node_claim(claim({"Launched": "True"}), later).set_true("Registered")
    assert [item.type for item in conditions.conditions] == ["Launched", "Initialized", "Registered", "Ready"]


def test_on_a_deleting_object_every_condition_is_seen_at_the_present_generation(
    claim: Callable[..., NodeClaim], now: datetime
) -> None:
    deleting = claim({"Launched": "True"}, metadata={"generation": 3, "deletionTimestamp": "2026-01-01T12:01:00Z"})
    conditions = of_node_claim(deleting, now).set_true("InstanceTerminating")
    assert {item.observed_generation for item in conditions.conditions} == {3}
