"""What the process tells while it waits for its first lists."""

from __future__ import annotations

import asyncio
import io
import json
from datetime import UTC, datetime
from typing import Any

from karpenter_linode.controllers.runtime import Runtime
from karpenter_linode.model.core import Pod
from karpenter_linode.operator.logging import JsonLogger
from karpenter_linode.operator.work import wait_synced
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.loop import run_virtual
from karpenter_linode.sim.metrics import MemoryMetrics


def told(leads_from: float, synced_at: float) -> list[tuple[str, list[str]]]:
    """Duration and missing kinds of each complaint."""
    output = io.StringIO()

    async def go() -> None:
        clock, unused = VirtualClock(asyncio.get_running_loop(), datetime(2026, 1, 1, tzinfo=UTC)), None
        port: Any = unused
        runtime = Runtime(port, port, clock, port, port, MemoryMetrics(), port)
        for kind in runtime.state.kinds:
            if kind is not Pod:
                runtime.state.relist(kind, (), "1")
        began = clock.now()
        waiting = asyncio.create_task(
            wait_synced(runtime, JsonLogger([output]), lambda: (clock.now() - began).total_seconds() >= leads_from)
        )
        await clock.sleep(synced_at)
        runtime.state.relist(Pod, (), "1")
        runtime.announce_sync()
        await waiting

    run_virtual(go())
    lines = [json.loads(line) for line in output.getvalue().splitlines()]
    assert {line["message"] for line in lines} <= {"cluster is waiting on sync for extended duration"}
    return [(line["duration"], line["kinds"]) for line in lines]


def test_a_short_wait_is_not_told() -> None:
    assert told(leads_from=0, synced_at=35) == []


def test_a_long_one_is_told_every_ten_seconds_with_what_is_missing() -> None:
    assert told(leads_from=0, synced_at=65) == [(f"{seconds}", ["pods"]) for seconds in ("40s", "50s", "1m0s")]


def test_a_replica_that_stands_by_does_not_complain() -> None:
    assert told(leads_from=3600, synced_at=600) == []
    assert told(leads_from=3600, synced_at=3635) == [("40s", ["pods"])]
