"""The ``X-Filter`` language (spec/linode-provider.md 7.5)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from karpenter_linode.sim.linode.records import ApiFaultError

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = dict[str, Any]
Test = Callable[[Row], bool]

_MAX_DEPTH: Final = 10
_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "+neq": lambda have, want: bool(have != want),
    "+gt": lambda have, want: bool(have > want),
    "+gte": lambda have, want: bool(have >= want),
    "+lt": lambda have, want: bool(have < want),
    "+lte": lambda have, want: bool(have <= want),
}
_CONTROL: Final = frozenset({"+order_by", "+order", "+limit"})


def apply_filter(rows: Sequence[Row], header: str | None, fields: frozenset[str]) -> list[Row]:
    """The rows that a filter selects, in the order that it asks for.

    Args:
        rows: rows of the answer.
        header: text of ``X-Filter``, or None.
        fields: fields that this list may be filtered by.

    Raises:
        ApiFaultError: 400 for anything that isn't a filter over these fields.
    """
    if not header:
        return list(rows)
    try:
        expression = msgspec.json.decode(header)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ApiFaultError(400, "X-Filter is not valid JSON") from error
    test = _compile(expression, fields, 0)
    selected = [row for row in rows if test(row)]
    return _ordered(selected, expression, fields)


def _compile(expression: Any, fields: frozenset[str], depth: int) -> Test:
    if not isinstance(expression, dict) or depth > _MAX_DEPTH:
        raise ApiFaultError(400, "X-Filter must be an object of conditions")
    tests = [
        _condition(key, value, fields, depth) for key, value in expression.items() if depth > 0 or key not in _CONTROL
    ]
    return lambda row: all(test(row) for test in tests)


def _condition(key: str, value: Any, fields: frozenset[str], depth: int) -> Test:
    if key in {"+and", "+or"}:
        if not isinstance(value, list):
            raise ApiFaultError(400, f"{key} must be a list")
        parts = [_compile(part, fields, depth + 1) for part in value]
        join = all if key == "+and" else any
        return lambda row: join(part(row) for part in parts)
    if key not in fields:
        raise ApiFaultError(400, f"Cannot filter on {key}")
    if not isinstance(value, dict):
        return partial(_equals, key, value)
    tests = [partial(_compare, key, operator, operand) for operator, operand in value.items()]
    for operator, operand in value.items():
        _check_operator(operator, operand)
    return lambda row: all(test(row) for test in tests)


def _check_operator(operator: str, operand: Any) -> None:
    if operator == "+contains":
        if not isinstance(operand, str):
            raise ApiFaultError(400, "+contains takes a string")
    elif operator not in _COMPARISONS:
        raise ApiFaultError(400, f"Unknown operator {operator}")


def _equals(field: str, want: Any, row: Row) -> bool:
    have = row.get(field)
    return want in have if isinstance(have, list) else bool(have == want)


def _compare(field: str, operator: str, operand: Any, row: Row) -> bool:
    have = row.get(field)
    if operator == "+contains":
        texts = have if isinstance(have, list) else [have]
        return any(isinstance(text, str) and operand in text for text in texts)
    values = have if isinstance(have, list) else [have]
    try:
        return any(_COMPARISONS[operator](value, operand) for value in values)
    except TypeError:
        return False


def _ordered(rows: list[Row], expression: Row, fields: frozenset[str]) -> list[Row]:
    by = expression.get("+order_by")
    if by is not None:
        if not isinstance(by, str) or by not in fields:
            raise ApiFaultError(400, f"Cannot order by {by}")
        rows = sorted(rows, key=lambda row: (str(type(row.get(by))), row.get(by)), reverse=_descending(expression))
    limit = expression.get("+limit")
    return rows if not isinstance(limit, int) else rows[:limit]


def _descending(expression: Row) -> bool:
    return bool(expression.get("+order", "asc") == "desc")
