"""Whether an object has the shape of its schema: types of fields, fields of no such kind, bounds of CRDs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import re2
from msgspec import Struct, field

from karpenter_linode.sim.schemas import Schema, field_schema, item_schema, resolved

if TYPE_CHECKING:
    from collections.abc import Iterator

_INTEGERS: Final = {"int32": 2**31, "int64": 2**63}
_NAMES: Final = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
_SHOWN: Final = 80


class Findings(Struct):
    """What a check found.

    Args:
        unknown: paths of fields that the kind does not have.
        mistyped: fields of the wrong type, each as ``path: found ..., expected ...``.
        broken: rules of the schema that do not hold, each as ``path: what``.
    """

    unknown: list[str] = field(default_factory=list)
    mistyped: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


def pruned(schema: Schema, value: Any, findings: Findings, path: str = "") -> Any:
    """The value without fields that its schema does not name; what is wrong with it goes into the findings.

    Args:
        schema: a resolved schema.
        value: plain data.
        findings: filled on the way.
        path: where the value stands.
    """
    schema = resolved(schema)
    expected = _mismatch(schema, value)
    if expected:
        findings.mistyped.append(f"{path or 'object'}: found {_kind(value)}, expected {expected}")
        return value
    findings.broken += [f"{path}: {problem}" for problem in _rules(schema, value, path)]
    if isinstance(value, dict):
        return _pruned_mapping(schema, value, findings, path)
    if isinstance(value, list):
        items = item_schema(schema)
        return [pruned(items, item, findings, f"{path}[{index}]") for index, item in enumerate(value)]
    return value


def _pruned_mapping(schema: Schema, value: dict[str, Any], findings: Findings, path: str) -> dict[str, Any]:
    kept = {}
    for name, member in value.items():
        child = field_schema(schema, name)
        at = f"{path}.{name}" if path else name
        if child is None:
            findings.unknown.append(at)
        else:
            kept[name] = pruned(child, member, findings, at)
    for name in schema.get("required", ()):
        if name not in value:
            findings.broken.append(f"{path}.{name}: Required value" if path else f"{name}: Required value")
    return kept


def with_defaults(schema: Schema, value: Any) -> Any:
    """The value with the defaults that a CRD's schema gives to fields that are missing."""
    schema = resolved(schema)
    if isinstance(value, list):
        return [with_defaults(item_schema(schema), item) for item in value]
    if not isinstance(value, dict):
        return value
    filled = {
        name: member["default"] for name, member in (schema.get("properties") or {}).items() if "default" in member
    }
    return {name: with_defaults(field_schema(schema, name) or {}, member) for name, member in (filled | value).items()}


def _mismatch(schema: Schema, value: Any) -> str:
    """The expected type where the value has another, else ""."""
    if "oneOf" in schema or "anyOf" in schema or schema.get("x-kubernetes-int-or-string"):
        fits = isinstance(value, str | int | float) and not isinstance(value, bool)
        return "" if fits else "number or string"
    match schema.get("type"):
        case "object":
            return "" if isinstance(value, dict) else "object"
        case "array":
            return "" if isinstance(value, list) else "array"
        case "string":
            return "" if isinstance(value, str) else "string"
        case "boolean":
            return "" if isinstance(value, bool) else "boolean"
        case "integer":
            limit = _INTEGERS.get(schema.get("format", "int64"), 2**63)
            fits = isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
            return "" if fits else f"integer of {limit.bit_length()} bits"
        case "number":
            return "" if isinstance(value, int | float) and not isinstance(value, bool) else "number"
        case _:
            return ""


def _kind(value: Any) -> str:
    text = json.dumps(value)
    return f"{_NAMES.get(type(value), 'null')} {text if len(text) <= _SHOWN else text[:_SHOWN] + '...'}"


def _rules(schema: Schema, value: Any, path: str) -> Iterator[str]:
    """Rules of the schema that a value breaks, in the API server's words."""
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        known = ", ".join(json.dumps(item) for item in allowed)
        yield f"Unsupported value: {json.dumps(value)}: supported values: {known}"
    if isinstance(value, str):
        yield from _text_rules(schema, value, path)
    elif isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            yield f"Too many: {len(value)}: must have at most {schema['maxItems']} items"
        if len(value) < schema.get("minItems", 0):
            yield f"Invalid value: {len(value)}: {path} in body should have at least {schema['minItems']} items"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if value > schema.get("maximum", value):
            yield f"Invalid value: {value}: {path} in body should be less than or equal to {schema['maximum']}"
        if value < schema.get("minimum", value):
            yield f"Invalid value: {value}: {path} in body should be greater than or equal to {schema['minimum']}"


def _text_rules(schema: Schema, value: str, path: str) -> Iterator[str]:
    pattern = schema.get("pattern")
    if pattern and re2.search(pattern, value) is None:
        yield f"Invalid value: {json.dumps(value)}: {path} in body should match '{pattern}'"
    if len(value) > schema.get("maxLength", len(value)):
        yield f"Too long: may not be more than {schema['maxLength']} bytes"
    if len(value) < schema.get("minLength", 0):
        yield f"Invalid value: {json.dumps(value)}: {path} in body should be at least {schema['minLength']} chars long"
