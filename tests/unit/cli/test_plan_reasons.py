"""What ``plan`` tells about devices of nodes that exist: constraints, counters, pools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "n1",
        "labels": {
            "kubernetes.io/hostname": "n1",
            "karpenter.sh/nodepool": "gpu",
            "karpenter.sh/registered": "true",
            "karpenter.sh/initialized": "true",
        },
    },
    "spec": {"providerID": "linode://1"},
    "status": {
        "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {
        "tolerations": [{"operator": "Exists"}],
        "resourceClaims": [{"name": "g", "resourceClaimName": "c"}],
        "containers": [{"name": "a", "image": "x", "resources": {"claims": [{"name": "g"}]}}],
    },
}


def published(name: str, devices: list[dict[str, Any]], *, count: int = 1, **fields: Any) -> dict[str, Any]:
    pool = {"name": "n1", "generation": 4, "resourceSliceCount": count}
    contents = {"devices": devices} if devices else {}
    spec = {"driver": "gpu.nvidia.com", "nodeName": "n1", "pool": pool, **contents, **fields}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def gpu(name: str, rack: str = "r1", **fields: Any) -> dict[str, Any]:
    return {"name": name, "attributes": {"type": {"string": "gpu"}, "rack": {"string": rack}}, **fields}


def claim(constraint: str = "", selector: str = "") -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": "gpu.nvidia.com", "count": 2}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    devices: dict[str, Any] = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if constraint:
        devices["constraints"] = [{"matchAttribute": constraint}]
    metadata = {"name": "c"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": devices},
    }


def mig(name: str) -> dict[str, Any]:
    return gpu(name, consumesCounters=[{"counterSet": "cs", "counters": {"memory": {"value": "6Gi"}}}])


COUNTERS = {"sharedCounters": [{"name": "cs", "counters": {"memory": {"value": "10Gi"}}}]}
RACK = "device.attributes['gpu.nvidia.com'].rack == 'r9'"


@pytest.mark.parametrize(
    ("slices", "asked", "line"),
    [
        (
            [published("a", [gpu("gpu-0"), gpu("gpu-1", "r2")])],
            claim("gpu.nvidia.com/rack"),
            "constraint matchAttribute gpu.nvidia.com/rack: r1 on gpu-0; r2 on gpu-1",
        ),
        (
            [published("a", [], count=2, **COUNTERS), published("b", [mig("mig-0"), mig("mig-1")], count=2)],
            claim(),
            "pool gpu.nvidia.com/n1: counter cs/memory: 10Gi left; mig-0 needs 6Gi, mig-1 needs 6Gi",
        ),
        (
            [published("a", [gpu("gpu-0"), gpu("gpu-1")], count=3)],
            claim(),
            "pool gpu.nvidia.com/n1: currently being updated: generation 4 shows 1 of 3 slices",
        ),
        (
            [published("a", [gpu("gpu-0")], count=2), published("b", [gpu("gpu-1")], count=3)],
            claim(),
            "pool gpu.nvidia.com/n1: currently being updated: generation 4 is declared with 2 and 3 slices",
        ),
        (
            [published("a", [gpu("gpu-0")], count=2), published("b", [gpu("gpu-0")], count=2)],
            claim(),
            "resource pool gpu.nvidia.com/n1 is currently invalid (device gpu-0 is listed twice)",
        ),
        (
            [published("a", [gpu("gpu-0"), gpu("gpu-1")])],
            claim(selector=RACK),
            f'devices n1/gpu-0, n1/gpu-1: {RACK} is false: rack is "r1" (request gpu, selector 1)',
        ),
        ([published("a", [gpu("gpu-0"), gpu("gpu-1")])], claim(selector=RACK), 'hint: rack == "r1" would fit'),
    ],
)
def test_the_facts_about_devices_stand_in_the_text(
    command: Callable[..., Any], tmp_path: Path, slices: list[dict[str, Any]], asked: dict[str, Any], line: str
) -> None:
    cluster = [item for item in yaml.safe_load_all((ROOT / "examples/two-gpus/cluster.yaml").read_text()) if item]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([*cluster, NODE, *slices, asked, POD]))
    result = command("plan", str(tmp_path))
    assert result.code == 1
    assert "existing node n1: allocating dynamic resources" in result.out
    assert any(shown.endswith(line) for shown in result.out.splitlines()), result.out
