"""What is told about a decision, and what is kept quiet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from karpenter_linode.controllers.preferences import PreferenceWarnings
from karpenter_linode.controllers.settings import Settings
from karpenter_linode.controllers.solution_report import SolutionReport
from karpenter_linode.model import codec
from karpenter_linode.model.core import Pod, TopologySpreadConstraint
from karpenter_linode.model.karpenter import NodePool
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.workloads import ReplicaSet
from karpenter_linode.scheduling import Problem, SchedulingOptions, Solution
from karpenter_linode.scheduling.problem import PodRef, Unplaced

UNSCHEDULABLE = "karpenter_scheduler_unschedulable_pods_count"
SPREAD = "pod(s) have a preferred TopologySpreadConstraint which can prevent consolidation"
APART = "pod(s) have a preferred Anti-Affinity which can prevent consolidation"
DEFERRED = (
    "deferring scheduling decision for provisionable pod(s) to future simulation due to limited reserved "
    "offering capacity"
)
LOST = "ignoring pod owner when deducing default topology spread constraints"


def pod(name: str = "p", **spec: Any) -> Pod:
    return codec.convert({"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": spec}, Pod)


def told(lab: Any, *reasons: Reason, notes: tuple[Reason, ...] = ()) -> tuple[list[str], list[Any], float]:
    """Messages, events and the gauge after a decision that left one pod out for each reason."""
    pods = [pod(f"p{number}") for number in range(len(reasons))]
    unplaced = tuple(
        Unplaced(PodRef("default", item.name, item.uid), reason) for item, reason in zip(pods, reasons, strict=True)
    )

    async def story(world: Any) -> tuple[list[str], list[Any], float]:
        for item in pods:
            world.runtime.state.observe(item)
        world.runtime.state.observe(codec.convert({"metadata": {"name": "pool", "uid": "uid-pool"}}, NodePool))
        solution = Solution(unplaced=unplaced, notes=notes)
        SolutionReport(world.runtime).solved(Problem(pods=tuple(pods)), solution, timedelta(seconds=1))
        gauge = world.metrics.gauges[UNSCHEDULABLE][(("controller", "provisioner"),)]
        return world.notebook.messages(), world.notebook.events, gauge

    result: tuple[list[str], list[Any], float] = lab(story)
    return result


def test_a_pod_without_a_place_is_an_error_and_an_event(lab: Any) -> None:
    messages, events, gauge = told(lab, Reason("instance-types", "too large"))
    assert messages == ["could not schedule pod"]
    assert events == [("default/p0", "FailedScheduling", "Failed to schedule pod, too large")]
    assert gauge == 1


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("reserved", DEFERRED),
        ("out-of-time", "scheduling simulation timed out"),
        ("out-of-steps", "scheduling simulation timed out"),
    ],
)
def test_pods_that_are_tried_again_anyway_have_no_error(lab: Any, code: str, message: str) -> None:
    messages, events, gauge = told(lab, Reason(code, "later"), Reason(code, "later"))
    assert messages == [message]
    assert events == []
    assert gauge == 0


def test_without_node_pools_it_is_said_once_and_to_nobody_in_particular(lab: Any) -> None:
    reason = Reason("no-nodepools", "no dynamic nodepools found")
    messages, events, gauge = told(lab, reason, reason)
    assert messages == ["no dynamic nodepools found"]
    assert events == []
    assert gauge == 2


SKIPPED = "skipping, nodepool requirements filtered out all instance types"


@pytest.mark.parametrize(
    ("note", "more"),
    [
        (Reason("no-instance-types", SKIPPED, "NodePool pool"), ""),
        (
            Reason("min-values", f"{SKIPPED}: too few", "NodePool pool", (("error", "too few"),)),
            " due to minValues incompatibility",
        ),
    ],
)
def test_a_node_pool_that_nothing_can_be_built_from_is_told(lab: Any, note: Reason, more: str) -> None:
    messages, events, _ = told(lab, notes=(note,))
    assert messages == [SKIPPED]
    text = f"NodePool requirements filtered out all compatible available instance types{more}"
    assert events == [("pool", "NoCompatibleInstanceTypes", text)]


def test_a_node_pool_that_is_not_ready_is_an_error_a_static_one_is_not(lab: Any) -> None:
    notes = (Reason("pool-not-ready", "ignoring nodepool, not ready", "NodePool pool"), Reason("static-pool", "static"))
    assert told(lab, notes=notes)[:2] == (["ignoring nodepool, not ready"], [])


PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {}}]}
BOTH = pod(
    affinity={"podAntiAffinity": PREFERRED},
    topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway"}],
)


def test_preferences_that_hinder_consolidation_are_told_once_a_day(lab: Any) -> None:
    async def story(world: Any) -> None:
        warnings = PreferenceWarnings(world.runtime)
        required = pod("q", topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "a"}])
        for hours, count in ((0, 1), (1, 1), (22, 1), (1, 2)):
            await world.clock.sleep(3600 * hours)
            warnings.look_at([BOTH, required])
            assert world.notebook.messages() == [APART, SPREAD] * count
        assert world.notebook.lines[0][1]["pods"] == "default/p"

    lab(story)


def test_a_new_pod_is_told_alone_and_of_many_ten_are_named(lab: Any) -> None:
    async def story(world: Any) -> None:
        warnings = PreferenceWarnings(world.runtime)
        spread = {"topologySpreadConstraints": codec.to_plain(BOTH.spec.topology_spread_constraints)}
        pods = [pod(f"p{number:02}", **spread) for number in range(13)]
        warnings.look_at(pods[:1])
        warnings.look_at(pods)
        named = ", ".join(f"default/p{number:02}" for number in range(1, 11))
        assert [fields["pods"] for _, fields in world.notebook.lines] == ["default/p00", f"{named} and 2 other(s)"]

    lab(story)


def test_preferences_that_nobody_looks_at_hinder_nothing(lab: Any) -> None:
    async def story(world: Any) -> None:
        PreferenceWarnings(world.runtime).look_at([BOTH])
        assert world.notebook.lines == []

    lab(story, Settings(scheduling=SchedulingOptions(preference_policy="Ignore")))


def test_a_lost_owner_is_told_where_a_default_spread_asks_for_it(lab: Any) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
    owned = codec.convert({"metadata": {"name": "p", "namespace": "default", "ownerReferences": [owner]}}, Pod)
    spread = SchedulingOptions(default_spread=(TopologySpreadConstraint(topology_key="a"),))

    async def story(world: Any) -> list[dict[str, Any]]:
        report, state = SolutionReport(world.runtime), world.runtime.state
        report.lost_owners([owned, pod("q")], state)
        state.observe(codec.convert({"metadata": {"name": "web", "namespace": "default"}}, ReplicaSet))
        report.lost_owners([owned], state)
        return [fields for message, fields in world.notebook.lines if message == LOST]

    (fields,) = lab(story, Settings(scheduling=spread))
    assert (fields["Pod"], fields["error"]) == ("default/p", "ReplicaSet default/web not found")
    assert lab(story) == []


def test_what_a_pod_gave_up_is_told(lab: Any) -> None:
    async def story(world: Any) -> None:
        SolutionReport(world.runtime).relaxed([(BOTH, "removing: a"), (BOTH, "removing: b")])
        assert world.notebook.lines == [
            (
                "relaxing soft constraints for pod since it previously failed to schedule",
                {"controller": "provisioner", "Pod": "default/p", "reason": f"removing: {what}"},
            )
            for what in ("a", "b")
        ]

    lab(story)
