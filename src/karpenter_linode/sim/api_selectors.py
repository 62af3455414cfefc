"""Label and field selectors as query text: ``a=b,c!=d,e in (x,y),!f`` and ``spec.nodeName=n``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.ports import InvalidError

if TYPE_CHECKING:
    from collections.abc import Callable

_CLAUSE: Final = re.compile(
    r"\s*(?:(?P<no>!)\s*(?P<absent>[\w./-]+)"
    r"|(?P<key>[\w./-]+)(?:\s*(?P<op>==|=|!=)\s*(?P<value>[\w.-]*)|\s+(?P<set>in|notin)\s*\((?P<values>[^)]*)\))?)\s*"
)

_FALSE_WHEN_MISSING: Final = frozenset({"unschedulable", "hostNetwork"})


def label_predicate(text: str) -> Callable[[dict[str, Any]], bool]:
    """A test on an object's labels.

    Raises:
        InvalidError: text outside the grammar (400 at a real server).
    """
    tests: list[Callable[[dict[str, str]], bool]] = []
    position = 0
    while position < len(text):
        match = _CLAUSE.match(text, position)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            raise InvalidError(f"unable to parse requirement in label selector {text!r} at position {position}")
        tests.append(_label_test(match))
        position = match.end() + 1
    return lambda plain: all(test(plain.get("metadata", {}).get("labels") or {}) for test in tests)


def _label_test(match: re.Match[str]) -> Callable[[dict[str, str]], bool]:
    if match["no"]:
        absent = match["absent"]
        return lambda labels: absent not in labels
    key = match["key"]
    if match["set"]:
        values = frozenset(value.strip() for value in match["values"].split(","))
        wanted = match["set"] == "in"
        return lambda labels: (labels.get(key) in values) if wanted else (labels.get(key) not in values)
    if match["op"] is None:
        return lambda labels: key in labels
    value, equal = match["value"], match["op"] != "!="
    return lambda labels: (labels.get(key) == value) is equal


def field_predicate(text: str) -> Callable[[dict[str, Any]], bool]:
    """A test on fields by dotted path; a missing field counts as the empty string, as at a real server.

    Raises:
        InvalidError: a clause without an operator.
    """
    tests: list[tuple[list[str], str, bool]] = []
    for clause in filter(None, text.split(",")):
        path, operator, value = clause.partition("!=") if "!=" in clause else clause.partition("=")
        if not operator:
            raise InvalidError(f"invalid field selector {clause!r}: expected path=value")
        tests.append((path.strip().split("."), value.removeprefix("=").strip(), operator == "="))
    return lambda plain: all((_field(plain, path) == value) is equal for path, value, equal in tests)


def _field(plain: Any, path: list[str]) -> str:
    for part in path:
        plain = plain.get(part) if isinstance(plain, dict) else None
    if isinstance(plain, bool) or (plain is None and path[-1] in _FALSE_WHEN_MISSING):
        return str(bool(plain)).lower()
    return "" if plain is None else str(plain)
