"""Lists as sets: order and repetition do not matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel.cost import size_of
from karpenter_linode.cel.declarations import ONE, Argument, Estimate, Library, Overload, function
from karpenter_linode.cel.relations import contains
from karpenter_linode.cel.types import BOOL, list_of, type_param

if TYPE_CHECKING:
    from collections.abc import Callable

_LIST: Final = list_of(type_param("T"))


def _contains(many: list[Any], few: list[Any]) -> bool:
    return all(contains(many, value) for value in few)


def _equivalent(left: list[Any], right: list[Any]) -> bool:
    return _contains(left, right) and _contains(right, left)


def _intersects(left: list[Any], right: list[Any]) -> bool:
    return any(contains(left, value) for value in right)


def _product(left: list[Any], right: list[Any]) -> int:
    return 1 + size_of(left) * size_of(right)


def _twice(left: list[Any], right: list[Any]) -> int:
    return 1 + 2 * size_of(left) * size_of(right)


def _estimate(factor: int) -> Callable[[tuple[Argument, ...]], Estimate]:
    def estimate(arguments: tuple[Argument, ...]) -> Estimate:
        product = arguments[0].size * arguments[1].size
        return Estimate(ONE + (product if factor == 1 else product + product))

    return estimate


def _relation(
    name: str, implementation: Callable[..., bool], cost: Callable[..., int], factor: int
) -> tuple[Overload, ...]:
    return (function(f"list_sets_{name}", (_LIST, _LIST), BOOL, implementation, cost=cost, estimate=_estimate(factor)),)


LIBRARY: Final = Library(
    "sets",
    {
        "sets.contains": _relation("contains", _contains, _product, 1),
        "sets.equivalent": _relation("equivalent", _equivalent, _twice, 2),
        "sets.intersects": _relation("intersects", _intersects, _product, 1),
    },
)
