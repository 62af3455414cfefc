"""The allocator alone: many claims over many nodes, claims on planned nodes, and searches without an answer."""

from __future__ import annotations

import time

from karpenter_linode.catalog import predict
from karpenter_linode.dra import Allocation, Allocator, Target
from karpenter_linode.model.instance_type import InstanceType
from karpenter_linode.model.meta import ObjectMeta, OwnerReference
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.requirements import Requirements
from karpenter_linode.model.resource import (
    CELDeviceSelector,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)

DRIVER = "gpu.nvidia.com"
SELECTOR = (
    f"device.driver == '{DRIVER}' && "
    f"device.attributes['{DRIVER}'].architecture == 'Ada Lovelace' && "
    f"device.attributes['{DRIVER}'].productName == 'NVIDIA RTX 4000 Ada Generation' && "
    f"device.attributes['{DRIVER}'].cudaComputeCapability.compareTo(semver('8.9.0')) >= 0 && "
    f"device.attributes['{DRIVER}'].driverVersion.compareTo(semver('570.0.0')) >= 0 && "
    f"'memory' in device.capacity['{DRIVER}'] && "
    f"device.capacity['{DRIVER}'].memory.compareTo(quantity('16Gi')) >= 0"
)
GPU = DeviceClass(
    metadata=ObjectMeta(name=DRIVER),
    spec=DeviceClassSpec(
        (
            DeviceSelector(
                CELDeviceSelector(f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'")
            ),
        )
    ),
)


def claim(
    name: str, count: int = 1, requests: int = 1, *, match: str | None = None, selector: str = ""
) -> ResourceClaim:
    selectors = (DeviceSelector(CELDeviceSelector(selector)),) if selector else ()
    exactly = ExactDeviceRequest(DRIVER, selectors, "ExactCount", count)
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="bench"),
        spec=ResourceClaimSpec(
            DeviceClaim(
                tuple(DeviceRequest(f"r{index}", exactly) for index in range(requests)),
                () if match is None else (DeviceConstraint((), match),),
            )
        ),
    )


def gpu(node: int, index: int) -> Device:
    attributes = {
        "type": DeviceAttribute(string="gpu"),
        "uuid": DeviceAttribute(string=f"GPU-{node}-{index}"),
        "productName": DeviceAttribute(string="NVIDIA RTX 4000 Ada Generation"),
        "architecture": DeviceAttribute(string="Ada Lovelace"),
        "cudaComputeCapability": DeviceAttribute(version="8.9.0"),
        "driverVersion": DeviceAttribute(version="580.105.8"),
        "rack": DeviceAttribute(int_=index % 5),
    }
    return Device(f"gpu-{index}", attributes, {"memory": DeviceCapacity(Quantity.parse("20475Mi"))})


def node_slice(node: int, devices: int) -> ResourceSlice:
    name = f"node-{node}"
    return ResourceSlice(
        metadata=ObjectMeta(name=f"{name}-gpu", owner_references=(OwnerReference("v1", "Node", name),)),
        spec=ResourceSliceSpec(
            DRIVER,
            ResourcePool(name, 1, 1),
            node_name=name,
            devices=tuple(gpu(node, index) for index in range(devices)),
        ),
    )


def node_target(node: int) -> Target:
    requirements = Requirements.from_labels({"kubernetes.io/hostname": f"node-{node}"})
    return Target(f"linode://{node}", "gpu", requirements, node_name=f"node-{node}", use_templates=False)


class Stopwatch:
    """Wall-clock and processor seconds since it was made; the latter hardly change when other work runs beside."""

    def __init__(self) -> None:
        self._wall, self._used = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        """Wall-clock and processor seconds so far."""
        return time.perf_counter() - self._wall, time.process_time() - self._used


def rate(number: int, watch: Stopwatch) -> str:
    wall, used = watch.read()
    return f"{number / wall:,.0f} claims/s by the wall, {number / used:,.0f} by processor time"


def existing_nodes(nodes: int = 500, devices: int = 8, claims: int = 5000) -> None:
    """Single-GPU claims tried on nodes in order, first fit."""
    slices = [node_slice(node, devices) for node in range(nodes)]
    pending = [claim(f"c-{index}", selector=SELECTOR) for index in range(claims)]
    watch = Stopwatch()
    allocator = Allocator(
        slices=slices, classes=[GPU], claims=pending, initialized_nodes=frozenset(f"node-{n}" for n in range(nodes))
    )
    targets = [node_target(node) for node in range(nodes)]
    placed = 0
    for item in pending:
        for target in targets:
            found = allocator.allocate(target, [item])
            if isinstance(found, Allocation):
                allocator.commit(found)
                placed += 1
                break
    print(f"{claims} claims over {nodes} nodes x {devices} GPUs: {placed} placed, {rate(claims, watch)}")


def planned_nodes(claims: int = 1000) -> None:
    """Claims on new nodes: every plan of a catalog is narrowed for each claim."""
    plans = [f"g2-gpu-rtx4000a1-{size}" for size in ("s", "m", "l", "xl")]
    types = [InstanceType(plan, dynamic_resources=predict(plan, 1)) for plan in plans]
    types += [InstanceType(f"g6-standard-{index}", dynamic_resources=predict("g6", 0)) for index in range(40)]
    options = tuple(types)
    allocator = Allocator(classes=[GPU], instance_types={"gpu": options})
    watch = Stopwatch()
    for index in range(claims):
        found = allocator.allocate(Target(f"new-{index}", "gpu", instance_types=options), [claim(f"c-{index}")])
        if isinstance(found, Allocation):
            allocator.commit(found)
    print(f"{claims} claims on new nodes, {len(options)} plans: {rate(claims, watch)}")


def hopeless(title: str, item: ResourceClaim, devices: int = 16) -> None:
    """A search that has no answer."""
    allocator = Allocator(slices=[node_slice(0, devices)], classes=[GPU], initialized_nodes=frozenset({"node-0"}))
    watch = Stopwatch()
    found = allocator.allocate(node_target(0), [item], explain=True)
    _, used = watch.read()
    code = "allocated" if isinstance(found, Allocation) else found.children[0].code
    print(f"no answer, {title}: {used * 1000:.1f} ms of processor time ({code})")


def main() -> None:
    existing_nodes()
    planned_nodes()
    hopeless("16 devices, 4 requests of 5", claim("a", 5, 4))
    hopeless("16 devices, 4 requests of 4 alike", claim("b", 4, 4, match=f"{DRIVER}/rack"))
    hopeless("16 devices, 4 requests of 1 alike", claim("c", 1, 4, match=f"{DRIVER}/uuid"))
    hopeless("32 devices, 4 requests of 8 alike", claim("d", 8, 4, match=f"{DRIVER}/rack"), 32)


if __name__ == "__main__":
    main()
