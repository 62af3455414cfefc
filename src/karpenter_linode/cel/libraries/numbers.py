"""Texts of numbers as Go reads and writes them."""

from __future__ import annotations

import re
from typing import Final

from karpenter_linode.cel.errors import EvaluationError

_INT: Final = re.compile(r"[+-]?[0-9]{1,40}")
_UINT: Final = re.compile(r"[0-9]{1,40}")
_DOUBLE: Final = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:inf|infinity)|nan", re.IGNORECASE
)
_LONGEST_DOUBLE: Final = 400
_SMALLEST_EXPONENT: Final = -4
_SHORTEST_PRECISION: Final = 6


def conversion_error(source: str, target: str) -> EvaluationError:
    """The text of one kind does not spell a value of the other."""
    return EvaluationError(f"type conversion error from '{source}' to '{target}'")


def parse_int(text: str) -> int:
    """A decimal integer with an optional sign."""
    if not _INT.fullmatch(text):
        raise conversion_error("string", "int")
    return int(text)


def parse_uint(text: str) -> int:
    """A decimal integer without a sign."""
    if not _UINT.fullmatch(text):
        raise conversion_error("string", "uint")
    return int(text)


def parse_double(text: str) -> float:
    """A decimal number, infinity or NaN. A finite text beyond the range is an error."""
    if len(text) > _LONGEST_DOUBLE or not _DOUBLE.fullmatch(text):
        raise conversion_error("string", "double")
    value = float(text)
    if value in (float("inf"), float("-inf")) and text[-1].isdigit():
        raise conversion_error("string", "double")
    return value


def format_double(value: float) -> str:
    """The shortest text that reads back as the value; exponents from 1e+06 up and below 1e-04, as Go's ``%g``."""
    if value != value:  # noqa: PLR0124 - NaN is the value unequal to itself
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    sign = "-" if repr(value)[0] == "-" else ""
    digits, point = _shortest(abs(value))
    exponent = point - 1
    if exponent < _SMALLEST_EXPONENT or exponent >= _SHORTEST_PRECISION:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return sign + plain(digits, point)


def plain(digits: str, point: int) -> str:
    """Digits with the decimal point after ``point`` of them, without an exponent."""
    if point <= 0:
        return "0." + "0" * -point + digits if digits != "0" else "0"
    if point >= len(digits):
        return digits + "0" * (point - len(digits))
    return f"{digits[:point]}.{digits[point:]}"


def _shortest(value: float) -> tuple[str, int]:
    """The shortest digits of a value and how many of them stand before the point."""
    mantissa, _, exponent = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    point = len(whole) + int(exponent or "0")
    digits = whole + fraction
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    return (stripped.rstrip("0") or "0", point) if stripped else ("0", 1)
