"""Slices for the tests of deciders; their other objects stand one folder up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from karpenter_linode.model import kinds

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.model.resource import ResourceSlice


@pytest.fixture
def slice_() -> Callable[..., ResourceSlice]:
    """A ResourceSlice of node ``lke1``."""

    def make(name: str = "s", generation: int = 1, count: int = 1, driver: str = "gpu.nvidia.com") -> ResourceSlice:
        plain = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": name, "uid": f"uid-{name}"},
            "spec": {
                "driver": driver,
                "nodeName": "lke1",
                "pool": {"name": "lke1", "generation": generation, "resourceSliceCount": count},
            },
        }
        return kinds.from_manifest(plain)  # type: ignore[return-value]

    return make
