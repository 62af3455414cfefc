"""The smallest change that would fit: claims with one clause of a selector eased or left out, tried for real."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from karpenter_linode.dra.allocation import Allocation
from karpenter_linode.dra.easing import eased
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

    Attempt = Callable[[Sequence[ResourceClaim]], object]

MAX_TRIES: Final = 4
_SHOWN: Final = 5


class _Seen:
    """A clause that was false: what it reads, and the values it saw on the devices."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[str, None] = {}


def hints(claims: Sequence[ResourceClaim], reason: Reason, attempt: Attempt) -> tuple[str, ...]:
    """Clauses that alone keep some plan from serving the claims.

    Args:
        claims: that were refused.
        reason: the whole tree of why.
        attempt: tries changed claims on the same target.

    Returns:
        One line for each such clause: the value nearest to the one asked that would do, and the plans that would do
        then; where no value can be named, the plans that would do without the clause.
    """
    seen: dict[str, _Seen] = {}
    for item in reason.walk():
        clause, value = item.fact("clause"), item.fact("value")
        if clause is not None:
            found = seen.setdefault(clause, _Seen(item.fact("name") or ""))
            if value is not None:
                found.values[value] = None
    lines = [_hint(claims, clause, found, attempt) for clause, found in list(seen.items())[:MAX_TRIES]]
    return tuple(line for line in lines if line)


def _hint(claims: Sequence[ResourceClaim], clause: str, seen: _Seen, attempt: Attempt) -> str:
    for change in eased(clause, list(seen.values))[:MAX_TRIES]:
        answer = _attempt(claims, clause, change.clause, attempt)
        if answer is not None:
            names = [name for name in answer.instance_types if name]
            match = f"would match {len(names)} plan{'s' if len(names) > 1 else ''}: {_plans(names)}"
            return f"{seen.name} {change.sign} {change.value} {match if names else 'would fit'}"
    answer = _attempt(claims, clause, "true", attempt)
    if answer is None:
        return ""
    names = [name for name in answer.instance_types if name]
    values = f" ({seen.name} is {', '.join(list(seen.values)[:_SHOWN])})" if seen.values else ""
    return f"without {clause} the claims would fit{f' on {_plans(names)}' if names else ''}{values}"


def _attempt(claims: Sequence[ResourceClaim], clause: str, instead: str, attempt: Attempt) -> Allocation | None:
    changed = [_changed(claim, clause, instead) for claim in claims]
    if changed == list(claims):
        return None
    answer = attempt(changed)
    return answer if isinstance(answer, Allocation) else None


def _plans(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _changed(claim: ResourceClaim, clause: str, instead: str) -> ResourceClaim:
    devices = claim.spec.devices
    requests = tuple(
        replace(
            request,
            exactly=None if request.exactly is None else _relaxed(request.exactly, clause, instead),
            first_available=tuple(_relaxed(item, clause, instead) for item in request.first_available),
        )
        for request in devices.requests
    )
    return replace(claim, spec=replace(claim.spec, devices=replace(devices, requests=requests)))


def _relaxed(
    item: ExactDeviceRequest | DeviceSubRequest, clause: str, instead: str
) -> ExactDeviceRequest | DeviceSubRequest:
    return replace(item, selectors=tuple(_rewritten(selector, clause, instead) for selector in item.selectors))


def _rewritten(selector: DeviceSelector, clause: str, instead: str) -> DeviceSelector:
    if selector.cel is None or clause not in selector.cel.expression:
        return selector
    return replace(selector, cel=CELDeviceSelector(selector.cel.expression.replace(clause, instead, 1)))
