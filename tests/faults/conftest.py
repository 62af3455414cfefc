"""``example``: the manifests of ``examples/one-gpu`` with a pod that ends after a while."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLE = Path(__file__).parents[2] / "examples" / "one-gpu"


@pytest.fixture
def example() -> Callable[..., list[dict[str, Any]]]:
    def load(runtime: str = "5m") -> list[dict[str, Any]]:
        found = [
            item for path in sorted(EXAMPLE.glob("*.yaml")) for item in yaml.safe_load_all(path.read_text()) if item
        ]
        for item in found:
            if item["kind"] == "Pod":
                item["metadata"]["annotations"] = {"simulate.karpenter-linode/runtime": runtime}
        return found

    return load
