"""Dependents follow owners, pods follow nodes, and NoExecute taints drive pods away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karpenter_linode.model.core import Node, Pod, Taint
from karpenter_linode.model.meta import find_condition
from karpenter_linode.sim.resource_types import served_type, type_of

Run = Callable[..., Any]
NODE = type_of(Node)


def owned_map(world: Any, name: str, *owners: dict[str, Any]) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": list(owners)},
    }
    world.apply([manifest])


def exists(world: Any, name: str) -> bool:
    return any(stored.name == name for stored in world.store.list(served_type("v1", "ConfigMap")))


def owner(node: Node) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}


def test_a_dependent_goes_after_its_owner(run: Run) -> None:
    async def play(world: Any) -> None:
        world.add("v1", "Node", "n")
        owned_map(world, "m", owner(world.node("n")))
        await world.clock.sleep(10)
        assert exists(world, "m")
        world.delete("v1", "Node", "n")
        assert exists(world, "m")
        await world.clock.sleep(2)
        assert not exists(world, "m")

    run(play)


def test_one_owner_left_keeps_a_dependent_and_the_dangling_reference_goes(run: Run) -> None:
    async def play(world: Any) -> None:
        world.add("v1", "Node", "a")
        world.add("v1", "Node", "b")
        owned_map(world, "m", owner(world.node("a")), owner(world.node("b")))
        world.delete("v1", "Node", "a")
        await world.clock.sleep(5)
        (stored,) = (s for s in world.store.list(served_type("v1", "ConfigMap")) if s.name == "m")
        assert [reference["name"] for reference in stored.metadata["ownerReferences"]] == ["b"]

    run(play)


def test_an_owner_of_the_same_name_is_another_owner(run: Run) -> None:
    async def play(world: Any) -> None:
        world.add("v1", "Node", "n")
        owned_map(world, "m", owner(world.node("n")))
        world.delete("v1", "Node", "n")
        world.add("v1", "Node", "n")
        await world.clock.sleep(5)
        assert not exists(world, "m")

    run(play)


def test_an_object_born_without_its_owner_goes(run: Run) -> None:
    async def play(world: Any) -> None:
        owned_map(world, "m", {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "gone"})
        await world.clock.sleep(5)
        assert not exists(world, "m")

    run(play)


def test_owners_of_kinds_that_nobody_serves_count_as_present(run: Run) -> None:
    async def play(world: Any) -> None:
        owned_map(world, "m", {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1"})
        await world.clock.sleep(5)
        assert exists(world, "m")

    run(play)


def test_pods_of_a_vanished_node_are_failed_and_deleted_after_a_quarantine(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod()
        await world.clock.sleep(30)
        phases: list[str] = []
        world.store.listen(Pod, lambda change: phases.append(change.stored.plain["status"]["phase"]))
        world.nodes.stopped("node-a")
        world.delete("v1", "Node", "node-a")
        await world.clock.sleep(35)
        assert world.pod() is not None
        await world.clock.sleep(30)
        assert world.pod() is None
        assert phases == ["Failed", "Failed"]

    run(play)


def taint(world: Any, key: str = "evil") -> None:
    taints = [{"key": key, "effect": "NoExecute"}]
    world.store.patch(NODE, "node-a", {"spec": {"taints": taints}})


def test_an_untolerated_no_execute_taint_evicts_at_once(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod()
        world.add_pod("brave", tolerations=[{"key": "evil", "operator": "Exists"}])
        await world.clock.sleep(30)
        taint(world)
        await world.clock.sleep(0.1)
        assert world.pod().metadata.deletion_timestamp is not None
        condition = find_condition(world.pod().status.conditions, "DisruptionTarget")
        assert condition.reason == "DeletionByTaintManager"
        assert world.pod("brave").metadata.deletion_timestamp is None

    run(play)


def test_a_toleration_with_seconds_ends(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod(tolerations=[{"key": "evil", "operator": "Exists", "tolerationSeconds": 100}])
        await world.clock.sleep(30)
        taint(world)
        await world.clock.sleep(99)
        assert world.pod().metadata.deletion_timestamp is None
        await world.clock.sleep(2)
        assert world.pod().metadata.deletion_timestamp is not None

    run(play)


def test_a_taint_that_goes_in_time_evicts_nobody(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod(tolerations=[{"key": "evil", "operator": "Exists", "tolerationSeconds": 100}])
        await world.clock.sleep(30)
        taint(world)
        await world.clock.sleep(50)
        world.store.patch(NODE, "node-a", {"spec": {"taints": None}})
        await world.clock.sleep(500)
        assert world.pod().metadata.deletion_timestamp is None

    run(play)


def test_pods_stay_five_minutes_on_an_unreachable_node(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod()
        await world.clock.sleep(30)
        world.nodes.stopped("node-a")
        await world.clock.sleep(50 + 295)
        assert world.pod().metadata.deletion_timestamp is None
        await world.clock.sleep(10)
        assert world.pod().metadata.deletion_timestamp is not None

    run(play)


def test_a_pod_may_not_be_scheduled_onto_a_no_execute_taint(run: Run) -> None:
    async def play(world: Any) -> None:
        world.boot(taints=(Taint("evil", "", "NoExecute"),))
        await world.clock.sleep(30)
        world.add_pod()
        await world.clock.sleep(10)
        assert world.pod().spec.node_name == ""

    run(play)
