"""What a lane decides: who gets which member, what is handed back, what an error means and how long to gather.

Plain functions of what was seen: no clock, no call, no wait. ``lane.PoolLane`` looks, asks here, and acts.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from karpenter_linode.linode import tags
from karpenter_linode.linode.classify import Verdict
from karpenter_linode.linode.cluster_view import is_leaving
from karpenter_linode.linode.errors import LinodeRateLimitedError
from karpenter_linode.ports import CloudError, CreateError, InsufficientCapacityError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from karpenter_linode.linode.cluster_view import ClusterView
    from karpenter_linode.linode.errors import LinodeApiError
    from karpenter_linode.model.karpenter import NodeClaim
    from karpenter_linode.model.linode import LinodeInstance, LKEPool


def gathering(joined: Sequence[datetime], now: datetime, quiet: timedelta, longest: timedelta) -> timedelta:
    """How much longer to wait for more NodeClaims, so that one call buys for all that come together.

    Args:
        joined: when each NodeClaim came that nobody has looked for yet.
        now: the time.
        quiet: nobody came for so long: no more are expected.
        longest: the first one waits no longer than this.

    Returns:
        Zero or less when it is time to look; so it is where the clock was set back, which must not be waited out.
    """
    if not joined or now < min(joined):
        return now - now
    return min(max(joined) + quiet, min(joined) + longest) - now


def built_for(view: ClusterView, node_claim: str) -> tuple[LinodeInstance, ...]:
    """Instances that already serve a NodeClaim, by exact claim tag, oldest first; one unless somebody made two."""
    wanted = tags.claim_tag(node_claim)
    found = [item for item in view.instances.values() if wanted in item.tags and not is_leaving(item)]
    return tuple(sorted(found, key=lambda item: item.id))


def assign(
    waiting: Mapping[str, int | None], members: Sequence[LinodeInstance], is_free: Callable[[LinodeInstance], bool]
) -> dict[str, int]:
    """Give members to NodeClaims: what they hold, what carries their claim, then free ones, lowest id first.

    Args:
        waiting: NodeClaims in order of arrival, each with the instance that is set aside for it, if any.
        members: members of the pools, by id.
        is_free: whether neither a tag nor the ledger gives an instance to anybody.

    Returns:
        Instance by NodeClaim; who is missing goes without.
    """
    present = {item.id for item in members}
    by_claim = {claimed: item.id for item in members for claimed in tags.claimed_by(item.tags)}
    given: dict[str, int] = {}
    for node_claim, held in waiting.items():
        instance = held if held in present else by_claim.get(tags.claim_tag(node_claim))
        if instance is not None:
            given[node_claim] = instance
    taken = set(given.values())
    free = iter([item.id for item in members if item.id not in taken and is_free(item) and not is_leaving(item)])
    for node_claim in waiting:
        if node_claim not in given and (chosen := next(free, None)) is not None:
            given[node_claim] = chosen
    return given


def missing(view: ClusterView, pools: Iterable[LKEPool], empty_handed: int) -> int:
    """How many members to buy: those who wait for one, less what was bought and isn't there yet.

    Args:
        view: the cluster.
        pools: the pools of the lane.
        empty_handed: NodeClaims that no member is set aside for.
    """
    return empty_handed - sum(max(0, pool.count - len(view.members((pool,)))) for pool in pools)


class HandBack(Struct, frozen=True):
    """Members that got no instance in time.

    Args:
        pool: the pool's id.
        nodes: their node ids.
        whole: whether the pool has no others, and goes with them.
    """

    pool: int
    nodes: tuple[str, ...]
    whole: bool


def stuck(view: ClusterView, pools: Iterable[LKEPool], now: datetime, limit: timedelta) -> tuple[HandBack, ...]:
    """Members without an instance for too long: a plan that isn't to be had (spec/linode-provider.md 4.9).

    Args:
        view: the cluster.
        pools: the pools of the lane.
        now: the time.
        limit: how long LKE may take for an instance.
    """
    found: list[HandBack] = []
    for pool in pools:
        nodes = tuple(node.id for node in pool.nodes if now - view.waiting_since.get(node.id, now) >= limit)
        if nodes:
            found.append(HandBack(pool.id, nodes, whole=len(nodes) == pool.count))
    return tuple(found)


def any_older(node_claims: Iterable[NodeClaim], started: datetime) -> bool:
    """Whether the process before this one may have bought for one of them, with an answer that nobody was left to hear.

    Args:
        node_claims: who waits.
        started: when this process began.
    """
    created = (item.metadata.creation_timestamp for item in node_claims)
    return any(moment is not None and moment <= started for moment in created)


class Rests(Enum):
    """What isn't asked for again for a while."""

    NOTHING = "nothing"
    PLAN = "plan"
    ACCOUNT = "account"


class Refusal(Struct, frozen=True):
    """The end of waiting.

    Args:
        told: what everybody who waits is told.
        rests: what is marked unavailable.
        why: the words for the mark.
    """

    told: CloudError
    rests: Rests
    why: str


def sold_out(plan: str, region: str, why: str) -> Refusal:
    """The plan can't be had now; the offering rests and the NodeClaims end, so that their pods find another plan."""
    return Refusal(
        InsufficientCapacityError(f"plan {plan} is not available in region {region}: {why}"), Rests.PLAN, why
    )


def refusal(verdict: Verdict, error: LinodeApiError, plan: str, region: str) -> Refusal | None:
    """What an API error means for NodeClaims that wait; None where trying again may help.

    Args:
        verdict: the error's class.
        error: the error.
        plan: the plan of the lane.
        region: the cluster's region.
    """
    why = str(error)
    if verdict is Verdict.SOLD_OUT:
        return sold_out(plan, region, why)
    if verdict is Verdict.ACCOUNT_LIMIT:
        return Refusal(InsufficientCapacityError(why), Rests.ACCOUNT, why)
    if verdict is Verdict.UNAUTHORIZED:
        return Refusal(CreateError("Unauthorized", why), Rests.NOTHING, why)
    if verdict is Verdict.INVALID:
        text = f"Failed to find or create LKE node pool: {why}"
        return Refusal(CreateError("NodePoolCreationFailed", text), Rests.NOTHING, why)
    return None


def too_late(last: CloudError | None) -> CreateError:
    """What a NodeClaim is told whose time ran out.

    Args:
        last: what the last attempt met.
    """
    message = "Timed out waiting for LKE instance to become available"
    if last is None:
        return CreateError("NodePoolProvisioning", message)
    reason = "RateLimited" if isinstance(last, LinodeRateLimitedError) else "NodePoolProvisioning"
    return CreateError(reason, f"{message}: {last}")
