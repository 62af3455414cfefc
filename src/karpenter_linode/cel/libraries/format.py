"""Named formats of Kubernetes (spec/cel-for-dra.md 5.7): ``format.dns1123Label().validate(text)``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel.cost import size_of, tenths
from karpenter_linode.cel.declarations import Argument, Estimate, Library, Range, function, method
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.libraries.times import parse_timestamp
from karpenter_linode.cel.libraries.url import parse_url
from karpenter_linode.cel.relations import register_strict
from karpenter_linode.cel.types import FORMAT, STRING, list_of, optional_of
from karpenter_linode.cel.values import NONE, Optional, register_kind

if TYPE_CHECKING:
    from collections.abc import Callable

_PATTERN_SIZE: Final = 128  # characters of the longest pattern behind a format, as the cost model assumes
_PATTERN_COST: Final = _PATTERN_SIZE // 4
_PATTERN_COSTS: Final = {  # a quarter of the size of each pattern in Kubernetes
    **dict.fromkeys(("dns1123Label", "dns1123LabelPrefix", "dns1035Label", "dns1035LabelPrefix"), 8),
    **dict.fromkeys(("dns1123Subdomain", "dns1123SubdomainPrefix", "qualifiedName"), 15),
    "labelValue": 10,
    "uri": 276,
    "uuid": 18,
    "byte": 21,
    "date": 18,
    "datetime": 18,
}
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_MAX: Final = 253
_LABEL_MAX: Final = 63
_ENDS: Final = "must start and end with an alphanumeric character"
_LABEL_HELP: Final = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_ENDS}"
)
_SUBDOMAIN_HELP: Final = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_ENDS}"
)
_LABEL_1035_HELP: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_NAME_HELP: Final = f"name part must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}"
_VALUE_HELP: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and " + _ENDS
)


class NamedFormat:
    """A format: its name, and what it complains about in a text."""

    __slots__ = ("complaints", "name")

    def __init__(self, name: str, complaints: Callable[[str], list[str]]) -> None:
        self.name = name
        self.complaints = complaints


register_kind(NamedFormat, "kubernetes.NamedFormat")
register_strict(NamedFormat)


def _shape(pattern: str, complaint: str, longest: int = 0, *, prefix: bool = False) -> Callable[[str], list[str]]:
    compiled = re.compile(pattern, re.ASCII)

    def complaints(text: str) -> list[str]:
        if prefix and len(text) > 1 and text[-1] == "-":
            text = text[:-2] + "a"  # what is generated behind a prefix begins and ends with a letter or digit
        found = [f"must be no more than {longest} characters"] if longest and len(text) > longest else []
        return found if compiled.fullmatch(text) else [*found, complaint]

    return complaints


_SUBDOMAIN_PATTERN: Final = rf"{_LABEL}(\.{_LABEL})*"
_subdomain = _shape(_SUBDOMAIN_PATTERN, _SUBDOMAIN_HELP, _SUBDOMAIN_MAX)
_name = _shape(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", _NAME_HELP, _LABEL_MAX)


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    if not slash:
        return _name(text)
    if "/" in prefix:
        return ["a qualified name must be an optional DNS subdomain prefix, '/' and a name"]
    found = ["prefix part must be non-empty"] if not prefix else [f"prefix part {each}" for each in _subdomain(prefix)]
    return [*found, *_name(name)]


def _readable(read: Callable[[str], object], complaint: str) -> Callable[[str], list[str]]:
    def complaints(text: str) -> list[str]:
        try:
            read(text)
        except EvaluationError:
            return [complaint]
        return []

    return complaints


def _date(text: str) -> object:
    return parse_timestamp(f"{text}T00:00:00Z")


def _datetime(text: str) -> object:
    return parse_timestamp(text.upper())


_UUID: Final = r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
_BASE64: Final = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
_LABEL_1035: Final = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_CHECKS: Final = {
    "dns1123Label": _shape(_LABEL, _LABEL_HELP, _LABEL_MAX),
    "dns1123LabelPrefix": _shape(_LABEL, _LABEL_HELP, _LABEL_MAX, prefix=True),
    "dns1123Subdomain": _subdomain,
    "dns1123SubdomainPrefix": _shape(_SUBDOMAIN_PATTERN, _SUBDOMAIN_HELP, _SUBDOMAIN_MAX, prefix=True),
    "dns1035Label": _shape(_LABEL_1035, _LABEL_1035_HELP, _LABEL_MAX),
    "dns1035LabelPrefix": _shape(_LABEL_1035, _LABEL_1035_HELP, _LABEL_MAX, prefix=True),
    "qualifiedName": _qualified_name,
    "labelValue": _shape(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", _VALUE_HELP, _LABEL_MAX),
    "uri": _readable(parse_url, "must be an absolute URI or an absolute path"),
    "uuid": _shape(_UUID, "does not match the UUID format"),
    "byte": _shape(_BASE64, "invalid base64"),
    "date": _readable(_date, "must be a date, for example 2006-01-02"),
    "datetime": _readable(_datetime, "must be a date and time, for example 2006-01-02T15:04:05Z"),
}
_FORMATS: Final = {name: NamedFormat(name, check) for name, check in _CHECKS.items()}


def _named(name: str) -> Optional:
    return Optional(_FORMATS[name]) if name in _FORMATS else NONE


def _validate(form: NamedFormat, text: str) -> Optional:
    found = form.complaints(text)
    return Optional(found) if found else NONE


def _validate_cost(form: NamedFormat, text: str) -> int:
    return tenths(1 + size_of(text)) * _PATTERN_COSTS[form.name] if type(form) is NamedFormat else 1


def _validate_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    return Estimate(arguments[1].size.tenths() * Range(_PATTERN_COST, _PATTERN_COST))


def _constant(form: NamedFormat) -> Callable[[], Any]:
    return lambda: form


_OVERLOADS: Final = {
    **{f"format.{name}": (function(f"format_{name}", (), FORMAT, _constant(form)),) for name, form in _FORMATS.items()},
    "format.named": (function("format_named", (STRING,), optional_of(FORMAT), _named),),
    "validate": (
        method(
            "format_validate",
            (FORMAT, STRING),
            optional_of(list_of(STRING)),
            _validate,
            cost=_validate_cost,
            estimate=_validate_estimate,
        ),
    ),
}
LIBRARY: Final = Library("format", _OVERLOADS)
