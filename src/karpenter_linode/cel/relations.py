"""Equality and order between values of any kinds."""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel.errors import EvaluationError, no_such_overload
from karpenter_linode.cel.values import (
    NONE,
    ComputedQuantity,
    Duration,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    encode_key,
    kind_of,
)
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.semver import SemVer

if TYPE_CHECKING:
    from collections.abc import Callable

_PLAIN: Final = frozenset({str, int, bool, float, bytes, UInt, Quantity, Timestamp, Duration, TypeValue})
_NUMBERS: Final = frozenset({int, UInt, float})
_MISSING: Final = object()
# Kinds that answer a comparison with anything foreign by an error instead of false, when they stand on the left.
_STRICT: set[type] = {Quantity, ComputedQuantity, SemVer}


def register_strict(python_type: type) -> None:
    """Make values of a type refuse comparison with other kinds. For libraries, at import."""
    _STRICT.add(python_type)


def is_strict(value: Any) -> bool:
    """Whether a value is of one of the kinds that only Kubernetes has."""
    return type(value) in _STRICT


def equals(left: Any, right: Any) -> bool:
    """``left == right``. Different kinds are unequal; numbers compare by value across int, uint and double.

    Raises:
        EvaluationError: a Quantity, Semver or another value of the Kubernetes kinds on the left, and something else on
            the right (spec/cel-for-dra.md section 4).
    """
    kind = type(left)
    if kind in _PLAIN and kind is type(right):
        return bool(left == right)
    if kind in _NUMBERS:
        return type(right) in _NUMBERS and _number(left, right) == _number(right, left)
    if left is None or right is None:
        return left is right
    if isinstance(left, list | tuple):
        return isinstance(right, list | tuple) and len(left) == len(right) and all(map(equals, left, right))
    if isinstance(left, dict):
        return isinstance(right, dict) and _maps_equal(left, right)
    return _objects_equal(left, right)


def _objects_equal(left: Any, right: Any) -> bool:
    kind = type(left)
    if kind is Optional:
        return type(right) is Optional and _optionals_equal(left, right)
    if kind is SemVer and type(right) is SemVer:
        return left.compare(right) == 0  # type: ignore[no-any-return]
    if kind is ComputedQuantity and type(right) is Quantity:
        return bool(left == right)
    if kind in _STRICT and (type(right) is not kind or kind is ComputedQuantity):
        raise no_such_overload()
    return type(right) is kind and bool(left == right)


def _maps_equal(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    if len(left) != len(right):
        return False
    for key, value in left.items():
        other = dict.get(right, key, _MISSING)
        if other is _MISSING or not equals(value, other):
            return False
    return True


def _optionals_equal(left: Optional, right: Optional) -> bool:
    if left is NONE or right is NONE:
        return left is right
    return equals(left.value, right.value)


def differs(left: Any, right: Any) -> bool:
    """``left != right``: true also where ``==`` would be an error."""
    try:
        return not equals(left, right)
    except EvaluationError:
        return True


def contains(container: Any, value: Any) -> bool:
    """``value in container``: in a list by equality, in a map by key. Elements that cannot be compared do not count."""
    if isinstance(container, dict):
        if type(value) in (str, int, UInt, float, bool):
            return encode_key(value) in container
        return False
    if isinstance(container, list | tuple):
        return any(_same(element, value) for element in container)
    raise no_such_overload()


def _same(left: Any, right: Any) -> bool:
    try:
        return equals(left, right)
    except EvaluationError:
        return False


def _number(one: Any, other: Any) -> Any:
    """A number as it is compared with another: as a double beside a double, which is how the cel-spec tests want it."""
    return float(one) if type(other) is float else one


_ORDERED: Final = (
    frozenset({bool}),
    frozenset({str}),
    frozenset({bytes}),
    _NUMBERS,
)


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1.

    Raises:
        EvaluationError: kinds without an order, or NaN.
    """
    kind, other = type(left), type(right)
    if kind is Timestamp or kind is Duration:
        if kind is not other:
            raise no_such_overload()
        left, right = left.nanos, right.nanos
    elif not any(kind in group and other in group for group in _ORDERED):
        raise no_such_overload()
    elif kind is not other:
        left, right = _number(left, right), _number(right, left)
    if left == right:
        return 0
    if left < right:
        return -1
    if left > right:
        return 1
    raise EvaluationError("NaN values cannot be ordered")


def same_kind(values: list[Any]) -> bool:
    """Whether all values are of one kind."""
    return len({kind_of(value) for value in values}) <= 1


def _rank(left: Any, right: Any) -> int:
    try:
        return compare(left, right)
    except EvaluationError:
        return 0  # NaN


sort_order: Final[Callable[[Any], Any]] = cmp_to_key(_rank)
"""A key function for ``sorted`` that orders by ``compare``; what has no order stays where it is."""
