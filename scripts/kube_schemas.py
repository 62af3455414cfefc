# ruff: noqa: INP001 - a script, not a package
"""Writes the shapes of Kubernetes' own kinds that the HTTP face of the embedded world serves.

    scripts/kube_schemas.py DIRECTORY     DIRECTORY holds the OpenAPI v3 documents of a Kubernetes release,
                                          `api/openapi-spec/v3` of the module k8s.io/kubernetes

Kept are names and types of fields, how lists and maps merge, and which fields are required: what a client needs to read
and write objects. Descriptions are not.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "src/karpenter_linode/sim/face/data/kubernetes.json"
KINDS = {
    "api__v1": (
        *("Namespace", "Pod", "Node", "Event", "ConfigMap", "Secret", "ServiceAccount", "Service"),
        *("PersistentVolumeClaim", "PersistentVolume", "ReplicationController", "Eviction", "Scale"),
    ),
    "apis__apps__v1": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "apis__policy__v1": ("PodDisruptionBudget",),
    "apis__scheduling.k8s.io__v1": ("PriorityClass",),
    "apis__storage.k8s.io__v1": ("StorageClass", "CSINode", "VolumeAttachment"),
    "apis__coordination.k8s.io__v1": ("Lease",),
    "apis__resource.k8s.io__v1": ("ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate"),
}
GROUP_VERSION_KIND = "x-kubernetes-group-version-kind"
DROPPED = frozenset({"description", "example", "x-kubernetes-unions"})
WITHOUT_MEANING: tuple[Any, ...] = ({}, "", 0)  # defaults that only tell the zero value of a Go type


def main(directory: Path) -> None:
    """Write the file."""
    kept: dict[str, Any] = {}
    for document, kinds in KINDS.items():
        schemas = json.loads((directory / f"{document}_openapi.json").read_text())["components"]["schemas"]
        wanted = [name for name, schema in schemas.items() if is_kind(name, schema, kinds)]
        while wanted:
            name = wanted.pop()
            if name not in kept:
                kept[name] = trimmed(schemas[name])
                wanted += references(kept[name])
    lines = [f"{json.dumps(name)}: {json.dumps(kept[name], sort_keys=True)}" for name in sorted(kept)]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def is_kind(name: str, schema: dict[str, Any], kinds: tuple[str, ...]) -> bool:
    """Whether a schema is that of one of the kinds."""
    return GROUP_VERSION_KIND in schema and name.rpartition(".")[2] in kinds


def trimmed(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without what nobody here reads."""
    result: dict[str, Any] = {}
    for key, value in schema.items():
        match key:
            case "properties":
                result[key] = {name: trimmed(each) for name, each in value.items()}
            case "items" | "additionalProperties" if isinstance(value, dict):
                result[key] = trimmed(value)
            case "allOf" if len(value) == 1:
                result |= trimmed(value[0])
            case "default" if value in WITHOUT_MEANING:
                continue
            case _ if key not in DROPPED:
                result[key] = value
    if len(result.get(GROUP_VERSION_KIND, ())) > 1:  # kinds that every group has, such as DeleteOptions
        del result[GROUP_VERSION_KIND]
    return result


def references(schema: Any) -> list[str]:
    """Names of the schemas that a schema refers to."""
    if isinstance(schema, dict):
        own = [schema["$ref"].rpartition("/")[2]] if isinstance(schema.get("$ref"), str) else []
        return own + [name for value in schema.values() for name in references(value)]
    return [name for value in schema for name in references(value)] if isinstance(schema, list) else []


if __name__ == "__main__":
    main(Path(sys.argv[1]))
