"""Kubernetes ``Quantity``: an exact amount, held as a whole number of nano-units.

Grammar, rounding, limits and canonical form follow k8s.io/apimachinery ``resource.Quantity``: nothing finer than one
nano is kept (rounded away from zero), amounts outside +-(2^63 - 1) are capped, and the written form uses the largest
suffix that leaves a whole number.
"""

from __future__ import annotations

import re
from functools import lru_cache, total_ordering
from typing import Final

NANO: Final = 1_000_000_000
MILLI: Final = 1_000_000  # nano-units in one thousandth
_MAX: Final = (2**63 - 1) * NANO
_PLAIN_BINARY_DIGITS: Final = 15
_FAST_DIGITS: Final = 18  # apimachinery keeps up to 18 decimal digits exactly, beyond the cap too

_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_NAMES: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_NAMES: Final = {bits: suffix for suffix, bits in _BINARY.items()}
_PATTERN: Final = re.compile(
    r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:([KMGTPE]i)|([eE])([+-]?[0-9]+)|([numkMGTPE]?))",
)
_MAX_TEXT: Final = 256
_MAX_EXPONENT: Final = 64

DECIMAL_SI: Final = "DecimalSI"
BINARY_SI: Final = "BinarySI"
DECIMAL_EXPONENT: Final = "DecimalExponent"


class QuantityError(ValueError):
    """The text is no quantity. The message quotes it."""


@total_ordering
class Quantity:
    """An exact amount with the notation it was written in.

    Args:
        nano: the amount in nano-units (``1`` is ``1_000_000_000``).
        notation: ``DecimalSI``, ``BinarySI`` or ``DecimalExponent``; it decides the written form, never equality.
        plain: whether apimachinery would hold it as a plain 64-bit integer, which ``1000m`` and ``1.0`` are not.
    """

    __slots__ = ("nano", "notation", "plain")
    nano: int
    notation: str
    plain: bool

    def __init__(self, nano: int, notation: str = DECIMAL_SI, *, plain: bool = True) -> None:
        object.__setattr__(self, "nano", nano)
        object.__setattr__(self, "notation", notation)
        object.__setattr__(self, "plain", plain)

    def __setattr__(self, name: str, value: object) -> None:
        msg = f"Quantity is immutable (attempt to set {name})"
        raise AttributeError(msg)

    @staticmethod
    def parse(text: str | float) -> Quantity:
        """Read a quantity.

        Args:
            text: the written form; a bare YAML or JSON number stands for its own decimal text.

        Raises:
            QuantityError: the text does not follow the grammar; the message quotes it.
        """
        return _parse(text if isinstance(text, str) else _number_text(text))

    @staticmethod
    def of(units: int, notation: str = DECIMAL_SI) -> Quantity:
        """A whole number of units."""
        return Quantity(units * NANO, notation)

    @property
    def units(self) -> int:
        """The amount in whole units, rounded up, as Kubernetes' ``Value()``."""
        return -(-self.nano // NANO)

    def __str__(self) -> str:
        return _canonical(self.nano, self.notation)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano + other.nano, self.notation)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.notation)


def _number_text(number: object) -> str:
    if isinstance(number, bool):
        msg = f"quantity expected, found the boolean {str(number).lower()}"
        raise QuantityError(msg)
    return repr(number) if isinstance(number, float) else str(number)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity:
    match = _PATTERN.fullmatch(text) if len(text) <= _MAX_TEXT else None
    if match is None:
        shown = text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "..."
        msg = f"{shown!r} is not a quantity: expected a number with an optional suffix such as m, k, Mi, Gi or e3"
        raise QuantityError(msg)
    sign, whole, fraction, bare_fraction, binary, exponent_mark, exponent_text, decimal = match.groups()
    whole = (whole or "").lstrip("0")
    fraction = bare_fraction or fraction or ""
    digits = int((whole + fraction) or "0")
    if binary:
        nano, remainder = divmod((digits << _BINARY[binary]) * NANO, 10 ** len(fraction))
        nano = min(nano + (remainder > 0), _MAX)
        notation = BINARY_SI
        # floor(log10(2**bits)) is bits * 3 // 10 for every suffix there is
        plain = not fraction and len(whole) + _BINARY[binary] * 3 // 10 < _PLAIN_BINARY_DIGITS
    else:
        exponent = int(exponent_text) if exponent_mark else _DECIMAL[decimal]
        if abs(exponent) > _MAX_EXPONENT:
            msg = f"{text!r} is not a quantity: the exponent is out of range"
            raise QuantityError(msg)
        nano = _scale(digits, exponent - len(fraction) + 9)
        if len(whole) + len(fraction) > _FAST_DIGITS:
            nano = min(nano, _MAX)
        notation = DECIMAL_EXPONENT if exponent_mark else DECIMAL_SI
        plain = exponent >= len(fraction) and len(whole) + len(fraction) <= _FAST_DIGITS
    return Quantity(-nano if sign == "-" else nano, notation, plain=plain)


def _scale(digits: int, exponent: int) -> int:
    """``digits * 10**exponent``, rounded up to a whole number."""
    if exponent >= 0:
        return int(digits * 10**exponent)
    return int(-(-digits // 10**-exponent))


def _canonical(nano: int, notation: str) -> str:
    if nano == 0:
        return "0"
    sign = "-" if nano < 0 else ""
    magnitude = abs(nano)
    if notation == BINARY_SI and magnitude >= 1024 * NANO and magnitude % NANO == 0:
        return sign + _binary_text(magnitude // NANO)
    exponent = -9
    while magnitude % 1000 == 0 and (notation == DECIMAL_EXPONENT or exponent < 18):  # noqa: PLR2004 - "E" is the last suffix
        magnitude //= 1000
        exponent += 3
    if notation == DECIMAL_EXPONENT:
        return f"{sign}{magnitude}" + (f"e{exponent}" if exponent else "")
    return f"{sign}{magnitude}{_DECIMAL_NAMES[exponent]}"


def _binary_text(units: int) -> str:
    bits = 0
    while units % 1024 == 0 and bits < 60:  # noqa: PLR2004 - "Ei" is the last suffix
        units //= 1024
        bits += 10
    return f"{units}{_BINARY_NAMES.get(bits, '')}"
