"""Builders of small clusters, as fixtures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from karpenter_linode.catalog import predict
from karpenter_linode.dra import Allocation, Allocator, Target
from karpenter_linode.model import codec
from karpenter_linode.model.instance_type import DynamicResources, InstanceType
from karpenter_linode.model.requirements import Requirements
from karpenter_linode.model.resource import (
    AttributeBinding,
    CounterSet,
    Device,
    DeviceClass,
    DeviceID,
    ResourceClaim,
    ResourceSlice,
    ResourceSliceTemplate,
)

if TYPE_CHECKING:
    from karpenter_linode.model.reason import Reason

DRIVER = "gpu.nvidia.com"


def device(name: str, *, driver_attributes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A device as API data; attributes by bare Python values."""
    attributes = {"type": "gpu", **(driver_attributes or {})}
    return {"name": name, "attributes": {key: attribute(value) for key, value in attributes.items()}, **fields}


def attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    return {{bool: "bool", int: "int", str: "string"}[type(value)]: value}


def slice_of(
    devices: list[dict[str, Any]],
    *,
    node: str = "",
    pool: str = "",
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
    owner: str = "",
    name: str = "s",
    **where: Any,
) -> ResourceSlice:
    spec: dict[str, Any] = {
        "driver": driver,
        "pool": {"name": pool or node or "pool", "generation": generation, "resourceSliceCount": count},
        "devices": devices,
        **where,
    }
    if node:
        spec["nodeName"] = node
    owners = [{"apiVersion": "v1", "kind": "Node", "name": owner}] if owner else []
    return codec.convert({"metadata": {"name": name, "ownerReferences": owners}, "spec": spec}, ResourceSlice)


def device_class(name: str = "gpu", *expressions: str) -> DeviceClass:
    selectors = [{"cel": {"expression": text}} for text in expressions]
    return codec.convert({"metadata": {"name": name}, "spec": {"selectors": selectors}}, DeviceClass)


def exactly(name: str = "r0", *expressions: str, device_class: str = "gpu", **fields: Any) -> dict[str, Any]:
    return {"name": name, "exactly": item(*expressions, device_class=device_class, **fields)}


def item(*expressions: str, device_class: str = "gpu", **fields: Any) -> dict[str, Any]:
    """The fields of a request; ``count`` 1 unless the mode is All."""
    selectors = [{"cel": {"expression": text}} for text in expressions]
    found = {"deviceClassName": device_class, "allocationMode": "ExactCount", "selectors": selectors, **fields}
    if found["allocationMode"] == "ExactCount":
        found.setdefault("count", 1)
    return found


def first_available(name: str = "r0", **alternatives: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "firstAvailable": [{"name": sub, **fields} for sub, fields in alternatives.items()]}


def claim(
    name: str,
    *requests: dict[str, Any],
    constraints: list[dict[str, Any]] | None = None,
    namespace: str = "ns",
    status: dict[str, Any] | None = None,
    config: list[dict[str, Any]] | None = None,
) -> ResourceClaim:
    """A claim; one device of class gpu unless requests are given."""
    devices = {"requests": list(requests) or [exactly()], "constraints": constraints or [], "config": config or []}
    plain = {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"},
        "spec": {"devices": devices},
        "status": status or {},
    }
    return codec.convert(plain, ResourceClaim)


def allocated(*results: str, pods: tuple[str, ...] = (), selector: Any = None, **fields: Any) -> dict[str, Any]:
    """A claim's status: devices as ``driver/pool/device``, reserved for pods."""
    found = [
        {"request": "r0", "driver": driver, "pool": pool, "device": name, **fields}
        for driver, pool, name in (text.split("/") for text in results)
    ]
    return {
        "allocation": {"devices": {"results": found}, "nodeSelector": selector},
        "reservedFor": [{"resource": "pods", "name": pod, "uid": pod} for pod in pods],
    }


def template(
    devices: list[dict[str, Any]], *, driver: str = "acme.io", pool: str = "predicted", counters: Any = ()
) -> ResourceSliceTemplate:
    return ResourceSliceTemplate(
        driver,
        pool,
        codec.convert(devices, tuple[Device, ...]),
        codec.convert(list(counters), tuple[CounterSet, ...]),
    )


def plan(name: str, *templates: ResourceSliceTemplate, bindings: tuple[AttributeBinding, ...] = ()) -> InstanceType:
    return InstanceType(name, dynamic_resources=DynamicResources(templates, bindings))


def gpu_plan(name: str = "g2-gpu-rtx4000a1-s", gpus: int = 1) -> InstanceType:
    return InstanceType(name, dynamic_resources=predict(name, gpus))


def binding(attribute: str, *devices: str, driver: str = "acme.io", pool: str = "predicted") -> AttributeBinding:
    return AttributeBinding(tuple(DeviceID(driver, pool, name) for name in devices), attribute)


def new_node(*types: InstanceType, id: str = "new-1", labels: dict[str, str] | None = None) -> Target:  # noqa: A002
    return Target(id, "pool", Requirements.from_labels(labels or {}), types)


def node(
    name: str = "n1", labels: dict[str, str] | None = None, *types: InstanceType, initialized: bool = True
) -> Target:
    requirements = Requirements.from_labels({"kubernetes.io/hostname": name, **(labels or {})})
    return Target(f"linode://{name}", "pool", requirements, types, name, use_templates=not initialized)


def allocator(*slices: ResourceSlice, classes: tuple[DeviceClass, ...] = (), **fields: Any) -> Allocator:
    fields.setdefault("initialized_nodes", frozenset({"n1", "n2", "n3"}))
    return Allocator(slices=slices, classes=classes or (device_class(),), **fields)


def devices_of(found: Allocation | Reason, instance_type: str = "") -> list[str]:
    """``request=device`` of every grant, in order."""
    assert isinstance(found, Allocation), found
    return [f"{grant.request}={grant.id}" for _, grant in found.grants(instance_type)]


def names_of(found: Allocation | Reason, instance_type: str = "") -> list[str]:
    """Bare device names, in order."""
    assert isinstance(found, Allocation), found
    return [grant.id.device for _, grant in found.grants(instance_type)]


def tree(reason: Any, depth: int = 0) -> str:
    lines = [f"{'  ' * depth}{reason.subject}: {reason.message}"]
    return "\n".join([*lines, *(tree(child, depth + 1) for child in reason.children)])


@pytest.fixture(scope="session")
def b() -> SimpleNamespace:
    """All builders."""
    found = {name: value for name, value in globals().items() if callable(value) and not name.startswith("_")}
    return SimpleNamespace(**found)
