"""Controllers ``nodepool`` (validation, readiness, hash), ``nodepool.counter`` and ``nodeclass``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.cluster.view import is_supported
from karpenter_linode.controllers.effects import Done, Executor
from karpenter_linode.controllers.reconciler import Loop, Reconciler
from karpenter_linode.lifecycle.node_class import reconcile_node_class
from karpenter_linode.lifecycle.node_pool import count_node_pool, node_pool_usage, reconcile_node_pool
from karpenter_linode.model.karpenter import LinodeNodeClass, NodeClaim, NodePool

if TYPE_CHECKING:
    from karpenter_linode.controllers.hub import Change
    from karpenter_linode.controllers.runtime import Runtime

_NODE_POOL: Final = "nodepool"
_COUNTER: Final = "nodepool.counter"
_NODE_CLASS: Final = "nodeclass"
_COUNT_EVERY: Final = 5.0


class NodePoolController(Reconciler):
    """Judges NodePools whenever they or their node class change."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(_NODE_POOL, runtime, self.reconcile, workers=runtime.settings.workers, kind=NodePool)
        self._executor = Executor(runtime, _NODE_POOL)
        runtime.hub.subscribe(NodePool, self._on_pool)
        runtime.hub.subscribe(LinodeNodeClass, self._on_class)

    async def reconcile(self, key: str) -> Done | None:
        """Judge one NodePool."""
        pool = self._runtime.state.get(NodePool, key)
        if pool is None:
            return None
        return await self._executor.carry_out(reconcile_node_pool(pool, self._runtime.state, self._runtime.now()))

    def _on_pool(self, change: Change) -> None:
        if change.new is not None:
            self.queue.add(change.object.name)

    def _on_class(self, change: Change) -> None:
        for pool in self._runtime.state.all(NodePool):
            ref = pool.spec.template.spec.node_class_ref
            if is_supported(ref) and ref.name == change.object.name:
                self.queue.add(pool.name)


class NodePoolCounter(Loop):
    """Keeps ``status.resources`` and ``status.nodes`` of NodePools."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(_COUNTER, runtime, self.step)
        self._executor = Executor(runtime, _COUNTER)

    async def step(self) -> float:
        """Count every pool of ours."""
        usage = node_pool_usage(self._runtime.state, self._runtime.now())
        for pool in self._runtime.state.all(NodePool):
            if is_supported(pool.spec.template.spec.node_class_ref):
                await self._executor.carry_out(count_node_pool(pool, usage.get(pool.name, {})))
        return _COUNT_EVERY


class NodeClassController(Reconciler):
    """Judges LinodeNodeClasses, and lets a deleted one go once its last NodeClaim is gone."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(_NODE_CLASS, runtime, self.reconcile, workers=runtime.settings.workers, kind=LinodeNodeClass)
        self._executor = Executor(runtime, _NODE_CLASS)
        runtime.hub.subscribe(LinodeNodeClass, self._on_class)
        runtime.hub.subscribe(NodeClaim, self._on_claim)

    async def reconcile(self, key: str) -> Done | None:
        """Judge one node class."""
        node_class = self._runtime.state.get(LinodeNodeClass, key)
        if node_class is None:
            return None
        effects = reconcile_node_class(node_class, self._runtime.state, self._runtime.now())
        return await self._executor.carry_out(effects)

    def _on_class(self, change: Change) -> None:
        if change.new is not None:
            self.queue.add(change.object.name)

    def _on_claim(self, change: Change) -> None:
        if change.new is None and is_supported(change.old.spec.node_class_ref):
            self.queue.add(change.old.spec.node_class_ref.name)
