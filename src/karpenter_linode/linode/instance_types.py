"""Linode plans as Karpenter instance types (spec/linode-provider.md 3). Pure: plans in, instance types out."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.catalog import predict
from karpenter_linode.linode.capacity import NO_KUBELET, VM_MEMORY_OVERHEAD, capacity, overhead
from karpenter_linode.linode.plan_filter import STANDARD, PlanFilter, hourly_price, refuse_plan
from karpenter_linode.model import labels
from karpenter_linode.model.instance_type import DynamicResources, InstanceType, Offering
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.model.karpenter import LinodeNodeClass
    from karpenter_linode.model.linode import LinodeType, RegionAvailability
    from karpenter_linode.model.reason import Reason

ARCHITECTURE: Final = "amd64"
OPERATING_SYSTEM: Final = "linux"
_NO_DEVICES: Final = DynamicResources()
_ADA: Final = re.compile(r"rtx4000a[0-9]+")
_GPU_SEGMENT: Final = 2  # third dash-separated part of a GPU plan's id


class InstanceTypeOptions(Struct, frozen=True):
    """Settings of the cluster that shape its instance types.

    Args:
        tier: LKE tier, ``standard`` or ``enterprise``.
        vm_memory_overhead: share of the memory that the machine itself takes (``VM_MEMORY_OVERHEAD_PERCENT``).
        plans: what is offered beyond or below the built-in rules.
        accelerator_resource: extended resource that counts accelerated devices (NETINT), empty for none.
    """

    tier: str = STANDARD
    vm_memory_overhead: Fraction = VM_MEMORY_OVERHEAD
    plans: PlanFilter = PlanFilter()
    accelerator_resource: str = ""


DEFAULT_OPTIONS: Final = InstanceTypeOptions()


def build_instance_types(
    types: Iterable[LinodeType],
    availability: Iterable[RegionAvailability],
    region: str,
    *,
    node_class: LinodeNodeClass | None = None,
    ignore_dra_requests: bool = True,
    unavailable: frozenset[str] = frozenset(),
    options: InstanceTypeOptions = DEFAULT_OPTIONS,
) -> tuple[InstanceType, ...]:
    """Every plan that can back a node, ordered by name, those without an available offering included.

    Args:
        types: the plans of the API or ``tables.bundled_types()``.
        availability: rows of the availability list. A plan that isn't listed is available; of several rows for a plan
            one that says available wins.
        region: the cluster's region.
        node_class: its kubelet settings shape the estimate of what a node has.
        ignore_dra_requests: True counts GPUs as ``nvidia.com/gpu``; False predicts DRA devices instead, since the
            device plugin must not own the same GPUs.
        unavailable: plan ids that could not be bought a moment ago.
        options: settings of the cluster.

    Raises:
        QuantityError: a reservation or threshold of the NodeClass is no quantity.
    """
    sold_out = unavailable_plans(availability, region) | unavailable
    built = [
        _instance_type(plan, region, node_class, ignore_dra_requests, plan.id not in sold_out, options)
        for plan in types
        if refuse_plan(plan, region, options.tier, options.plans) is None
    ]
    return tuple(sorted(built, key=lambda item: item.name))


def refused_plans(
    types: Iterable[LinodeType],
    region: str,
    options: InstanceTypeOptions = DEFAULT_OPTIONS,
) -> tuple[Reason, ...]:
    """Why each plan that ``build_instance_types`` leaves out can't back a node, in the order of the plans."""
    reasons = (refuse_plan(plan, region, options.tier, options.plans) for plan in types)
    return tuple(reason for reason in reasons if reason is not None)


def unavailable_plans(availability: Iterable[RegionAvailability], region: str) -> frozenset[str]:
    """Plans that the availability list rules out in a region."""
    rows = [row for row in availability if row.region == region]
    return frozenset(row.plan for row in rows) - frozenset(row.plan for row in rows if row.available)


def _instance_type(
    plan: LinodeType,
    region: str,
    node_class: LinodeNodeClass | None,
    ignore_dra_requests: bool,  # noqa: FBT001 - private, and named as the option it carries
    available: bool,  # noqa: FBT001 - as above
    options: InstanceTypeOptions,
) -> InstanceType:
    kubelet = (node_class.spec.kubelet if node_class is not None else None) or NO_KUBELET
    resources = capacity(
        plan,
        kubelet,
        vm_memory_overhead=options.vm_memory_overhead,
        device_plugin_gpus=ignore_dra_requests,
    )
    if options.accelerator_resource and plan.accelerated_devices > 0:
        resources[options.accelerator_resource] = Quantity.of(plan.accelerated_devices)
    return InstanceType(
        name=plan.id,
        requirements=_requirements(plan, region),
        capacity=resources,
        overhead=overhead(plan, resources["memory"], kubelet),
        offerings=(_offering(plan, region, available=available),),
        dynamic_resources=_NO_DEVICES if ignore_dra_requests else predict(plan.id, plan.gpus),
    )


def _offering(plan: LinodeType, region: str, *, available: bool) -> Offering:
    price = hourly_price(plan, region)
    if price is None:
        msg = f"plan {plan.id} has no hourly price in region {region} and should have been filtered out"
        raise ValueError(msg)
    where = {
        labels.REGION: region,
        labels.ZONE: region,
        labels.CAPACITY_TYPE: labels.CAPACITY_ON_DEMAND,
    }
    return Offering(tuple(_in(key, value) for key, value in where.items()), price, available=available)


def _requirements(plan: LinodeType, region: str) -> tuple[NodeSelectorRequirement, ...]:
    gpu_name = _gpu_name(plan.id)
    values: dict[str, str | None] = {
        labels.INSTANCE_TYPE: plan.id,
        labels.REGION: region,
        labels.ZONE: region,
        labels.LINODE_TOPOLOGY_REGION: region,
        labels.ARCH: ARCHITECTURE,
        labels.OS: OPERATING_SYSTEM,
        labels.CAPACITY_TYPE: labels.CAPACITY_ON_DEMAND,
        labels.LINODE_INSTANCE_CPU: str(plan.vcpus),
        labels.LINODE_INSTANCE_MEMORY: str(plan.memory),
        labels.LINODE_INSTANCE_DISK: str(plan.disk),
        labels.LINODE_INSTANCE_TRANSFER: str(plan.transfer),
        labels.LINODE_INSTANCE_NETWORK_OUT: str(plan.network_out),
        labels.LINODE_INSTANCE_CLASS: plan.class_,
        labels.LINODE_INSTANCE_GPU_COUNT: str(plan.gpus),
        labels.LINODE_INSTANCE_ACCELERATED_DEVICES: str(plan.accelerated_devices),
        labels.LINODE_INSTANCE_GENERATION: _generation(plan.id),
        labels.LINODE_INSTANCE_GPU_NAME: gpu_name,
        labels.LINODE_INSTANCE_GPU_MODEL: _gpu_model(plan.id, gpu_name),
        labels.WINDOWS_BUILD: None,
    }
    return tuple(_in(key, value) if value else _absent(key) for key, value in values.items())


def _in(key: str, value: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key, "In", (value,))


def _absent(key: str) -> NodeSelectorRequirement:
    # A well-known label that a plan doesn't carry must be ruled out, or a pod that asks for it would fit any plan.
    return NodeSelectorRequirement(key, "DoesNotExist")


def _generation(plan_id: str) -> str | None:
    head, dash, _ = plan_id.partition("-")
    return head.removeprefix("g") if dash else None


def _gpu_name(plan_id: str) -> str | None:
    segments = plan_id.split("-")
    return segments[_GPU_SEGMENT] if len(segments) > _GPU_SEGMENT and segments[1] == "gpu" else None


def _gpu_model(plan_id: str, gpu_name: str | None) -> str | None:
    """The GPU without the card count that ``rtx4000a2`` carries."""
    if gpu_name is None:
        return None
    if _ADA.fullmatch(gpu_name):
        return "rtx4000-ada"
    return f"{gpu_name}-blackwell" if "-blackwell-" in plan_id else gpu_name
