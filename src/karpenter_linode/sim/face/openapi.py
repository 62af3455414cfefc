"""OpenAPI v3: what ``kubectl explain`` shows, and what tells clients that the server validates fields itself."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any, Final

from karpenter_linode.sim.face.served import Resource, group_versions, resources
from karpenter_linode.sim.schemas import (
    GROUP_VERSION_KIND,
    LIST_META,
    PREFIX,
    kubernetes_schemas,
    references,
    schema_name,
    schema_of,
)

Plain = dict[str, Any]

EMPTY_V2: Final = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": "embedded"}, "paths": {}}
"""The document of version 2: it describes nothing. kubectl asks for it when it meets a kind that version 3 does not
know, and goes on to say that there is no such kind."""
V2_PROTOBUF_ASKED: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
V2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_DIGEST: Final = 64
_WRITE_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation")
_READ_PARAMETERS: Final = (
    *("allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion"),
    *("resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch"),
)


@cache
def index() -> Plain:
    """``GET /openapi/v3``: where the document of each group and version is; the hash changes with the document."""
    paths = {}
    for api_version in group_versions():
        place = _place(api_version)
        digest = hashlib.sha512(json.dumps(document(api_version), sort_keys=True).encode()).hexdigest().upper()
        paths[place] = {"serverRelativeURL": f"/openapi/v3/{place}?hash={digest[:_DIGEST]}"}
    return {"paths": paths}


@cache
def document(api_version: str) -> Plain | None:
    """The document of a ``group/version``, or None where none is served."""
    served = [resource for resource in resources() if resource.type.api_version == api_version]
    if not served:
        return None
    schemas: dict[str, Plain] = {}
    wanted: set[str] = {LIST_META}
    for resource in served:
        schema = {**schema_of(resource.type), GROUP_VERSION_KIND: [_kind(resource)]}
        schemas[schema_name(resource.type)] = schema
        schemas[f"{schema_name(resource.type)}List"] = _list_schema(resource)
        wanted |= references(schema)
    while wanted:
        name = wanted.pop()
        if name not in schemas:
            schemas[name] = kubernetes_schemas()[name]
            wanted |= references(schemas[name])
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "embedded"},
        "paths": {path: item for resource in served for path, item in _paths(resource).items()},
        "components": {"schemas": {name: schemas[name] for name in sorted(schemas)}},
    }


def _place(api_version: str) -> str:
    return f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"


def _kind(resource: Resource) -> Plain:
    group, _, version = resource.type.api_version.rpartition("/")
    return {"group": group, "version": version, "kind": resource.type.kind}


def _list_schema(resource: Resource) -> Plain:
    kind = _kind(resource)
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": {"$ref": f"{PREFIX}{schema_name(resource.type)}"}},
            "kind": {"type": "string"},
            "metadata": {"$ref": f"{PREFIX}{LIST_META}"},
        },
        GROUP_VERSION_KIND: [{**kind, "kind": f"{kind['kind']}List"}],
    }


def _paths(resource: Resource) -> Plain:
    base = f"/{_place(resource.type.api_version)}/"
    if resource.type.namespaced:
        base += "namespaces/{namespace}/"
    base += resource.type.plural
    answer = {"200": _content(schema_name(resource.type))}

    def operation(action: str, parameters: tuple[str, ...]) -> Plain:
        return {
            "parameters": [
                {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}} for name in parameters
            ],
            "responses": answer,
            "x-kubernetes-action": action,
            GROUP_VERSION_KIND: _kind(resource),
        }

    return {
        base: {"get": operation("list", _READ_PARAMETERS), "post": operation("post", _WRITE_PARAMETERS)},
        f"{base}/{{name}}": {
            "get": operation("get", ()),
            "put": operation("put", _WRITE_PARAMETERS),
            "patch": operation("patch", (*_WRITE_PARAMETERS, "force")),
            "delete": operation("delete", ("dryRun", "gracePeriodSeconds", "propagationPolicy")),
        },
    }


def _content(name: str) -> Plain:
    return {"description": "OK", "content": {"application/json": {"schema": {"$ref": f"{PREFIX}{name}"}}}}
