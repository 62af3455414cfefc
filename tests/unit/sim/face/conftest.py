"""A client of the embedded API server's HTTP face, in virtual time and without sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from karpenter_linode.model.linode import LinodeType, Region
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.cluster import Account, EmbeddedCluster
from karpenter_linode.sim.face.app import Face
from karpenter_linode.sim.loop import run_virtual

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
SMALL = LinodeType(id="g6-standard-4", class_="standard", vcpus=4, memory=8192, disk=163840)
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Client:
    """Requests with the secret and the host that the face lets in."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        self.face = Face(
            cluster.store,
            cluster.clock,
            version="1.35",
            secret="s3",
            hosts=frozenset({"world"}),
            journal=cluster.journal,
        )
        transport = httpx2.ASGITransport(app=self.face.app(), raise_app_exceptions=True)
        self.http = httpx2.AsyncClient(transport=transport, base_url="http://world")

    async def ask(
        self, method: str, path: str, body: Any = None, *, accept: str = "", kind: str = "", **query: Any
    ) -> Any:
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        headers = {"Accept": accept} if accept else {}
        if content is not None:
            headers["Content-Type"] = kind or "application/json"
        return await self.http.request(method, f"/s3{path}", content=content, headers=headers, params=query)

    async def get(self, path: str, **more: Any) -> Any:
        return (await self.ask("GET", path, **more)).json()

    async def create(self, path: str, manifest: dict[str, Any], **query: Any) -> Any:
        return await self.ask("POST", path, manifest, **query)

    async def patch(self, path: str, body: Any, kind: str = "merge", **query: Any) -> Any:
        return await self.ask("PATCH", path, body, kind=PATCHES[kind], **query)

    async def apply(self, path: str, body: Any, manager: str = "me", **query: Any) -> Any:
        return await self.patch(path, body, "apply", fieldManager=manager, **query)

    async def events(self, path: str, **query: Any) -> list[dict[str, Any]]:
        """What a watch tells until it ends; give it ``timeoutSeconds``."""
        answer = await self.ask("GET", path, watch="true", **query)
        return [json.loads(line) for line in answer.text.splitlines()]

    async def table(self, path: str, **query: Any) -> tuple[list[str], list[list[Any]]]:
        """Names of columns and cells, as ``kubectl get -o wide`` would show them."""
        found = await self.get(path, accept=TABLE, **query)
        return [column["name"] for column in found["columnDefinitions"]], [row["cells"] for row in found["rows"]]


Story = Callable[[Client], Awaitable[None]]


@pytest.fixture
def talk() -> Callable[[Story], None]:
    """Play a story with a client against a fresh cluster; every part of the cluster must survive it."""

    def play(story: Story) -> None:
        async def main() -> None:
            clock = VirtualClock(asyncio.get_running_loop(), datetime(2026, 1, 1, tzinfo=UTC))
            cluster = EmbeddedCluster(clock, Account((SMALL,), (Region("us-ord"),)), seed=1)
            cluster.start()
            client = Client(cluster)
            try:
                await story(client)
            finally:
                await client.http.aclose()
                await cluster.stop()

        run_virtual(main())

    return play


@pytest.fixture
def pod() -> Callable[..., dict[str, Any]]:
    """A small pod."""

    def make(name: str = "pod", **spec: Any) -> dict[str, Any]:
        full = {"containers": [{"name": "app", "image": "pause"}], **spec}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": full}

    return make


@pytest.fixture
def pool() -> Callable[..., dict[str, Any]]:
    """A NodePool."""

    def make(name: str = "pool", **spec: Any) -> dict[str, Any]:
        reference = {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"}
        full = {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}, **spec}
        return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": full}

    return make
