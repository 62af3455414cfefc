"""What the server tells about each resource beside its type: short names, categories, subresources and verbs."""

from __future__ import annotations

from functools import cache
from typing import Final

from msgspec import Struct

from karpenter_linode.sim.resource_types import RESOURCE_TYPES, ResourceType
from karpenter_linode.sim.schemas import custom_definition, custom_version

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_CHANGE: Final = ("get", "patch", "update")
_SHORT_NAMES: Final = {
    "configmaps": ("cm",),
    "daemonsets": ("ds",),
    "deployments": ("deploy",),
    "events": ("ev",),
    "namespaces": ("ns",),
    "nodes": ("no",),
    "persistentvolumeclaims": ("pvc",),
    "persistentvolumes": ("pv",),
    "poddisruptionbudgets": ("pdb",),
    "pods": ("po",),
    "priorityclasses": ("pc",),
    "replicasets": ("rs",),
    "replicationcontrollers": ("rc",),
    "serviceaccounts": ("sa",),
    "services": ("svc",),
    "statefulsets": ("sts",),
    "storageclasses": ("sc",),
}
_SCALED: Final = frozenset({"deployments", "replicasets", "statefulsets", "replicationcontrollers"})
_IN_ALL: Final = _SCALED | {"pods", "services", "daemonsets"}
OF_CONTAINERS: Final = frozenset({"log", "exec", "attach", "portforward"})
"""Subresources of pods that need containers."""


class Subresource(Struct, frozen=True):
    """A subresource: its name, what its requests and answers hold, and its verbs."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


class ScalePaths(Struct, frozen=True):
    """Where a kind keeps its replicas: field paths without the leading dot."""

    spec: tuple[str, ...]
    status: tuple[str, ...]
    selector: tuple[str, ...] = ()


class Resource(Struct, frozen=True):
    """A served resource.

    Args:
        type: kind, plural and scope.
        singular: its name in the singular.
        short_names: what kubectl accepts for it.
        categories: groups of resources that it is listed with, such as ``all``.
        subresources: what lies below its objects.
        scale: where its replicas stand, if it can be scaled.
    """

    type: ResourceType
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    scale: ScalePaths | None = None


@cache
def resources() -> tuple[Resource, ...]:
    """All resources, in the order of the store's types."""
    return tuple(_resource(kind) for kind in RESOURCE_TYPES)


@cache
def _by_path() -> dict[tuple[str, str], Resource]:
    return {(resource.type.api_version, resource.type.plural): resource for resource in resources()}


def find_resource(api_version: str, plural: str) -> Resource | None:
    """The resource at ``/apis/<api_version>/<plural>``, or None."""
    return _by_path().get((api_version, plural))


def group_versions() -> tuple[str, ...]:
    """All served ``group/version`` names, core first."""
    return tuple(dict.fromkeys(resource.type.api_version for resource in resources()))


def _resource(kind: ResourceType) -> Resource:
    definition, version = custom_definition(kind), custom_version(kind)
    if definition is None or version is None:
        scale = _BUILT_IN_SCALE if kind.plural in _SCALED else None
        return Resource(
            kind,
            kind.kind.lower(),
            _SHORT_NAMES.get(kind.plural, ()),
            ("all",) if kind.plural in _IN_ALL else (),
            _subresources(kind, scale),
            scale,
        )
    names, paths = definition["spec"]["names"], (version.get("subresources") or {}).get("scale")
    scale = None
    if paths:
        scale = ScalePaths(_path(paths["specReplicasPath"]), _path(paths["statusReplicasPath"]))
    return Resource(
        kind,
        names["singular"],
        tuple(names.get("shortNames", ())),
        tuple(names.get("categories", ())),
        _subresources(kind, scale),
        scale,
    )


_BUILT_IN_SCALE: Final = ScalePaths(("spec", "replicas"), ("status", "replicas"), ("spec", "selector"))


def _path(text: str) -> tuple[str, ...]:
    return tuple(text.lstrip(".").split("."))


def _subresources(kind: ResourceType, scale: ScalePaths | None) -> tuple[Subresource, ...]:
    version = kind.api_version.rpartition("/")[2]
    found = []
    if kind.plural == "pods":
        found.append(Subresource("binding", "", "v1", "Binding", ("create",)))
        found.append(Subresource("eviction", "policy", "v1", "Eviction", ("create",)))
    if scale is not None:
        found.append(Subresource("scale", "autoscaling", "v1", "Scale", _CHANGE))
    if kind.status:
        found.append(Subresource("status", kind.group, version, kind.kind, _CHANGE))
    return tuple(found)
