"""NodePool: validation, readiness, hash, counter (spec/karpenter-lifecycle.md 5.1 to 5.4)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from karpenter_linode.cluster.view import is_supported
from karpenter_linode.lifecycle.conditions import ConditionSet, of_node_pool
from karpenter_linode.lifecycle.effects import Effect, LogLine, Patch
from karpenter_linode.lifecycle.node_pool_validation import template_errors
from karpenter_linode.lifecycle.patches import merge_diff, status_patch
from karpenter_linode.model import codec, labels
from karpenter_linode.model.condition_types import DRIFTED, NODE_CLASS_READY, READY, VALIDATION_SUCCEEDED
from karpenter_linode.model.karpenter import LinodeNodeClass, NodeClaim, NodePool
from karpenter_linode.model.meta import find_condition
from karpenter_linode.model.quantity import NANO, Quantity
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.validation import unknown_capacity_types
from karpenter_linode.scheduling import resources as res
from karpenter_linode.scheduling.node_pool_hash import node_pool_hash
from karpenter_linode.scheduling.state_node import NodeView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.core import ResourceList

_COUNTED: Final = ("cpu", "ephemeral-storage", "memory", labels.NODES_RESOURCE, "pods")


def reconcile_node_pool(pool: NodePool, view: View, now: datetime) -> list[Effect]:
    """Judge a NodePool: is its template valid, is its node class ready, and what is its hash now.

    Args:
        pool: the NodePool.
        view: the cluster.
        now: the time.
    """
    if not is_supported(pool.spec.template.spec.node_class_ref):
        return []
    conditions = _validated(of_node_pool(pool, now), pool)
    conditions = _class_ready(conditions, view.get(LinodeNodeClass, pool.spec.template.spec.node_class_ref.name))
    judged = replace(pool, status=replace(pool.status, conditions=conditions.conditions))
    return [*_unknown_values(pool), *_hashed(pool, view), *status_patch(pool, judged)]


def _unknown_values(pool: NodePool) -> list[Effect]:
    """Tell once of capacity types that do not exist, beside others that do and count."""
    judged = find_condition(pool.status.conditions, VALIDATION_SUCCEEDED)
    if judged is not None and judged.observed_generation == pool.metadata.generation:
        return []
    requirements = pool.spec.template.spec.requirements
    invalid = [value for spec in requirements for value in unknown_capacity_types(spec)]
    if not invalid or template_errors(pool.spec.template):
        return []
    fields = {"NodePool": pool.name, "key": labels.CAPACITY_TYPE, "invalid-values": invalid}
    return [LogLine("error", "please correct found invalid values, proceeding with valid values", fields)]


def _validated(conditions: ConditionSet, pool: NodePool) -> ConditionSet:
    errors = template_errors(pool.spec.template)
    if errors:
        return conditions.set_false(VALIDATION_SUCCEEDED, "NodePoolValidationFailed", "; ".join(errors))
    return conditions.set_true(VALIDATION_SUCCEEDED)


def _class_ready(conditions: ConditionSet, node_class: LinodeNodeClass | None) -> ConditionSet:
    if node_class is None:
        return conditions.set_false(NODE_CLASS_READY, "NodeClassNotFound", "NodeClass not found on cluster")
    if node_class.metadata.deletion_timestamp is not None:
        return conditions.set_false(NODE_CLASS_READY, "NodeClassTerminating", "NodeClass is Terminating")
    ready = find_condition(node_class.status.conditions, READY)
    if ready is None or ready.status == "Unknown":
        return conditions.set_false(NODE_CLASS_READY, "NodeClassReadinessUnknown", "Node Class Readiness Unknown")
    if ready.status == "False":
        return conditions.set_false(NODE_CLASS_READY, ready.reason, ready.message)
    return conditions.set_true(NODE_CLASS_READY)


def _hashed(pool: NodePool, view: View) -> list[Effect]:
    current, version = node_pool_hash(pool), labels.NODEPOOL_HASH_VERSION_VALUE
    effects: list[Effect] = []
    if pool.metadata.annotations.get(labels.NODEPOOL_HASH_VERSION) != version:
        effects += [
            _annotate(claim, _migrated(claim, current))
            for claim in view.node_claims_in_pool(pool.name)
            if claim.metadata.annotations.get(labels.NODEPOOL_HASH_VERSION) != version
        ]
    wanted = {labels.NODEPOOL_HASH: current, labels.NODEPOOL_HASH_VERSION: version}
    if any(pool.metadata.annotations.get(key) != value for key, value in wanted.items()):
        effects.append(_annotate(pool, wanted))
    return effects


def _migrated(claim: NodeClaim, current: str) -> dict[str, str]:
    version = {labels.NODEPOOL_HASH_VERSION: labels.NODEPOOL_HASH_VERSION_VALUE}
    drifted = find_condition(claim.status.conditions, DRIFTED) is not None
    return version if drifted else {labels.NODEPOOL_HASH: current, **version}


def _annotate(obj: NodePool | NodeClaim, annotations: dict[str, str]) -> Patch:
    return Patch(type(obj), obj.name, {"metadata": {"annotations": annotations}})


def count_node_pool(pool: NodePool, usage: res.Resources) -> list[Effect]:
    """Bring a NodePool's counted resources up to date.

    Args:
        pool: the NodePool.
        usage: capacity of its nodes, in nano-units.
    """
    resources: ResourceList = {
        **res.to_resource_list(dict.fromkeys(_COUNTED, 0)),
        **res.to_resource_list(usage),
    }
    counted = replace(pool.status, resources=resources, nodes=resources[labels.NODES_RESOURCE].units)
    diff = merge_diff(codec.to_plain(pool.status), codec.to_plain(counted))
    return [Patch(NodePool, pool.name, {"status": diff}, subresource="status")] if diff else []


def node_pool_usage(view: View, now: datetime) -> dict[str, res.Resources]:
    """Capacity of each pool's nodes, in nano-units; nodes that are leaving don't count."""
    usage: dict[str, res.Resources] = {}
    for state in view.state_nodes(now):
        if not state.marked_for_deletion:
            node = NodeView(state)
            usage[node.node_pool] = res.add(usage.get(node.node_pool, {}), node.capacity)
    return usage


def usage_at_creation(pools: Sequence[str], usage: Mapping[str, res.Resources]) -> list[res.Resources]:
    """What limits are held against, for each of some NodeClaims that are created together.

    Usage of every resource is what exists, as upstream has it; only ``nodes`` counts the NodeClaim itself and those
    before it, since a limit of nodes is otherwise noticed one pass too late (spec/karpenter-scheduling.md 2.10).

    Args:
        pools: the NodePool of each, in the order of their creation.
        usage: capacity of each pool's nodes, in nano-units.
    """
    ahead: Counter[str] = Counter()
    found = []
    for pool in pools:
        ahead[pool] += 1
        found.append(res.add(usage.get(pool, {}), {labels.NODES_RESOURCE: ahead[pool] * NANO}))
    return found


def exceeded_limit(pool: NodePool, usage: res.Resources) -> Reason | None:
    """The first limit of a NodePool that its nodes go beyond, or None (spec/karpenter-scheduling.md 1.9).

    Args:
        pool: the NodePool.
        usage: capacity of its nodes, in nano-units; a pool that is just full is within its limits.
    """
    for name, limit in sorted((pool.spec.limits or {}).items()):
        used = usage.get(name, 0)
        if used > limit.nano:
            facts = f"limit={limit}, resource-name={name}, usage={Quantity(used, limit.notation)}"
            return Reason("limits", f"resource usage exceeds limit ({facts})", subject=f"NodePool {pool.name}")
    return None
