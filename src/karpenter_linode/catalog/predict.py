"""From a plan to the devices its node will publish."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from karpenter_linode.catalog.families import Family, driver, family_of
from karpenter_linode.model.instance_type import DynamicResources
from karpenter_linode.model.resource import Device, DeviceAttribute, DeviceCapacity, ResourceSliceTemplate

POOL: Final = "predicted"
TYPE: Final = "type"
WHOLE_GPU: Final = DeviceAttribute(string="gpu")
MAX_GPUS: Final = 128  # devices that one ResourceSlice can hold


@lru_cache(maxsize=1024)
def predict(plan_id: str, gpus: int) -> DynamicResources:
    """The devices that the NVIDIA driver will publish on a node of a plan.

    One exclusive whole-GPU device for each GPU, with ``type`` "gpu", and for plans of a known family the model's
    attributes and memory. Pool and device names exist only in the simulation; the real ones are the node's.

    Args:
        plan_id: a Linode type id such as ``g2-gpu-rtx4000a1-s``.
        gpus: the GPU count that the Linode API reports. The id's own number never counts.

    Raises:
        ValueError: a negative count, or more GPUs than a slice can hold.
    """
    if not 0 <= gpus <= MAX_GPUS:
        raise ValueError(f"plan {plan_id!r}: GPU count {gpus} is not between 0 and {MAX_GPUS}")
    if gpus == 0:
        return DynamicResources()
    family = family_of(plan_id)
    devices = tuple(_device(f"gpu-{index}", family) for index in range(gpus))
    return DynamicResources(slice_templates=(ResourceSliceTemplate(driver(), POOL, devices),))


def _device(name: str, family: Family | None) -> Device:
    if family is None:
        return Device(name, {TYPE: WHOLE_GPU})
    attributes = {name: item.value for name, item in family.attributes.items()}
    capacity = {name: DeviceCapacity(item.value) for name, item in family.capacity.items()}
    return Device(name, {TYPE: WHOLE_GPU, **attributes}, capacity)
