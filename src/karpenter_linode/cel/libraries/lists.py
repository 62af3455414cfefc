"""List functions: those of Kubernetes (``isSorted`` ... ``lastIndexOf``) and of the lists extension, version 3."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel import macros
from karpenter_linode.cel.cost import LIST_COST, bulk, comparisons, size_of, walk
from karpenter_linode.cel.declarations import (
    ONE,
    UNBOUNDED,
    Argument,
    Estimate,
    Library,
    Overload,
    Range,
    function,
    method,
)
from karpenter_linode.cel.errors import AbandonedError, EvaluationError
from karpenter_linode.cel.libraries.operators import checked_duration, checked_int, checked_uint
from karpenter_linode.cel.relations import compare, contains, equals, same_kind, sort_order
from karpenter_linode.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    type_param,
)
from karpenter_linode.cel.values import Duration, UInt

if TYPE_CHECKING:
    from collections.abc import Callable

_T: Final = type_param("T")
_ANY_LIST: Final = list_of(_T)
_COMPARABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
_SUMMABLE: Final = (INT, UINT, DOUBLE, DURATION)
_CALL: Final = 1 + LIST_COST
_ZERO: Final = {INT: 0, UINT: UInt(0), DOUBLE: 0.0, DURATION: Duration(0)}


def _length_cost(values: list[Any], *_: Any) -> int:
    return _CALL + size_of(values)


def _slice_cost(values: Any, start: Any, end: Any) -> int:
    """By the size of the result; an error has the size 1."""
    good = isinstance(values, list | tuple) and type(start) is type(end) is int and 0 <= start <= end <= len(values)
    return _CALL + (end - start if good else 1)


def _walk_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    many = arguments[0]
    if not many.type.params:
        return Estimate(many.size.tenths())  # to Kubernetes it is a text then
    each = ONE + many.element.tenths() if many.type.params and many.type.params[0] in (STRING, BYTES) else ONE
    return Estimate(many.size * each)


def _length_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    return _building(arguments[0].size)


def _building(size: Range, factor: int = 1) -> Estimate:
    """Making a list of a size; each element costs a factor."""
    return Estimate(size * Range(factor, factor) + Range(_CALL, _CALL), size)


def _slice_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    many, start, end = arguments
    last = _natural(end.constant, many.size.high)
    size = (last - _natural(start.constant, 0)) % (UNBOUNDED + 1)
    return _building(Range(size, size))


def _natural(constant: Any, otherwise: int) -> int:
    return max(constant, 0) if type(constant) is int else otherwise


def _flatten_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    depth = _natural(arguments[1].constant, UNBOUNDED) if len(arguments) > 1 else 1
    return _building(arguments[0].size, depth)


def comparisons_estimate(size: Range, *, texts: bool) -> Estimate:
    """Comparing all elements of a list with each other, and making a list of them."""
    pairs = size * size
    cost = pairs + pairs + Range(_CALL, _CALL)
    return Estimate(cost + pairs.tenths() if texts else cost, pairs)


def _comparisons_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    return comparisons_estimate(arguments[0].size, texts=False)


def _text_comparisons_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    return comparisons_estimate(arguments[0].size, texts=True)


def _range_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    size = _natural(arguments[0].constant, UNBOUNDED)
    return _building(Range(size, size))


def _is_sorted(values: list[Any]) -> bool:
    return not any(_beats(one, other, 1) for one, other in pairwise(values))


def _sum(zero: Any) -> Callable[[list[Any]], Any]:
    def add(values: list[Any]) -> Any:
        if type(zero) is Duration:
            return checked_duration(sum(value.nanos for value in values))
        if type(zero) is float:
            return sum(values, 0.0)
        check = checked_uint if type(zero) is UInt else checked_int
        return reduce(lambda one, other: check(int(one) + int(other)), values, zero)

    return add


def _extreme(name: str, sign: int) -> Callable[[list[Any]], Any]:
    def choose(values: list[Any]) -> Any:
        if not values:
            raise EvaluationError(f"{name} called on empty list")
        return reduce(lambda one, other: other if _beats(other, one, sign) else one, values)

    return choose


def _beats(one: Any, other: Any, sign: int) -> bool:
    # values of kinds without an order between them are passed over, as in Kubernetes
    try:
        return compare(one, other) == sign
    except EvaluationError:
        return False


def _index_of(values: list[Any], wanted: Any) -> int:
    return next((index for index, value in enumerate(values) if contains([value], wanted)), -1)


def _last_index_of(values: list[Any], wanted: Any) -> int:
    return next((index for index in range(len(values) - 1, -1, -1) if contains([values[index]], wanted)), -1)


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(values):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return list(values[start:end])


def _flatten(values: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat = list(values)
    while depth > 0 and any(isinstance(value, list | tuple) for value in flat):
        flat = [part for value in flat for part in (value if isinstance(value, list | tuple) else (value,))]
        depth -= 1
    return flat


def _flatten_cost(values: Any, depth: Any = 1) -> int:
    if type(depth) is not int:
        raise AbandonedError("flatten needs a depth")
    return _CALL + size_of(values) * (depth if depth >= 0 else 1) + bulk(_parts(values))


def _parts(values: Any) -> int:
    return sum(map(size_of, values)) if isinstance(values, list | tuple) else 0


def _sort(values: list[Any]) -> list[Any]:
    if not same_kind(values):
        raise EvaluationError("list elements must have the same type")
    return sorted(values, key=sort_order)


def _distinct(values: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if not any(equals(value, other) for other in kept):
            kept.append(value)
    return kept


def _range(count: int) -> list[int]:
    return list(range(count))


def _range_cost(count: Any) -> int:
    return _CALL + (max(0, count) if type(count) is int else 1)


def _per_kind(
    name: str, kinds: tuple[Type, ...], implement: Callable[[Type], tuple[Type, Callable[..., Any]]]
) -> tuple[Overload, ...]:
    made: list[Overload] = []
    for kind in kinds:
        result, implementation = implement(kind)
        params = (list_of(kind),)
        made.append(
            method(f"list_{kind}_{name}", params, result, implementation, cost=walk, estimate=_walk_estimate),
        )
    return tuple(made)


def _search(name: str, implementation: Callable[..., int]) -> tuple[Overload, ...]:
    params = (_ANY_LIST, _T)
    return (method(f"list_a_{name}", params, INT, implementation, cost=walk, estimate=_walk_estimate),)


def _whole(name: str, implementation: Callable[[list[Any]], list[Any]], kind: Type = _ANY_LIST) -> Overload:
    return method(f"list_{name}_{kind}", (kind,), kind, implementation, cost=_length_cost, estimate=_length_estimate)


_OVERLOADS: Final = {
    "isSorted": _per_kind("is_sorted", _COMPARABLE, lambda _: (BOOL, _is_sorted)),
    "sum": _per_kind("sum", _SUMMABLE, lambda kind: (kind, _sum(_ZERO[kind]))),
    "min": _per_kind("min", _COMPARABLE, lambda kind: (kind, _extreme("min", -1))),
    "max": _per_kind("max", _COMPARABLE, lambda kind: (kind, _extreme("max", 1))),
    "indexOf": _search("index_of", _index_of),
    "lastIndexOf": _search("last_index_of", _last_index_of),
    "slice": (
        method("list_slice", (_ANY_LIST, INT, INT), _ANY_LIST, _slice, cost=_slice_cost, estimate=_slice_estimate),
    ),
    "flatten": (
        method(
            "list_flatten", (list_of(_ANY_LIST),), _ANY_LIST, _flatten, cost=_flatten_cost, estimate=_flatten_estimate
        ),
        method(
            "list_flatten_int",
            (list_of(DYN), INT),
            list_of(DYN),
            _flatten,
            cost=_flatten_cost,
            estimate=_flatten_estimate,
        ),
    ),
    "sort": tuple(
        method(
            f"list_sort_{kind}",
            (list_of(kind),),
            list_of(kind),
            _sort,
            cost=comparisons,
            loose=1,
            estimate=_text_comparisons_estimate if kind in (STRING, BYTES) else _comparisons_estimate,
        )
        for kind in _COMPARABLE
    ),
    "reverse": (_whole("reverse", lambda values: list(reversed(values))),),
    "distinct": (
        method("list_distinct", (_ANY_LIST,), _ANY_LIST, _distinct, cost=comparisons, estimate=_comparisons_estimate),
    ),
    "lists.range": (function("lists_range", (INT,), list_of(INT), _range, cost=_range_cost, estimate=_range_estimate),),
}
LIBRARY: Final = Library("lists", _OVERLOADS, {("sortBy", 2, True): macros.sort_by})
