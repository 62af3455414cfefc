"""Conversions of the standard library. Those of constants are made at compile time, and so are their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel.cost import traversal
from karpenter_linode.cel.declarations import Argument, Estimate, Library, Overload, Range, function, wrapped
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.libraries.numbers import conversion_error, format_double, parse_double, parse_int, parse_uint
from karpenter_linode.cel.libraries.operators import checked_int, checked_timestamp, checked_uint
from karpenter_linode.cel.libraries.times import format_duration, format_timestamp, parse_duration, parse_timestamp
from karpenter_linode.cel.types import BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, Type
from karpenter_linode.cel.values import UINT_MAX, UInt

if TYPE_CHECKING:
    from collections.abc import Callable

_SECOND: Final = 10**9
_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
_TWO_63: Final = float(2**63)


def _same(value: Any) -> Any:
    return value


def _int_from_double(value: float) -> int:
    if not -_TWO_63 < value < _TWO_63:
        raise EvaluationError("integer overflow")
    return int(value)


def _uint_from_double(value: float) -> UInt:
    if not 0 <= value < float(UINT_MAX):
        raise EvaluationError("unsigned integer overflow")
    return UInt(value)


def _range_error(
    source: str, target: str, convert: Callable[[str], Any], check: Callable[[Any], Any]
) -> Callable[[str], Any]:
    """Reading a text whose number is out of range is a conversion error, not an overflow."""

    def read(text: str) -> Any:
        value = convert(text)
        try:
            return check(value)
        except EvaluationError:
            raise conversion_error(source, target) from None

    return read


def _bool_from_text(text: str) -> bool:
    if text not in _BOOLS:
        raise conversion_error("string", "bool")
    return _BOOLS[text]


def _text_from_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _to_bytes_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    size = arguments[0].size
    return Estimate(size.tenths(), Range(size.low, wrapped(4 * size.high)))


def _to_text_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    size = arguments[0].size
    return Estimate(size.tenths(), Range(size.low // 4, size.high))


def _conversion(source: Type, target: Type, convert: Callable[[Any], Any]) -> Overload:
    return function(f"{source}_to_{target}", (source,), target, convert, folding="eager")


_OVERLOADS: Final = {
    "int": (
        _conversion(INT, INT, _same),
        _conversion(UINT, INT, lambda value: checked_int(int(value))),
        _conversion(DOUBLE, INT, _int_from_double),
        _conversion(STRING, INT, _range_error("string", "int", parse_int, checked_int)),
        _conversion(TIMESTAMP, INT, lambda value: value.nanos // _SECOND),
        _conversion(DURATION, INT, lambda value: value.nanos),
    ),
    "uint": (
        _conversion(UINT, UINT, _same),
        _conversion(INT, UINT, checked_uint),
        _conversion(DOUBLE, UINT, _uint_from_double),
        _conversion(STRING, UINT, _range_error("string", "uint", parse_uint, checked_uint)),
    ),
    "double": (
        _conversion(DOUBLE, DOUBLE, _same),
        _conversion(INT, DOUBLE, float),
        _conversion(UINT, DOUBLE, float),
        _conversion(STRING, DOUBLE, parse_double),
    ),
    "bool": (
        _conversion(BOOL, BOOL, _same),
        _conversion(STRING, BOOL, _bool_from_text),
    ),
    "string": (
        _conversion(STRING, STRING, _same),
        _conversion(BOOL, STRING, lambda value: "true" if value else "false"),
        _conversion(INT, STRING, str),
        _conversion(UINT, STRING, lambda value: str(int(value))),
        _conversion(DOUBLE, STRING, format_double),
        function(
            "bytes_to_string",
            (BYTES,),
            STRING,
            _text_from_bytes,
            cost=traversal,
            loose=1,
            estimate=_to_text_estimate,
            folding="eager",
        ),
        _conversion(TIMESTAMP, STRING, format_timestamp),
        _conversion(DURATION, STRING, format_duration),
    ),
    "bytes": (
        _conversion(BYTES, BYTES, _same),
        function(
            "string_to_bytes",
            (STRING,),
            BYTES,
            str.encode,
            cost=traversal,
            loose=1,
            estimate=_to_bytes_estimate,
            folding="eager",
        ),
    ),
    "timestamp": (
        _conversion(TIMESTAMP, TIMESTAMP, _same),
        _conversion(STRING, TIMESTAMP, parse_timestamp),
        _conversion(INT, TIMESTAMP, lambda value: checked_timestamp(value * _SECOND)),
    ),
    "duration": (
        _conversion(DURATION, DURATION, _same),
        _conversion(STRING, DURATION, parse_duration),
    ),
}
LIBRARY: Final = Library("conversions", _OVERLOADS)
