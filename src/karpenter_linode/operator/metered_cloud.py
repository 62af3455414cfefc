"""A cloud provider whose calls are counted and timed (spec/karpenter-lifecycle.md 7.1, spec/linode-provider.md 5.6)."""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from karpenter_linode.controllers.scope import controller_name
from karpenter_linode.ports import (
    CloudError,
    CreateError,
    InstanceNotFoundError,
    InsufficientCapacityError,
    NodeClassNotReadyError,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from karpenter_linode.model.instance import CloudInstance, Launched
    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.model.karpenter import NodeClaim, NodePool
    from karpenter_linode.operator.metrics import Reading
    from karpenter_linode.ports import Clock, CloudProvider, Metrics

# Upstream's names of kinds of errors; others have none.
_ERRORS: Final[tuple[tuple[type[CloudError], str], ...]] = (
    (InstanceNotFoundError, "NodeClaimNotFoundError"),
    (NodeClassNotReadyError, "NodeClassNotReadyError"),
    (InsufficientCapacityError, "InsufficientCapacityError"),
)


class MeteredCloud:
    """``ports.CloudProvider`` around another one.

    Args:
        inner: does the work.
        tier: of the LKE cluster.
        clock: measures.
        metrics: where calls are counted.
    """

    def __init__(self, inner: CloudProvider, tier: str, clock: Clock, metrics: Metrics) -> None:
        self._inner, self._tier, self._clock, self._metrics = inner, tier, clock, metrics
        self.name = inner.name
        self._listed: tuple[CloudInstance, ...] = ()

    def readings(self) -> Iterator[Reading]:
        """Members of our LKE pools, as they were last listed."""
        counts = Counter((item.node_pool, item.instance_type, _state(item)) for item in self._listed)
        for series, count in sorted(counts.items()):
            yield "karpenter_linode_pool_members", series, count

    async def create(self, node_claim: NodeClaim) -> Launched:
        """Build, or find what was built before."""
        began = self._clock.now()
        outcome = "failed"
        try:
            async with self._counted("Create"):
                launched = await self._inner.create(node_claim)
            outcome = "created"
        except InsufficientCapacityError:
            outcome = "no_capacity"
            raise
        except CreateError:
            outcome = "retried"
            raise
        finally:
            seconds = (self._clock.now() - began).total_seconds()
            labels = {"tier": self._tier, "outcome": outcome}
            self._metrics.observe("karpenter_linode_create_duration_seconds", labels, seconds)
        return launched

    async def delete(self, provider_id: str) -> None:
        """Start deletion."""
        async with self._counted("Delete"):
            await self._inner.delete(provider_id)

    async def get(self, provider_id: str) -> CloudInstance:
        """One instance."""
        async with self._counted("Get"):
            return await self._inner.get(provider_id)

    async def list(self) -> tuple[CloudInstance, ...]:
        """All instances."""
        async with self._counted("List"):
            self._listed = await self._inner.list()
        return self._listed

    async def instance_types(self, node_pool: NodePool) -> tuple[InstanceType, ...]:
        """All plans for a pool."""
        async with self._counted("GetInstanceTypes"):
            return await self._inner.instance_types(node_pool)

    @asynccontextmanager
    async def _counted(self, method: str) -> AsyncIterator[None]:
        labels = {"controller": controller_name(), "method": method, "provider": self.name}
        began = self._clock.now()
        try:
            yield
        except CloudError as error:
            kind = next((name for known, name in _ERRORS if isinstance(error, known)), "")
            self._metrics.increment("karpenter_cloudprovider_errors_total", {**labels, "error": kind})
            raise
        finally:
            seconds = (self._clock.now() - began).total_seconds()
            self._metrics.observe("karpenter_cloudprovider_duration_seconds", labels, seconds)


def _state(item: CloudInstance) -> str:
    if item.deleting:
        return "leaving"
    return "claimed" if item.node_claim else "unclaimed"
