"""Extended resources served by devices (spec/user-cases.md U09)."""

from __future__ import annotations

from typing import Any

from karpenter_linode.dra.extended import extended_resources, implicit_claim
from karpenter_linode.model import codec
from karpenter_linode.model.core import Pod
from karpenter_linode.model.resource import DeviceClass


def named(name: str, resource: str = "", created: str = "2026-01-01T00:00:00Z") -> DeviceClass:
    spec = {"extendedResourceName": resource} if resource else {}
    return codec.convert({"metadata": {"name": name, "creationTimestamp": created}, "spec": spec}, DeviceClass)


def pod(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> Pod:
    def of(index: int, limits: dict[str, Any]) -> dict[str, Any]:
        return {"name": f"c{index}", "resources": {"limits": limits}}

    plain = {
        "metadata": {"name": "job", "namespace": "ns", "uid": "u"},
        "spec": {
            "containers": [of(index, limits) for index, limits in enumerate(containers)],
            "initContainers": [of(index, limits) for index, limits in enumerate(init)],
        },
    }
    return codec.convert(plain, Pod)


def test_resources_by_name_and_by_class() -> None:
    found = extended_resources([named("gpu.nvidia.com", "nvidia.com/gpu"), named("net")])
    assert found == {
        "nvidia.com/gpu": "gpu.nvidia.com",
        "deviceclass.resource.kubernetes.io/gpu.nvidia.com": "gpu.nvidia.com",
        "deviceclass.resource.kubernetes.io/net": "net",
    }


def test_the_youngest_class_of_a_name_wins_then_the_first_by_name() -> None:
    young = named("z", "nvidia.com/gpu", "2026-02-01T00:00:00Z")
    assert extended_resources([named("a", "nvidia.com/gpu"), young])["nvidia.com/gpu"] == "z"
    assert extended_resources([named("b", "nvidia.com/gpu"), named("a", "nvidia.com/gpu")])["nvidia.com/gpu"] == "a"


def test_every_container_gets_requests_of_its_own() -> None:
    resources = extended_resources([named("gpu", "nvidia.com/gpu")])
    implicit = "deviceclass.resource.kubernetes.io/gpu"
    made = implicit_claim(
        pod({"nvidia.com/gpu": "2", "cpu": "1"}, {implicit: 1}, init=({"nvidia.com/gpu": 1},)), resources
    )
    assert made is not None
    assert made.key == "ns/job-extended-resources"
    assert made.metadata.annotations == {"resource.kubernetes.io/extended-resource-claim": "true"}
    found = [(item.name, item.exactly.count) for item in made.spec.devices.requests if item.exactly]
    assert found == [("container-0-request-0", 1), ("container-1-request-0", 2), ("container-2-request-0", 1)]


def test_pods_without_such_a_resource_need_no_claim() -> None:
    assert implicit_claim(pod({"nvidia.com/gpu": "1"}), extended_resources([named("gpu")])) is None
    assert implicit_claim(pod({"cpu": "1"}, {"nvidia.com/gpu": "0"}), {"nvidia.com/gpu": "gpu"}) is None


def test_the_claim_buys_a_predicted_gpu(b: Any) -> None:
    classes = (named("gpu", "nvidia.com/gpu"),)
    made = implicit_claim(pod({"nvidia.com/gpu": "1"}), extended_resources(classes))
    found = b.allocator(classes=classes).allocate(b.new_node(b.gpu_plan()), [made])
    assert b.names_of(found, "g2-gpu-rtx4000a1-s") == ["gpu-0"]
