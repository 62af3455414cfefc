"""Kubernetes quantities (spec/cel-for-dra.md 5.1)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from karpenter_linode.cel.cost import traversal
from karpenter_linode.cel.declarations import Argument, Estimate, Library, Overload, function, method
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.types import BOOL, DOUBLE, INT, QUANTITY, STRING
from karpenter_linode.cel.values import INT_MAX, INT_MIN, ComputedQuantity
from karpenter_linode.model.quantity import NANO, Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Callable

_SHAPE: Final = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_SHAPE_PATTERN: Final = re.compile(_SHAPE[1:-1], re.ASCII)
_NO_DIGITS: Final = re.compile(r"^([+-]?)(?=\.(?![0-9])|[^0-9.+-]|$)")
"""Before an amount without any digit, which stands for zero: ``k``, ``-.5e``, ``.Ki`` are quantities to Kubernetes."""


def _parse(text: str) -> Quantity:
    text = _NO_DIGITS.sub(r"\g<1>0", text) if text else text
    if not _SHAPE_PATTERN.fullmatch(text):
        raise EvaluationError(f"quantities must match the regular expression '{_SHAPE}'")
    try:
        return Quantity.parse(text)
    except QuantityError:
        raise EvaluationError("unable to parse quantity's suffix") from None


def _is_quantity(text: str) -> bool:
    try:
        _parse(text)
    except EvaluationError:
        return False
    return True


def _sign(value: Quantity) -> int:
    return (value.nano > 0) - (value.nano < 0)


def _is_integer(value: Quantity) -> bool:
    return value.plain and value.nano % NANO == 0 and INT_MIN <= value.nano // NANO <= INT_MAX


def _as_integer(value: Quantity) -> int:
    if not _is_integer(value):
        raise EvaluationError("cannot convert value to integer")
    return value.nano // NANO


def _compare(left: Quantity, right: Quantity) -> int:
    return (left.nano > right.nano) - (left.nano < right.nano)


def _parse_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    return Estimate(arguments[0].size.tenths())


def _total(left: Quantity, right: Quantity) -> Quantity:
    """A sum. It is a plain integer if what is added is, zero not counted, and if it fits one."""
    total = left.nano + right.nano
    parts = [each.plain for each in (left, right) if each.nano]
    fits = INT_MIN <= total // NANO <= INT_MAX
    return ComputedQuantity(total, left.notation, plain=all(parts) and fits)


def _with(name: str, implementation: Callable[[Quantity, Quantity], Quantity]) -> tuple[Overload, ...]:
    def with_int(left: Quantity, right: int) -> Quantity:
        return implementation(left, Quantity.of(right))

    return (
        method(f"quantity_{name}", (QUANTITY, QUANTITY), QUANTITY, implementation),
        method(f"quantity_{name}_int", (QUANTITY, INT), QUANTITY, with_int),
    )


_OVERLOADS: Final = {
    "quantity": (
        function(
            "string_to_quantity", (STRING,), QUANTITY, _parse, cost=traversal, estimate=_parse_estimate, folding="lazy"
        ),
    ),
    "isQuantity": (
        function(
            "is_quantity_string",
            (STRING,),
            BOOL,
            _is_quantity,
            cost=traversal,
            estimate=_parse_estimate,
            folding="lazy",
        ),
    ),
    "sign": (function("quantity_sign", (QUANTITY,), INT, _sign),),
    "isGreaterThan": (
        method("quantity_is_greater_than", (QUANTITY, QUANTITY), BOOL, lambda left, right: left.nano > right.nano),
    ),
    "isLessThan": (
        method("quantity_is_less_than", (QUANTITY, QUANTITY), BOOL, lambda left, right: left.nano < right.nano),
    ),
    "compareTo": (method("quantity_compare_to", (QUANTITY, QUANTITY), INT, _compare),),
    "asInteger": (method("quantity_get_int", (QUANTITY,), INT, _as_integer),),
    "isInteger": (method("quantity_is_integer", (QUANTITY,), BOOL, _is_integer),),
    # a double is what this function is asked for; amounts are compared and added as integers
    "asApproximateFloat": (method("quantity_get_float", (QUANTITY,), DOUBLE, lambda value: value.nano / NANO),),
    "add": _with("add", _total),
    "sub": _with("sub", lambda left, right: _total(left, Quantity(-right.nano, plain=right.plain))),
}
LIBRARY: Final = Library("quantity", _OVERLOADS)
