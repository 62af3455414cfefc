"""Discovery: which groups, versions and resources there are, in the old form and the aggregated one."""

from __future__ import annotations

from typing import Any, Final

from karpenter_linode.sim.face.served import VERBS, Resource, group_versions, resources

Plain = dict[str, Any]

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
AUTHENTICATION: Final = "authentication.k8s.io/v1"
AUTHORIZATION: Final = "authorization.k8s.io/v1"
# Requests that are answered and forgotten: group/version -> (plural, kind).
REVIEWS: Final = {
    AUTHENTICATION: (("selfsubjectreviews", "SelfSubjectReview"),),
    AUTHORIZATION: (
        ("selfsubjectaccessreviews", "SelfSubjectAccessReview"),
        ("selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    ),
}


def all_group_versions() -> tuple[str, ...]:
    """Every ``group/version``, core first, with those that only review."""
    return (*group_versions(), *REVIEWS)


def document(parts: list[str]) -> Plain | None:
    """The document at a path of discovery, or None where there is none."""
    match parts:
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            found = [_group(name) for name in _group_names() if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}
        case ["apis", name] if name and name in _group_names():
            return {"apiVersion": "v1", **_group(name)}
        case ["api", version]:
            return resource_list(version)
        case ["apis", name, version]:
            return resource_list(f"{name}/{version}")
        case _:
            return None


def resource_list(api_version: str) -> Plain | None:
    """``GET /api/v1`` and ``GET /apis/<group>/<version>``, or None where nothing is served there."""
    if api_version not in all_group_versions():
        return None
    found: list[Plain] = []
    for resource in _resources(api_version):
        found.append(_entry(resource))
        found += [
            {
                "name": f"{resource.type.plural}/{item.name}",
                "singularName": "",
                "namespaced": resource.type.namespaced,
                "group": item.group,
                "version": item.version,
                "kind": item.kind,
                "verbs": list(item.verbs),
            }
            for item in resource.subresources
        ]
    found += [
        {"name": plural, "singularName": kind.lower(), "namespaced": False, "kind": kind, "verbs": ["create"]}
        for plural, kind in REVIEWS.get(api_version, ())
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": found}


def aggregated(*, core: bool) -> Plain:
    """The aggregated form of ``/api`` or ``/apis``."""
    names = [name for name in _group_names() if (not name) == core]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
                "versions": [_version_discovery(item) for item in _versions(name)],
            }
            for name in names
        ],
    }


def _version_discovery(api_version: str) -> Plain:
    found = [_resource_discovery(resource) for resource in _resources(api_version)]
    found += [
        {
            "resource": plural,
            "responseKind": _kind(api_version, kind),
            "scope": "Cluster",
            "singularResource": kind.lower(),
            "verbs": ["create"],
        }
        for plural, kind in REVIEWS.get(api_version, ())
    ]
    return {"version": api_version.rpartition("/")[2], "freshness": "Current", "resources": found}


def _resource_discovery(resource: Resource) -> Plain:
    kind = resource.type
    return {
        "resource": kind.plural,
        "responseKind": _kind(kind.api_version, kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(VERBS),
        **({"shortNames": list(resource.short_names)} if resource.short_names else {}),
        **({"categories": list(resource.categories)} if resource.categories else {}),
        "subresources": [
            {
                "subresource": item.name,
                "responseKind": {"group": item.group, "version": item.version, "kind": item.kind},
                "verbs": list(item.verbs),
            }
            for item in resource.subresources
        ],
    }


def _entry(resource: Resource) -> Plain:
    kind = resource.type
    return {
        "name": kind.plural,
        "singularName": resource.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(VERBS),
        **({"shortNames": list(resource.short_names)} if resource.short_names else {}),
        **({"categories": list(resource.categories)} if resource.categories else {}),
    }


def _resources(api_version: str) -> list[Resource]:
    return [resource for resource in resources() if resource.type.api_version == api_version]


def _group_names() -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.rpartition("/")[0] for item in all_group_versions()))


def _versions(name: str) -> list[str]:
    return [item for item in all_group_versions() if item.rpartition("/")[0] == name]


def _group(name: str) -> Plain:
    versions = [{"groupVersion": item, "version": item.rpartition("/")[2]} for item in _versions(name)]
    return {"kind": "APIGroup", "name": name, "versions": versions, "preferredVersion": versions[0]}


def _kind(api_version: str, kind: str) -> Plain:
    group_name, _, version = api_version.rpartition("/")
    return {"group": group_name, "version": version, "kind": kind}
