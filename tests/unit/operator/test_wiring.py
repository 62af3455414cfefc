from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from karpenter_linode.operator.options import Options
from karpenter_linode.operator.wiring import Operator, settings_from
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.loop import run_virtual
from karpenter_linode.sim.seeded import SeededRandom


class Lines:
    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def error(self, event: str, **fields: Any) -> None:
        self.lines.append((event, fields))

    debug = info = warning = error


class Flaky:
    """Crashes a few times, then runs."""

    name = "flaky"

    def __init__(self, clock: VirtualClock, crashes: int) -> None:
        self.clock, self.crashes = clock, crashes
        self.starts: list[float] = []
        self.running = False

    async def run(self) -> None:
        self.starts.append(self.clock.now().timestamp())
        if len(self.starts) <= self.crashes:
            raise RuntimeError("a bug")
        self.running = True
        try:
            await asyncio.Event().wait()
        finally:
            self.running = False


def test_the_defaults_are_upstreams() -> None:
    options = Options()
    assert options.ignore_dra_requests
    assert (options.batch_idle_duration, options.batch_max_duration) == (timedelta(seconds=1), timedelta(seconds=10))
    settings = settings_from(options)
    assert settings.nomination_window == timedelta(seconds=20)
    assert settings.lifecycle.registration_timeout == timedelta(minutes=15)
    assert settings_from(Options(batch_max_duration=timedelta(seconds=2))).nomination_window == timedelta(seconds=10)
    assert not settings_from(Options(ignore_dra_requests=False)).lifecycle.ignore_dra_requests


def test_a_crashed_controller_is_logged_and_started_again_while_the_others_run() -> None:
    async def story() -> None:
        clock = VirtualClock(asyncio.get_running_loop(), datetime(2026, 1, 1, tzinfo=UTC))
        steady, flaky, log = Flaky(clock, 0), Flaky(clock, 3), Lines()
        operator = Operator([flaky, steady], clock, SeededRandom(1), log)  # type: ignore[arg-type]
        task = asyncio.create_task(operator.run())
        await clock.sleep(60)
        assert flaky.running
        assert len(steady.starts) == 1
        pauses = [later - sooner for sooner, later in zip(flaky.starts[:-1], flaky.starts[1:], strict=True)]
        assert [round(pause) for pause in pauses] == [1, 2, 4]
        told = [(message, fields["controller"], fields["error"]) for message, fields in log.lines]
        assert told == [("controller crashed, starting it again", "flaky", "RuntimeError: a bug")] * 3
        assert all(fields["exc_info"].__traceback__ is not None for _, fields in log.lines)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not flaky.running
        assert not steady.running

    run_virtual(story())
