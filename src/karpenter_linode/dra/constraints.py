"""Constraints between a claim's devices: ``matchAttribute``, ``distinctAttribute`` (spec/dra-allocation.md 5.6).

The state of a constraint is an immutable value, so that undoing a choice is putting the old value back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from karpenter_linode.dra.selector import split_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from karpenter_linode.dra.bindings import BoundDevices
    from karpenter_linode.model.resource import Device, DeviceAttribute

Value = tuple[str, bool | int | str]
"""Kind and value; a version counts as text (trap T18), kinds never meet."""


class Pinned(Struct, frozen=True):
    """The values that every further device must share one of."""

    values: frozenset[Value]


class BoundTo(Struct, frozen=True):
    """The values are unknown before launch: every further device must be bound to this one."""

    device: tuple[str, str, str]


class Seen(Struct, frozen=True):
    """The values that no further device may have."""

    values: frozenset[Value]


State = Pinned | BoundTo | Seen | None


class Constraint(Struct, frozen=True):
    """One constraint of a claim.

    Args:
        kind: what must hold for the attribute.
        attribute: fully qualified name.
        requests: ``request`` or ``request/subrequest`` in scope; empty for all.
    """

    kind: Literal["match", "distinct"]
    attribute: str
    requests: frozenset[str]

    def covers(self, request: str, label: str) -> bool:
        """Whether devices of a request count, given its bare name and its full label."""
        return not self.requests or request in self.requests or label in self.requests

    def extend(
        self, state: State, driver: str, device: Device, key: tuple[str, str, str], bound: BoundDevices
    ) -> State:
        """The state with one more device, or None when the constraint refuses it."""
        values = attribute_values(self.attribute, driver, device)
        if self.kind == "distinct":
            return _distinct(state, values)
        if values is None:
            return _bind(state, key, bound.get(self.attribute))
        if isinstance(state, BoundTo):
            return None
        common = values & state.values if isinstance(state, Pinned) else values
        return Pinned(common) if common else None


def attribute_values(attribute: str, driver: str, device: Device) -> frozenset[Value] | None:
    """The values of an attribute, one for a scalar, or None where the device lacks it.

    The full name is looked up first; a bare name stands for the driver's own domain.
    """
    found = device.attributes.get(attribute)
    if found is None:
        domain, name = split_name(attribute, driver)
        found = device.attributes.get(name) if domain == driver else None
    return None if found is None else _values(found)


def _values(attribute: DeviceAttribute) -> frozenset[Value]:
    kinds: tuple[
        tuple[str, bool | int | str | None, tuple[bool, ...] | tuple[int, ...] | tuple[str, ...] | None], ...
    ] = (
        ("string", attribute.string, attribute.strings),
        ("int", attribute.int_, attribute.ints),
        ("bool", attribute.bool_, attribute.bools),
        ("version", attribute.version, attribute.versions),
    )
    for kind, one, several in kinds:
        if one is not None:
            return frozenset(((kind, one),))
        if several is not None:
            return frozenset((kind, item) for item in several)
    return frozenset()


def _distinct(state: State, values: frozenset[Value] | None) -> State:
    if not values:
        return None
    if not isinstance(state, Seen):
        return Seen(values)
    return Seen(state.values | values) if state.values.isdisjoint(values) else None


def _bind(
    state: State,
    key: tuple[str, str, str],
    table: Mapping[tuple[str, str, str], frozenset[tuple[str, str, str]]] | None,
) -> State:
    if table is None or isinstance(state, Pinned) or key not in table:
        return None
    if isinstance(state, BoundTo):
        return state if state.device in table[key] else None
    return BoundTo(key)
