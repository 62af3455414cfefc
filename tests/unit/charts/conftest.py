"""``crds``: the CustomResourceDefinitions of ``charts/karpenter-crd``, judged the way an API server judges."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import re2
import yaml

sys.path.insert(0, str(Path(__file__).parent))  # test folders are not packages; their helpers are plain modules

from karpenter_linode.cel.environment import Environment
from karpenter_linode.cel.errors import CelError
from karpenter_linode.cel.types import DYN

if TYPE_CHECKING:
    from collections.abc import Iterator

Plain = dict[str, Any]

ROOT = Path(__file__).parents[3]
TEMPLATES = ROOT / "charts" / "karpenter-crd" / "templates"
RULES = Environment({"self": DYN, "oldSelf": DYN})
_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
_KNOWN = {
    *("type", "description", "properties", "additionalProperties", "items", "required", "enum", "pattern", "format"),
    *("default", "anyOf", "minimum", "maximum", "minLength", "maxLength", "maxItems", "maxProperties"),
    *("x-kubernetes-validations", "x-kubernetes-int-or-string"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
}


class Crd:
    """One CustomResourceDefinition."""

    def __init__(self, document: Plain) -> None:
        self.document = document
        self.kind = document["spec"]["names"]["kind"]
        (self.version,) = document["spec"]["versions"]
        self.api_version = f"{document['spec']['group']}/{self.version['name']}"
        self.schema: Plain = self.version["schema"]["openAPIV3Schema"]

    def at(self, *path: str) -> Plain:
        """The schema of a field; ``[]`` steps into the items of a list."""
        schema = self.schema
        for step in path:
            schema = schema["items"] if step == "[]" else schema["properties"][step]
        return schema

    def defaulted(self, obj: Plain) -> Plain:
        """The object with the schema's defaults filled in."""
        filled: Plain = _filled(self.schema, copy.deepcopy(obj))
        return filled

    def problems(self, obj: Plain, old: Plain | None = None) -> list[str]:
        """What the API server says against an object, after filling in defaults."""
        before = None if old is None else self.defaulted(old)
        return list(_problems(self.schema, self.defaulted(obj), before, ""))


def _filled(schema: Plain, value: Any) -> Any:
    if isinstance(value, dict):
        for name, part in schema.get("properties", {}).items():
            if name not in value and "default" in part:
                value[name] = copy.deepcopy(part["default"])
            if name in value:
                value[name] = _filled(part, value[name])
    elif isinstance(value, list):
        return [_filled(schema["items"], item) for item in value]
    return value


def _problems(schema: Plain, value: Any, old: Any, path: str) -> Iterator[str]:
    assert schema.keys() <= _KNOWN, f"{path}: the check does not know {schema.keys() - _KNOWN}"
    found = [*_type_problems(schema, value, path)]
    if found:
        yield from found
        return
    yield from _bound_problems(schema, value, path)
    if isinstance(value, dict):
        yield from _object_problems(schema, value, old, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _problems(schema["items"], item, None, f"{path}[{index}]")
        if schema.get("x-kubernetes-list-type") == "set" and len(set(value)) < len(value):
            yield f"{path}: Duplicate value"
    yield from _rule_problems(schema, value, old, path)


def _type_problems(schema: Plain, value: Any, path: str) -> Iterator[str]:
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            yield f"{path}: must be integer or string"
    elif not isinstance(value, _TYPES[schema["type"]]) or (schema["type"] == "integer" and isinstance(value, bool)):
        yield f"{path}: must be {schema['type']}"


def _bound_problems(schema: Plain, value: Any, path: str) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: Unsupported value: {value}"
    if isinstance(value, str):
        if "pattern" in schema and not re2.search(schema["pattern"], value):
            yield f"{path}: should match {schema['pattern']}"
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            yield f"{path}: length"
    elif isinstance(value, int):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield f"{path}: out of bounds"
    elif len(value) > schema.get("maxItems" if isinstance(value, list) else "maxProperties", len(value)):
        yield f"{path}: Too many"


def _object_problems(schema: Plain, value: Plain, old: Any, path: str) -> Iterator[str]:
    properties, more = schema.get("properties", {}), schema.get("additionalProperties")
    yield from (f"{path}.{name}: Required value" for name in schema.get("required", ()) if name not in value)
    for name, item in value.items():
        part = properties.get(name, more)
        if part is not None:
            before = old.get(name) if isinstance(old, dict) else None
            yield from _problems(part, item, before, f"{path}.{name}")
        elif path != ".metadata":
            yield f"{path}.{name}: unknown field"


def _rule_problems(schema: Plain, value: Any, old: Any, path: str) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        if "oldSelf" in rule["rule"] and old is None:
            continue
        try:
            holds = RULES.compile(rule["rule"]).evaluate({"self": value, "oldSelf": old})
        except CelError:
            holds = False
        if not holds:
            yield f"{path}: {rule['message']}"


def _read() -> dict[str, Crd]:
    found = [Crd(yaml.safe_load(path.read_text())) for path in sorted(TEMPLATES.glob("*.yaml"))]
    return {crd.kind: crd for crd in found}


@pytest.fixture(scope="session")
def crds() -> dict[str, Crd]:
    """Every CRD of the chart by its kind."""
    return _read()
