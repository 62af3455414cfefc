"""What a controller tells while it builds a node on a real control plane and takes it down again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from karpenter_world import KarpenterWorld, example
from prometheus_client.parser import text_string_to_metric_families
from scenarios import running_for

from karpenter_linode.operator.metric_table import METRICS

if TYPE_CHECKING:
    from pathlib import Path

    from controlplane import ControlPlane

pytestmark = pytest.mark.e2e


class Scrapes:
    """Asks for the metrics, and keeps the last value of every series, those that have ended too."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/metrics"
        self.seen: dict[str, dict[frozenset[tuple[str, str]], float]] = {}

    def scrape(self) -> bool:
        """Always true, so that it can stand beside what is waited for."""
        text = httpx2.get(self._url, timeout=60, trust_env=False).text
        now: set[tuple[str, frozenset[tuple[str, str]]]] = set()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                series = frozenset(sample.labels.items())
                assert (sample.name, series) not in now, f"{sample.name} {sample.labels} twice"
                now.add((sample.name, series))
                self.seen.setdefault(sample.name, {})[series] = sample.value
        return True

    def total(self, name: str, **labels: str) -> float:
        """The sum of a metric's series that carry these labels."""
        return sum(value for series, value in self.seen.get(name, {}).items() if labels.items() <= set(series))


def test_a_run_is_told_in_metrics_events_and_log_lines(control_plane: ControlPlane, tmp_path: Path) -> None:
    with KarpenterWorld(control_plane, tmp_path) as world:
        world.wait("the first lists", lambda: said(world, "cluster state synced"))
        scrapes = Scrapes(said(world, "serving metrics")[0]["port"])
        world.apply(*running_for("1s", *example("one-gpu").values()))
        world.wait(
            "the pod to succeed", lambda: scrapes.scrape() and world.pod("gpu-job")["status"]["phase"] == "Succeeded"
        )
        world.wait("the NodeClaim to go", lambda: scrapes.scrape() and world.cloud.bought() and not world.claims())
        scrapes.scrape()
        transitions = world.events("Initialized")
        lines = world.log()

    for name in ("nodeclaims_created", "nodeclaims_terminated", "nodes_created", "nodes_terminated", "nodes_drained"):
        assert scrapes.total(f"karpenter_{name}_total") == 1, name
    for name in (
        *("pods_bound", "pods_provisioning_bound", "pods_scheduling_decision"),
        *("nodes_lifetime", "nodeclaims_termination", "nodes_termination"),
    ):
        assert scrapes.total(f"karpenter_{name}_duration_seconds_count") == 1, name
    assert scrapes.total("karpenter_cloudprovider_duration_seconds_count", method="Create") >= 1
    assert scrapes.total("karpenter_linode_create_duration_seconds_count", outcome="created") == 1
    assert scrapes.total("karpenter_voluntary_disruption_decisions_total", reason="empty", decision="delete") == 1
    prefix = "operator_nodeclaim_status_condition"
    assert scrapes.total(f"{prefix}_transitions_total", type="Initialized", status="True") == 1
    assert scrapes.total(f"{prefix}_count", type="Launched", status="True") == 1
    assert scrapes.total("operator_nodeclaim_termination_duration_seconds_count") == 1
    for name in ("karpenter_pods_state", "karpenter_nodes_allocatable", "karpenter_nodepools_usage"):
        assert scrapes.seen.get(name), name
    assert scrapes.total("controller_runtime_reconcile_total", controller="nodeclaim.lifecycle", result="success") > 0
    families = {name for name in METRICS if METRICS[name].kind in {"counter", "gauge"}}
    assert {name for name in scrapes.seen if name.startswith("karpenter_")} - set(METRICS) <= {
        f"{name}{end}" for name in set(METRICS) - families for end in ("_bucket", "_sum", "_count")
    }
    assert [event["message"] for event in transitions] == [
        "Status condition transitioned, Type: Initialized, Status: Unknown -> True, Reason: Initialized"
    ]
    reconciles = [line for line in lines if line.get("controllerKind") == "NodeClaim"]
    assert {line["name"] for line in reconciles} == {line["NodeClaim"]["name"] for line in reconciles}
    assert all(line["reconcileID"] and line["controllerGroup"] == "karpenter.sh" for line in reconciles)
    assert [line for line in lines if line["message"] == "dropping an unknown metric"] == []


def said(world: KarpenterWorld, message: str) -> list[dict[str, Any]]:
    return [line for line in world.log() if line["message"] == message]
