"""NodeClaims that wait for a member of the same kind of pool, served together by one worker.

One look at the cloud serves all of them, one call buys for all of them, and each instance is set aside for exactly one.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from karpenter_linode.linode import tags
from karpenter_linode.linode.claiming import ClaimNotSeenError, claim
from karpenter_linode.linode.classify import Verdict
from karpenter_linode.linode.cluster_view import ClusterView, is_leaving
from karpenter_linode.linode.errors import LinodeApiError, LinodeRateLimitedError, LinodeServerError
from karpenter_linode.linode.growth import PoolGrower
from karpenter_linode.linode.unavailable import ACCOUNT_LIMIT
from karpenter_linode.ports import CloudError, CreateError, InsufficientCapacityError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.linode.pool_template import PoolTemplate
    from karpenter_linode.linode.toolbox import Toolbox
    from karpenter_linode.model.karpenter import NodeClaim
    from karpenter_linode.model.linode import LinodeInstance, LKEPool


@dataclass
class _Waiter:
    """A NodeClaim without an instance, and everybody who called ``create`` for it."""

    node_claim: NodeClaim
    template: PoolTemplate
    done: asyncio.Future[LinodeInstance]
    callers: int = 0
    instance: int | None = None


@dataclass
class PoolLane:
    """The waiters of one pool identity.

    Attributes:
        lock: held by whoever decides on the members of these pools: this lane's worker, or a deletion.
    """

    identity: tags.PoolIdentity
    tools: Toolbox
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._grower = PoolGrower(self.tools)
        self._waiters: dict[str, _Waiter] = {}
        self._worker: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._turn_error: CloudError | None = None
        self._last_error: CloudError | None = None
        self._server_errors = 0

    async def obtain(self, node_claim: NodeClaim, template: PoolTemplate) -> LinodeInstance:
        """An instance that serves the NodeClaim; called again after an error, it goes on where it was.

        Raises:
            InsufficientCapacityError: the plan can't be had now, and the offering is marked.
            CreateError: refused for another reason, or time ran out.
        """
        waiter = self._join(node_claim, template)
        try:
            async with asyncio.timeout(self.tools.options.create_deadline):
                return await asyncio.shield(waiter.done)
        except TimeoutError:
            raise self._too_late() from None
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
            waiter = _Waiter(node_claim, template, asyncio.get_running_loop().create_future())
            waiter.instance = self.tools.ledger.held_by(node_claim.name)
            self._waiters[node_claim.name] = waiter
        waiter.callers += 1
        self._wake.set()
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

    def _too_late(self) -> CreateError:
        message = "Timed out waiting for LKE instance to become available"
        if self._last_error is None:
            return CreateError("NodePoolProvisioning", message)
        reason = "RateLimited" if isinstance(self._last_error, LinodeRateLimitedError) else "NodePoolProvisioning"
        return CreateError(reason, f"{message}: {self._last_error}")

    async def _work(self) -> None:
        pause = self.tools.options.poll_interval
        while pending := self._pending():
            self._turn_error = None
            try:
                await self._turn()
            except LinodeApiError as error:
                self._meet(error, pending)
            except Exception as error:  # noqa: BLE001 - handed to everybody who waits, who would wait in vain
                self._fail(pending, error)
            self._remember_error()
            if self._wake.is_set():
                self._wake.clear()
                pause = self.tools.options.poll_interval
            if self._pending():
                await self._rest(self._retry_after() or pause)
                pause = min(self.tools.options.poll_cap, pause * 1.25)

    def _remember_error(self) -> None:
        """What the last turn that tried something met, for the message when time runs out."""
        if self._turn_error is not None or not self._grower.is_looking:
            self._last_error = self._turn_error

    def _pending(self) -> list[_Waiter]:
        return [waiter for waiter in self._waiters.values() if not waiter.done.done()]

    def _empty_handed(self) -> list[_Waiter]:
        return [waiter for waiter in self._pending() if waiter.instance is None]

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
        async with self.lock:
            view = await self.tools.reader.read()
            self.tools.ledger.prune(view, self._waiters)
            pools = view.pools_for(self.identity)
            self._set_aside(view.members(pools))
            try:
                await self._give_up_stuck(view, pools)
                await self._grow(view, pools)
            except LinodeApiError as error:
                self._meet(error, self._empty_handed())
                self._count_failure(error)
        await asyncio.gather(*(self._claim(waiter) for waiter in self._pending()))

    def _set_aside(self, members: tuple[LinodeInstance, ...]) -> None:
        """Give members to waiters: those that carry a waiter's claim already, then free ones, lowest id first."""
        ledger, present = self.tools.ledger, {item.id for item in members}
        by_claim = {claimed: item.id for item in members for claimed in tags.claimed_by(item.tags)}
        for waiter in self._pending():
            if waiter.instance not in present:
                waiter.instance = by_claim.get(tags.claim_tag(waiter.node_claim.name))
            if waiter.instance is not None:
                ledger.set_aside(waiter.instance, waiter.node_claim.name)
        free = iter([item.id for item in members if ledger.is_free(item) and not is_leaving(item)])
        for waiter in self._pending():
            if waiter.instance is None and (chosen := next(free, None)) is not None:
                waiter.instance = chosen
                ledger.set_aside(chosen, waiter.node_claim.name)

    async def _grow(self, view: ClusterView, pools: tuple[LKEPool, ...]) -> None:
        if not (pending := self._pending()):
            return
        template = pending[0].template
        for pool in pools:
            await self._grower.update_version(pool, template)
        coming = sum(max(0, pool.count - len(view.members((pool,)))) for pool in pools)
        waiting = self._empty_handed()
        if any(self._is_older_than_us(waiter.node_claim) for waiter in waiting):
            self._grower.look_for_predecessor()
        need = len(waiting) - coming
        if need > 0 and await self._grower.grow(pools, template, need):
            self._server_errors = 0

    def _is_older_than_us(self, node_claim: NodeClaim) -> bool:
        """Whether the process before this one may have bought for it, with an answer that nobody was left to hear."""
        created = node_claim.metadata.creation_timestamp
        return created is not None and created <= self.tools.started

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

    async def _give_up_stuck(self, view: ClusterView, pools: tuple[LKEPool, ...]) -> None:
        """A member that gets no instance in time is a plan that isn't to be had: hand it back."""
        limit = timedelta(seconds=self.tools.options.provisioning_timeout)
        now, cluster = self.tools.clock.now(), self.tools.cluster.id
        for pool in pools:
            stuck = [node for node in pool.nodes if now - view.waiting_since.get(node.id, now) >= limit]
            if not stuck:
                continue
            if len(stuck) == pool.count:
                await self.tools.client.delete_pool(cluster, pool.id)
            else:
                for node in stuck:
                    await self.tools.client.delete_node(cluster, node.id)
            self._sold_out(
                f"{len(stuck)} member(s) of pool {pool.id} got no instance within {limit}", self._empty_handed()
            )

    def _meet(self, error: LinodeApiError, waiters: list[_Waiter]) -> None:
        """Decide what an API error means for those who wait."""
        verdict = self.tools.options.classifier.verdict(error)
        self._turn_error = error
        if verdict is Verdict.SOLD_OUT:
            self._sold_out(str(error), waiters)
        elif verdict is Verdict.ACCOUNT_LIMIT:
            self._account_limit(error, waiters)
        elif verdict is Verdict.UNAUTHORIZED:
            self._fail(waiters, CreateError("Unauthorized", str(error)))
        elif verdict is Verdict.INVALID:
            text = f"Failed to find or create LKE node pool: {error}"
            self._fail(waiters, CreateError("NodePoolCreationFailed", text))

    def _count_failure(self, error: LinodeApiError) -> None:
        """Buying that fails again and again isn't this plan's fault: rest the region."""
        self._server_errors = self._server_errors + 1 if isinstance(error, LinodeServerError) else 0
        if self._server_errors == self.tools.options.failures_before_region:
            self.tools.unavailable.mark_region(str(error))

    def _sold_out(self, why: str, waiters: Iterable[_Waiter]) -> None:
        plan = self.identity.instance_type
        self.tools.unavailable.mark(plan, why)
        text = f"plan {plan} is not available in region {self.tools.cluster.region}: {why}"
        self._fail(waiters, InsufficientCapacityError(text))

    def _account_limit(self, error: LinodeApiError, waiters: list[_Waiter]) -> None:
        self.tools.unavailable.mark_region(str(error), ACCOUNT_LIMIT)
        for waiter in waiters:
            self.tools.events.publish(
                waiter.node_claim,
                "Warning",
                "AccountLimitReached",
                f"The Linode account may not grow, nothing is bought for {ACCOUNT_LIMIT}: {error}",
                dedupe=(self.tools.cluster.label,),
                dedupe_seconds=int(ACCOUNT_LIMIT.total_seconds()),
            )
        self._fail(waiters, InsufficientCapacityError(str(error)))

    def _fail(self, waiters: Iterable[_Waiter], error: Exception) -> None:
        for waiter in waiters:
            if not waiter.done.done():
                waiter.done.set_exception(error)
