"""Reading: one object or many, as they are, as tables, or as metadata alone."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from karpenter_linode.ports import GoneError
from karpenter_linode.sim.face.errors import RequestError, bad_request
from karpenter_linode.sim.face.selectors import predicate
from karpenter_linode.sim.face.tables import partial, table

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.sim.face.requests import ApiRequest
    from karpenter_linode.sim.resource_types import ResourceType
    from karpenter_linode.sim.store import Store
    from karpenter_linode.sim.stored import Stored

Plain = dict[str, Any]

_EXACT: Final = "Exact"
_NOT_OLDER: Final = "NotOlderThan"
_INCLUDES: Final = ("None", "Metadata", "Object")
_TOKEN_PARTS: Final = 3


class Format(Struct, frozen=True):
    """How a client wants objects: ``as`` is Table, PartialObjectMetadata, its list form, or empty."""

    shape: str = ""
    include: str = "Metadata"

    @property
    def content_type(self) -> str:
        """Of the answer."""
        return f"application/json;as={self.shape};v=v1;g=meta.k8s.io" if self.shape else "application/json"


def wanted_format(request: ApiRequest) -> Format:
    """The first format of the Accept header that this server can give.

    Raises:
        RequestError: none of them (406).
    """
    include = request.query.get("includeObject") or "Metadata"
    if include not in _INCLUDES:
        raise bad_request(f'includeObject: Unsupported value: "{include}": supported values: {", ".join(_INCLUDES)}')
    for accepted in request.accept.split(",") if request.accept.strip() else ("*/*",):
        kind, *parameters = (part.strip() for part in accepted.split(";"))
        asked = dict(part.partition("=")[::2] for part in parameters)
        if kind not in ("application/json", "application/*", "*/*"):
            continue
        if "as" not in asked:
            return Format()
        if asked.get("g") == "meta.k8s.io" and asked.get("v") == "v1":
            if asked["as"] == "Table":
                return Format("Table", include)
            if asked["as"] in ("PartialObjectMetadata", "PartialObjectMetadataList"):
                return Format(asked["as"])
    raise RequestError(406, "only the following media types are accepted: application/json")


def shaped(kind: ResourceType, stored: Stored, form: Format, now: datetime) -> Plain:
    """One object in the wanted format."""
    if form.shape == "Table":
        return table(kind, [stored], {"resourceVersion": stored.metadata["resourceVersion"]}, now, form.include)
    return partial(stored.plain) if form.shape else stored.plain


def get(store: Store, request: ApiRequest, now: datetime) -> Plain:
    """``GET`` of one object.

    Raises:
        NotFoundError: there is none.
    """
    target = request.target
    check_version(store, request)
    stored = store.get(target.type, target.name, target.namespace)
    return shaped(target.type, stored, wanted_format(request), now)


def list_(store: Store, request: ApiRequest, now: datetime) -> Plain:
    """``GET`` of many objects, in pages if the client asks for that.

    Raises:
        RequestError: parameters that make no sense (400), a version that is not there (410, 504).
    """
    kind, form = request.target.type, wanted_format(request)
    version, after = _start(store, request)
    found = [item for item in selected(store, request) if after is None or (item.namespace, item.name) > after]
    metadata: Plain = {"resourceVersion": version}
    limit = request.number("limit")
    if limit and len(found) > limit:
        last = found[limit - 1]
        token = json.dumps([version, last.namespace, last.name]).encode()
        metadata |= {
            "continue": base64.urlsafe_b64encode(token).decode(),
            "remainingItemCount": len(found) - limit,
        }
        found = found[:limit]
    if form.shape == "Table":
        return table(kind, found, metadata, now, form.include)
    if form.shape:
        items = [partial(item.plain) for item in found]
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "items": items,
        }
    return {
        "kind": f"{kind.kind}List",
        "apiVersion": kind.api_version,
        "metadata": metadata,
        "items": [item.plain for item in found],
    }


def selected(store: Store, request: ApiRequest) -> tuple[Stored, ...]:
    """The objects that a request is about, by namespace, name and selectors."""
    matches = predicate(request)
    return tuple(stored for stored in store.list(request.target.type) if matches(stored))


def check_version(store: Store, request: ApiRequest) -> None:
    """Whether the server can answer at the version that the client names.

    Raises:
        RequestError: it is yet to come (504), or gone by where exactly it is wanted (410).
    """
    version, latest = request.number("resourceVersion"), int(store.resource_version)
    match = request.query.get("resourceVersionMatch", "")
    if match not in ("", _EXACT, _NOT_OLDER):
        raise bad_request(f'resourceVersionMatch: Unsupported value: "{match}"')
    if version > latest:
        raise RequestError(504, f"Too large resource version: {version}, current: {latest}")
    if match == _EXACT and version not in (0, latest):
        raise RequestError(410, f"The resourceVersion for the provided list is too old: {version}, current: {latest}")


def _start(store: Store, request: ApiRequest) -> tuple[str, tuple[str, str] | None]:
    """The version to name in a list, and the key after which its page starts."""
    token = request.query.get("continue", "")
    if not token:
        check_version(store, request)
        return store.resource_version, None
    try:
        parts = json.loads(base64.urlsafe_b64decode(token))
    except (ValueError, RecursionError):
        parts = None
    if not isinstance(parts, list) or len(parts) != _TOKEN_PARTS or not all(isinstance(part, str) for part in parts):
        raise bad_request("continue key is not valid: it is not one that this server gave")
    version, namespace, name = parts
    latest = store.resource_version
    if not version.isdecimal() or len(version) > len(latest) or int(version) > int(latest):
        raise bad_request("continue key is not valid: it names no version of this server")
    # What changed since the first page is told by a watch from its version; once that is impossible, so is the page.
    if int(version) < store.history(request.target.type).compacted:
        raise GoneError("The provided continue parameter is too old to display a consistent list result.")
    return version, (namespace, name)
