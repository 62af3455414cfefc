from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.model import codec
from karpenter_linode.model.karpenter import NodePool
from karpenter_linode.scheduling.node_pool_hash import node_pool_hash

REFERENCE = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


def pool(metadata: dict[str, Any] | None = None, **spec: Any) -> NodePool:
    template = {"metadata": metadata or {}, "spec": {"nodeClassRef": REFERENCE, **spec}}
    return codec.convert({"metadata": {"name": "p"}, "spec": {"template": template}}, NodePool)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pool(expireAfter="720h"), "6821555240594823858"),
        (
            pool(
                {"labels": {"team": "a"}},
                expireAfter="720h",
                taints=[{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}],
            ),
            "13808355825091930806",
        ),
        (pool(expireAfter="Never"), "17369979337536258260"),
    ],
)
def test_equals_upstream(given: NodePool, expected: str) -> None:
    assert node_pool_hash(given) == expected


def test_requirements_do_not_count() -> None:
    given = pool(requirements=[{"key": "a", "operator": "Exists"}])
    assert node_pool_hash(given) == node_pool_hash(pool())


def test_order_of_taints_does_not_count() -> None:
    one, two = {"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}
    assert node_pool_hash(pool(taints=[one, two])) == node_pool_hash(pool(taints=[two, one]))
    assert node_pool_hash(pool(taints=[one])) != node_pool_hash(pool(startupTaints=[one]))
