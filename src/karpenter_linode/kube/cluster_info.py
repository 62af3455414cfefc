"""What the cluster serves and what we may do there, for the checks at the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, field

from karpenter_linode.kube.errors import UnreadableError
from karpenter_linode.kube.http import KubeCall
from karpenter_linode.ports import NotFoundError

if TYPE_CHECKING:
    from karpenter_linode.kube.http import KubeHttp

_REVIEW: Final = "authorization.k8s.io/v1"


class Permission(Struct, frozen=True, order=True):
    """One thing to be allowed.

    Args:
        group: API group, "" for the core one.
        resource: plural, with a subresource after a slash.
        verb: as RBAC names it.
        namespace: "" for the whole cluster.
        name: "" for any.
    """

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        group = f".{self.group}" if self.group else ""
        resource, _, subresource = self.resource.partition("/")
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {resource}{group}{'/' if subresource else ''}{subresource}{where}"


class ServerVersion(Struct, frozen=True, rename="camel"):
    """The server's release."""

    git_version: str = ""
    major: str = ""
    minor: str = ""


class _Resource(Struct, frozen=True):
    name: str = ""


class _Resources(Struct, frozen=True):
    resources: tuple[_Resource, ...] = ()


class _Allowed(Struct, frozen=True):
    allowed: bool = False


class _Review(Struct, frozen=True):
    status: _Allowed = field(default_factory=_Allowed)


async def server_version(http: KubeHttp) -> ServerVersion:
    """The release of the API server."""
    try:
        return msgspec.json.decode(await http.read("/version"), type=ServerVersion)
    except msgspec.MsgspecError as error:
        raise UnreadableError(f"get /version: {error}") from None


async def served_resources(http: KubeHttp, api_version: str) -> frozenset[str]:
    """Plurals that are served in an API group's version; none where the server does not know it."""
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    try:
        content = await http.read(root)
        found = msgspec.json.decode(content, type=_Resources)
    except NotFoundError:
        return frozenset()
    except msgspec.MsgspecError as error:
        raise UnreadableError(f"get {root}: {error}") from None
    return frozenset(resource.name for resource in found.resources)


async def is_allowed(http: KubeHttp, permission: Permission) -> bool:
    """Whether we may, by a SelfSubjectAccessReview. Asking needs no permission in a cluster with default roles."""
    resource, _, subresource = permission.resource.partition("/")
    attributes = {
        "group": permission.group,
        "resource": resource,
        "subresource": subresource,
        "verb": permission.verb,
        "namespace": permission.namespace,
        "name": permission.name,
    }
    body = {
        "apiVersion": _REVIEW,
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    call = KubeCall("create", _REVIEW, "selfsubjectaccessreviews", body=body)
    content = await http.send(call)
    try:
        return msgspec.json.decode(content, type=_Review).status.allowed
    except msgspec.MsgspecError as error:
        raise UnreadableError(f"{call}: {error}") from None
