"""What must not buy a node, and what may (gpu-scheduling-with-dra.md, Limits)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.dra import Allocation
from karpenter_linode.model.reason import Reason

A = "device.attributes['gpu.nvidia.com']"
STANDARD = "device.attributes['resource.kubernetes.io']"
GPU = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
MIG = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"


def refused(b: Any, item: Any, *classes: Any) -> Reason:
    found = b.allocator(classes=(b.device_class("gpu", GPU), *classes)).allocate(
        b.new_node(b.gpu_plan()), [item], explain=True
    )
    assert isinstance(found, Reason), found
    assert found.message == "no instance type can satisfy the allocation"
    return found


def published(b: Any, item: Any, **fields: Any) -> Any:
    attributes = {"uuid": "GPU-1", "productName": "x", "resource.kubernetes.io/pcieRoot": "pci0000:00"}
    device = b.device("gpu-0", driver_attributes=attributes, **fields)
    return b.allocator(b.slice_of([device], node="n1")).allocate(b.node(), [item])


def test_administrative_access(b: Any) -> None:
    item = b.claim("c", b.exactly(adminAccess=True))
    text = b.tree(refused(b, item))
    assert (
        "predicted devices cannot promise administrative access (spec.devices.requests[0].exactly.adminAccess)" in text
    )
    assert isinstance(published(b, item), Allocation)


def test_all_with_administrative_access(b: Any) -> None:
    text = b.tree(refused(b, b.claim("c", b.exactly(adminAccess=True, allocationMode="All"))))
    assert "predicted devices cannot promise administrative access" in text


def test_device_taints(b: Any) -> None:
    item = b.claim("c", b.exactly(tolerations=[{"key": "gpu.nvidia.com/xid", "operator": "Exists"}]))
    assert "cannot promise device taints (spec.devices.requests[0].exactly.tolerations)" in b.tree(refused(b, item))
    assert isinstance(published(b, item, taints=[{"key": "gpu.nvidia.com/xid", "effect": "NoSchedule"}]), Allocation)


@pytest.mark.parametrize(
    ("name", "feature"),
    [
        ("mig.nvidia.com", "MIG"),
        ("vfio.gpu.nvidia.com", "VFIO"),
        ("compute-domain-default-channel.nvidia.com", "ComputeDomains"),
    ],
)
def test_classes_of_other_features(b: Any, name: str, feature: str) -> None:
    item = b.claim("c", b.exactly(device_class=name))
    text = b.tree(refused(b, item, b.device_class(name, MIG)))
    assert f"cannot promise {feature} (spec.devices.requests[0].exactly.deviceClassName: {name})" in text


@pytest.mark.parametrize(
    ("parameters", "feature", "field"),
    [
        ({"kind": "GpuConfig", "sharing": {"strategy": "TimeSlicing"}}, "GPU sharing and time slicing", "sharing"),
        ({"kind": "MigDeviceConfig"}, "MIG", "kind"),
        ({"kind": "VfioDeviceConfig"}, "VFIO", "kind"),
        ({"kind": "ComputeDomainChannelConfig"}, "ComputeDomains", "kind"),
    ],
)
def test_configuration_of_other_features(b: Any, parameters: dict[str, Any], feature: str, field: str) -> None:
    config = [{"opaque": {"driver": "gpu.nvidia.com", "parameters": parameters}}]
    item = b.claim("c", config=config)
    assert f"cannot promise {feature} (spec.devices.config[0].opaque.parameters.{field})" in b.tree(refused(b, item))
    assert isinstance(published(b, item), Allocation)


def test_configuration_of_other_requests_and_harmless_configuration_do_not_matter(b: Any) -> None:
    sharing = {"driver": "gpu.nvidia.com", "parameters": {"kind": "GpuConfig", "sharing": {}}}
    plain = {"driver": "gpu.nvidia.com", "parameters": {"kind": "GpuConfig"}}
    item = b.claim("c", config=[{"requests": ["other"], "opaque": sharing}, {"opaque": plain}])
    assert isinstance(b.allocator().allocate(b.new_node(b.gpu_plan()), [item]), Allocation)


@pytest.mark.parametrize(
    ("expression", "key", "feature"),
    [
        (f"{A}.uuid == 'GPU-1'", "uuid", "UUID"),
        (f"!has({A}.uuid)", "uuid", "UUID"),
        (f"!('uuid' in {A})", "uuid", "UUID"),
        (f"{A}.?uuid.orValue('') == ''", "uuid", "UUID"),
        (f"{STANDARD}.pciBusID == '0000:00:02.0'", "pciBusID", "PCI topology"),
        (f"!('pcieRoot' in {STANDARD})", "pcieRoot", "PCI topology"),
        (f"{STANDARD}.?numaNode.orValue(0) == 0", "numaNode", "NUMA topology"),
        (f"{A}.gpuModuleID == 1", "gpuModuleID", "fabric topology"),
        (f"!{A}.exists(name, name == 'uuid')", "addressingMode", "the addressing mode"),
        (f"{A}.all(name, name != 'uuid')", "addressingMode", "the addressing mode"),
        (f"{A}.size() == 5", "addressingMode", "the addressing mode"),
        (
            f"!('driverVersion' in {A}) || {A}.driverVersion.compareTo(semver('580.0.0')) >= 0",
            "driverVersion",
            "the version of the installed driver",
        ),
    ],
)
def test_attributes_of_a_running_device_even_behind_a_guard(b: Any, expression: str, key: str, feature: str) -> None:
    text = b.tree(refused(b, b.claim("c", b.exactly("r0", expression))))
    assert f"no such key: {key}" in text
    assert f"predicted devices cannot promise {feature}" in text


@pytest.mark.parametrize(
    "expression",
    [
        f"{A}.type == 'gpu' || {A}.uuid == 'GPU-1'",
        f"{A}.?productName.orValue('').contains('4000')",
        f"has({A}.architecture) && {A}.architecture == 'Ada Lovelace'",
        "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('16Gi')) >= 0",
    ],
)
def test_selectors_that_a_prediction_decides_buy_a_node(b: Any, expression: str) -> None:
    item = b.claim("c", b.exactly("r0", expression))
    assert isinstance(b.allocator().allocate(b.new_node(b.gpu_plan()), [item]), Allocation)


@pytest.mark.parametrize(
    ("attribute", "feature"),
    [
        ("resource.kubernetes.io/pcieRoot", "PCI topology"),
        ("resource.kubernetes.io/numaNode", "NUMA topology"),
        ("gpu.nvidia.com/uuid", "UUID"),
    ],
)
@pytest.mark.parametrize("kind", ["matchAttribute", "distinctAttribute"])
def test_constraints_on_attributes_of_a_running_device(b: Any, kind: str, attribute: str, feature: str) -> None:
    plan = b.gpu_plan("g2-gpu-rtx4000a2-s", 2)
    item = b.claim("c", b.exactly(count=2), constraints=[{kind: attribute}])
    text = b.tree(b.allocator().allocate(b.new_node(plan), [item], explain=True))
    assert f"{kind} {attribute}: no value on gpu-0, gpu-1; predicted devices cannot promise {feature}" in text


def test_constraints_and_alternatives_over_predicted_attributes_may_buy_a_node(b: Any) -> None:
    plan = b.gpu_plan("g2-gpu-rtx4000a2-s", 2)
    match = b.claim("c", b.exactly(count=2), constraints=[{"matchAttribute": "gpu.nvidia.com/productName"}])
    assert isinstance(b.allocator().allocate(b.new_node(plan), [match]), Allocation)
    distinct = b.claim("c", b.exactly(count=2), constraints=[{"distinctAttribute": "gpu.nvidia.com/productName"}])
    assert isinstance(b.allocator().allocate(b.new_node(plan), [distinct]), Reason)
    request = b.first_available(
        "gpu",
        blackwell=b.item(f"{A}.architecture == 'Blackwell'"),
        ada=b.item(f"{A}.architecture == 'Ada Lovelace'"),
    )
    found = b.allocator().allocate(b.new_node(plan), [b.claim("c", request)])
    assert [grant.request for _, grant in found.grants(plan.name)] == ["gpu/ada"]


def test_an_alternative_beyond_the_limits_is_passed_over(b: Any) -> None:
    request = b.first_available("gpu", mig=b.item(device_class="mig.nvidia.com"), whole=b.item())
    allocator = b.allocator(classes=(b.device_class(), b.device_class("mig.nvidia.com", MIG)))
    found = allocator.allocate(b.new_node(b.gpu_plan()), [b.claim("c", request)])
    assert [grant.request for _, grant in found.grants("g2-gpu-rtx4000a1-s")] == ["gpu/whole"]


def test_capacity_asked_of_a_whole_gpu_is_compared(b: Any) -> None:
    def asking(amount: str) -> Any:
        return b.claim("c", b.exactly(capacity={"requests": {"memory": amount}}))

    assert isinstance(b.allocator().allocate(b.new_node(b.gpu_plan()), [asking("16Gi")]), Allocation)
    text = b.tree(refused(b, asking("24Gi")))
    assert "memory 24Gi is more than its 20475Mi" in text


def test_sharing_is_seen_as_false_on_predicted_devices(b: Any) -> None:
    text = b.tree(refused(b, b.claim("c", b.exactly("r0", "device.allowMultipleAllocations"))))
    assert "device.allowMultipleAllocations is false" in text
