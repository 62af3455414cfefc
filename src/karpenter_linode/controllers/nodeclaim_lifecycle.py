"""Controller ``nodeclaim.lifecycle``: launch to finalization of NodeClaims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.cluster.view import slice_nodes
from karpenter_linode.controllers.cloud_calls import create_instance, delete_instance
from karpenter_linode.controllers.effects import Done, Executor
from karpenter_linode.controllers.reconciler import Reconciler
from karpenter_linode.controllers.timing import Backoff
from karpenter_linode.lifecycle.effects import CloudCreate, CloudDelete, Delete
from karpenter_linode.lifecycle.launch import ends_claim
from karpenter_linode.lifecycle.node_claim import reconcile_node_claim
from karpenter_linode.model.condition_types import LAUNCHED
from karpenter_linode.model.core import Node
from karpenter_linode.model.instance import Launched
from karpenter_linode.model.karpenter import NodeClaim, NodePool
from karpenter_linode.model.meta import is_true
from karpenter_linode.model.resource import ResourceSlice

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.controllers.hub import Change
    from karpenter_linode.controllers.runtime import Runtime
    from karpenter_linode.lifecycle.effects import Effect
    from karpenter_linode.lifecycle.launch import LaunchAnswer

_NAME: Final = "nodeclaim.lifecycle"
_BACKOFF: Final = Backoff(1.0, 60.0)


class NodeClaimLifecycle(Reconciler):
    """Watches NodeClaims, their Nodes, and the ResourceSlices of those Nodes."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(
            _NAME,
            runtime,
            self.reconcile,
            workers=runtime.settings.launch_workers,
            backoff=_BACKOFF,
            kind=NodeClaim,
        )
        self._executor = Executor(runtime, _NAME)
        self._answers: dict[str, LaunchAnswer] = {}  # last words of the cloud, until a write shows them in the mirror
        self._deleted: set[str] = set()  # UIDs that the cloud's answer ended, until the mirror shows the deletion
        runtime.hub.subscribe(NodeClaim, self._on_claim)
        runtime.hub.subscribe(Node, self._on_node)
        runtime.hub.subscribe(ResourceSlice, self._on_slice)
        runtime.hub.subscribe(NodePool, self._on_pool)

    async def reconcile(self, key: str) -> Done | None:
        """Bring one NodeClaim a step further."""
        claim = self._runtime.state.get(NodeClaim, key)
        if claim is None:
            return None
        launched = self._answers.get(claim.uid)
        if is_true(claim.status.conditions, LAUNCHED):
            self._answers.pop(claim.uid, None)
            launched = None
        elif claim.uid in self._deleted and claim.metadata.deletion_timestamp is None:
            return None  # it must not buy another plan in the meantime
        done = await self._carry_out(claim, launched)
        if isinstance(done.question, CloudCreate):
            answer = await create_instance(self._runtime.cloud, done.question.node_claim)
            if isinstance(answer, Launched) or ends_claim(answer):
                self._answers[claim.uid] = answer
            return await self._again(claim, launched=answer)
        if isinstance(done.question, CloudDelete):
            gone = await delete_instance(self._runtime.cloud, done.question.provider_id)
            return await self._again(claim, gone=gone)
        return done

    async def _again(
        self, claim: NodeClaim, *, launched: LaunchAnswer | None = None, gone: bool | None = None
    ) -> Done | None:
        # The cloud took its time: the NodeClaim may have changed or gone.
        present = self._runtime.state.get(NodeClaim, claim.name)
        if present is None or present.uid != claim.uid:
            return None
        return await self._carry_out(present, launched, gone=gone)

    async def _carry_out(self, claim: NodeClaim, launched: LaunchAnswer | None, *, gone: bool | None = None) -> Done:
        effects = self._decide(claim, launched, gone=gone)
        if _gives_up_node(claim, effects):
            await self._look_for_nodes()
            effects = self._decide(claim, launched, gone=gone)
        done = await self._executor.carry_out(effects)
        if launched is not None and ends_claim(launched) and not done.conflict:
            self._deleted.add(claim.uid)
        return done

    async def _look_for_nodes(self) -> None:
        """Ask the API server itself: a watch that says nothing must not cost a node that has joined."""
        for node in (await self._runtime.kube.list(Node)).items:
            self._runtime.observe(node)

    def _decide(self, claim: NodeClaim, launched: LaunchAnswer | None, *, gone: bool | None = None) -> list[Effect]:
        return reconcile_node_claim(
            claim,
            self._runtime.state,
            self._runtime.now(),
            self._runtime.settings.lifecycle,
            launched=launched,
            instance_gone=gone,
        )

    def _on_claim(self, change: Change) -> None:
        if change.new is None:
            self._answers.pop(change.object.uid, None)
            self._deleted.discard(change.object.uid)
        else:
            self.queue.add(change.object.name)

    def _on_node(self, change: Change) -> None:
        for node in filter(None, (change.old, change.new)):
            self._enqueue_claims_of(node)

    def _on_slice(self, change: Change) -> None:
        for item in filter(None, (change.old, change.new)):
            for name in slice_nodes(item):
                node = self._runtime.state.get(Node, name)
                if node is not None:
                    self._enqueue_claims_of(node)

    def _on_pool(self, change: Change) -> None:
        for claim in self._runtime.state.node_claims_in_pool(change.object.name):
            self.queue.add(claim.name)

    def _enqueue_claims_of(self, node: Node) -> None:
        for claim in self._runtime.state.node_claims_of(node.spec.provider_id):
            self.queue.add(claim.name)


def _gives_up_node(claim: NodeClaim, effects: Iterable[Effect]) -> bool:
    return is_true(claim.status.conditions, LAUNCHED) and any(
        isinstance(effect, Delete) and effect.kind is NodeClaim for effect in effects
    )
