"""What a predicted device cannot promise (gpu-scheduling-with-dra.md, Limits).

A claim that relies on such a feature must not buy a node. Published devices are not concerned: there everything that
Kubernetes supports is evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from karpenter_linode.model import labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from karpenter_linode.model.resource import DeviceConfiguration, DeviceSubRequest, ExactDeviceRequest

_STANDARD_DOMAIN: Final = "resource.kubernetes.io"
SHARING: Final = "GPU sharing and time slicing"

# Attributes that the NVIDIA driver publishes and nobody knows before the node runs (spec/nvidia-dra.md 1.2 and 1.10).
FEATURE_OF_ATTRIBUTE: Final[dict[str, dict[str, str]]] = {
    labels.NVIDIA_DRIVER: {
        "uuid": "UUID",
        "parentUUID": "MIG",
        "profile": "MIG",
        "driverVersion": "the version of the installed driver",
        "cudaDriverVersion": "the version of the installed driver",
        "addressingMode": "the addressing mode",
        "gpuModuleID": "fabric topology",
        "partition1": "fabric topology",
        "partition2": "fabric topology",
        "partition4": "fabric topology",
        "partition8": "fabric topology",
        "pcieBusID": "PCI topology",
        "numa": "NUMA topology",
    },
    _STANDARD_DOMAIN: {
        "pciBusID": "PCI topology",
        "pcieRoot": "PCI topology",
        "numaNode": "NUMA topology",
    },
}
# Published on every whole GPU, so that a prediction without them says nothing about the real device.
_ALWAYS_PUBLISHED: Final = frozenset(
    {
        "uuid",
        "productName",
        "brand",
        "architecture",
        "cudaComputeCapability",
        "driverVersion",
        "cudaDriverVersion",
    }
)
_SOMETIMES_PUBLISHED: Final = frozenset(
    {"addressingMode", "gpuModuleID", "partition1", "partition2", "partition4", "partition8"}
)
UNKNOWN_OF_NVIDIA: Final[Mapping[str, frozenset[str]]] = {
    labels.NVIDIA_DRIVER: _ALWAYS_PUBLISHED | _SOMETIMES_PUBLISHED,
    _STANDARD_DOMAIN: frozenset(FEATURE_OF_ATTRIBUTE[_STANDARD_DOMAIN]),
}
_NOTHING_UNKNOWN: Final[Mapping[str, frozenset[str]]] = {}
FEATURE_OF_CLASS: Final = {
    "mig.nvidia.com": "MIG",
    "vfio.gpu.nvidia.com": "VFIO",
    "compute-domain-daemon.nvidia.com": "ComputeDomains",
    "compute-domain-default-channel.nvidia.com": "ComputeDomains",
}
_FEATURE_OF_CONFIG: Final = {
    "MigDeviceConfig": "MIG",
    "VfioDeviceConfig": "VFIO",
    "ComputeDomainChannelConfig": "ComputeDomains",
    "ComputeDomainDaemonConfig": "ComputeDomains",
}


class Limit(Struct, frozen=True):
    """A feature that a predicted device cannot promise, and the field of the claim that asks for it."""

    feature: str
    field: str

    def __str__(self) -> str:
        return f"{self.feature} ({self.field})"


def unknown_attributes(driver: str) -> Mapping[str, frozenset[str]]:
    """Attributes that a driver will publish for a predicted device although no prediction holds them, by domain."""
    return UNKNOWN_OF_NVIDIA if driver == labels.NVIDIA_DRIVER else _NOTHING_UNKNOWN


def request_limits(path: str, item: ExactDeviceRequest | DeviceSubRequest) -> Iterator[Limit]:
    """What one request or alternative relies on beyond any prediction."""
    if getattr(item, "admin_access", None):
        yield Limit("administrative access", f"{path}.adminAccess")
    if item.tolerations:
        yield Limit("device taints", f"{path}.tolerations")
    feature = FEATURE_OF_CLASS.get(item.device_class_name)
    if feature:
        yield Limit(feature, f"{path}.deviceClassName: {item.device_class_name}")


def config_limits(where: str, configs: tuple[DeviceConfiguration, ...], request: str, label: str) -> Iterator[Limit]:
    """What the configuration of a request relies on beyond any prediction; ``where`` starts the field path."""
    for index, config in enumerate(configs):
        if config.opaque is None or (config.requests and not {request, label} & set(config.requests)):
            continue
        parameters: dict[str, Any] = config.opaque.parameters
        path = f"{where}[{index}].opaque.parameters"
        feature = _FEATURE_OF_CONFIG.get(str(parameters.get("kind")))
        if feature:
            yield Limit(feature, f"{path}.kind")
        elif "sharing" in parameters:
            yield Limit(SHARING, f"{path}.sharing")


def feature_of_attribute(name: str) -> str | None:
    """The feature behind an attribute that cannot be predicted, by full or bare name."""
    for domain, names in FEATURE_OF_ATTRIBUTE.items():
        for bare, feature in names.items():
            if name in {bare, f"{domain}/{bare}"}:
                return feature
    return None
