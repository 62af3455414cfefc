"""The lease is renewed while a decision takes longer than the lease would last."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from karpenter_linode.controllers.solving import solve_in_turns
from karpenter_linode.kube.http import KubeHttp
from karpenter_linode.kube.lease import Candidate, LeaderElector
from karpenter_linode.model import codec
from karpenter_linode.model.core import Pod
from karpenter_linode.model.instance_type import InstanceType
from karpenter_linode.model.karpenter import NodePool
from karpenter_linode.scheduling import Problem, Simulation, solve
from karpenter_linode.sim.seeded import SeededRandom

START = datetime(2026, 1, 1, tzinfo=UTC)


class Machine:
    """Time that passes with every look at the clock, as if the processor had been busy since the last one."""

    def __init__(self, step: timedelta) -> None:
        self.time, self._step = START, step

    def now(self) -> datetime:
        self.time += self._step
        return self.time

    def monotonic(self) -> float:
        return (self.time - START).total_seconds()

    async def sleep(self, seconds: float) -> None:
        end = self.time + timedelta(seconds=seconds)
        while self.time < end:  # noqa: ASYNC110 - no event tells that somebody looked at the clock
            await asyncio.sleep(0)


class Silent:
    def note(self, event: str, **fields: Any) -> None:
        pass

    debug = info = warning = error = note


class Leases:
    """An API server that holds one lease."""

    def __init__(self) -> None:
        self.writes = 0
        self.spec: dict[str, Any] = {}

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET" and not self.writes:
            return httpx2.Response(404, json={"reason": "NotFound", "message": "", "code": 404})
        if request.method != "GET":
            self.writes += 1
            self.spec |= json.loads(request.content)["spec"]
        metadata = {"name": "leader", "resourceVersion": str(self.writes)}
        return httpx2.Response(200, json={"metadata": metadata, "spec": self.spec})


def problem(count: int) -> Problem:
    """Pods of which no two are alike."""
    plan = {"name": "plan", "capacity": {"cpu": "1"}, "offerings": [{"requirements": [], "price": 1}]}
    pool = {"metadata": {"name": "p"}, "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": {}}}}}
    pods = [
        {
            "metadata": {"name": f"pod-{number}", "namespace": "default", "uid": f"uid-{number:03}"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": f"{999 - number}m"}}}]},
            "status": {"phase": "Pending"},
        }
        for number in range(count)
    ]
    return Problem(
        pods=tuple(codec.convert(pod, Pod) for pod in pods),
        node_pools=(codec.convert(pool, NodePool),),
        instance_types={"p": (codec.convert(plan, InstanceType),)},
    )


def test_a_decision_of_half_a_minute_does_not_cost_the_lease() -> None:
    posed = problem(400)

    async def story() -> tuple[float, int]:
        machine, leases = Machine(timedelta(milliseconds=30)), Leases()
        client = httpx2.AsyncClient(base_url="http://api", transport=httpx2.MockTransport(leases))
        async with client:
            elector = LeaderElector(
                KubeHttp(client, machine),
                Candidate("kube-system", "leader", "me"),
                clock=machine,
                random=SeededRandom(1),
                logger=Silent(),
                monotonic=machine.monotonic,
            )
            await elector.acquire()
            holding = asyncio.create_task(elector.hold())
            before, began = leases.writes, machine.monotonic()
            assert await solve_in_turns(Simulation(posed), machine) == solve(posed)
            assert elector.is_leader
            assert not holding.done()
            holding.cancel()
            return machine.monotonic() - began, leases.writes - before

    took, renewals = asyncio.run(story())
    assert took > 25  # a lease lasts 15 seconds, and is given up after 10
    assert renewals >= took / 4
