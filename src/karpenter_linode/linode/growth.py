"""Buys members: raises the count of a pool, or makes a pool (spec/linode-provider.md 4.3, 4.9 and trap 19).

The count of the pool is the record of what was bought. Nothing else is remembered, so a restart, a repeated call or an
answer that got lost can't buy twice: need is always what waits, less what is on its way.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from karpenter_linode.linode.classify import Verdict
from karpenter_linode.linode.errors import LinodeApiError
from karpenter_linode.linode.plan_filter import ENTERPRISE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime

    from karpenter_linode.linode.pool_template import PoolTemplate
    from karpenter_linode.linode.toolbox import Toolbox
    from karpenter_linode.model.linode import LKEPool


class PoolGrower:
    """Grows the pools of one identity. Callers hold that identity's lock."""

    def __init__(self, tools: Toolbox) -> None:
        self._tools = tools
        self._look_until: datetime | None = None

    @property
    def is_looking(self) -> bool:
        """Whether a POST may still turn out to have made a pool."""
        return self._look_until is not None and self._tools.clock.now() < self._look_until

    def look_for_predecessor(self) -> None:
        """Look as long as after a POST of our own for what an earlier process may have asked for before it ended."""
        until = self._tools.started + timedelta(seconds=self._tools.options.settle_time)
        self._look_until = max(until, self._look_until or until)

    async def grow(self, pools: Sequence[LKEPool], template: PoolTemplate, need: int) -> int:
        """Buy ``need`` members.

        Args:
            pools: the pools of this identity as just read, oldest first.
            template: what a new pool is made of.
            need: how many.

        Returns:
            How many were bought; none while an earlier POST may still turn out to have made a pool.

        Raises:
            LinodeApiError: the API refused or failed; some of them may have been bought, the next read will tell.
        """
        if pools:
            self._look_until = None
        bought = 0
        for pool in pools:
            extra = min(need - bought, self._cap() - pool.count)
            if extra > 0:
                bought += await self._as_many_as_possible(extra, self._scaling(pool))
        if bought < need and not self.is_looking:
            bought += await self._as_many_as_possible(min(need - bought, self._cap()), self._creation(template))
        return bought

    async def update_version(self, pool: LKEPool, template: PoolTemplate) -> None:
        """Bring an enterprise pool to the wanted version before it takes members."""
        if template.k8s_version is not None and pool.k8s_version != template.k8s_version:
            change = {"k8s_version": template.k8s_version, "update_strategy": "on_recycle"}
            await self._tools.client.update_pool(self._tools.cluster.id, pool.id, change)

    def _cap(self) -> int:
        options = self._tools.options
        enterprise = self._tools.cluster.tier == ENTERPRISE
        return options.enterprise_pool_cap if enterprise else options.standard_pool_cap

    def _scaling(self, pool: LKEPool) -> Callable[[int], Awaitable[object]]:
        async def scale(extra: int) -> None:
            count = pool.count + extra
            await self._tools.client.update_pool(self._tools.cluster.id, pool.id, {"count": count})
            self._tools.logger.info("scaled LKE node pool", **{"pool-id": pool.id, "count": count, "plan": pool.type})

        return scale

    def _creation(self, template: PoolTemplate) -> Callable[[int], Awaitable[object]]:
        async def create(count: int) -> None:
            try:
                pool = await self._tools.client.create_pool(self._tools.cluster.id, template.new_pool(count))
            except LinodeApiError as error:
                if error.outcome_unknown:
                    seconds = self._tools.options.settle_time
                    self._look_until = self._tools.clock.now() + timedelta(seconds=seconds)
                raise
            self._tools.logger.info("created LKE node pool", **{"pool-id": pool.id, "count": count, "plan": pool.type})

        return create

    async def _as_many_as_possible(self, count: int, buy: Callable[[int], Awaitable[object]]) -> int:
        """Where there is no capacity for all, half of them may still be had."""
        while True:
            try:
                await buy(count)
            except LinodeApiError as error:
                if count == 1 or self._tools.options.classifier.verdict(error) is not Verdict.SOLD_OUT:
                    raise
                count //= 2
            else:
                return count
