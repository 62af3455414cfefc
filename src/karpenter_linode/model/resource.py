"""``resource.k8s.io/v1``: devices, slices, classes and claims (spec/dra-allocation.md 1)."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import UNSET, Struct, UnsetType, field

from karpenter_linode.model.core import NodeSelector
from karpenter_linode.model.meta import KubeObject
from karpenter_linode.model.quantity import Quantity

MAX_DEVICES_PER_CLAIM = 32
EXACT_COUNT = "ExactCount"
ALL = "All"


class DeviceAttribute(Struct, frozen=True, omit_defaults=True, gc=False):
    """Exactly one member is set. ``int`` and its siblings carry the API's own member names."""

    int_: int | None = field(name="int", default=None)
    bool_: bool | None = field(name="bool", default=None)
    string: str | None = None
    version: str | None = None
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRequestPolicyRange(Struct, frozen=True, omit_defaults=True, gc=False):
    """Amounts a request may take: ``min + n * step``, up to ``max``."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How shares of a capacity are rounded."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A capacity of one device."""

    value: Quantity
    request_policy: CapacityRequestPolicy | None = None


class Counter(Struct, frozen=True, omit_defaults=True, gc=False):
    """An amount of a counter."""

    value: Quantity


class CounterSet(Struct, frozen=True, omit_defaults=True):
    """Budgets that several devices draw from."""

    name: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceCounterConsumption(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a device draws from one counter set."""

    counter_set: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceTaint(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A device taint; effect ``None``, ``NoSchedule`` or ``NoExecute``."""

    key: str = ""
    value: str = ""
    effect: str = ""


class DeviceToleration(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Tolerates device taints; empty operator means ``Equal``, empty effect every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class Device(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A device, published or predicted. Keys without a domain belong to the driver's domain."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    allow_multiple_allocations: bool = False
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()


class ResourcePool(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Which pool a slice belongs to, and how many slices that pool has in this generation."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Devices of one pool and the nodes that reach them."""

    driver: str = ""
    pool: ResourcePool = field(default_factory=ResourcePool)
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A ResourceSlice."""

    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"
    KIND: ClassVar[str] = "ResourceSlice"
    PLURAL: ClassVar[str] = "resourceslices"
    NAMESPACED: ClassVar[bool] = False

    spec: ResourceSliceSpec = field(default_factory=ResourceSliceSpec)


class CELDeviceSelector(Struct, frozen=True, omit_defaults=True, gc=False):
    """A CEL expression over ``device``."""

    expression: str = ""


class DeviceSelector(Struct, frozen=True, omit_defaults=True):
    """A selector; only the CEL form exists."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(Struct, frozen=True, omit_defaults=True):
    """Parameters for a driver; their meaning is the driver's own."""

    driver: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)


class DeviceConfiguration(Struct, frozen=True, omit_defaults=True):
    """Configuration for the devices of some requests (empty: of every request)."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which devices a class holds, and how they are configured."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A DeviceClass."""

    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"
    KIND: ClassVar[str] = "DeviceClass"
    PLURAL: ClassVar[str] = "deviceclasses"
    NAMESPACED: ClassVar[bool] = False

    spec: DeviceClassSpec = field(default_factory=DeviceClassSpec)


class CapacityRequirements(Struct, frozen=True, omit_defaults=True):
    """Capacity asked of each device."""

    requests: dict[str, Quantity] = field(default_factory=dict)


class ExactDeviceRequest(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Devices of one class. ``count`` 0 with an empty mode is the undefaulted form: mode ExactCount, count 1."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One alternative of a ``firstAvailable`` request."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A request: exactly one of ``exactly`` and ``first_available``."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A rule over all devices of the named requests (empty: of every request)."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Requests, the constraints between them, and configuration for the drivers."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class ResourceClaimSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a claim asks for."""

    devices: DeviceClaim = field(default_factory=DeviceClaim)


class DeviceRequestAllocationResult(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One allocated device. ``request`` is ``main`` or ``main/sub``."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str | None = field(name="shareID", default=None)
    consumed_capacity: dict[str, Quantity] | UnsetType = UNSET
    tolerations: tuple[DeviceToleration, ...] = ()


class DeviceAllocationResult(Struct, frozen=True, omit_defaults=True):
    """All devices of a claim."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()


class AllocationResult(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a claim was given; no ``node_selector`` means usable from every node."""

    devices: DeviceAllocationResult = field(default_factory=DeviceAllocationResult)
    node_selector: NodeSelector | None = None


class ResourceClaimConsumerReference(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Who uses a claim; a pod is ``resource`` "pods" with an empty group."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Allocation and consumers of a claim."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()


class ResourceClaim(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A ResourceClaim."""

    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"
    KIND: ClassVar[str] = "ResourceClaim"
    PLURAL: ClassVar[str] = "resourceclaims"

    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = field(default_factory=ResourceClaimStatus)


class ResourceClaimTemplateMeta(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Labels and annotations copied to claims."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class ResourceClaimTemplateSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The claim to make."""

    metadata: ResourceClaimTemplateMeta = field(default_factory=ResourceClaimTemplateMeta)
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A ResourceClaimTemplate."""

    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"
    KIND: ClassVar[str] = "ResourceClaimTemplate"
    PLURAL: ClassVar[str] = "resourceclaimtemplates"

    spec: ResourceClaimTemplateSpec = field(default_factory=ResourceClaimTemplateSpec)


class ResourceSliceTemplate(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Devices that a driver will publish once a node of a plan is up (spec/dra-allocation.md 2); always node-local."""

    driver: str = ""
    pool: str = ""
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class DeviceID(Struct, frozen=True, order=True, omit_defaults=True, gc=False):
    """Identity of a device. A predicted and a published device with equal names are different devices."""

    driver: str
    pool: str
    device: str
    template: bool = False

    def __str__(self) -> str:
        text = f"{self.driver}/{self.pool}/{self.device}"
        return f"virtual/{text}" if self.template else text


class AttributeBinding(Struct, frozen=True, omit_defaults=True):
    """Devices that will share an attribute whose value is unknown before launch."""

    devices: tuple[DeviceID, ...] = ()
    attribute: str = ""
