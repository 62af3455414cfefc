"""A managed node in use: the objects from one folder up, but initialized."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.model.core import Node
    from karpenter_linode.model.karpenter import NodeClaim

_QUIET = {"Launched": "True", "Registered": "True", "Initialized": "True", "Consolidatable": "True"}
_IN_USE = {
    "metadata": {
        "labels": {
            "karpenter.sh/nodepool": "gpu",
            "karpenter.sh/registered": "true",
            "karpenter.sh/initialized": "true",
        }
    },
    "spec": {"taints": []},
}


@pytest.fixture
def claim(claim: Callable[..., NodeClaim]) -> Callable[..., NodeClaim]:
    """A NodeClaim whose node is in use; keyword ``conditions`` maps type to status."""

    def make(conditions: dict[str, str] | None = None, **changes: Any) -> NodeClaim:
        status = {"providerID": "linode://1", **changes.pop("status", {})}
        return claim(_QUIET if conditions is None else conditions, status=status, **changes)

    return make


@pytest.fixture
def node(node: Callable[..., Node]) -> Callable[..., Node]:
    """A Ready, initialized Node ``lke1`` with provider id ``linode://1``."""

    def make(**changes: Any) -> Node:
        return node(_IN_USE, **changes)

    return make
