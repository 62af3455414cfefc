"""Runs a simulation without holding up the rest of the process, and no longer than its time."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.scheduling import Simulation

if TYPE_CHECKING:
    from karpenter_linode.ports import Clock
    from karpenter_linode.scheduling import Solution

TIME_LIMIT: Final = timedelta(minutes=1)
"""Of one simulation; then it is cut, and what was placed by then counts (spec/karpenter-scheduling.md 1.6)."""

_TURN: Final = timedelta(milliseconds=20)


class UnderWay(Struct, frozen=True):
    """A decision that is being made.

    Args:
        scheduling_id: tells it from others; a number that counts them.
        simulation: knows how many pods wait for their turn.
        began: when it began.
    """

    scheduling_id: str
    simulation: Simulation
    began: datetime


async def solve_in_turns(simulation: Simulation, clock: Clock, limit: timedelta = TIME_LIMIT) -> Solution:
    """The simulation's answer.

    The solver is pure and knows no time; here it works for a moment, then everything else in the process has its turn:
    renewing the lease takes a few of those. Nothing that happens meanwhile reaches the simulation, whose input is a
    snapshot. In virtual time no time passes while it works, so there it is neither interrupted nor cut.

    Args:
        simulation: not yet begun.
        clock: time.
        limit: when to place no further pod; what was placed by then still has to be written down.
    """
    began = resumed = clock.now()
    for _ in simulation.turns():
        now = clock.now()
        if now - began >= limit:
            simulation.cut()
        if now - resumed >= _TURN:
            await asyncio.sleep(0)
            resumed = clock.now()
    return simulation.solution
