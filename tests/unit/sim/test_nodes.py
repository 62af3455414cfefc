"""Machines become Nodes, and Nodes follow their machines to the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karpenter_linode.model.core import Node, Taint
from karpenter_linode.model.labels import INSTANCE_TYPE, UNREGISTERED_TAINT
from karpenter_linode.model.meta import find_condition
from karpenter_linode.sim.linode.events import NodeBooted
from karpenter_linode.sim.machine_shape import shape_of
from karpenter_linode.sim.nodes import NOT_READY, POOL_ID_LABEL, UNINITIALIZED, UNREACHABLE

Run = Callable[..., Any]


def taint_keys(node: Node) -> list[str]:
    return [taint.key for taint in node.spec.taints]


def ready(node: Node) -> str:
    condition = find_condition(node.status.conditions, "Ready")
    return condition.status if condition else ""


def test_a_node_appears_unready_and_unknown_to_the_cloud(run: Run) -> None:
    async def play(world: Any) -> None:
        world.boot(labels={"team": "ml", POOL_ID_LABEL: "1"}, taints=(Taint(UNREGISTERED_TAINT, "", "NoExecute"),))
        node = world.node()
        assert ready(node) == "False"
        assert taint_keys(node) == [UNINITIALIZED, NOT_READY, UNREGISTERED_TAINT]
        assert node.spec.provider_id == ""
        assert node.metadata.labels["team"] == "ml"
        assert INSTANCE_TYPE not in node.metadata.labels
        assert POOL_ID_LABEL not in node.metadata.labels

    run(play)


def test_then_the_cloud_knows_it_and_then_it_is_ready(run: Run) -> None:
    async def play(world: Any) -> None:
        world.boot(taints=(Taint(UNREGISTERED_TAINT, "", "NoExecute"),))
        await world.clock.sleep(5)
        node = world.node()
        assert node.spec.provider_id == "linode://node-a"
        assert node.metadata.labels[INSTANCE_TYPE] == "g6-standard-4"
        assert sorted((taint.key, taint.effect) for taint in node.spec.taints) == [
            (UNREGISTERED_TAINT, "NoExecute"),
            (NOT_READY, "NoExecute"),
            (NOT_READY, "NoSchedule"),
        ]
        await world.clock.sleep(25)
        assert ready(world.node()) == "True"
        assert taint_keys(world.node()) == [UNREGISTERED_TAINT]

    run(play)


def test_labels_of_others_survive(run: Run) -> None:
    async def play(world: Any) -> None:
        world.boot()
        metadata = {"name": "node-a", "labels": {"mine": "yes"}}
        world.apply([{"apiVersion": "v1", "kind": "Node", "metadata": metadata}])
        await world.clock.sleep(60)
        assert world.node().metadata.labels["mine"] == "yes"

    run(play)


def test_a_silent_kubelet_turns_the_node_unknown_and_keeps_it(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.nodes.stopped("node-a")
        await world.clock.sleep(40)
        assert ready(world.node()) == "True"
        await world.clock.sleep(20)
        assert ready(world.node()) == "Unknown"
        assert [(t.key, t.effect) for t in world.node().spec.taints] == [
            (UNREACHABLE, "NoSchedule"),
            (UNREACHABLE, "NoExecute"),
        ]
        await world.clock.sleep(3600)
        assert world.store.find(Node, "node-a") is not None

    run(play)


def test_a_kubelet_that_comes_back_makes_the_node_ready_again(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.nodes.stopped("node-a")
        await world.clock.sleep(60)
        world.boot()
        assert ready(world.node()) == "True"
        assert taint_keys(world.node()) == []

    run(play)


def test_the_node_of_a_gone_machine_is_deleted_after_it_turned_unknown(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.nodes.gone("node-a")
        await world.clock.sleep(49)
        assert ready(world.node()) == "True"
        await world.clock.sleep(10)
        assert world.store.find(Node, "node-a") is None
        assert world.messages("DeletingNode")

    run(play)


def test_a_finalizer_holds_the_node_of_a_gone_machine(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        finalizer = {"name": "node-a", "finalizers": ["karpenter.sh/termination"]}
        world.apply([{"apiVersion": "v1", "kind": "Node", "metadata": finalizer}])
        world.nodes.gone("node-a")
        await world.clock.sleep(120)
        assert world.node().metadata.deletion_timestamp is not None

    run(play)


def test_transition_times_change_with_the_status_only(run: Run) -> None:
    async def play(world: Any) -> None:
        world.boot()
        first = find_condition(world.node().status.conditions, "DiskPressure").last_transition_time
        await world.clock.sleep(60)
        conditions = world.node().status.conditions
        assert find_condition(conditions, "DiskPressure").last_transition_time == first
        assert find_condition(conditions, "Ready").last_transition_time > first

    run(play)


def test_a_shape_matches_what_real_nodes_report(run: Run) -> None:
    async def play(world: Any) -> None:
        plan = world.linode.types["g6-standard-4"]
        shape = shape_of(plan)
        assert str(shape.capacity["memory"]) == "7577Mi"
        assert str(shape.allocatable["memory"]) == "6012Mi"
        assert str(shape.allocatable["cpu"]) == "3920m"
        assert "nvidia.com/gpu" not in shape_of(world.linode.types["g2-gpu-rtx4000a1-s"]).capacity

    run(play)


def test_the_clouds_event_becomes_a_node(run: Run) -> None:
    async def play(world: Any) -> None:
        event = NodeBooted(
            "lke1-2-3",
            "linode://9",
            "g2-gpu-rtx4000a1-s",
            "us-ord",
            1,
            2,
            {"team": "ml"},
            (),
            "h",
            world.clock.now(),
        )
        world._cloud_event(event)
        await world.clock.sleep(60)
        node = world.node("lke1-2-3")
        assert node.spec.provider_id == "linode://9"
        assert node.metadata.labels[POOL_ID_LABEL] == "2"
        assert node.status.capacity["cpu"].units == 4

    run(play)
