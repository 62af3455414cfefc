"""Operators of the standard library, and ``size``, ``type`` and ``dyn``."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel import ast
from karpenter_linode.cel.cost import bulk, size_of, tenths
from karpenter_linode.cel.declarations import (
    ONE,
    UNKNOWN,
    Argument,
    Estimate,
    Library,
    Overload,
    Range,
    function,
    method,
)
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.relations import compare, contains, differs, equals
from karpenter_linode.cel.types import (
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    FORMAT,
    INT,
    IP,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    UINT,
    URL,
    Type,
    list_of,
    map_of,
    type_of,
    type_param,
)
from karpenter_linode.cel.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp, TypeValue, UInt, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_FORMAT: Final = 64
A: Final = type_param("A")
B: Final = type_param("B")
TIME_MIN: Final = -62_135_596_800 * 10**9
TIME_MAX: Final = 253_402_300_800 * 10**9 - 1


def checked_int(value: int) -> int:
    """An int result in its range.

    Raises:
        EvaluationError: integer overflow.
    """
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def checked_uint(value: int) -> UInt:
    """A uint result in its range.

    Raises:
        EvaluationError: unsigned integer overflow.
    """
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise EvaluationError("unsigned integer overflow")


def checked_duration(nanos: int) -> Duration:
    """A duration in its range: nanoseconds in 64 bits, as Kubernetes' Go implementation holds them.

    Raises:
        EvaluationError: duration out of range.
    """
    if INT_MIN <= nanos <= INT_MAX:
        return Duration(nanos)
    raise EvaluationError("duration out of range")


def checked_timestamp(nanos: int) -> Timestamp:
    """A timestamp between the years 1 and 9999.

    Raises:
        EvaluationError: timestamp out of range.
    """
    if TIME_MIN <= nanos <= TIME_MAX:
        return Timestamp(nanos)
    raise EvaluationError("timestamp overflow")


def _later(moment: Timestamp, nanos: int) -> Timestamp:
    """A time after a span, written in the same offset."""
    return Timestamp(checked_timestamp(moment.nanos + nanos).nanos, moment.offset)


def _int(operation: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda left, right: checked_int(operation(left, right))


def _uint(operation: Callable[[int, int], int]) -> Callable[[int, int], UInt]:
    return lambda left, right: checked_uint(operation(int(left), int(right)))


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    magnitude = abs(left) // abs(right)
    return magnitude if (left < 0) == (right < 0) else -magnitude


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    if left == INT_MIN and right == -1:
        raise EvaluationError("integer overflow")
    magnitude = abs(left) % abs(right)
    return -magnitude if left < 0 else magnitude


def _divide(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or left != left:  # noqa: PLR0124 - NaN is the value unequal to itself
        return float("nan")
    negative = str(left)[0] == "-"
    return float("-inf") if negative != (str(right)[0] == "-") else float("inf")


def _concatenation(left: Any, right: Any) -> int:
    return tenths(size_of(left) + size_of(right))


def _loose_concatenation(left: Any, right: Any) -> int:
    return 1 + bulk(size_of(left) + size_of(right))


def _concatenation_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    size = arguments[0].size + arguments[1].size
    return Estimate(size.tenths(), size)


def _list_concatenation_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    return Estimate(ONE, arguments[0].size + arguments[1].size)


def _concatenate_lists(left: list[Any], right: list[Any]) -> list[Any]:
    return [*left, *right]


def comparison_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    """Comparing goes through the shorter one."""
    most = min(arguments[0].size.high, arguments[1].size.high)
    return Estimate(Range(min(most, 1), most).tenths())


def _equality_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    """Values of the kinds that only Kubernetes has are compared at once, formats and URLs by their longest text."""
    left, right = arguments
    if left.type == right.type:
        if left.type in (QUANTITY, SEMVER, IP, CIDR):
            return Estimate(ONE)
        if left.type == FORMAT:
            return Estimate(Range(1, _LONGEST_FORMAT).tenths())
        if left.type == URL:
            most = right.size.high if right.size != UNKNOWN else 1
            return Estimate(Range(1, most).tenths())
    return comparison_estimate(arguments)


def _membership_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    return Estimate(arguments[1].size)


def _sum(overload_id: str, left: Type, right: Type, result: Type, combine: Callable[[int, int], Any]) -> Overload:
    return function(overload_id, (left, right), result, lambda one, other: combine(one.nanos, other.nanos))


_ADDITIONS: Final = (
    function("add_int64", (INT, INT), INT, _int(operator.add), loose=_loose_concatenation),
    function("add_uint64", (UINT, UINT), UINT, _uint(operator.add)),
    function("add_double", (DOUBLE, DOUBLE), DOUBLE, operator.add),
    function(
        "add_string", (STRING, STRING), STRING, operator.add, cost=_concatenation, estimate=_concatenation_estimate
    ),
    function("add_bytes", (BYTES, BYTES), BYTES, operator.add, cost=_concatenation, estimate=_concatenation_estimate),
    function(
        "add_list",
        (list_of(A), list_of(A)),
        list_of(A),
        _concatenate_lists,
        cost=_loose_concatenation,
        estimate=_list_concatenation_estimate,
    ),
    function("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, lambda one, other: _later(one, other.nanos)),
    function("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP, lambda one, other: _later(other, one.nanos)),
    _sum("add_duration_duration", DURATION, DURATION, DURATION, lambda one, other: checked_duration(one + other)),
)
_SUBTRACTIONS: Final = (
    function("subtract_int64", (INT, INT), INT, _int(operator.sub)),
    function("subtract_uint64", (UINT, UINT), UINT, _uint(operator.sub)),
    function("subtract_double", (DOUBLE, DOUBLE), DOUBLE, operator.sub),
    _sum(
        "subtract_timestamp_timestamp", TIMESTAMP, TIMESTAMP, DURATION, lambda one, other: checked_duration(one - other)
    ),
    function(
        "subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, lambda one, other: _later(one, -other.nanos)
    ),
    _sum("subtract_duration_duration", DURATION, DURATION, DURATION, lambda one, other: checked_duration(one - other)),
)


def _order(symbol: str, name: str, test: Callable[[int, int], bool]) -> dict[str, tuple[Overload, ...]]:
    def implementation(left: Any, right: Any) -> bool:
        return test(compare(left, right), 0)

    same = (BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION)
    numbers = (INT, UINT, DOUBLE)
    pairs = [(kind, kind) for kind in same] + [(one, other) for one in numbers for other in numbers if one is not other]
    return {
        symbol: tuple(
            function(
                f"{name}_{left}_{right}", (left, right), BOOL, implementation, estimate=comparison_estimate_of(left)
            )
            for left, right in pairs
        ),
    }


def comparison_estimate_of(kind: Type) -> Callable[[tuple[Argument, ...]], Estimate] | None:
    """Texts are compared by their size, all else at 1."""
    return comparison_estimate if kind in (STRING, BYTES) else None


_SIZE_KINDS: Final = (STRING, BYTES, list_of(A), map_of(A, B))
_OVERLOADS: Final = {
    "_+_": _ADDITIONS,
    "_-_": _SUBTRACTIONS,
    "_*_": (
        function("multiply_int64", (INT, INT), INT, _int(operator.mul)),
        function("multiply_uint64", (UINT, UINT), UINT, _uint(operator.mul)),
        function("multiply_double", (DOUBLE, DOUBLE), DOUBLE, operator.mul),
    ),
    "_/_": (
        function("divide_int64", (INT, INT), INT, _int(_quotient)),
        function("divide_uint64", (UINT, UINT), UINT, _uint(_quotient)),
        function("divide_double", (DOUBLE, DOUBLE), DOUBLE, _divide),
    ),
    "_%_": (
        function("modulo_int64", (INT, INT), INT, _int(_remainder)),
        function("modulo_uint64", (UINT, UINT), UINT, _uint(_remainder)),
    ),
    "-_": (
        function("negate_int64", (INT,), INT, lambda value: checked_int(-value)),
        function("negate_double", (DOUBLE,), DOUBLE, operator.neg),
    ),
    "!_": (function("logical_not", (BOOL,), BOOL, operator.not_),),
    "_==_": (function("equals", (A, A), BOOL, equals, estimate=_equality_estimate),),
    "_!=_": (function("not_equals", (A, A), BOOL, differs, estimate=comparison_estimate),),
    **_order("_<_", "less", operator.lt),
    **_order("_<=_", "less_equals", operator.le),
    **_order("_>_", "greater", operator.gt),
    **_order("_>=_", "greater_equals", operator.ge),
    "@in": (
        function(
            "in_list", (A, list_of(A)), BOOL, lambda value, many: contains(many, value), estimate=_membership_estimate
        ),
        function("in_map", (A, map_of(A, B)), BOOL, lambda value, many: contains(many, value)),
    ),
    # the code of these two is built by the emitter: reading parts and choosing a branch are no ordinary calls
    ast.INDEX: (
        function("index_list", (list_of(A), INT), A, operator.getitem),
        function("index_map", (map_of(A, B), A), B, operator.getitem),
    ),
    ast.CONDITIONAL: (function("conditional", (BOOL, A, A), A, lambda choice, yes, no: yes if choice else no),),
    "size": tuple(
        declare(f"size_{kind.name}_{declare.__name__}", (kind,), INT, len)
        for kind in _SIZE_KINDS
        for declare in (function, method)
    ),
    "dyn": (function("to_dyn", (A,), DYN, lambda value: value, folding="eager"),),
    "type": (function("type", (A,), type_of(A), lambda value: TypeValue(kind_of(value)), folding="eager"),),
}
LIBRARY: Final = Library("operators", _OVERLOADS)
