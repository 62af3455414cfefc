"""Instance types and offerings: what a cloud provider can build (spec/karpenter-scheduling.md 5.2)."""

from __future__ import annotations

from msgspec import Struct, field

from karpenter_linode.model.core import ResourceList
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
from karpenter_linode.model.resource import AttributeBinding, ResourceSliceTemplate


class Overhead(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What the system keeps from pods; allocatable is capacity less the sum of the three."""

    kube_reserved: ResourceList = field(default_factory=dict)
    system_reserved: ResourceList = field(default_factory=dict)
    eviction_threshold: ResourceList = field(default_factory=dict)


class Offering(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A way to buy an instance type.

    Args:
        requirements: where and how (zone, region, capacity type).
        price: nano-dollars per hour; integers, so that sums and comparisons are exact.
        available: whether the provider believes it can be bought now.
        reservation_capacity: instances left in the reservation, for capacity type ``reserved``.
        capacity_override: resources of which a node bought so has another amount than the type says.
        overhead_override: what the system keeps on a node bought so; replaces the total of the type, by resource.
    """

    requirements: tuple[NodeSelectorRequirement, ...]
    price: int
    available: bool = True
    reservation_capacity: int = 0
    capacity_override: ResourceList = field(default_factory=dict)
    overhead_override: Overhead | None = None


class DynamicResources(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Devices that drivers will publish on a node of this type."""

    slice_templates: tuple[ResourceSliceTemplate, ...] = ()
    attribute_bindings: tuple[AttributeBinding, ...] = ()


class InstanceType(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A plan, as Karpenter sees it. Its requirements define every well-known label that applies to it."""

    name: str
    requirements: tuple[NodeSelectorRequirement, ...] = ()
    capacity: ResourceList = field(default_factory=dict)
    overhead: Overhead = field(default_factory=Overhead)
    offerings: tuple[Offering, ...] = ()
    dynamic_resources: DynamicResources = field(default_factory=DynamicResources)


NANO_DOLLARS = 1_000_000_000
