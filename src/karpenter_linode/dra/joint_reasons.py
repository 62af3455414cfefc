"""Why requests that could each be served cannot be served together: constraints, counters, too few devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.dra.constraints import attribute_values
from karpenter_linode.dra.limits import feature_of_attribute
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from karpenter_linode.dra.constraints import Constraint, Value
    from karpenter_linode.dra.devices import CounterKey, PoolKey
    from karpenter_linode.dra.prepare import PreparedClaim
    from karpenter_linode.dra.view import Usage, View

_SHOWN: Final = 8


def joint_reasons(claims: Sequence[PreparedClaim], view: View, usage: Usage) -> tuple[Reason, ...]:
    """What stands between requests, in evaluation order."""
    found = [_constraint(claim, constraint, view, usage) for claim in claims for constraint in claim.spec.constraints]
    found.extend(_counters(view, usage))
    if not found:
        free = len(view.candidates) - usage.taken.bit_count()
        found.append(Reason("dra-competition", f"the requests want the same devices: {free} are free"))
    return tuple(found)


def _constraint(claim: PreparedClaim, constraint: Constraint, view: View, usage: Usage) -> Reason:
    devices: dict[frozenset[Value] | None, list[str]] = {}
    labels = [
        alternative
        for request in claim.spec.requests
        for alternative in request.alternatives
        if constraint.covers(alternative.request, alternative.label)
    ]
    for index, candidate in enumerate(view.candidates):
        if usage.taken >> index & 1 or not any(view.matches(item).served >> index & 1 for item in labels):
            continue
        values = attribute_values(constraint.attribute, candidate.id.driver, candidate.device)
        devices.setdefault(values, []).append(candidate.id.device)
    facts = tuple((_shown(values), ", ".join(names[:_SHOWN])) for values, names in devices.items())
    field = "matchAttribute" if constraint.kind == "match" else "distinctAttribute"
    seen = "; ".join(f"{value} on {names}" for value, names in facts) or "no device in question"
    feature = feature_of_attribute(constraint.attribute) if None in devices else None
    promise = f"; predicted devices cannot promise {feature}" if feature else ""
    return Reason(
        "dra-constraint", f"{seen}{promise}", subject=f"constraint {field} {constraint.attribute}", facts=facts
    )


def _counters(view: View, usage: Usage) -> Iterator[Reason]:
    """What is left of each counter that a device draws from, and how much each device needs."""
    needs: dict[tuple[PoolKey, CounterKey], list[tuple[str, Quantity]]] = {}
    for candidate in view.candidates:
        for consumption in candidate.device.consumes_counters:
            for name, drawn in consumption.counters.items():
                key = (candidate.pool, (consumption.counter_set, name))
                needs.setdefault(key, []).append((candidate.id.device, drawn.value))
    for (pool, counter), devices in needs.items():
        left = usage.remaining.get(pool, {}).get(counter)
        if left is not None:
            amount = str(Quantity.of(left, devices[0][1].notation))
            asked = ", ".join(f"{device} needs {need}" for device, need in devices[:_SHOWN])
            more = f" and {len(devices) - _SHOWN} more" if len(devices) > _SHOWN else ""
            label = "/".join(counter)
            yield Reason(
                "dra-counters",
                f"counter {label}: {amount} left; {asked}{more}",
                subject=f"pool {pool[0]}/{pool[1]}",
                facts=((label, amount),),
            )


def _shown(values: frozenset[Value] | None) -> str:
    if values is None:
        return "no value"
    return " and ".join(sorted(str(value) for _, value in values))
