"""The DRA driver stand-in: what it publishes, when, and what keeps it away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from karpenter_linode.model.core import Node, Taint
from karpenter_linode.model.resource import DeviceClass, ResourceSlice
from karpenter_linode.sim.cluster import SimSettings
from karpenter_linode.sim.nvidia import DISCOVERY_LABEL, DriverBehaviour
from karpenter_linode.sim.resource_types import type_of

Run = Callable[..., Any]
PAIR = {"gpus": 2, "plan": "g2-gpu-rtx4000a2-s"}


def slices(world: Any) -> list[ResourceSlice]:
    return list(world.store.all(ResourceSlice))


def behaving(**fields: Any) -> SimSettings:
    return SimSettings(driver=DriverBehaviour(**fields))


def test_a_gpu_node_gets_one_complete_pool(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready(**PAIR)
        await world.clock.sleep(200)
        (item,) = slices(world)
        assert (item.spec.driver, item.spec.node_name) == ("gpu.nvidia.com", "node-a")
        assert (item.spec.pool.name, item.spec.pool.generation, item.spec.pool.resource_slice_count) == ("node-a", 1, 1)
        (owner,) = item.metadata.owner_references
        assert (owner.kind, owner.name, owner.uid) == ("Node", "node-a", world.node().uid)
        assert sorted(device.name for device in item.spec.devices) == ["gpu-0", "gpu-1"]

    run(play)


def test_devices_carry_what_the_driver_publishes(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready(**PAIR)
        await world.clock.sleep(200)
        devices = {device.name: device for device in slices(world)[0].spec.devices}
        first = devices["gpu-0"]
        attributes = first.attributes
        assert attributes["type"].string == "gpu"
        assert attributes["uuid"].string.startswith("GPU-")
        assert attributes["productName"].string == "NVIDIA RTX 4000 Ada Generation"
        assert attributes["brand"].string == "NvidiaRTX"
        assert attributes["architecture"].string == "Ada Lovelace"
        assert attributes["cudaComputeCapability"].version == "8.9.0"
        assert attributes["driverVersion"].version == "580.105.8"
        assert attributes["cudaDriverVersion"].version == "13.0.0"
        assert attributes["resource.kubernetes.io/pciBusID"].string == "0000:00:02.0"
        assert attributes["resource.kubernetes.io/pcieRoot"].string == "pci0000:00"
        assert devices["gpu-1"].attributes["resource.kubernetes.io/pciBusID"].string == "0000:00:03.0"
        assert str(first.capacity["memory"].value) == "20475Mi"
        assert first.attributes["uuid"] != devices["gpu-1"].attributes["uuid"]

    run(play)


def test_plans_outside_the_catalog_publish_what_their_board_says(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready("old", gpus=1, plan="g1-gpu-rtx6000-1")
        await world.ready("new", gpus=1, plan="g9-gpu-mystery-1")
        await world.clock.sleep(200)
        names = {item.spec.node_name: item.spec.devices[0].attributes["productName"].string for item in slices(world)}
        assert names == {"old": "Quadro RTX 6000", "new": "NVIDIA Graphics Device"}

    run(play)


def test_the_driver_takes_its_time_and_a_node_without_gpus_gets_nothing(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready(**PAIR)
        await world.ready("plain")
        await world.clock.sleep(20)
        assert slices(world) == []
        await world.clock.sleep(300)
        assert [item.spec.node_name for item in slices(world)] == ["node-a"]

    run(play)


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_foreign_taint_keeps_the_devices_away_until_it_goes(run: Run, effect: str) -> None:
    async def play(world: Any) -> None:
        gpu, startup = Taint("nvidia.com/gpu", "true", "NoSchedule"), Taint("example.com/startup", "", effect)
        await world.ready(**PAIR, taints=(gpu, startup))
        await world.clock.sleep(600)
        assert slices(world) == []
        assert DISCOVERY_LABEL not in world.node().metadata.labels
        taints = [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}]
        world.store.patch(type_of(Node), "node-a", {"spec": {"taints": taints}})
        await world.clock.sleep(200)
        assert len(slices(world)) == 1

    run(play)


def test_without_discovery_someone_must_label_the_node(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready(**PAIR)
        await world.clock.sleep(600)
        assert slices(world) == []
        world.store.patch(type_of(Node), "node-a", {"metadata": {"labels": {"nvidia.com/gpu.present": "true"}}})
        await world.clock.sleep(200)
        assert len(slices(world)) == 1

    run(play, settings=behaving(discovery=False))


def test_a_pool_in_parts_is_complete_with_its_last_part(run: Run) -> None:
    async def play(world: Any) -> None:
        counts: list[int] = []
        world.store.listen(ResourceSlice, lambda change: counts.append(len(slices(world))))
        await world.ready(**PAIR)
        await world.clock.sleep(300)
        assert counts == [1, 2]
        assert {item.spec.pool.resource_slice_count for item in slices(world)} == {2}
        assert sorted(device.name for item in slices(world) for device in item.spec.devices) == ["gpu-0", "gpu-1"]

    run(play, settings=behaving(publishing="parts"))


def test_a_regenerated_pool_is_short_then_incomplete_then_whole(run: Run) -> None:
    async def play(world: Any) -> None:
        pools: list[list[tuple[int, int]]] = []

        def note(_: object) -> None:
            pools.append([(s.spec.pool.generation, s.spec.pool.resource_slice_count) for s in slices(world)])

        world.store.listen(ResourceSlice, note)
        await world.ready(**PAIR)
        await world.clock.sleep(300)
        assert pools == [[(1, 1)], [(2, 2)], [(2, 2), (2, 2)]]

    run(play, settings=behaving(publishing="regenerated"))


def test_a_driver_may_never_publish_or_be_late(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready(**PAIR)
        await world.clock.sleep(250)
        assert slices(world) == []
        world.driver.behaviour = DriverBehaviour(publishing="complete", late_seconds=600)
        await world.ready("node-b", **PAIR)
        await world.clock.sleep(500)
        assert slices(world) == []
        await world.clock.sleep(300)
        assert [item.spec.node_name for item in slices(world)] == ["node-b"]

    run(play, settings=behaving(publishing="never"))


def test_slices_go_with_their_node(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready(**PAIR)
        await world.clock.sleep(200)
        world.nodes.gone("node-a")
        await world.clock.sleep(120)
        assert slices(world) == []

    run(play)


def test_the_charts_classes_name_the_extended_resource(run: Run) -> None:
    async def play(world: Any) -> None:
        world.install_device_classes()
        world.install_device_classes()
        classes = {item.name: item for item in world.store.all(DeviceClass)}
        assert sorted(classes) == ["gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com"]
        assert classes["gpu.nvidia.com"].spec.extended_resource_name == "nvidia.com/gpu"
        expression = classes["gpu.nvidia.com"].spec.selectors[0].cel.expression
        assert expression == "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"

    run(play)
