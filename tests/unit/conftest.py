"""Objects for tests of deciders: a managed NodeClaim, its Node, a NodePool, and a cluster that holds them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest

from karpenter_linode.cluster.state import ClusterState
from karpenter_linode.model import kinds

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.model.core import Node, Pod
    from karpenter_linode.model.karpenter import NodeClaim, NodePool
    from karpenter_linode.model.meta import KubeObject

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
CREATED = "2026-01-01T12:00:00Z"


def _merge(base: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in more.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def claim() -> Callable[..., NodeClaim]:
    """A NodeClaim ``gpu-1`` of pool ``gpu`` with our finalizer; keyword ``conditions`` maps type to status."""

    def make(conditions: dict[str, str] | None = None, **changes: Any) -> NodeClaim:
        base = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": "gpu-1",
                "uid": "claim-uid",
                "resourceVersion": "10",
                "generation": 1,
                "creationTimestamp": CREATED,
                "labels": {"karpenter.sh/nodepool": "gpu", "karpenter.k8s.linode/linodenodeclass": "default"},
                "finalizers": ["karpenter.sh/termination"],
            },
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"},
                "expireAfter": "720h",
            },
        }
        written = [
            {"type": kind, "status": status, "reason": kind, "lastTransitionTime": CREATED, "observedGeneration": 1}
            for kind, status in (conditions or {}).items()
        ]
        plain = _merge(_merge(base, {"status": {"conditions": written}}), changes)
        return kinds.from_manifest(plain)  # type: ignore[return-value]

    return make


@pytest.fixture
def node() -> Callable[..., Node]:
    """A Ready, unregistered Node ``lke1`` with provider id ``linode://1``."""

    def make(*layers: dict[str, Any], **changes: Any) -> Node:
        base: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": "lke1",
                "uid": "node-uid",
                "resourceVersion": "20",
                "creationTimestamp": CREATED,
                "labels": {
                    "karpenter.k8s.linode/linodenodeclass": "default",
                    "node.kubernetes.io/instance-type": "g2-gpu-rtx4000a1-s",
                },
            },
            "spec": {
                "providerID": "linode://1",
                "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
            },
            "status": {
                "allocatable": {"cpu": "3920m", "memory": "13590Mi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        return kinds.from_manifest(reduce(_merge, (*layers, changes), base))  # type: ignore[return-value]

    return make


@pytest.fixture
def pool() -> Callable[..., NodePool]:
    """NodePool ``gpu``."""

    def make(**changes: Any) -> NodePool:
        base = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "gpu", "uid": "pool-uid", "generation": 1, "creationTimestamp": CREATED},
            "spec": {
                "template": {
                    "spec": {
                        "nodeClassRef": {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"}
                    }
                }
            },
        }
        return kinds.from_manifest(_merge(base, changes))  # type: ignore[return-value]

    return make


@pytest.fixture
def pod() -> Callable[..., Pod]:
    """A running pod ``default/p`` on ``lke1``."""

    def make(name: str = "p", **changes: Any) -> Pod:
        base = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "5"},
            "spec": {"nodeName": "lke1", "terminationGracePeriodSeconds": 30, "containers": [{"name": "c"}]},
            "status": {"phase": "Running"},
        }
        return kinds.from_manifest(_merge(base, changes))  # type: ignore[return-value]

    return make


@pytest.fixture
def cluster() -> Callable[..., ClusterState]:
    """A cluster that holds the given objects."""

    def make(*objects: KubeObject) -> ClusterState:
        state = ClusterState()
        for obj in objects:
            state.observe(obj)
        return state

    return make
