"""The shapes of all served kinds: Kubernetes' own from its OpenAPI documents, ours from their CRDs.

``data/kubernetes.json`` is written by ``scripts/kube_schemas.py`` from files of Kubernetes (Apache License 2.0);
``data/crds.json``, by ``scripts/carried_crds.py``, from the chart ``karpenter-crd``.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from karpenter_linode.sim.resource_types import ResourceType

Schema = dict[str, Any]

GROUP_VERSION_KIND: Final = "x-kubernetes-group-version-kind"
OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
LIST_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
PREFIX: Final = "#/components/schemas/"


@cache
def kubernetes_schemas() -> dict[str, Schema]:
    """Schemas of Kubernetes' own types by name."""
    return _data("kubernetes.json")


@cache
def custom_definitions() -> dict[tuple[str, str], dict[str, Any]]:
    """CustomResourceDefinitions of the chart by group and kind."""
    return {(item["spec"]["group"], item["spec"]["names"]["kind"]): item for item in _data("crds.json").values()}


def _data(name: str) -> dict[str, Any]:
    text = files("karpenter_linode.sim").joinpath("data", name).read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def custom_definition(kind: ResourceType) -> dict[str, Any] | None:
    """The CRD that serves a kind, or None for Kubernetes' own."""
    return custom_definitions().get((kind.group, kind.kind)) if kind.custom else None


def custom_version(kind: ResourceType) -> dict[str, Any] | None:
    """The part of the CRD that serves the kind's version."""
    definition = custom_definition(kind)
    if definition is None:
        return None
    name = kind.api_version.rpartition("/")[2]
    version: dict[str, Any] = next(item for item in definition["spec"]["versions"] if item["name"] == name)
    return version


@cache
def schema_name(kind: ResourceType) -> str:
    """The name under which the OpenAPI documents hold a kind."""
    if kind.custom:
        reverse = ".".join(reversed(kind.group.split(".")))
        return f"{reverse}.{kind.api_version.rpartition('/')[2]}.{kind.kind}"
    version = kind.api_version.rpartition("/")[2]
    wanted = {"group": kind.group, "version": version, "kind": kind.kind}
    return next(name for name, schema in kubernetes_schemas().items() if schema.get(GROUP_VERSION_KIND) == [wanted])


@cache
def schema_of(kind: ResourceType) -> Schema:
    """The schema of a kind, with Kubernetes' own metadata in it."""
    version = custom_version(kind)
    if version is None:
        return kubernetes_schemas()[schema_name(kind)]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    metadata = {"$ref": f"{PREFIX}{OBJECT_META}"}
    return {**schema, "properties": {**schema["properties"], "metadata": metadata}}


def resolved(schema: Schema | None) -> Schema:
    """What a schema refers to, or itself; an empty one where nothing is known."""
    seen = schema or {}
    while "$ref" in seen:
        seen = kubernetes_schemas()[seen["$ref"].removeprefix(PREFIX)]
    return seen


def field_schema(schema: Schema, name: str) -> Schema | None:
    """The schema of a member of a mapping, or None where the mapping has no such member."""
    properties = schema.get("properties") or {}
    if name in properties:
        return resolved(properties[name])
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        return resolved(more)
    return {} if more is True or is_open(schema) else None


def is_open(schema: Schema) -> bool:
    """Whether a mapping may hold members that its schema doesn't name."""
    return bool(schema.get("x-kubernetes-preserve-unknown-fields")) or not (
        schema.get("properties") or schema.get("additionalProperties")
    )


def item_schema(schema: Schema) -> Schema:
    """The schema of a list's items."""
    return resolved(schema.get("items"))


def references(schema: Any) -> set[str]:
    """Names of the schemas that a schema refers to."""
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        own = {reference.removeprefix(PREFIX)} if isinstance(reference, str) else set()
        return own.union(*(references(value) for value in schema.values()))
    return set().union(*(references(value) for value in schema)) if isinstance(schema, list) else set()
