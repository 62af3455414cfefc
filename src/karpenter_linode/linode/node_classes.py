"""The LinodeNodeClass of a NodeClaim or NodePool, and whether it may be used (spec/linode-provider.md 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.linode.tags import refuse_tags
from karpenter_linode.model.condition_types import READY
from karpenter_linode.model.karpenter import LinodeNodeClass
from karpenter_linode.model.meta import find_condition
from karpenter_linode.ports import CloudError, CreateError, NodeClassNotReadyError, NotFoundError

if TYPE_CHECKING:
    from karpenter_linode.model.karpenter import NodeClaim, NodePool
    from karpenter_linode.model.meta import KubeObject
    from karpenter_linode.ports import EventSink, KubeApi


class NodeClassMissingError(CloudError):
    """The object names no NodeClass, one that doesn't exist, or one that is being deleted."""


class NodeClasses:
    """Reads NodeClasses; a missing one is reported on the object that names it."""

    def __init__(self, kube: KubeApi, events: EventSink) -> None:
        self._kube, self._events = kube, events

    async def of_node_pool(self, node_pool: NodePool) -> LinodeNodeClass:
        """The NodeClass of a NodePool, ready or not.

        Raises:
            NodeClassMissingError: as its name says.
            KubeError: the API server failed.
        """
        return await self._resolve(node_pool, node_pool.spec.template.spec.node_class_ref.name)

    async def usable(self, node_claim: NodeClaim) -> LinodeNodeClass:
        """The NodeClass of a NodeClaim, if it may be used now.

        Raises:
            NodeClassMissingError: as its name says.
            NodeClassNotReadyError: not ready, or not judged since its last change.
            CreateError: readiness unknown, or tags that the API would refuse after the machine was bought.
            KubeError: the API server failed.
        """
        node_class = await self._resolve(node_claim, node_claim.spec.node_class_ref.name)
        ready = find_condition(node_class.status.conditions, READY)
        if ready is None or ready.status not in {"True", "False"}:
            raise CreateError("NodeClassReadinessUnknown", "NodeClass is in Ready=Unknown")
        if ready.status == "False":
            raise NodeClassNotReadyError(ready.message or f"LinodeNodeClass {node_class.name} is not ready")
        if ready.observed_generation != node_class.metadata.generation:
            raise NodeClassNotReadyError("nodeclass status has not been reconciled against the latest spec")
        refusal = refuse_tags(node_class.name, node_class.spec.tags)
        if refusal is not None:
            raise CreateError("TagValidationFailed", refusal.message)
        return node_class

    async def _resolve(self, asker: KubeObject, name: str) -> LinodeNodeClass:
        if not name:
            raise self._missing(asker, f"{asker.KIND} {asker.key} names no LinodeNodeClass")
        try:
            node_class = await self._kube.get(LinodeNodeClass, name)
        except NotFoundError as error:
            raise self._missing(asker, str(error)) from error
        if node_class.metadata.deletion_timestamp is not None:
            text = f'linodenodeclasses.karpenter.k8s.linode "{name}" is terminating, treating as not found'
            raise self._missing(asker, text)
        return node_class

    def _missing(self, asker: KubeObject, text: str) -> NodeClassMissingError:
        message = "Failed resolving NodeClass"
        self._events.publish(asker, "Warning", "FailedResolvingNodeClass", message, dedupe=(asker.uid,))
        return NodeClassMissingError(text)
