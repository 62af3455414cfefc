"""NodeClaims that wait for a member of the same kind of pool, served together by one worker.

One look at the cloud serves all of them, one call buys for all of them, and each instance is set aside for exactly one.
What to do is decided in ``lane_plan``; here is who waits, when to look, and what is called.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from karpenter_linode.linode import lane_plan
from karpenter_linode.linode.claiming import ClaimNotSeenError, claim
from karpenter_linode.linode.errors import LinodeApiError, LinodeRateLimitedError, LinodeServerError
from karpenter_linode.linode.growth import PoolGrower
from karpenter_linode.linode.lane_plan import Refusal, Rests
from karpenter_linode.linode.unavailable import ACCOUNT_LIMIT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from datetime import datetime

    from karpenter_linode.linode import tags
    from karpenter_linode.linode.cluster_view import ClusterView
    from karpenter_linode.linode.pool_template import PoolTemplate
    from karpenter_linode.linode.toolbox import Toolbox
    from karpenter_linode.model.karpenter import NodeClaim
    from karpenter_linode.model.linode import LinodeInstance, LKEPool
    from karpenter_linode.ports import CloudError


@dataclass
class _Waiter:
    """A NodeClaim without an instance, and everybody who called ``create`` for it."""

    node_claim: NodeClaim
    template: PoolTemplate
    done: asyncio.Future[LinodeInstance]
    joined: datetime
    callers: int = 0
    instance: int | None = None
    looked_for: bool = False  # whether a look at the cloud began after it came


class PoolLane:
    """The waiters of one pool identity.

    Args:
        identity: what the pools are for.
        tools: the API and what is known from it.
    """

    def __init__(self, identity: tags.PoolIdentity, tools: Toolbox) -> None:
        self.identity, self.tools = identity, tools
        self._lock = asyncio.Lock()
        self._grower = PoolGrower(tools)
        self._waiters: dict[str, _Waiter] = {}
        self._worker: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._turn_error: CloudError | None = None
        self._last_error: CloudError | None = None
        self._server_errors = 0
        self._users = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing would be lost with this lane: nobody works here, and no POST has an unknown outcome."""
        working = self._worker is not None and not self._worker.done()
        return not (self._users or self._waiters or working or self._grower.is_looking)

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Decide on the members of these pools alone: the lane's worker, or a deletion."""
        self._users += 1
        try:
            async with self._lock:
                yield
        finally:
            self._users -= 1

    async def obtain(self, node_claim: NodeClaim, template: PoolTemplate) -> LinodeInstance:
        """An instance that serves the NodeClaim, found or bought; called again after an error, it goes on where it was.

        Raises:
            InsufficientCapacityError: the plan can't be had now, and the offering is marked.
            CreateError: refused for another reason, or time ran out.
            LinodeApiError: the first look at the cloud failed.
        """
        waiter = self._join(node_claim, template)
        try:
            async with asyncio.timeout(self.tools.options.create_deadline):
                return await asyncio.shield(waiter.done)
        except TimeoutError:
            raise lane_plan.too_late(self._last_error) from None
        finally:
            self._leave(waiter)

    async def close(self) -> None:
        """Stop the worker."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    def _join(self, node_claim: NodeClaim, template: PoolTemplate) -> _Waiter:
        waiter = self._waiters.get(node_claim.name)
        if waiter is None:
            self._wake.set()
            future: asyncio.Future[LinodeInstance] = asyncio.get_running_loop().create_future()
            waiter = _Waiter(node_claim, template, future, self.tools.clock.now())
            waiter.instance = self.tools.ledger.held_by(node_claim.name)
            self._waiters[node_claim.name] = waiter
        waiter.callers += 1
        if self._worker is None or self._worker.done():
            self._last_error = None
            # It outlives the call that opened the lane: its log lines must not carry that call's context.
            self._worker = asyncio.create_task(self._work(), context=Context())
        return waiter

    def _leave(self, waiter: _Waiter) -> None:
        waiter.callers -= 1
        if waiter.callers == 0:
            self._waiters.pop(waiter.node_claim.name, None)
            if not waiter.done.cancel() and not waiter.done.cancelled():
                waiter.done.exception()  # counts as seen, though nobody waits any more

    async def _work(self) -> None:
        pause = self.tools.options.poll_interval
        while self._pending():
            if self._wake.is_set():
                pause = self.tools.options.poll_interval
            await self._gather()
            self._wake.clear()
            self._turn_error = None
            try:
                await self._turn()
            except Exception as error:  # noqa: BLE001 - handed to everybody who waits, who would wait in vain
                self._fail(self._pending(), error)
            self._remember_error()
            if self._pending() and not self._newcomers():
                await self._rest(self._retry_after() or pause)
                pause = min(self.tools.options.poll_cap, pause * 1.25)

    async def _gather(self) -> None:
        """Pods come together and so do their NodeClaims: one call for all of them instead of several."""
        options = self.tools.options
        quiet, longest = timedelta(seconds=options.gather_quiet), timedelta(seconds=options.gather_longest)
        while newcomers := self._newcomers():
            left = lane_plan.gathering([item.joined for item in newcomers], self.tools.clock.now(), quiet, longest)
            if left <= timedelta():
                return
            await self.tools.clock.sleep(left.total_seconds())

    def _remember_error(self) -> None:
        """What the last turn that tried something met, for the message when time runs out."""
        if self._turn_error is not None or not self._grower.is_looking:
            self._last_error = self._turn_error

    def _pending(self) -> list[_Waiter]:
        return [waiter for waiter in self._waiters.values() if not waiter.done.done()]

    def _newcomers(self) -> list[_Waiter]:
        return [waiter for waiter in self._pending() if not waiter.looked_for]

    def _retry_after(self) -> float:
        return self._turn_error.retry_after if isinstance(self._turn_error, LinodeRateLimitedError) else 0

    async def _rest(self, seconds: float) -> None:
        """Pause, but not when somebody new comes."""
        sleeping = asyncio.ensure_future(self.tools.clock.sleep(seconds))
        waking = asyncio.ensure_future(self._wake.wait())
        try:
            await asyncio.wait((sleeping, waking), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            waking.cancel()

    async def _turn(self) -> None:
        async with self.exclusive():
            # Only for who came before the look began: it says nothing of what was built for those who come after.
            present = self._pending()
            newcomers = self._newcomers()
            try:
                view = await self.tools.reader.read()
            except LinodeApiError as error:
                # Who was never looked for is told: nothing was done for them. Who waits for a member waits on.
                self._fail(newcomers, error)
                self._meet(error, _open(present))
                return
            self.tools.ledger.prune(view, self._waiters)
            pools = view.pools_for(self.identity)
            self._serve_built(newcomers, view)
            self._set_aside(present, view.members(pools))
            try:
                await self._hand_back(present, view, pools)
                await self._grow(present, view, pools)
            except LinodeApiError as error:
                self._meet(error, _empty_handed(present))
                self._count_failure(error)
        await asyncio.gather(*(self._claim(waiter) for waiter in _open(present)))

    def _serve_built(self, newcomers: list[_Waiter], view: ClusterView) -> None:
        """What an earlier call, perhaps of an earlier process, built for a NodeClaim; in whatever pool."""
        for waiter in newcomers:
            waiter.looked_for = True
            name = waiter.node_claim.name
            found = lane_plan.built_for(view, name)
            if not found or waiter.done.done():
                continue
            self.tools.logger.debug("found existing instance for nodeclaim", NodeClaim=name, id=found[0].id)
            if len(found) > 1:
                others = ", ".join(str(item.id) for item in found[1:])
                message = f"instances {others} carry the claim tag of {found[0].id} too and will be removed"
                self.tools.events.publish(waiter.node_claim, "Warning", "DuplicateInstances", message)
            waiter.done.set_result(found[0])

    def _set_aside(self, present: list[_Waiter], members: tuple[LinodeInstance, ...]) -> None:
        ledger, waiting = self.tools.ledger, _open(present)
        held = {waiter.node_claim.name: waiter.instance for waiter in waiting}
        given = lane_plan.assign(held, members, ledger.is_free)
        for waiter in waiting:
            waiter.instance = given.get(waiter.node_claim.name)
            if waiter.instance is not None:
                ledger.set_aside(waiter.instance, waiter.node_claim.name)

    async def _grow(self, present: list[_Waiter], view: ClusterView, pools: tuple[LKEPool, ...]) -> None:
        if not (waiting := _open(present)):
            return
        template = waiting[0].template
        for pool in pools:
            await self._grower.update_version(pool, template)
        waiting = _empty_handed(present)
        if lane_plan.any_older((waiter.node_claim for waiter in waiting), self.tools.started):
            self._grower.look_for_predecessor()
        need = lane_plan.missing(view, pools, len(waiting))
        if need > 0 and await self._grower.grow(pools, template, need):
            self._server_errors = 0

    async def _claim(self, waiter: _Waiter) -> None:
        if waiter.instance is None or waiter.done.done():
            return
        try:
            claimed = await claim(self.tools, waiter.instance, waiter.node_claim.name, waiter.template)
        except (LinodeApiError, ClaimNotSeenError) as error:
            self.tools.logger.warning(
                "failed to claim instance",
                NodeClaim=waiter.node_claim.name,
                instance=waiter.instance,
                error=str(error),
            )
            if isinstance(error, LinodeApiError):
                self._meet(error, [waiter])
            else:
                self._turn_error = error
            return
        if claimed is None:
            self.tools.ledger.release(waiter.instance)
            waiter.instance = None
        elif not waiter.done.done():
            waiter.done.set_result(claimed)

    async def _hand_back(self, present: list[_Waiter], view: ClusterView, pools: tuple[LKEPool, ...]) -> None:
        """A member that gets no instance in time is a plan that isn't to be had."""
        limit = timedelta(seconds=self.tools.options.provisioning_timeout)
        client, cluster = self.tools.client, self.tools.cluster
        for lost in lane_plan.stuck(view, pools, self.tools.clock.now(), limit):
            if lost.whole:
                await client.delete_pool(cluster.id, lost.pool)
            else:
                for node in lost.nodes:
                    await client.delete_node(cluster.id, node)
            why = f"{len(lost.nodes)} member(s) of pool {lost.pool} got no instance within {limit}"
            refused = lane_plan.sold_out(self.identity.instance_type, cluster.region, why)
            self._refuse(refused, _empty_handed(present))

    def _meet(self, error: LinodeApiError, waiters: list[_Waiter]) -> None:
        """Tell those who wait what an API error means for them, if it ends their waiting."""
        self._turn_error = error
        verdict = self.tools.options.classifier.verdict(error)
        refused = lane_plan.refusal(verdict, error, self.identity.instance_type, self.tools.cluster.region)
        if refused is not None:
            self._refuse(refused, waiters)

    def _count_failure(self, error: LinodeApiError) -> None:
        """Buying that fails again and again isn't this plan's fault: rest the region."""
        self._server_errors = self._server_errors + 1 if isinstance(error, LinodeServerError) else 0
        if self._server_errors == self.tools.options.failures_before_region:
            self.tools.unavailable.mark_region(str(error))

    def _refuse(self, refused: Refusal, waiters: list[_Waiter]) -> None:
        if refused.rests is Rests.PLAN:
            self.tools.unavailable.mark(self.identity.instance_type, refused.why)
        elif refused.rests is Rests.ACCOUNT:
            self._rest_account(refused.why, waiters)
        self._fail(waiters, refused.told)

    def _rest_account(self, why: str, waiters: list[_Waiter]) -> None:
        self.tools.unavailable.mark_region(why, ACCOUNT_LIMIT)
        for waiter in waiters:
            self.tools.events.publish(
                waiter.node_claim,
                "Warning",
                "AccountLimitReached",
                f"The Linode account may not grow, nothing is bought for {ACCOUNT_LIMIT}: {why}",
                dedupe=(self.tools.cluster.label,),
                dedupe_seconds=int(ACCOUNT_LIMIT.total_seconds()),
            )

    def _fail(self, waiters: Iterable[_Waiter], error: Exception) -> None:
        for waiter in waiters:
            if not waiter.done.done():
                waiter.done.set_exception(error)


def _open(waiters: Iterable[_Waiter]) -> list[_Waiter]:
    return [waiter for waiter in waiters if not waiter.done.done()]


def _empty_handed(waiters: Iterable[_Waiter]) -> list[_Waiter]:
    return [waiter for waiter in _open(waiters) if waiter.instance is None]
