"""Controllers ``node.termination`` and ``eviction-queue``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.controllers.cloud_calls import delete_instance, instance_exists
from karpenter_linode.controllers.effects import Done, Executor
from karpenter_linode.controllers.reconciler import Reconciler
from karpenter_linode.controllers.timing import Backoff
from karpenter_linode.lifecycle.effects import CloudDelete, CloudGet
from karpenter_linode.lifecycle.eviction import MULTIPLE_BUDGETS, decide_eviction, evicted, eviction_refused
from karpenter_linode.lifecycle.termination import InstanceAnswers, terminate_node
from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.ports import ConflictError, KubeError, NotFoundError, TooManyRequestsError

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.controllers.hub import Change
    from karpenter_linode.controllers.runtime import Runtime
    from karpenter_linode.lifecycle.effects import Evict

_TERMINATION: Final = "node.termination"
_EVICTION: Final = "eviction-queue"
_BACKOFF: Final = Backoff(0.1, 10.0)
_MAX_QUESTIONS: Final = 2
_OK: Final = 200


class NodeTermination(Reconciler):
    """Takes deleted nodes down: taint, drain, volumes, instance."""

    def __init__(self, runtime: Runtime, evictions: EvictionQueue) -> None:
        super().__init__(
            _TERMINATION, runtime, self.reconcile, workers=runtime.settings.drain_workers, backoff=_BACKOFF, kind=Node
        )
        self._executor = Executor(runtime, _TERMINATION, evictions.accept)
        runtime.hub.subscribe(Node, self._on_node)
        runtime.hub.subscribe(NodeClaim, self._on_claim)

    async def reconcile(self, key: str) -> Done | None:
        """Bring one node a step further; the cloud is asked at most twice."""
        answers = InstanceAnswers()
        done: Done | None = None
        for _ in range(_MAX_QUESTIONS + 1):
            node = self._runtime.state.get(Node, key)
            if node is None:
                return None
            effects = terminate_node(node, self._runtime.state, self._runtime.now(), answers)
            done = await self._executor.carry_out(effects)
            match done.question:
                case CloudGet(provider_id=provider_id):
                    exists = await instance_exists(self._runtime.cloud, provider_id)
                    answers = InstanceAnswers(exists, answers.gone)
                case CloudDelete(provider_id=provider_id):
                    gone = await delete_instance(self._runtime.cloud, provider_id)
                    answers = InstanceAnswers(answers.exists, gone)
                case _:
                    return done
        return done

    def _on_node(self, change: Change) -> None:
        if change.new is not None and change.new.metadata.deletion_timestamp is not None:
            self.queue.add(change.object.name)

    def _on_claim(self, change: Change) -> None:
        if change.new is None:
            return
        for node in self._runtime.state.nodes_of(change.new.status.provider_id):
            if node.metadata.deletion_timestamp is not None:
                self.queue.add(node.name)


class EvictionQueue(Reconciler):
    """Evicts pods of leaving nodes, and deletes those whose node can't wait."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(_EVICTION, runtime, self.reconcile, workers=runtime.settings.drain_workers, backoff=_BACKOFF)
        self._executor = Executor(runtime, _EVICTION)
        self._deadlines: dict[str, datetime | None] = {}

    def accept(self, effect: Evict) -> None:
        """Take pods in. A pod that is queued already keeps the earlier deadline."""
        for namespace, name, uid in effect.pods:
            key = f"{namespace}/{name}/{uid}"
            if key not in self._deadlines:
                self._deadlines[key] = effect.deadline
                self.queue.add(key)
            else:
                known = [moment for moment in (self._deadlines[key], effect.deadline) if moment is not None]
                self._deadlines[key] = min(known) if known else None

    async def reconcile(self, key: str) -> Done | None:
        """Evict, delete, wait or drop one pod."""
        if key not in self._deadlines:
            return None
        namespace, name, uid = key.split("/")
        pod = self._runtime.state.get(Pod, f"{namespace}/{name}")
        state, now = self._runtime.state, self._runtime.now()
        decision = decide_eviction(pod, uid, self._deadlines[key], state, now)
        match decision.action:
            case "wait":
                return Done(retry=True)
            case "evict" if pod is not None:
                return await self._evict(key, pod)
            case _:
                done = await self._executor.carry_out(decision.effects)
                self._deadlines.pop(key, None)
                return done

    async def _evict(self, key: str, pod: Pod) -> Done | None:
        try:
            await self._runtime.kube.evict(pod.name, pod.namespace, uid=pod.uid)
        except (NotFoundError, ConflictError) as error:
            self._count(error.status)
            self._deadlines.pop(key, None)
            return None
        except KubeError as error:
            self._count(error.status)
            if not isinstance(error, TooManyRequestsError) and str(error) != MULTIPLE_BUDGETS:
                raise
            await self._executor.carry_out(eviction_refused(pod, str(error), self._runtime.state))
            return Done(retry=True)
        self._count(_OK)
        self._deadlines.pop(key, None)
        return await self._executor.carry_out(evicted(pod, self._runtime.state))

    def _count(self, code: int) -> None:
        self._runtime.metrics.increment("karpenter_pods_eviction_requests_total", {"code": str(code)})
