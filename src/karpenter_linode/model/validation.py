"""Run-time validation of label keys, label values and requirements (spec/karpenter-scheduling.md 6.4)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from karpenter_linode.model import labels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.model.requirement_spec import NodeSelectorRequirement

OPERATORS: Final = ("DoesNotExist", "Exists", "Gt", "Gte", "In", "Lt", "Lte", "NotIn")
_ORDERED: Final = frozenset({"Gt", "Gte", "Lt", "Lte"})
_CAPACITY_TYPES: Final = (labels.CAPACITY_ON_DEMAND, labels.CAPACITY_RESERVED, labels.CAPACITY_SPOT)
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_DIGITS: Final = re.compile(r"[0-9]+")
_MAX_NAME: Final = 63
_MAX_DOMAIN: Final = 253
_PATTERN_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)


def is_subdomain(name: str) -> bool:
    """Whether a text is a DNS subdomain in lower case (RFC 1123), as the names of most objects must be."""
    return len(name) <= _MAX_DOMAIN and _DOMAIN.fullmatch(name) is not None


def qualified_name_error(name: str) -> str | None:
    """What is wrong with a qualified name (``domain/name`` or ``name``), or None."""
    domain, slash, tail = name.rpartition("/")
    if slash and not is_subdomain(domain):
        return f"prefix part {domain!r} must be a lower-case DNS subdomain of at most {_MAX_DOMAIN} characters"
    if not tail:
        return "name part must be non-empty"
    if len(tail) > _MAX_NAME:
        return f"name part must be no more than {_MAX_NAME} characters"
    return None if _NAME.fullmatch(tail) else f"name part {_PATTERN_TEXT}"


def label_value_error(value: str) -> str | None:
    """What is wrong with a label value, or None."""
    if len(value) > _MAX_NAME:
        return f"must be no more than {_MAX_NAME} characters"
    return None if not value or _NAME.fullmatch(value) else _PATTERN_TEXT


def restricted_label_error(key: str) -> str | None:
    """Why a label may not be set by users, or None. Well-known labels may be, other labels of our domains may not."""
    if key in labels.WELL_KNOWN:
        return None
    if key not in labels.RESTRICTED_LABELS and not _in_restricted_domain(key):
        return None
    return (
        f"using label {key} is not allowed as it might interfere with the internal provisioning logic; "
        f"specify a well known label: [{' '.join(sorted(labels.WELL_KNOWN))}], or a custom label that does not use a "
        f"restricted domain: [{' '.join(sorted(labels.RESTRICTED_DOMAINS))}]"
    )


def requirement_errors(spec: NodeSelectorRequirement) -> tuple[str, ...]:
    """Everything that is wrong with a requirement, in the contract's words; empty where it is valid."""
    return tuple(_requirement_errors(spec, labels.ALIASES.get(spec.key, spec.key)))


def _requirement_errors(spec: NodeSelectorRequirement, key: str) -> Iterator[str]:
    if spec.operator not in OPERATORS:
        yield f"key {key} has an unsupported operator {spec.operator} not in [{' '.join(OPERATORS)}]"
    restricted = restricted_label_error(key)
    if restricted is not None:
        yield restricted
    if key == labels.CAPACITY_TYPE and spec.operator == "In":
        yield from _capacity_type_errors(spec)
    name_error = qualified_name_error(key)
    if name_error is not None:
        yield f"key {key} is not a qualified name, {name_error}"
    for value in spec.values:
        value_error = label_value_error(value)
        if value_error is not None:
            yield f"invalid value {value} for key {key}, {value_error}"
    if spec.operator == "In" and not spec.values:
        yield f"key {key} with operator In must have a value defined"
    if spec.operator == "In" and len(spec.values) < (spec.min_values or 0):
        yield f"key {key} with operator In must have at least minimum number of values defined in 'values' field"
    if spec.operator in _ORDERED and (len(spec.values) != 1 or _DIGITS.fullmatch(spec.values[0]) is None):
        yield f"key {key} with operator {spec.operator} must have a single positive integer value"


def unknown_capacity_types(spec: NodeSelectorRequirement) -> tuple[str, ...]:
    """Values of a requirement on the capacity type that name none; none for other requirements."""
    if spec.key != labels.CAPACITY_TYPE or spec.operator != "In":
        return ()
    return tuple(value for value in spec.values if value not in _CAPACITY_TYPES)


def _capacity_type_errors(spec: NodeSelectorRequirement) -> Iterator[str]:
    known = [value for value in spec.values if value in _CAPACITY_TYPES]
    unknown = unknown_capacity_types(spec)
    shown, key = " ".join(spec.values), labels.CAPACITY_TYPE
    if unknown and not known:
        expected = " ".join(_CAPACITY_TYPES)
        yield f"no valid values found in [{shown}] for {key}, expected one of: [{expected}], got: [{' '.join(unknown)}]"
    elif len(known) < (spec.min_values or 0):
        yield (
            f"not enough valid values found in [{shown}] for {key}, expected at least {spec.min_values} valid values "
            f"from: [{' '.join(_CAPACITY_TYPES)}], got: {len(known)}"
        )


def _in_restricted_domain(key: str) -> bool:
    domain, slash, _ = key.rpartition("/")
    return bool(slash) and any(domain == root or domain.endswith(f".{root}") for root in labels.RESTRICTED_DOMAINS)
