"""Controllers ``nodeclaim.expiration``, ``nodeclaim.disruption`` and ``nodeclaim.podevents``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.controllers.effects import Done, Executor
from karpenter_linode.controllers.reconciler import Reconciler
from karpenter_linode.lifecycle.consolidatable import judge_consolidatable
from karpenter_linode.lifecycle.expiration import expire
from karpenter_linode.lifecycle.pod_events import node_touched, record_pod_event
from karpenter_linode.model.core import Pod
from karpenter_linode.model.karpenter import NodeClaim, NodePool

if TYPE_CHECKING:
    from karpenter_linode.controllers.hub import Change
    from karpenter_linode.controllers.runtime import Runtime

_EXPIRATION: Final = "nodeclaim.expiration"
_DISRUPTION: Final = "nodeclaim.disruption"
_POD_EVENTS: Final = "nodeclaim.podevents"


class NodeClaimExpiration(Reconciler):
    """Deletes NodeClaims at the end of their life."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(_EXPIRATION, runtime, self.reconcile, workers=1, kind=NodeClaim)
        self._executor = Executor(runtime, _EXPIRATION)
        runtime.hub.subscribe(NodeClaim, self._on_claim)

    async def reconcile(self, key: str) -> Done | None:
        """Delete, or come back when it is time."""
        claim = self._runtime.state.get(NodeClaim, key)
        if claim is None:
            return None
        return await self._executor.carry_out(expire(claim, self._runtime.state, self._runtime.now()))

    def _on_claim(self, change: Change) -> None:
        if change.new is not None and (change.old is None or change.old.uid != change.new.uid):
            self.queue.add(change.object.name)


class NodeClaimDisruption(Reconciler):
    """Keeps the ``Consolidatable`` condition."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(_DISRUPTION, runtime, self.reconcile, workers=runtime.settings.workers, kind=NodeClaim)
        self._executor = Executor(runtime, _DISRUPTION)
        runtime.hub.subscribe(NodeClaim, self._on_claim)
        runtime.hub.subscribe(NodePool, self._on_pool)

    async def reconcile(self, key: str) -> Done | None:
        """Judge one NodeClaim."""
        claim = self._runtime.state.get(NodeClaim, key)
        if claim is None:
            return None
        return await self._executor.carry_out(judge_consolidatable(claim, self._runtime.state, self._runtime.now()))

    def _on_claim(self, change: Change) -> None:
        if change.new is not None:
            self.queue.add(change.object.name)

    def _on_pool(self, change: Change) -> None:
        for claim in self._runtime.state.node_claims_in_pool(change.object.name):
            self.queue.add(claim.name)


class NodeClaimPodEvents(Reconciler):
    """Notes on a NodeClaim when its node last gained or lost a pod.

    What is only learnt from a list doesn't count: a restart of the controller must not make every node look busy.
    """

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(_POD_EVENTS, runtime, self.reconcile, workers=1)
        self._executor = Executor(runtime, _POD_EVENTS)
        runtime.hub.subscribe(Pod, self._on_pod)

    async def reconcile(self, key: str) -> Done | None:
        """Note an event on the NodeClaim of a node."""
        return await self._executor.carry_out(record_pod_event(key, self._runtime.state, self._runtime.now()))

    def _on_pod(self, change: Change) -> None:
        node = "" if change.listed else node_touched(change.old, change.new)
        if node:
            self.queue.add(node)
