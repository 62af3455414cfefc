"""Objects for the tests of the mirrored state."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from karpenter_linode.model import kinds

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def make() -> Callable[..., Any]:
    """``make(kind, name, version=, uid=, **content)`` for the kinds that the tests use."""
    versions = {
        "Pod": "v1",
        "Node": "v1",
        "PersistentVolumeClaim": "v1",
        "PersistentVolume": "v1",
        "StorageClass": "storage.k8s.io/v1",
        "NodeClaim": "karpenter.sh/v1",
        "NodePool": "karpenter.sh/v1",
        "ResourceSlice": "resource.k8s.io/v1",
    }
    namespaced = {"Pod", "PersistentVolumeClaim"}

    def build(kind: str, name: str, *, version: int = 1, uid: str = "", **content: Any) -> Any:
        metadata = {"name": name, "uid": uid or f"uid-{kind}-{name}", "resourceVersion": str(version)}
        if kind in namespaced:
            metadata["namespace"] = "default"
        metadata.update(content.pop("metadata", {}))
        return kinds.from_manifest({"apiVersion": versions[kind], "kind": kind, "metadata": metadata, **content})

    return build
