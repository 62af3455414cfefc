"""Builders of small problems. Plans follow Karpenter's fake provider (spec/karpenter-scheduling.md 7)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from karpenter_linode.model import codec
from karpenter_linode.model.core import DaemonSet, Node, Pod
from karpenter_linode.model.instance_type import NANO_DOLLARS, InstanceType
from karpenter_linode.model.karpenter import NodeClaim, NodePool
from karpenter_linode.model.resource import DeviceClass, ResourceClaim
from karpenter_linode.scheduling import Problem, SchedulingOptions, Solution, StateNode, solve

ZONES = ("test-zone-1", "test-zone-2", "test-zone-3")
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
CAPACITY_TYPE, INSTANCE_TYPE = "karpenter.sh/capacity-type", "node.kubernetes.io/instance-type"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Make:
    """Everything that a test needs to build a problem and look at its solution."""

    def __init__(self) -> None:
        self._count = 0

    def pod(self, name: str = "", **given: Any) -> Pod:
        """A pending pod. ``requests`` and ``labels`` are short-hands; other arguments go to the spec, camel case."""
        self._count += 1
        name = name or f"pod-{self._count}"
        requests = given.pop("requests", None) or {}
        limits = given.pop("limits", None) or {}
        metadata = {
            "name": name,
            "namespace": given.pop("namespace", "default"),
            "uid": given.pop("uid", f"uid-{self._count:05}"),
            "labels": given.pop("labels", {}),
            "annotations": given.pop("annotations", {}),
            **given.pop("metadata", {}),
        }
        status = {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
            **given.pop("status", {}),
        }
        container = {"name": "app", "resources": {"requests": requests, "limits": limits}}
        spec = {"containers": [container], **given}
        return codec.convert({"metadata": metadata, "spec": spec, "status": status}, Pod)

    def running(self, node: str, name: str = "", **given: Any) -> Pod:
        """A pod bound to a node."""
        return self.pod(name, nodeName=node, status={"phase": "Running", "conditions": []}, **given)

    def pool(self, name: str = "default", **given: Any) -> NodePool:
        """A NodePool; ``requirements`` as triples, ``labels``, ``taints``, ``limits``, ``weight``, ``min_values``."""
        least = given.pop("min_values", None)
        template_spec = {
            "nodeClassRef": {"group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default"},
            "requirements": [
                *(requirement(*item) for item in given.pop("requirements", ())),
                *([{"key": least[0], "operator": "Exists", "minValues": least[1]}] if least else []),
            ],
            "taints": given.pop("taints", []),
            "startupTaints": given.pop("startup_taints", []),
        }
        metadata = {"labels": given.pop("labels", {}), "annotations": given.pop("annotations", {})}
        status = given.pop("status", {})
        return codec.convert(
            {
                "metadata": {"name": name, "uid": f"uid-{name}", **given.pop("metadata", {})},
                "spec": {"template": {"metadata": metadata, "spec": template_spec}, **given},
                "status": status,
            },
            NodePool,
        )

    def plan(self, name: str, **given: Any) -> InstanceType:
        """An instance type. ``price`` in dollars, ``devices`` is a count of GPUs, ``extra`` are more requirements."""
        capacity = {"cpu": "4", "memory": "4Gi", "pods": "5", **given.pop("capacity", {})}
        zones = given.pop("zones", ZONES)
        kinds = given.pop("capacity_types", ("spot", "on-demand"))
        price = given.pop("price", 1)
        requirements = [
            requirement(INSTANCE_TYPE, "In", name),
            requirement("kubernetes.io/arch", "In", *given.pop("arch", ("amd64",))),
            requirement("kubernetes.io/os", "In", "linux", "windows", "darwin"),
            requirement(ZONE, "In", *zones),
            requirement(CAPACITY_TYPE, "In", *kinds),
            *(requirement(*item) for item in given.pop("extra", ())),
        ]
        offerings = given.pop("offerings", None) or [
            {
                "price": round(price * NANO_DOLLARS),
                "requirements": [requirement(CAPACITY_TYPE, "In", kind), requirement(ZONE, "In", zone)],
            }
            for kind in kinds
            for zone in zones
        ]
        devices = [
            {"name": f"gpu-{index}", "attributes": {"type": {"string": "gpu"}, **given.get("attributes", {})}}
            for index in range(given.get("devices", 0))
        ]
        slices = [{"driver": "gpu.nvidia.com", "pool": name, "devices": devices}] if devices else []
        return codec.convert(
            {
                "name": name,
                "requirements": requirements,
                "capacity": capacity,
                "overhead": {"kubeReserved": given.pop("overhead", {"cpu": "100m", "memory": "10Mi"})},
                "offerings": offerings,
                "dynamicResources": {"sliceTemplates": slices},
            },
            InstanceType,
        )

    def fake_plans(self) -> tuple[InstanceType, ...]:
        """Karpenter's default fake instance types."""
        vendor = "fake.com/vendor-a"
        return (
            self.plan("default-instance-type", price=0.8),
            self.plan("small-instance-type", price=0.4, capacity={"cpu": "2", "memory": "2Gi"}),
            self.plan("gpu-vendor-instance-type", price=0.9, capacity={vendor: "2"}),
            self.plan("arm-instance-type", price=14, capacity={"cpu": "16", "memory": "128Gi"}, arch=("arm64",)),
            self.plan("single-pod-instance-type", price=0.8, capacity={"pods": "1"}),
        )

    def sized_plans(self, *sizes: int) -> tuple[InstanceType, ...]:
        """Plans with so many CPUs, twice the memory in Gi, ten pods per CPU, at a price that grows with them."""
        return tuple(
            self.plan(
                f"it-{size}",
                price=size / 10,
                capacity={"cpu": str(size), "memory": f"{2 * size}Gi", "pods": str(10 * size)},
            )
            for size in sizes
        )

    def node(self, name: str, **given: Any) -> StateNode:
        """A node. ``managed`` adds a NodeClaim; ``initialized`` and ``registered`` set the labels."""
        labels = {
            HOSTNAME: name,
            ZONE: "test-zone-1",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            **given.pop("labels", {}),
        }
        managed = given.pop("managed", True)
        pool = given.pop("pool", "default")
        if managed:
            labels["karpenter.sh/nodepool"] = pool
            for state in ("registered", "initialized"):
                if given.pop(state, True):
                    labels[f"karpenter.sh/{state}"] = "true"
        allocatable = {"cpu": "4", "memory": "4Gi", "pods": "5", **given.pop("allocatable", {})}
        plain = {
            "metadata": {"name": name, "uid": name, "labels": labels},
            "spec": {"taints": given.pop("taints", []), "providerID": f"fake://{name}"},
            "status": {"allocatable": allocatable, "capacity": allocatable},
        }
        claim = {
            "metadata": {"name": f"claim-of-{name}", "labels": {"karpenter.sh/nodepool": pool}},
            "spec": {"taints": given.pop("claim_taints", []), "startupTaints": given.pop("startup_taints", [])},
            "status": {"allocatable": allocatable, "capacity": allocatable},
        }
        return StateNode(
            codec.convert(plain, Node) if given.pop("with_node", True) else None,
            codec.convert(claim, NodeClaim) if managed else None,
            marked_for_deletion=given.pop("marked_for_deletion", False),
        )

    def daemon_set(self, name: str, **given: Any) -> DaemonSet:
        """A DaemonSet whose pod has these requests; other arguments go to the pod's spec."""
        requests = given.pop("requests", {})
        ports = given.pop("ports", [])
        container = {"name": "daemon", "resources": {"requests": requests}, "ports": ports}
        spec = {"containers": [container], **given}
        return codec.convert(
            {
                "metadata": {"name": name, "namespace": "kube-system", "uid": f"uid-{name}"},
                "spec": {"selector": {"matchLabels": {"name": name}}, "template": {"spec": spec}},
            },
            DaemonSet,
        )

    def claim(self, name: str, count: int = 1, selector: str = "") -> ResourceClaim:
        """A claim for GPUs."""
        exactly: dict[str, Any] = {
            "deviceClassName": "gpu.nvidia.com",
            "allocationMode": "ExactCount",
            "count": count,
        }
        if selector:
            exactly["selectors"] = [{"cel": {"expression": selector}}]
        return codec.convert(
            {
                "metadata": {"name": name, "namespace": "default", "uid": name},
                "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
            },
            ResourceClaim,
        )

    def gpu_class(self) -> DeviceClass:
        """The class of whole GPUs."""
        expression = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
        return codec.convert(
            {
                "metadata": {"name": "gpu.nvidia.com"},
                "spec": {"selectors": [{"cel": {"expression": expression}}]},
            },
            DeviceClass,
        )

    def claim_pod(self, claim: str, name: str = "", **given: Any) -> Pod:
        """A pod that uses a claim by name."""
        return self.pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": claim}], **given)

    def problem(self, pods: Any, pools: Any = None, plans: Any = None, **given: Any) -> Problem:
        """A problem; every pool is offered the same plans."""
        pools = tuple(pools) if pools is not None else (self.pool(),)
        plans = tuple(plans) if plans is not None else self.fake_plans()
        options = SchedulingOptions(**given.pop("options", {}))
        return Problem(
            pods=tuple(pods),
            node_pools=pools,
            instance_types={pool.name: plans for pool in pools},
            options=options,
            now=given.pop("now", NOW),
            **{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()},
        )

    def solve(self, pods: Any, pools: Any = None, plans: Any = None, **given: Any) -> Solution:
        """Build a problem and solve it."""
        return solve(self.problem(pods, pools, plans, **given))


def requirement(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.fixture
def make() -> Make:
    """Builders."""
    return Make()
