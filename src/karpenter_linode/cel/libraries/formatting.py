"""``string.format``, as version 2 of the strings extension writes things (the version that Kubernetes enables).

Numbers come out in the English locale: thousands separators in ``%f``, powers of ten in ``%e``, the infinity sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel import ast
from karpenter_linode.cel.cost import bulk, size_of, traversal
from karpenter_linode.cel.declarations import Argument, Estimate, Library, method
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.libraries.numbers import format_double
from karpenter_linode.cel.libraries.times import format_duration, format_timestamp
from karpenter_linode.cel.types import DYN, STRING, list_of
from karpenter_linode.cel.values import Duration, Timestamp, TypeValue, UInt, decode_key, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from karpenter_linode.cel.types import Type

_DEFAULT_PRECISION: Final = 6
_MAX_PRECISION: Final = 1000
_CLAUSES: Final = "sdfebxXo"
_SUPERSCRIPT: Final = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_ALLOWED: Final = {
    "d": ("int", "uint"),
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": ("int", "uint", "bool"),
    "x": ("int", "uint", "string", "bytes"),
    "X": ("int", "uint", "string", "bytes"),
    "o": ("int", "uint"),
}
_COMPLAINTS: Final = {
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}
_TEXT_KINDS: Final = frozenset(
    (
        *("list", "map", "int", "uint", "double", "bool", "string", "bytes", "type", "null_type"),
        *("google.protobuf.Timestamp", "google.protobuf.Duration"),
    ),
)
_STRING_COMPLAINT: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps"
)


def _pieces(text: str) -> Iterator[tuple[str, str, int]]:
    """The parts of a format text: ("", literal text, 0) or (clause letter, "", precision)."""
    position = 0
    while position < len(text):
        start = text.find("%", position)
        if start < 0:
            break
        yield "", text[position:start], 0
        position = start + 1
        if text[position : position + 1] == "%":
            yield "", "%", 0
            position += 1
            continue
        precision, position = _precision(text, position)
        clause = text[position : position + 1]
        if not clause:
            raise EvaluationError("unexpected end of format string")
        if clause not in _CLAUSES:
            raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{clause}"')
        yield clause, "", precision
        position += 1
    yield "", text[position:], 0


def _precision(text: str, position: int) -> tuple[int, int]:
    if text[position : position + 1] != ".":
        return _DEFAULT_PRECISION, position
    end = position + 1
    while text[end : end + 1].isdigit() and end - position <= 5:  # noqa: PLR2004 - more digits than any allowed precision has
        end += 1
    digits = text[position + 1 : end]
    if not digits.isascii() or not digits or int(digits) > _MAX_PRECISION:
        raise EvaluationError("could not parse formatting clause: precision must be a number up to 1000")
    return int(digits), end


def _format(text: str, arguments: list[Any]) -> str:
    made: list[str] = []
    used = 0
    for clause, literal, precision in _pieces(text):
        if not clause:
            made.append(literal)
            continue
        if used >= len(arguments):
            raise EvaluationError(f"index {used} out of range")
        made.append(_formatted(clause, arguments[used], precision))
        used += 1
    if used < len(arguments):
        raise EvaluationError(f"too many arguments supplied to string.format (expected {used}, got {len(arguments)})")
    return "".join(made)


def _formatted(clause: str, value: Any, precision: int) -> str:
    kind = kind_of(value)
    complaint = _complaint(clause, kind)
    if complaint:
        raise EvaluationError(complaint)
    if clause == "s":
        return _text(value)
    if clause in "fe":
        return _number(clause, value, precision)
    if clause in "xX" and kind in ("string", "bytes"):
        digits: str = (value.encode() if kind == "string" else value).hex()
        return digits.upper() if clause == "X" else digits
    return f"{int(value):{clause}}"


def _complaint(clause: str, kind: str) -> str:
    if clause == "s":
        return "" if kind in _TEXT_KINDS else f"error during formatting: {_STRING_COMPLAINT}, was given {kind}"
    return "" if kind in _ALLOWED[clause] else f"error during formatting: {_COMPLAINTS[clause]}, was given {kind}"


def _number(clause: str, value: Any, precision: int) -> str:
    if type(value) is str:
        if value not in ("NaN", "Infinity", "-Infinity"):
            raise EvaluationError(f"error during formatting: {_COMPLAINTS[clause]}, was given string")
        value = float(value)
    value = value or 0.0  # a zero has no sign in the English locale
    if clause == "e":
        return _scientific(value).rjust(precision)
    return _special(value) or f"{value:,.{precision}f}"


def _special(value: float) -> str:
    if value != value:  # noqa: PLR0124 - NaN is the value unequal to itself
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "\u221e" if value > 0 else "-\u221e"
    return ""


def _scientific(value: float) -> str:
    """Always six digits: what is written as the precision of ``%e`` is its width in Kubernetes."""
    if special := _special(value):
        return special
    mantissa, _, exponent = f"{value:.{_DEFAULT_PRECISION}e}".partition("e")
    power = f"{int(exponent):03d}" if exponent[0] == "-" else f"{int(exponent):02d}"
    return f"{mantissa}\u00d710{power.translate(_SUPERSCRIPT)}"


_WRITERS: Final[dict[type, Callable[[Any], str]]] = {
    str: str,
    bool: lambda value: "true" if value else "false",
    int: str,
    UInt: lambda value: str(int(value)),
    float: format_double,
    Timestamp: format_timestamp,
    Duration: format_duration,
    TypeValue: lambda value: str(value.name),
    type(None): lambda _value: "null",
}


def _text(value: Any) -> str:
    """What ``%s`` makes of a value."""
    writer = _WRITERS.get(type(value))
    if writer is not None:
        return writer(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("error during formatting: invalid UTF-8 in bytes") from None
    if isinstance(value, dict):
        pairs = sorted(f"{_nested(decode_key(key))}:{_nested(held)}" for key, held in value.items())
        return "{" + ", ".join(pairs) + "}"
    return "[" + ", ".join(map(_nested, value)) + "]"


def _nested(value: Any) -> str:
    """What stands for a value inside a list or map: text that could stand in an expression."""
    kind = kind_of(value)
    if kind not in _TEXT_KINDS:
        raise EvaluationError(f"no formatting function for {kind}")
    if kind == "double":
        return f'"{format_double(value)}"' if _special(value) else f"{value:.{_DEFAULT_PRECISION}f}"
    text = _text(value)
    if kind in ("string", "bytes"):
        quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return f'{"b" if kind == "bytes" else ""}"{quoted}"'
    if kind in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        return f'{kind.rpartition(".")[2].lower()}("{text}")'
    return text


def _check(arguments: list[ast.Node]) -> str | None:
    """A literal format text and a list literal must fit each other."""
    text, many = arguments
    if not isinstance(text, ast.Constant) or type(text.value) is not str or not isinstance(many, ast.ListLiteral):
        return None
    kinds = [element.type for element in many.elements]
    used = 0
    try:
        for clause, _, _ in _pieces(text.value):
            if not clause:
                continue
            if used >= len(kinds):
                return f"index {used} out of range"
            if _known(kinds[used]) and (complaint := _complaint(clause, kinds[used].name)):
                return complaint
            used += 1
    except EvaluationError as error:
        return error.message
    if used < len(kinds):
        return f"too many arguments supplied to string.format (expected {used}, got {len(kinds)})"
    return None


def _known(kind: Type) -> bool:
    return kind.kind not in ("dyn", "any", "param", "object")


def _cost(text: str, arguments: list[Any]) -> int:
    # the text alone counts in Kubernetes
    return traversal(text) + bulk(_weight(arguments))


def _weight(value: Any) -> int:
    """Characters that a value may take, roughly; containers count all the way down."""
    if isinstance(value, dict):
        return sum(map(_weight, value)) + sum(map(_weight, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_weight, value))
    return size_of(value)


def _estimate(arguments: tuple[Argument, ...]) -> Estimate:
    return Estimate(arguments[0].size.tenths())


_OVERLOADS: Final = {
    "format": (
        method("string_format", (STRING, list_of(DYN)), STRING, _format, cost=_cost, estimate=_estimate, check=_check),
    ),
}
LIBRARY: Final = Library("formatting", _OVERLOADS)
