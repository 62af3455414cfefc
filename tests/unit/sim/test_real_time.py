"""Accelerated real time: fast, steady, and without leaps when the process is held up."""

from __future__ import annotations

import asyncio
import socket

from karpenter_linode.sim.real_time import MOST_AT_ONCE, HastyClock, run_accelerated


class Wall:
    """A wall clock that moves when told to."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds

    def waits(self, more: float = 0.0) -> object:
        """A wait that takes as long as asked, and some more."""

        def wait(timeout: float | None) -> str:
            self.seconds += (timeout or 0.0) + more
            return "woken"

        return wait


def test_waiting_takes_a_fraction_of_the_time() -> None:
    wall = Wall()
    clock = HastyClock(20.0, wall)
    assert clock.wait(60.0, wall.waits()) == "woken"
    assert wall.seconds == 103.0
    assert clock.now() == 60.0


def test_a_wait_that_ends_early_counts_for_what_it_was() -> None:
    wall = Wall()
    clock = HastyClock(20.0, wall)
    clock.wait(60.0, wall.waits(-2.0))
    assert clock.now() == 20.0


def test_a_process_that_is_held_up_does_not_leap() -> None:
    wall = Wall()
    clock = HastyClock(20.0, wall)
    clock.wait(60.0, wall.waits(3600.0))
    assert clock.now() == 60.0, "it waited a minute, however late it woke"
    wall.seconds += 3600.0
    assert clock.now() == 60.0 + MOST_AT_ONCE, "nor does work that was held up"
    clock.wait(0.0, wall.waits())
    assert clock.now() == 60.0 + MOST_AT_ONCE, "and time never goes back"


def test_work_takes_its_own_time() -> None:
    wall = Wall()
    clock = HastyClock(1000.0, wall)
    wall.seconds += 0.0625
    assert clock.now() == 0.0625, "or a deadline of ten seconds would be missed by a hundredth of one"


def test_without_timers_time_passes_as_it_does() -> None:
    wall = Wall()
    clock = HastyClock(2.0, wall)
    clock.wait(None, wall.waits(5.0))
    assert clock.now() == 10.0


def test_the_loop_serves_sockets_and_sleeps_fast() -> None:
    async def main() -> tuple[bytes, float]:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)  # noqa: FBT003 - the socket's own signature
            theirs.sendall(b"hello")
            heard = await loop.sock_recv(ours, 5)
        before = loop.time()
        await asyncio.sleep(3600)
        return heard, loop.time() - before

    heard, slept = run_accelerated(main, 1_000_000)
    assert heard == b"hello"
    assert slept >= 3600
