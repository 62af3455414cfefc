"""Controllers ``nodeclaim.garbagecollection`` and ``instance.garbagecollection``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.controllers.cloud_calls import delete_instance
from karpenter_linode.controllers.effects import Executor
from karpenter_linode.controllers.reconciler import Loop
from karpenter_linode.lifecycle.effects import CloudDelete
from karpenter_linode.lifecycle.garbage import claims_without_instance, collect_orphan, orphans, suspects
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.ports import CloudError, KubeError

if TYPE_CHECKING:
    from karpenter_linode.controllers.runtime import Runtime
    from karpenter_linode.model.instance import CloudInstance

_CLAIMS: Final = "nodeclaim.garbagecollection"
_INSTANCES: Final = "instance.garbagecollection"
_SLOW: Final = 120.0
_FAST: Final = 10.0
_FAST_PASSES: Final = 20


class NodeClaimGarbageCollection(Loop):
    """Deletes NodeClaims whose instance is gone."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(_CLAIMS, runtime, self.step)
        self._executor = Executor(runtime, _CLAIMS)

    async def step(self) -> float:
        """One pass. The claims are read before the cloud is asked: a new one can't look like a lost one."""
        claims = (await self._runtime.kube.list(NodeClaim)).items
        instances = await self._runtime.cloud.list()
        await self._executor.carry_out(claims_without_instance(claims, instances, self._runtime.state))
        return _SLOW


class InstanceGarbageCollection(Loop):
    """Deletes instances that no NodeClaim stands behind, and pool members that nobody claimed."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(_INSTANCES, runtime, self.step)
        self._executor = Executor(runtime, _INSTANCES)
        self._suspects: frozenset[str] = frozenset()
        self._passes = 0

    async def step(self) -> float:
        """One pass. The cloud is asked first, then the API server itself: a stale mirror must not cost an instance.

        Raises:
            CloudError: some instances can't be deleted now; all were tried.
        """
        instances = await self._runtime.cloud.list()
        claims = (await self._runtime.kube.list(NodeClaim)).items
        doomed = orphans(instances, claims, self._suspects, self._runtime.now())
        self._suspects = suspects(instances, claims)
        errors = [error for item in doomed if (error := await self._collect(item))]
        if errors:
            raise CloudError("; ".join(errors))
        self._passes += 1
        return _FAST if self._passes < _FAST_PASSES else _SLOW

    async def _collect(self, item: CloudInstance) -> str:
        """Remove one instance; why that failed, or ""."""
        try:
            done = await self._executor.carry_out(collect_orphan(item, self._runtime.state))
            if isinstance(done.question, CloudDelete):
                await delete_instance(self._runtime.cloud, done.question.provider_id)
        except (CloudError, KubeError) as error:
            return str(error)
        return ""
