"""The values of literals."""

from __future__ import annotations

import re
from typing import Final

from karpenter_linode.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt

_SIMPLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE: Final = re.compile(r"\\(?:[xX](?P<hex>..)|u(?P<short>.{4})|U(?P<long>.{8})|(?P<octal>[0-3]..)|(?P<char>.))")
_BYTES_ESCAPE: Final = re.compile(_ESCAPE.pattern.encode(), re.DOTALL)
_UNICODE_MAX: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)
_MOST_DIGITS: Final = 20  # of a number that fits 64 bits
_TRIPLE: Final = 3


class LiteralError(ValueError):
    """A literal whose value does not exist."""


def read_int(text: str, *, negative: bool = False) -> int:
    """A signed 64-bit integer, decimal or hexadecimal."""
    value = -_digits(text) if negative else _digits(text)
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal: outside the signed 64-bit range")
    return value


def read_uint(text: str) -> UInt:
    """An unsigned 64-bit integer, decimal or hexadecimal, with its suffix."""
    value = _digits(text[:-1])
    if value > UINT_MAX:
        raise LiteralError("invalid uint literal: outside the unsigned 64-bit range")
    return UInt(value)


def _digits(text: str) -> int:
    digits, base = (text[2:], 16) if text.startswith("0x") else (text, 10)
    digits = digits.lstrip("0")
    return UINT_MAX + 1 if len(digits) > _MOST_DIGITS else int(digits or "0", base)


def read_double(text: str) -> float:
    """A finite double."""
    value = float(text)
    if value == float("inf"):
        raise LiteralError("invalid double literal: too large")
    return value


def read_string(text: str) -> str:
    """The string that a quoted token stands for."""
    body, raw = _body(text)
    return body if raw or "\\" not in body else _ESCAPE.sub(_character, body)


def read_bytes(text: str) -> bytes:
    """The bytes that a quoted token with prefix ``b`` stands for. Hexadecimal and octal escapes are bytes in it."""
    body, raw = _body(text[1:])
    encoded = body.encode()
    return encoded if raw or "\\" not in body else _BYTES_ESCAPE.sub(_byte, encoded)


def _body(text: str) -> tuple[str, bool]:
    raw = text[0] in "rR"
    quoted = text[1:] if raw else text
    triple = len(quoted) >= 2 * _TRIPLE and quoted[:_TRIPLE] in ('"""', "'''")
    body = quoted[_TRIPLE:-_TRIPLE] if triple else quoted[1:-1]
    return (body.replace("\r\n", "\n").replace("\r", "\n") if triple else body), raw


def _character(match: re.Match[str]) -> str:
    if match["char"]:
        return _SIMPLE.get(match["char"], match["char"])
    if match["octal"]:
        return chr(int(match["octal"], 8))
    point = int(match["hex"] or match["short"] or match["long"], 16)
    if point > _UNICODE_MAX or point in _SURROGATES:
        raise LiteralError(f"invalid unicode code point in the escape {match[0]}")
    return chr(point)


def _byte(match: re.Match[bytes]) -> bytes:
    if match["char"]:
        char = match["char"].decode("latin-1")
        return _SIMPLE.get(char, char).encode("latin-1")
    if match["short"] or match["long"]:
        raise LiteralError("bytes take no unicode escapes, write \\xHH")
    return bytes([int(match["octal"], 8) if match["octal"] else int(match["hex"], 16)])
