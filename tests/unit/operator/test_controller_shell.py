"""Logs, metrics, probes and the gate of writes."""

from __future__ import annotations

import asyncio
import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import yaml

from karpenter_linode.kube.lease import LeaseLostError
from karpenter_linode.operator.embedded import EmbeddedWorld
from karpenter_linode.operator.gate import GatedTransport, WriteGate
from karpenter_linode.operator.health import HttpServer, ListenError, health_app, metrics_app
from karpenter_linode.operator.logging import JsonLogger
from karpenter_linode.operator.metric_table import METRICS
from karpenter_linode.operator.metrics import PrometheusMetrics
from karpenter_linode.operator.options import Options
from karpenter_linode.operator.scrape import Scrape
from karpenter_linode.sim.cluster import SimSettings
from karpenter_linode.sim.loop import run_virtual

if TYPE_CHECKING:
    from karpenter_linode.sim.metrics import MemoryMetrics


def lines(output: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.getvalue().splitlines()]


def logger(output: io.StringIO, level: str = "info") -> JsonLogger:
    return JsonLogger([output], level, now=lambda: datetime(2026, 8, 20, 15, 19, 15, 7000, tzinfo=UTC))


def test_a_log_line_has_the_keys_of_the_contract() -> None:
    output = io.StringIO()
    logger(output).info(
        "created nodeclaim", controller="provisioner", NodeClaim="gpu-1", Pod="ns/p", duration=timedelta(seconds=75)
    )
    (line,) = lines(output)
    assert list(line) == ["level", "time", "logger", "message", "controller", "NodeClaim", "Pod", "duration"]
    assert (line["level"], line["time"], line["logger"]) == ("INFO", "2026-08-20T15:19:15.007Z", "controller")
    assert line["NodeClaim"] == {"name": "gpu-1"}
    assert line["Pod"] == {"name": "p", "namespace": "ns"}
    assert line["duration"] == "1m15s"


def test_lines_below_the_level_are_dropped() -> None:
    output = io.StringIO()
    log = logger(output, "error")
    log.debug("a")
    log.info("b")
    log.warning("c")
    log.error("d", error=ValueError("why"))
    assert [(line["message"], line["error"]) for line in lines(output)] == [("d", "why")]


def test_a_line_that_repeats_cannot_fill_a_disk() -> None:
    output = io.StringIO()
    log = logger(output)
    for _ in range(1000):
        log.info("again")
    log.info("another")
    messages = [line["message"] for line in lines(output)]
    assert 100 <= messages.count("again") < 400
    assert messages.count("another") == 1


def test_a_line_break_in_a_message_does_not_make_two_lines() -> None:
    output = io.StringIO()
    logger(output).error("a\nb", error='{"level":"INFO"}\n{"forged":true}')
    assert len(output.getvalue().splitlines()) == 1


def test_every_metric_that_the_controllers_set_is_known_with_its_labels() -> None:
    seen = run_virtual(metrics_of_the_described_example())
    told = {**seen.counters, **seen.gauges, **seen.samples}
    assert len(told) > 10
    for name, series in told.items():
        for key in series:
            assert sorted(METRICS[name].labels) == [label for label, _ in key], name


def test_every_metric_that_the_code_names_is_known() -> None:
    sources = [
        source
        for source in (Path(__file__).parents[3] / "src" / "karpenter_linode").rglob("*.py")
        if source.name != "metric_table.py"
    ]
    named = {name for source in sources for name in re.findall(r'"(karpenter_[a-z_]+)"', source.read_text("utf-8"))}
    assert {name for name in named if not name.endswith("_")} - {"karpenter_linode"} <= set(METRICS)


async def metrics_of_the_described_example() -> MemoryMetrics:
    files = sorted((Path(__file__).parents[3] / "examples" / "one-gpu").glob("*.yaml"))
    manifests = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    settings = SimSettings(default_runtime=timedelta(minutes=1))
    world = EmbeddedWorld(manifests, options=Options(ignore_dra_requests=False), settings=settings)
    await world.run(7200)
    return world.cluster.metrics


def test_a_scrape_shows_what_was_counted() -> None:
    metrics = PrometheusMetrics(logger(io.StringIO()))
    labels = {"reason": "provisioned", "nodepool": "gpu", "min_values_relaxed": "false"}
    metrics.increment("karpenter_nodeclaims_created_total", labels)
    metrics.observe("karpenter_nodes_lifetime_duration_seconds", {"nodepool": "gpu"}, 1000)
    metrics.set_gauge("karpenter_scheduler_ignored_pods_count", {}, 3)
    text = metrics.text([("karpenter_cluster_state_synced", (), 1)]).decode()
    assert (
        'karpenter_nodeclaims_created_total{min_values_relaxed="false",nodepool="gpu",reason="provisioned"} 1.0' in text
    )
    assert 'karpenter_nodes_lifetime_duration_seconds_bucket{le="1800.0",nodepool="gpu"} 1.0' in text
    assert "karpenter_cluster_state_synced 1.0" in text
    assert "karpenter_scheduler_ignored_pods_count 3.0" in text
    assert "_created" not in text.replace("nodeclaims_created", "").replace("nodes_created", "")


def test_a_metric_that_is_not_known_is_dropped_and_told_of_once() -> None:
    output = io.StringIO()
    metrics = PrometheusMetrics(logger(output))
    for _ in range(3):
        metrics.increment("karpenter_made_up_total", {})
        metrics.increment("karpenter_nodes_drained_total", {"pool": "gpu"})
    assert [line["metric"] for line in lines(output)] == ["karpenter_made_up_total", "karpenter_nodes_drained_total"]


def test_stacks_are_shown_when_debugging_only() -> None:
    for level, shown in (("info", False), ("debug", True)):
        output = io.StringIO()
        logger(output, level).error("Reconciler error", error="bug", exc_info=ValueError("bug"))
        assert ("stacktrace" in lines(output)[0]) is shown
        assert "exc_info" not in lines(output)[0]


def test_probes_and_metrics_are_served() -> None:
    wrong = {"manager": "not listed yet: pods"}

    async def serve() -> list[tuple[int, str]]:
        health = HttpServer(health_app({"manager": lambda: wrong["manager"], "crd": lambda: ""}), 0)
        shown = HttpServer(metrics_app(Scrape(PrometheusMetrics(logger(io.StringIO())), "1", "lease").text), 0)
        for server in (health, shown):
            server.start()
        answers = []
        async with httpx2.AsyncClient(trust_env=False) as client:
            answers.append(await client.get(f"http://127.0.0.1:{health.port}/healthz"))
            answers.append(await client.get(f"http://127.0.0.1:{health.port}/readyz"))
            wrong["manager"] = ""
            answers.append(await client.get(f"http://127.0.0.1:{health.port}/readyz"))
            answers.append(await client.get(f"http://127.0.0.1:{shown.port}/metrics"))
        await health.stop()
        await shown.stop()
        return [(answer.status_code, answer.text) for answer in answers]

    healthy, unready, ready, metrics = asyncio.run(serve())
    assert healthy == (200, "ok")
    assert unready[0] == 500
    assert "[-]manager failed: not listed yet: pods" in unready[1]
    assert ready[0] == 200
    assert "karpenter_cluster_state_synced" in metrics[1]


def test_a_port_that_is_taken_is_named() -> None:
    async def twice() -> None:
        first = HttpServer(health_app({}), 0)
        try:
            with pytest.raises(ListenError, match=f"port {first.port}"):
                HttpServer(health_app({}), first.port)
        finally:
            await first.stop()

    asyncio.run(twice())


async def _ok(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200)


def test_without_the_lease_reads_pass_the_gate_and_writes_do_not() -> None:
    def not_leading() -> None:
        raise LeaseLostError("not held")

    async def both() -> None:
        transport = GatedTransport(httpx2.MockTransport(_ok), WriteGate(not_leading))
        async with httpx2.AsyncClient(transport=transport, base_url="http://api") as client:
            assert (await client.get("/")).status_code == 200
            with pytest.raises(httpx2.ConnectError, match="not held"):
                await client.post("/")

    asyncio.run(both())


def test_the_end_waits_for_writes_under_way_and_lets_no_new_one_begin() -> None:
    release = asyncio.Event()

    async def slow(_: httpx2.Request) -> httpx2.Response:
        await release.wait()
        return httpx2.Response(201)

    async def end() -> None:
        gate = WriteGate()
        transport = GatedTransport(httpx2.MockTransport(slow), gate)
        async with httpx2.AsyncClient(transport=transport, base_url="http://api") as client:
            writing = asyncio.create_task(client.post("/"))
            await asyncio.sleep(0.01)
            assert await gate.drain(0.01) == 1
            with pytest.raises(httpx2.ConnectError, match="ending"):
                await client.post("/")
            draining = asyncio.create_task(gate.drain(10))
            release.set()
            assert await draining == 0
            assert (await writing).status_code == 201

    asyncio.run(end())
