"""String methods: those of the standard library and of the strings extension, version 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel.cost import bulk, size_of, tenths, traversal, traversal_twice, walk
from karpenter_linode.cel.declarations import (
    UNBOUNDED,
    Argument,
    Estimate,
    Library,
    Overload,
    Range,
    function,
    method,
    wrapped,
)
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.types import BOOL, INT, STRING, list_of

if TYPE_CHECKING:
    from collections.abc import Callable

# Unicode's White_Space property, which Go's TrimSpace goes by; Python's strip() takes some control characters too.
_SPACE: Final = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    },
)
_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER: Final = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if start < 0:
        raise _out_of_range(start)
    if not part:
        return min(start, len(text))
    return text.find(part, start) if start < len(text) else -1


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if start < 0:
        raise _out_of_range(start)
    if not part:
        return min(start, len(text))
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    if not 0 <= stop <= len(text):
        raise _out_of_range(stop)
    if start > stop:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, -1 if limit < 0 else limit)


def _replace_cost(text: Any, old: Any, new: Any, limit: Any = -1) -> int:
    # Kubernetes charges for the input only; the result can be as long as the product of both texts
    cost = traversal_twice(text)
    if not (type(text) is type(old) is type(new) is str) or type(limit) is not int:
        return cost
    count = text.count(old) if old else len(text) + 1
    count = count if limit < 0 else min(count, limit)
    return cost + bulk(len(text) + count * max(0, len(new) - len(old)))


def _join(parts: list[str], separator: str = "") -> str:
    for part in parts:
        if type(part) is not str:
            raise EvaluationError(f"join: invalid input: {part}")
    return separator.join(parts)


def _join_cost(parts: Any, separator: Any = "") -> int:
    texts = isinstance(parts, list | tuple) and all(type(part) is str for part in (*parts, separator))
    if not texts:
        return 1  # an error has the size 1
    return tenths(2 * (sum(map(len, parts)) + len(separator) * max(0, len(parts) - 1)))


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def _prefix_cost(_text: str, part: str) -> int:
    return tenths(size_of(part))


def _contains_cost(text: str, part: str) -> int:
    return tenths(size_of(text)) * tenths(size_of(part))


def _contains_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    return Estimate(arguments[0].size.tenths() * arguments[1].size.tenths())


def _prefix_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    return Estimate(arguments[1].size.tenths())


def _same_size(arguments: tuple[Argument, ...]) -> Estimate:
    return Estimate(arguments[0].size.tenths(), arguments[0].size)


def _quote_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    size = arguments[0].size
    return Estimate(size.tenths(), Range(size.low + 2, wrapped(2 * size.high + 2)))


def _split_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    size = arguments[0].size
    limit = arguments[2].constant if arguments[2:] else None
    most = limit if isinstance(limit, int) and limit >= 0 else size.high
    return Estimate(size.tenths(2), Range(0, most))


def _replace_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    text, old, new = (argument.size for argument in arguments[:3])
    if old.low == 0:
        most = (text.high + 1) * new.high + text.high
    elif new.high <= old.low:
        most = text.high
    else:
        most = -(-text.high // old.low) * new.high
    return Estimate(text.tenths(2), Range(0, min(most, UNBOUNDED)))


def _join_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    many, element = arguments[0].size, arguments[0].element
    size = many * element
    if len(arguments) > 1:
        size = size + arguments[1].size * Range(max(0, many.low - 1), max(0, many.high - 1))
    return Estimate(size.tenths(), size)


def _linear(name: str, params: int, implementation: Callable[..., str]) -> Overload:
    kinds = (STRING, *(INT,) * (params - 1))
    return method(f"string_{name}_{params}", kinds, STRING, implementation, cost=traversal, estimate=_same_size)


def _lookup(name: str, implementation: Callable[..., int]) -> tuple[Overload, ...]:
    return tuple(
        method(f"string_{name}_{len(kinds)}", kinds, INT, implementation, cost=walk, estimate=_same_size)
        for kinds in ((STRING, STRING), (STRING, STRING, INT))
    )


_TEXTS: Final = list_of(STRING)
_OVERLOADS: Final = {
    "contains": (
        method(
            "contains_string",
            (STRING, STRING),
            BOOL,
            str.__contains__,
            cost=_contains_cost,
            estimate=_contains_estimate,
        ),
    ),
    "startsWith": (
        method(
            "starts_with_string", (STRING, STRING), BOOL, str.startswith, cost=_prefix_cost, estimate=_prefix_estimate
        ),
    ),
    "endsWith": (
        method("ends_with_string", (STRING, STRING), BOOL, str.endswith, cost=_prefix_cost, estimate=_prefix_estimate),
    ),
    "charAt": (method("string_char_at", (STRING, INT), STRING, _char_at),),
    "indexOf": _lookup("index_of", _index_of),
    "lastIndexOf": _lookup("last_index_of", _last_index_of),
    "lowerAscii": (_linear("lower_ascii", 1, lambda text: text.translate(_LOWER)),),
    "upperAscii": (_linear("upper_ascii", 1, lambda text: text.translate(_UPPER)),),
    "trim": (_linear("trim", 1, lambda text: text.strip(_SPACE)),),
    "substring": (_linear("substring", 2, _substring), _linear("substring", 3, _substring)),
    "split": tuple(
        method(f"string_split_{len(kinds)}", kinds, _TEXTS, _split, cost=traversal_twice, estimate=_split_estimate)
        for kinds in ((STRING, STRING), (STRING, STRING, INT))
    ),
    "replace": tuple(
        method(f"string_replace_{len(kinds)}", kinds, STRING, _replace, cost=_replace_cost, estimate=_replace_estimate)
        for kinds in ((STRING, STRING, STRING), (STRING, STRING, STRING, INT))
    ),
    "join": tuple(
        method(f"list_join_{len(kinds)}", kinds, STRING, _join, cost=_join_cost, estimate=_join_estimate)
        for kinds in ((_TEXTS,), (_TEXTS, STRING))
    ),
    "strings.quote": (function("strings_quote", (STRING,), STRING, _quote, cost=traversal, estimate=_quote_estimate),),
}
LIBRARY: Final = Library("text", _OVERLOADS)
