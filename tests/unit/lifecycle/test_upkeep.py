"""Garbage collection, pod events, Consolidatable, disruption marks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from karpenter_linode.lifecycle.consolidatable import judge_consolidatable
from karpenter_linode.lifecycle.disruption_marks import delete_disrupted, mark_disrupted, unmark_disrupted
from karpenter_linode.lifecycle.effects import CloudDelete, Count, Delete, Patch, PublishEvent, Requeue
from karpenter_linode.lifecycle.garbage import claims_without_instance, collect_orphan, orphans, suspects
from karpenter_linode.lifecycle.pod_events import node_touched, record_pod_event
from karpenter_linode.model.instance import CloudInstance

REGISTERED = {"Launched": "True", "Registered": "True"}
INITIALIZED = {**REGISTERED, "Initialized": "True"}
WITH_ID = {"status": {"providerID": "linode://1"}}
NOT_READY = {"conditions": [{"type": "Ready", "status": "False"}]}


def of(effects: Any, kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def conditions_in(effects: Any) -> dict[str, str]:
    (patch,) = [item for item in of(effects, Patch) if item.subresource == "status"]
    return {item["type"]: item["status"] for item in patch.patch["status"]["conditions"]}


class TestClaimsWithoutInstance:
    def test_a_registered_claim_with_a_dead_node_goes(self, claim: Any, node: Any, cluster: Any) -> None:
        made = claim(REGISTERED, **WITH_ID)
        effects = claims_without_instance([made], [], cluster(made, node(status=NOT_READY)))
        assert of(effects, Delete)[0].uid == "claim-uid"
        assert {count.labels["reason"] for count in of(effects, Count)} == {"garbage_collected"}

    def test_a_ready_node_is_evidently_alive(self, claim: Any, node: Any, cluster: Any) -> None:
        made = claim(REGISTERED, **WITH_ID)
        assert claims_without_instance([made], [], cluster(made, node())) == []

    def test_a_claim_whose_node_vanished_goes_only_with_its_instance(self, claim: Any, cluster: Any) -> None:
        made = claim(REGISTERED, **WITH_ID)
        assert claims_without_instance([made], [CloudInstance("linode://1")], cluster(made)) == []
        assert claims_without_instance([made], [CloudInstance("linode://1", deleting=True)], cluster(made))

    @pytest.mark.parametrize("conditions", [{}, {"Launched": "True"}])
    def test_an_unregistered_claim_is_left_to_liveness(self, claim: Any, cluster: Any, conditions: Any) -> None:
        made = claim(conditions, **WITH_ID)
        assert claims_without_instance([made], [], cluster(made)) == []


class TestOrphans:
    def test_one_sighting_is_not_enough(self, now: Any) -> None:
        lost = CloudInstance("linode://9", node_claim="gone-1", created=now - timedelta(hours=1))
        assert suspects([lost], []) == {"linode://9"}
        assert orphans([lost], [], frozenset(), now) == ()
        assert orphans([lost], [], frozenset({"linode://9"}), now) == (lost,)

    @pytest.mark.parametrize(("owner", "seconds"), [("gone-1", 30), ("", 600)])
    def test_claimed_ones_go_after_half_a_minute_and_unclaimed_ones_after_ten(
        self, now: Any, owner: str, seconds: int
    ) -> None:
        seen = frozenset({"linode://9"})
        young = CloudInstance("linode://9", node_claim=owner, created=now - timedelta(seconds=seconds))
        old = CloudInstance("linode://9", node_claim=owner, created=now - timedelta(seconds=seconds + 1))
        assert orphans([young], [], seen, now) == ()
        assert orphans([old], [], seen, now) == (old,)

    def test_an_instance_with_a_claim_stays(self, claim: Any, now: Any) -> None:
        seen = frozenset({"linode://1"})
        assert orphans([CloudInstance("linode://1")], [claim(**WITH_ID)], seen, now) == ()

    def test_an_instance_about_to_be_adopted_stays(self, claim: Any, now: Any) -> None:
        found = [CloudInstance("linode://1", node_claim="gpu-1", created=now - timedelta(hours=1))]
        assert orphans(found, [claim()], frozenset({"linode://1"}), now) == ()
        leaving = claim(metadata={"deletionTimestamp": "2026-01-01T12:00:00Z"})
        assert orphans(found, [leaving], frozenset({"linode://1"}), now)

    def test_long_names_are_known_by_what_their_tag_keeps(self, claim: Any, now: Any) -> None:
        name = "a-rather-long-pool-name-x7k2p"
        found = [CloudInstance("linode://1", node_claim=f"{name[:18]}-1a2b3c4d", created=now - timedelta(hours=1))]
        assert orphans(found, [claim(metadata={"name": name})], frozenset({"linode://1"}), now) == ()

    def test_the_node_goes_with_its_instance(self, node: Any, cluster: Any) -> None:
        effects = collect_orphan(CloudInstance("linode://1"), cluster(node()))
        assert of(effects, Delete)[0].name == "lke1"
        assert effects[-1] == CloudDelete("linode://1")


class TestPodEvents:
    def test_binding_ending_and_leaving_count(self, pod: Any) -> None:
        unbound = pod(spec={"nodeName": ""})
        assert node_touched(unbound, pod()) == "lke1"
        assert node_touched(None, pod()) == "lke1"
        assert node_touched(pod(), pod(status={"phase": "Succeeded"})) == "lke1"
        assert node_touched(pod(), pod(metadata={"deletionTimestamp": "2026-01-01T12:00:00Z"})) == "lke1"
        assert node_touched(pod(), None) == "lke1"

    def test_other_changes_do_not(self, pod: Any) -> None:
        finished = pod(status={"phase": "Succeeded"})
        assert node_touched(pod(), pod(metadata={"labels": {"a": "b"}})) == ""
        assert node_touched(finished, None) == ""
        assert node_touched(None, pod(spec={"nodeName": ""})) == ""

    def test_daemons_do_not_count(self, pod: Any) -> None:
        daemon = pod(metadata={"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet"}]})
        assert node_touched(None, daemon) == ""

    def test_several_within_ten_seconds_count_once(self, claim: Any, node: Any, cluster: Any, now: Any) -> None:
        made = claim(status={"providerID": "linode://1", "lastPodEventTime": "2026-01-01T12:00:00Z"})
        state = cluster(made, node())
        assert record_pod_event("lke1", state, now + timedelta(seconds=9)) == []
        (patch,) = record_pod_event("lke1", state, now + timedelta(seconds=10))
        assert patch.patch == {"status": {"lastPodEventTime": "2026-01-01T12:00:10Z"}}

    def test_unknown_nodes_and_foreign_nodes_are_ignored(self, node: Any, cluster: Any, now: Any) -> None:
        assert record_pod_event("nowhere", cluster(), now) == []
        assert record_pod_event("lke1", cluster(node()), now) == []


class TestConsolidatable:
    def test_the_window_runs_from_initialization_or_the_last_pod_event(
        self, claim: Any, pool: Any, cluster: Any, now: Any
    ) -> None:
        patient = cluster(pool(spec={"disruption": {"consolidateAfter": "30s"}}))
        made = claim(INITIALIZED)
        assert of(judge_consolidatable(made, patient, now + timedelta(seconds=29)), Requeue)[0].after == timedelta(
            seconds=1
        )
        assert (
            conditions_in(judge_consolidatable(made, patient, now + timedelta(seconds=30)))["Consolidatable"] == "True"
        )
        touched = claim(INITIALIZED, status={"lastPodEventTime": "2026-01-01T12:00:20Z"})
        assert of(judge_consolidatable(touched, patient, now + timedelta(seconds=30)), Requeue)

    def test_zero_is_never_inside_a_window(self, claim: Any, pool: Any, cluster: Any, now: Any) -> None:
        assert conditions_in(judge_consolidatable(claim(INITIALIZED), cluster(pool()), now))["Consolidatable"] == "True"

    @pytest.mark.parametrize(
        ("conditions", "consolidate_after"),
        [(REGISTERED, "0s"), (INITIALIZED, "Never")],
    )
    def test_it_is_removed_where_it_no_longer_holds(
        self, claim: Any, pool: Any, cluster: Any, now: Any, conditions: Any, consolidate_after: str
    ) -> None:
        made = claim({**conditions, "Consolidatable": "True"})
        state = cluster(pool(spec={"disruption": {"consolidateAfter": consolidate_after}}))
        assert "Consolidatable" not in conditions_in(judge_consolidatable(made, state, now))

    def test_static_pools_and_unknown_pools_are_left_alone(self, claim: Any, pool: Any, cluster: Any, now: Any) -> None:
        assert judge_consolidatable(claim(INITIALIZED), cluster(pool(spec={"replicas": 3})), now) == []
        assert judge_consolidatable(claim(INITIALIZED), cluster(), now) == []


class TestMarks:
    def test_a_mark_taints_the_node_and_names_the_reason(self, claim: Any, node: Any, now: Any) -> None:
        effects = mark_disrupted(node(), claim(INITIALIZED), "Empty", now)
        assert {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"} in effects[0].patch["spec"]["taints"]
        assert all(patch.lock for patch in of(effects, Patch))
        assert conditions_in(effects)["DisruptionReason"] == "True"

    def test_unmarking_undoes_it_and_nothing_else(self, claim: Any, node: Any, now: Any) -> None:
        marked = claim({**INITIALIZED, "DisruptionReason": "True"})
        tainted = node(
            spec={
                "taints": [
                    {"key": "a", "effect": "NoSchedule"},
                    {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"},
                ]
            }
        )
        effects = unmark_disrupted(tainted, marked, now)
        assert effects[0].patch["spec"]["taints"] == [{"key": "a", "effect": "NoSchedule"}]
        assert "DisruptionReason" not in conditions_in(effects)
        assert unmark_disrupted(node(), claim(INITIALIZED), now) == []

    def test_a_node_that_is_being_deleted_keeps_its_taint(self, claim: Any, node: Any, now: Any) -> None:
        leaving = node(
            metadata={"deletionTimestamp": "2026-01-01T12:00:00Z"},
            spec={"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]},
        )
        assert unmark_disrupted(leaving, claim(), now) == []

    def test_a_removal_is_told_and_counted(self, claim: Any, node: Any, pod: Any, cluster: Any) -> None:
        made = claim(INITIALIZED, **WITH_ID)
        effects = delete_disrupted(node(), made, cluster(made, node(), pod()), "Empty", "when_empty")
        assert [event.message for event in of(effects, PublishEvent)] == [
            "Disrupting Node: Empty",
            "Disrupting NodeClaim: Empty",
        ]
        disrupted, moved = of(effects, Count)
        assert disrupted.labels["consolidation_policy"] == "when_empty"
        assert (disrupted.labels["reason"], moved.by) == ("empty", 1)
