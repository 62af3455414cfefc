"""Controllers ``provisioner.trigger.pod`` and ``provisioner.trigger.node`` (spec/karpenter-scheduling.md 1.3)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from karpenter_linode.controllers.effects import Done
from karpenter_linode.controllers.reconciler import Reconciler
from karpenter_linode.model.core import Node, Pod
from karpenter_linode.scheduling.pods import is_provisionable
from karpenter_linode.scheduling.taints import DISRUPTED, carries

if TYPE_CHECKING:
    from karpenter_linode.controllers.batcher import Batcher
    from karpenter_linode.controllers.hub import Change
    from karpenter_linode.controllers.runtime import Runtime

_AGAIN: Final = timedelta(seconds=10)


class PodTrigger(Reconciler):
    """Triggers for a pod that found no place, and again every ten seconds while that lasts."""

    def __init__(self, runtime: Runtime, batcher: Batcher) -> None:
        super().__init__("provisioner.trigger.pod", runtime, self.reconcile, workers=1, kind=Pod)
        self._batcher = batcher
        runtime.hub.subscribe(Pod, self._on_pod)

    async def reconcile(self, key: str) -> Done | None:
        """Trigger while the pod is provisionable."""
        pod = self._runtime.state.get(Pod, key)
        if pod is None or not is_provisionable(pod):
            return None
        self._batcher.trigger(pod.uid)
        return Done(requeue=_AGAIN)

    def _on_pod(self, change: Change) -> None:
        if change.new is not None and is_provisionable(change.new):
            self.queue.add(change.object.key)


class NodeTrigger(Reconciler):
    """Triggers for a node that is being emptied: its pods will need room."""

    def __init__(self, runtime: Runtime, batcher: Batcher) -> None:
        super().__init__("provisioner.trigger.node", runtime, self.reconcile, workers=1, kind=Node)
        self._batcher = batcher
        runtime.hub.subscribe(Node, self._on_node)

    async def reconcile(self, key: str) -> Done | None:
        """Trigger while the node carries the taint."""
        node = self._runtime.state.get(Node, key)
        if node is None or not carries(node.spec.taints, DISRUPTED):
            return None
        self._batcher.trigger(node.uid)
        return Done(requeue=_AGAIN)

    def _on_node(self, change: Change) -> None:
        if change.new is not None and carries(change.new.spec.taints, DISRUPTED):
            self.queue.add(change.object.name)
