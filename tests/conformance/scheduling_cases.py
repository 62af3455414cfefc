"""Scheduling problems in the vectors' form to Problems, and Solutions back (shared by the test and run_vectors.py)."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from karpenter_linode.model import codec
from karpenter_linode.model.core import DaemonSet, Namespace, Node, Pod
from karpenter_linode.model.instance_type import NANO_DOLLARS, InstanceType
from karpenter_linode.model.karpenter import NodeClaim, NodePool
from karpenter_linode.scheduling.pods import is_currently_reschedulable
from karpenter_linode.scheduling.problem import Problem, SchedulingOptions, Solution, StateNode
from karpenter_linode.scheduling.state_node import is_marked_for_deletion

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a ``.jsonl.gz`` file; prices stay exact."""
    with gzip.open(path, "rt") as lines:
        for line in lines:
            yield json.loads(line, parse_float=Decimal)


def nano_dollars(price: Decimal | float) -> int:
    """A price of the vectors in nano-dollars."""
    return int(Decimal(str(price)) * NANO_DOLLARS)


def to_problem(plain: dict[str, Any]) -> Problem:
    """The Problem of a row. Pods of draining nodes join the batch."""
    types = tuple(_instance_type(item) for item in plain["instanceTypes"])
    pools = tuple(codec.convert(_bare(item), NodePool) for item in plain["nodePools"])
    nodes = tuple(
        StateNode(
            codec.convert(item["node"], Node) if item.get("node") else None,
            codec.convert(_bare(item["nodeClaim"]), NodeClaim) if item.get("nodeClaim") else None,
        )
        for item in plain["nodes"]
    )
    bound = tuple(codec.convert(item, Pod) for item in plain["boundPods"])
    draining = {item.node.name for item in nodes if item.node is not None and is_marked_for_deletion(item)}
    moving = tuple(pod for pod in bound if pod.spec.node_name in draining and is_currently_reschedulable(pod, (), None))
    options = plain.get("options") or {}
    return Problem(
        pods=(*(codec.convert(item, Pod) for item in plain["pods"]), *moving),
        node_pools=pools,
        instance_types={pool.name: types for pool in pools},
        nodes=nodes,
        bound_pods=bound,
        daemon_sets=tuple(codec.convert(item, DaemonSet) for item in plain["daemonSets"]),
        namespaces=tuple(codec.convert(item, Namespace) for item in plain["namespaces"]),
        deleting_pod_uids=frozenset(pod.uid for pod in moving),
        options=SchedulingOptions(
            preference_policy=options.get("preferencePolicy", "Respect"),
            min_values_policy=options.get("minValuesPolicy", "Strict"),
            well_known_labels=tuple(options.get("wellKnownLabels", ())),
        ),
    )


def to_outcome(solution: Solution) -> dict[str, Any]:
    """A Solution in the vectors' form."""
    return {
        "newNodeClaims": [
            {
                "nodePool": item.node_pool,
                "instanceTypes": list(item.instance_types),
                "requirements": codec.to_plain(item.node_claim.spec.requirements),
                "requests": codec.to_plain(item.node_claim.spec.resources.requests),
                "pods": [pod.name for pod in item.pods],
                "cheapest": {"instanceType": item.instance_types[0], "price": item.price / NANO_DOLLARS},
            }
            for item in solution.new_node_claims
        ],
        "existing": {(item.node): [pod.name for pod in item.pods] for item in solution.existing},
        "errors": {item.pod.name: item.reason.message for item in solution.unplaced},
    }


def _instance_type(plain: dict[str, Any]) -> InstanceType:
    offerings = [{**item, "price": nano_dollars(item["price"])} for item in plain.get("offerings", ())]
    return codec.convert({**plain, "offerings": offerings}, InstanceType)


def _bare(plain: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in plain.items() if key not in {"apiVersion", "kind"}}
