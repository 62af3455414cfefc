"""The provisioner: decisions that take too long, and pods that keep their place."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from karpenter_linode.controllers.batcher import Batcher
from karpenter_linode.controllers.provisioner import Provisioner
from karpenter_linode.controllers.solving import TIME_LIMIT
from karpenter_linode.model import codec
from karpenter_linode.model.core import Pod
from karpenter_linode.model.instance_type import InstanceType
from karpenter_linode.model.karpenter import NodeClaim, NodePool
from karpenter_linode.operator.scrape import read_decision

if TYPE_CHECKING:
    from datetime import datetime

PLAN = codec.convert(
    {"name": "plan", "capacity": {"cpu": "1", "pods": "9"}, "offerings": [{"requirements": [], "price": 1}]},
    InstanceType,
)
REFERENCE = {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"}
POOL = {"metadata": {"name": "p"}, "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": REFERENCE}}}}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


class Machine:
    """A clock by which every look at it takes a while, and what was to be seen at each look."""

    def __init__(self, now: datetime, step: timedelta) -> None:
        self.time, self.step = now, step
        self.look: Any = None

    def now(self) -> datetime:
        self.time += self.step
        if self.look is not None:
            self.look()
        return self.time

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(f"asked to sleep {seconds} seconds")


def pod(number: int) -> Pod:
    """One that needs a node for itself; no two are alike."""
    resources = {"requests": {"cpu": f"{999 - number}m"}}
    return codec.convert(
        {
            "metadata": {"name": f"p{number:02}", "namespace": "default", "uid": f"uid-{number:02}"},
            "spec": {"containers": [{"name": "c", "resources": resources}]},
            "status": {"phase": "Pending", "conditions": [UNSCHEDULABLE]},
        },
        Pod,
    )


@pytest.fixture
def provisioner(lab: Any) -> Any:
    """``provisioner(story, step)`` runs ``async def story(world, provisioner, machine)`` with forty pods waiting."""

    def run(story: Any, step: timedelta) -> Any:
        async def live(world: Any) -> Any:
            async def plans(_: NodePool) -> tuple[InstanceType, ...]:
                return (PLAN,)

            world.cloud.instance_types = plans
            world.runtime.state.observe(codec.convert(POOL, NodePool))
            for number in range(40):
                world.runtime.state.observe(pod(number))
            machine = world.runtime.clock = Machine(world.clock.now(), step)
            batcher = Batcher(world.clock, timedelta(seconds=1), timedelta(seconds=10))
            return await story(world, Provisioner(world.runtime, batcher), machine)

        return lab(live)

    return run


def planned(world: Any) -> int:
    return len(world.runtime.state.all(NodeClaim))


def test_what_was_placed_in_time_is_bought_and_the_rest_is_bought_in_the_next_passes(provisioner: Any) -> None:
    async def story(world: Any, subject: Provisioner, _: Machine) -> None:
        await subject.provide()
        first = planned(world)
        assert 1 <= first <= TIME_LIMIT / timedelta(seconds=4)
        assert len(world.runtime.state.nominations) == first
        failed = [event for event in world.notebook.events if event[1] == "FailedScheduling"]
        assert failed == []
        assert "scheduling simulation timed out" in world.notebook.messages()
        await subject.provide()
        assert planned(world) >= first  # the pods of the first pass are tried first: they have the larger requests
        assert len(world.runtime.state.nominations) == planned(world)

    provisioner(story, timedelta(seconds=4))


def test_pods_stay_with_the_node_claims_that_were_made_for_them(provisioner: Any) -> None:
    async def story(world: Any, subject: Provisioner, _: Machine) -> None:
        await subject.provide()
        sent = dict(world.runtime.state.nominations)
        assert len(set(sent.values())) == planned(world) == 40
        await subject.provide()
        assert world.runtime.state.nominations == sent
        assert planned(world) == 40
        world.runtime.state.forget(pod(0))
        await subject.provide()
        del sent["uid-00"]
        assert world.runtime.state.nominations == sent

    provisioner(story, timedelta(0))


def test_a_scrape_sees_the_decision_that_is_being_made(provisioner: Any) -> None:
    async def story(_: Any, subject: Provisioner, machine: Machine) -> list[tuple[float, float]]:
        seen: list[tuple[float, float]] = []

        def look() -> None:
            readings = {name: (series, value) for name, series, value in read_decision([subject], machine.time)}
            if readings:
                depth, seconds = readings.values()
                assert depth[0] == seconds[0] == ("provisioner", "1")
                seen.append((depth[1], seconds[1]))

        machine.look = look
        await subject.provide()
        machine.look = None
        assert list(read_decision([subject], machine.time)) == []
        return seen

    seen = provisioner(story, timedelta(milliseconds=1))
    depths = [depth for depth, _ in seen]
    assert depths == sorted(depths, reverse=True)
    assert (max(depths), min(depths)) == (40, 0)
    assert seen[-1][1] > seen[0][1]
