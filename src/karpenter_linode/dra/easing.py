"""Clauses that compare one value with a constant, eased to a value that was seen."""

from __future__ import annotations

import re
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from karpenter_linode.model.quantity import Quantity, QuantityError
from karpenter_linode.model.semver import SemVer, SemVerError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_CONSTANT: Final = r"(?P<kind>quantity|semver)\(\s*(?P<quote>['\"])[^'\"]*(?P=quote)\s*\)"
_COMPARED: Final = re.compile(rf"(?P<left>.+)\.compareTo\(\s*{_CONSTANT}\s*\)\s*(?P<sign>>=|>|<=|<)\s*0", re.DOTALL)
_ORDERED: Final = re.compile(rf"(?P<left>.+)\.(?P<method>isGreaterThan|isLessThan)\(\s*{_CONSTANT}\s*\)", re.DOTALL)
_NUMBER: Final = re.compile(r"(?P<left>.+?)\s*(?P<sign>>=|>|<=|<|==)\s*-?\d+", re.DOTALL)
_TEXT: Final = re.compile(r"(?P<left>.+?)\s*==\s*(?P<quote>['\"])[^'\"\\]*(?P=quote)", re.DOTALL)
_SIGN_OF_METHOD: Final = {"isGreaterThan": ">=", "isLessThan": "<="}
_by_version = cmp_to_key(SemVer.compare)
_ORDER: Final[dict[str, Callable[[str], Any]]] = {
    "quantity": Quantity.parse,
    "semver": lambda text: _by_version(SemVer.parse(text)),
    "int": int,
}


class Eased(Struct, frozen=True):
    """A clause that a value meets, and how people write it: ``memory`` ``>=`` ``20475Mi``."""

    clause: str
    sign: str
    value: str


def eased(clause: str, values: Sequence[str]) -> list[Eased]:
    """A clause with its constant replaced by values that it was false on, the nearest to the constant first.

    Args:
        clause: as written.
        values: what it saw, as explanations render values.

    Returns:
        Empty for clauses of another form.
    """
    match = _COMPARED.fullmatch(clause) or _ORDERED.fullmatch(clause)
    if match:
        groups = match.groupdict()
        sign = groups.get("sign") or _SIGN_OF_METHOD[groups["method"]]
        sign, kind = f"{sign[0]}=", groups["kind"]
        ordered = _nearest_first(values, kind, sign)
        return [Eased(f"{groups['left']}.compareTo({kind}('{value}')) {sign} 0", sign, value) for value in ordered]
    match = _NUMBER.fullmatch(clause)
    if match:
        sign, left = f"{match['sign'][0]}=", match["left"]
        return [Eased(f"{left} {sign} {value}", sign, value) for value in _nearest_first(values, "int", sign)]
    match = _TEXT.fullmatch(clause)
    texts = [value for value in values if value.startswith('"') and value.endswith('"')] if match else []
    return [Eased(f"{match['left']} == {value}", "==", value) for value in texts] if match else []


def _nearest_first(values: Sequence[str], kind: str, sign: str) -> list[str]:
    """Of values below a bound the greatest comes first, of those above it the least; unreadable ones are left out."""
    read: list[tuple[Any, str]] = []
    for value in values:
        try:
            read.append((_ORDER[kind](value), value))
        except (ValueError, QuantityError, SemVerError):
            continue
    ordered = read if sign == "==" else sorted(read, key=lambda item: item[0], reverse=sign == ">=")
    return [value for _, value in ordered]
