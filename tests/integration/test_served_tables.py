"""Every table that `kubectl get -o wide` would show of a cluster with a GPU pod that runs, as golden text."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx2

from karpenter_linode.model.core import Pod
from karpenter_linode.operator.embedded import EmbeddedWorld
from karpenter_linode.operator.options import Options
from karpenter_linode.sim.face.app import Face
from karpenter_linode.sim.face.served import resources
from karpenter_linode.sim.loop import run_virtual

if TYPE_CHECKING:
    from collections.abc import Callable

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MORE: list[dict[str, Any]] = [
    {"kind": "ConfigMap", "data": {"a": "b"}},
    {"kind": "Secret", "type": "Opaque", "data": {"a": "Yg=="}},
    {"kind": "ServiceAccount"},
    {
        "kind": "Service",
        "spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": [{"port": 80}], "selector": {"a": "b"}},
    },
    {
        "kind": "PersistentVolumeClaim",
        "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}},
    },
    {
        "kind": "PersistentVolume",
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "claimRef": {"name": "x"}},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
    },
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 10},
    {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "linodebs.csi.linode.com"},
    {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "me"}},
]


def rendered(table: dict[str, Any]) -> str:
    """Columns under their headers, as kubectl lays them out; ages are left out, since they tell of delays alone."""
    rows = [[column["name"].upper() for column in table["columnDefinitions"]]]
    aged = [index for index, name in enumerate(rows[0]) if name == "AGE"]
    for row in table["rows"]:
        cells = ["<nil>" if cell is None else str(cell) for cell in row["cells"]]
        rows.append(["-" if index in aged else cell for index, cell in enumerate(cells)])
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)


def test_tables_of_all_kinds(described: list[dict[str, Any]], job: Callable[..., Any], snapshot: Any) -> None:
    async def main() -> dict[str, str]:
        manifests = [*described, job(runtime=None)]
        world = EmbeddedWorld(manifests, seed=7, options=Options(ignore_dra_requests=False))
        await world.start()
        try:
            running = await world.run_until(lambda: any(p.status.phase == "Running" for p in pods(world)), 3600)
            assert running
            world.cluster.apply([{"apiVersion": "v1", **item, "metadata": {"name": "thing"}} for item in MORE])
            await asyncio.sleep(60)
            store, clock = world.cluster.store, world.clock
            face = Face(store, clock, version="1.35", secret="s3", hosts=frozenset({"world"}))
            transport = httpx2.ASGITransport(app=face.app())
            tables = {}
            async with httpx2.AsyncClient(transport=transport, base_url="http://world/s3") as client:
                for resource in resources():
                    kind = resource.type
                    place = f"apis/{kind.api_version}" if kind.group else f"api/{kind.api_version}"
                    answer = await client.get(f"/{place}/{kind.plural}", headers={"Accept": TABLE})
                    table = answer.json()
                    if kind.kind == "Event":
                        assert table["rows"], "what they say is told in other tests"
                        table["rows"] = []
                    tables[kind.resource] = rendered(table)
            return tables
        finally:
            await world.stop()

    tables = run_virtual(main())
    told = "\n\n".join(f"# {name}\n{text}" for name, text in tables.items())
    assert told == snapshot


def pods(world: EmbeddedWorld) -> list[Pod]:
    return list(world.cluster.store.all(Pod))
