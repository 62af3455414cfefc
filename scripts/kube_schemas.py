# ruff: noqa: INP001 - a script, not a package
"""Writes the shapes of Kubernetes' own kinds that the HTTP face of the embedded world serves.

    scripts/kube_schemas.py VERSION [MODULES]

VERSION is one of Kubernetes, like 1.37.2; MODULES holds its Go modules, `~/go/pkg/mod` by default. Read are the OpenAPI
documents (version 3) of k8s.io/kubernetes, and for the binary form of requests the protocol files of k8s.io/api and
k8s.io/apimachinery. Kept are names, numbers and types of fields, how lists and maps merge, and which fields are
required: what one needs to read and write objects. Descriptions are not.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "src/karpenter_linode/sim/data"
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
LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
GROUP_VERSION_KIND = "x-kubernetes-group-version-kind"
DROPPED = frozenset({"description", "example", "x-kubernetes-unions"})
WITHOUT_MEANING: tuple[Any, ...] = ({}, "", 0)  # defaults that only tell the zero value of a Go type


def write_schemas(directory: Path) -> dict[str, Any]:
    """Write the shapes of the kinds in JSON, and return them."""
    kept: dict[str, Any] = {}
    for document, kinds in KINDS.items():
        schemas = json.loads((directory / f"{document}_openapi.json").read_text())["components"]["schemas"]
        wanted = [name for name, schema in schemas.items() if is_kind(name, schema, kinds) or name == LIST_META]
        while wanted:
            name = wanted.pop()
            if name not in kept:
                kept[name] = trimmed(schemas[name])
                wanted += references(kept[name])
    write("kubernetes.json", kept)
    return kept


def write(name: str, content: dict[str, Any]) -> None:
    """Write a data file, one entry a line."""
    lines = [f"{json.dumps(key)}: {json.dumps(content[key], sort_keys=True)}" for key in sorted(content)]
    (DATA / name).write_text("{\n" + ",\n".join(lines) + "\n}\n")


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


MESSAGE = re.compile(r"^message (\w+) \{$(.*?)^\}$", re.MULTILINE | re.DOTALL)
FIELD = re.compile(
    r"^  (?P<label>optional|repeated|map<string,) (?P<type>[\w.]+)>? (?P<name>\w+) = (?P<number>\d+);$", re.MULTILINE
)
SCALARS = frozenset({"string", "bool", "int32", "int64", "double", "bytes"})
# Messages that JSON writes as something else; who reads them knows them by name.
SPECIAL = frozenset({"Quantity", "Time", "MicroTime", "IntOrString", "FieldsV1", "RawExtension"})
APIMACHINERY = ("pkg/apis/meta/v1", "pkg/api/resource", "pkg/runtime", "pkg/util/intstr")
GROUPS = (
    *("apps", "authentication", "authorization", "coordination", "core", "policy", "resource", "scheduling", "storage"),
    "autoscaling",
)
REVIEWS = (
    *("authentication.v1.SelfSubjectReview", "authorization.v1.SelfSubjectAccessReview"),
    "authorization.v1.SelfSubjectRulesReview",
)


def write_messages(api: Path, apimachinery: Path, schemas: dict[str, Any]) -> None:
    """Write numbers and types of the fields that the kinds have in their binary form.

    A field that the JSON form does not have holds members of its parent there.
    """
    files = {f"io.k8s.api.{group}.v1": api / group / "v1" for group in GROUPS}
    files |= {f"io.k8s.apimachinery.{path.replace('/', '.')}": apimachinery / path for path in APIMACHINERY}
    found: dict[str, dict[str, list[str]]] = {}
    for package, folder in files.items():
        for name, body in MESSAGE.findall((folder / "generated.proto").read_text()):
            found[f"{package}.{name}"] = {
                match["number"]: [match["name"], kind_of(match, package)] for match in FIELD.finditer(body)
            }
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1"
    wanted = [
        *(f"io.k8s.api.{group_of(document)}.v1.{kind}" for document, kinds in KINDS.items() for kind in kinds),
        *(f"io.k8s.api.{name}" for name in REVIEWS),
        f"{meta}.DeleteOptions",
    ]
    kept: dict[str, Any] = {}
    moved = {"io.k8s.api.core.v1.Eviction": "policy", "io.k8s.api.core.v1.Scale": "autoscaling"}
    wanted = [name.replace("core", moved[name]) if name in moved else name for name in wanted]
    while wanted:
        name = wanted.pop()
        if name in found and name not in kept:
            kept[name] = found[name]
            members = schemas.get(name, {}).get("properties")
            for field in kept[name].values():
                if members is not None and field[0] not in members:
                    field[1] = field[1].replace("one ", "inline ")
            wanted += [kind.partition(" ")[2] for _, kind in found[name].values()]
    write("messages.json", kept)


def group_of(document: str) -> str:
    """The folder of the group that an OpenAPI document is about."""
    return "core" if document == "api__v1" else document.split("__")[1].split(".", maxsplit=1)[0]


def kind_of(field: re.Match[str], package: str) -> str:
    """How often a field comes and what it holds, like `one string`, `many io.k8s.api.core.v1.Container`."""
    label = {"optional": "one", "repeated": "many"}.get(field["label"], "map")
    kind = field["type"]
    last = kind.rpartition(".")[2]
    if kind in SCALARS or last in SPECIAL:
        return f"{label} {last}"
    full = f"io.k8s.{kind.removeprefix('.k8s.io.')}" if kind.startswith(".") else f"{package}.{kind}"
    return f"{label} {full}"


if __name__ == "__main__":
    modules = Path(sys.argv[2]) if len(sys.argv) > 2 else Path.home() / "go/pkg/mod"  # noqa: PLR2004 - its place
    minor = sys.argv[1].partition(".")[2]
    written = write_schemas(modules / f"k8s.io/kubernetes@v{sys.argv[1]}/api/openapi-spec/v3")
    write_messages(modules / f"k8s.io/api@v0.{minor}", modules / f"k8s.io/apimachinery@v0.{minor}", written)
