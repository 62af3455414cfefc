"""Consumable capacity: what a request takes of each capacity of a device (spec/dra-allocation.md 5.7).

Amounts are exact nano-units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.model.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from karpenter_linode.model.resource import CapacityRequestPolicy, Device, DeviceCapacity

Amounts = dict[str, int]
"""Capacity name -> nano-units."""


def consumption(device: Device, requests: Mapping[str, int]) -> Amounts | str:
    """What one share takes of every capacity of a device that may be shared.

    Args:
        device: the device.
        requests: nano-units asked, by capacity name exactly as the device spells it.

    Returns:
        The amount of every capacity of the device, or why the request can never be served by it.
    """
    missing = _missing(device, requests)
    if missing:
        return missing
    amounts: Amounts = {}
    for name, capacity in device.capacity.items():
        amount = _amount(capacity, requests.get(name))
        problem = _violation(name, amount, capacity)
        if problem:
            return problem
        amounts[name] = amount
    return amounts


def unserved(device: Device, requests: Mapping[str, int]) -> str:
    """Why an exclusive device cannot serve the capacity asked, or an empty text (spec 1.8, point 6)."""
    missing = _missing(device, requests)
    if missing:
        return missing
    for name, asked in requests.items():
        capacity = device.capacity[name]
        problem = _violation(name, _amount(capacity, asked), capacity)
        if problem:
            return problem
    return ""


def _missing(device: Device, requests: Mapping[str, int]) -> str:
    return next((f"it has no capacity {name}" for name in requests if name not in device.capacity), "")


def _amount(capacity: DeviceCapacity, asked: int | None) -> int:
    policy = capacity.request_policy
    if asked is None:
        default = policy.default if policy is not None else None
        return capacity.value.nano if default is None else default.nano
    if policy is None:
        return asked
    if policy.valid_values:
        return next((value.nano for value in policy.valid_values if value.nano >= asked), asked)
    return _in_range(policy, asked)


def _in_range(policy: CapacityRequestPolicy, asked: int) -> int:
    span = policy.valid_range
    if span is None or span.min is None:
        return asked
    least = span.min.nano
    if asked <= least:
        return least
    if span.step is None or span.step.nano <= 0:
        return asked
    step = span.step.nano
    return least + -(-(asked - least) // step) * step


def _violation(name: str, amount: int, capacity: DeviceCapacity) -> str:
    policy = capacity.request_policy
    if policy is not None and not (policy.default is not None and policy.default.nano == amount):
        if policy.valid_values and all(value.nano != amount for value in policy.valid_values):
            return f"{name} {Quantity(amount)} is none of its valid values"
        span = policy.valid_range
        if span is not None and span.max is not None and amount > span.max.nano:
            return f"{name} {Quantity(amount, span.max.notation)} is above the maximum of {span.max}"
    if amount > capacity.value.nano:
        return f"{name} {Quantity(amount, capacity.value.notation)} is more than its {capacity.value}"
    return ""
