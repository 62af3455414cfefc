"""The smallest change that would fit: claims with one clause of a selector left out, tried for real."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from karpenter_linode.dra.allocation import Allocation
from karpenter_linode.model.resource import CELDeviceSelector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from karpenter_linode.model.reason import Reason
    from karpenter_linode.model.resource import (
        DeviceSelector,
        DeviceSubRequest,
        ExactDeviceRequest,
        ResourceClaim,
    )

MAX_TRIES: Final = 4
_SHOWN: Final = 5


def hints(
    claims: Sequence[ResourceClaim], reason: Reason, attempt: Callable[[Sequence[ResourceClaim]], object]
) -> tuple[str, ...]:
    """Clauses that alone keep some plan from serving the claims.

    Args:
        claims: that were refused.
        reason: the whole tree of why.
        attempt: tries changed claims on the same target.

    Returns:
        One line for each such clause, with what was seen there and the plans that would do without it.
    """
    seen: dict[str, str] = {}
    for item in reason.walk():
        clause = item.fact("clause")
        if clause is not None and clause not in seen:
            seen[clause] = item.message.partition(" is false: ")[2]
    found = []
    for clause, value in list(seen.items())[:MAX_TRIES]:
        changed = [_without(claim, clause) for claim in claims]
        if changed == list(claims):
            continue
        answer = attempt(changed)
        if isinstance(answer, Allocation):
            names = [name for name in answer.instance_types if name]
            plans = f" on {_plans(names)}" if names else ""
            found.append(f"without {clause} the claims would fit{plans}" + (f" ({value})" if value else ""))
    return tuple(found)


def _plans(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _without(claim: ResourceClaim, clause: str) -> ResourceClaim:
    devices = claim.spec.devices
    requests = tuple(
        replace(
            request,
            exactly=None if request.exactly is None else _relaxed(request.exactly, clause),
            first_available=tuple(_relaxed(item, clause) for item in request.first_available),
        )
        for request in devices.requests
    )
    return replace(claim, spec=replace(claim.spec, devices=replace(devices, requests=requests)))


def _relaxed(item: ExactDeviceRequest | DeviceSubRequest, clause: str) -> ExactDeviceRequest | DeviceSubRequest:
    return replace(item, selectors=tuple(_left_out(selector, clause) for selector in item.selectors))


def _left_out(selector: DeviceSelector, clause: str) -> DeviceSelector:
    if selector.cel is None or clause not in selector.cel.expression:
        return selector
    return replace(selector, cel=CELDeviceSelector(selector.cel.expression.replace(clause, "true", 1)))
