"""Writing: create, replace, patch and apply. Patches are computed here; the store checks and keeps what results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model.codec import without_nulls
from karpenter_linode.model.timestamps import rfc3339
from karpenter_linode.ports import NotFoundError
from karpenter_linode.sim.face.admission import Warnings, admitted, known_part
from karpenter_linode.sim.face.errors import RequestError, bad_request
from karpenter_linode.sim.face.managers import Manager, Ownership
from karpenter_linode.sim.face.requests import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    ApiRequest,
    check_bounds,
    object_in,
)
from karpenter_linode.sim.patches import json_patch, merge_patch
from karpenter_linode.sim.schemas import schema_of
from karpenter_linode.sim.strategic import strategic_merge

if TYPE_CHECKING:
    from karpenter_linode.ports import Clock
    from karpenter_linode.sim.store import Store
    from karpenter_linode.sim.stored import Stored

Plain = dict[str, Any]

_MAX_OPERATIONS: Final = 1_000


class Writer:
    """Writes objects as their clients ask.

    Args:
        store: where they are kept.
        clock: dates the entries of ``managedFields``.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def create(self, request: ApiRequest, warnings: Warnings) -> Stored:
        """``POST``.

        Raises:
            KubeError: refused.
        """
        plain = object_in(request.json(), request.target)
        kind = request.target.type
        new = admitted(kind, plain, request, warnings)
        owners = Ownership(schema_of(kind), [])
        owners.updated(Manager(request.manager, "Update", kind.api_version), {}, new, rfc3339(self._clock.now()))
        return self._store.create(_owned(new, owners), dry_run=request.dry_run)

    def update(self, request: ApiRequest, warnings: Warnings) -> Stored:
        """``PUT``.

        Raises:
            KubeError: refused.
        """
        target = request.target
        plain = object_in(request.json(), target)
        new = admitted(target.type, plain, request, warnings)
        current = self._store.get(target.type, target.name, target.namespace)
        return self._replace(request, current, new)

    def patch(self, request: ApiRequest, warnings: Warnings) -> tuple[Stored, bool]:
        """``PATCH`` of any kind.

        Returns:
            The stored object, and whether an apply made it.

        Raises:
            KubeError: refused.
        """
        target = request.target
        if request.content_type == APPLY_PATCH:
            return self._apply(request, warnings)
        current = self._store.get(target.type, target.name, target.namespace)
        patched = object_in(patched_object(request, current.plain), target)
        return self._replace(request, current, admitted(target.type, patched, request, warnings)), False

    def merge(self, request: ApiRequest, current: Stored, change: Plain, warnings: Warnings) -> Stored:
        """Merge a change into an object on behalf of a request about a subresource of it.

        Raises:
            KubeError: refused.
        """
        new = admitted(request.target.type, merge_patch(current.plain, change), request, warnings)
        return self._replace(request, current, new)

    def _apply(self, request: ApiRequest, warnings: Warnings) -> tuple[Stored, bool]:
        target, kind = request.target, request.target.type
        if not request.query.get("fieldManager"):
            raise bad_request(
                'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
            )
        config = object_in(request.json(), target)
        if "managedFields" in config["metadata"]:
            raise bad_request("metadata.managedFields must be nil")
        checked = known_part(kind, config, request, warnings)
        manager = Manager(request.manager, "Apply", kind.api_version, target.subresource)
        now, force = rfc3339(self._clock.now()), request.flag("force")
        try:
            current = self._store.get(kind, target.name, target.namespace)
        except NotFoundError:
            if target.subresource or checked["metadata"].get("uid"):
                raise
            owners = Ownership(schema_of(kind), [])
            owners.applied(manager, {}, checked, now, force=force)
            new = admitted(kind, _owned(checked, owners), request, Warnings())
            return self._store.create(new, dry_run=request.dry_run), True
        owners = Ownership(schema_of(kind), current.metadata.get("managedFields"))
        laid = owners.applied(manager, current.plain, checked, now, force=force)
        locks = {key: value for key, value in checked["metadata"].items() if key in ("uid", "resourceVersion")}
        metadata = {key: value for key, value in laid["metadata"].items() if key != "resourceVersion"} | locks
        new = admitted(kind, _owned({**laid, "metadata": metadata}, owners), request, Warnings())
        return self._store.replace(new, subresource=target.subresource, dry_run=request.dry_run), False

    def _replace(self, request: ApiRequest, current: Stored, new: Plain) -> Stored:
        """Put an object in place of the current one, and note who changed what."""
        kind, subresource = request.target.type, request.target.subresource
        known = new["metadata"].get("managedFields", current.metadata.get("managedFields"))
        owners = Ownership(schema_of(kind), known)
        manager = Manager(request.manager, "Update", kind.api_version, subresource)
        owners.updated(manager, current.plain, new, rfc3339(self._clock.now()))
        return self._store.replace(_owned(new, owners), subresource=subresource, dry_run=request.dry_run)


def _owned(plain: Plain, owners: Ownership) -> Plain:
    """The object with its fields' owners written into it."""
    entries = owners.entries()
    metadata = {key: value for key, value in plain["metadata"].items() if key != "managedFields"}
    return {**plain, "metadata": {**metadata, **({"managedFields": entries} if entries else {})}}


def patched_object(request: ApiRequest, current: Plain) -> Any:
    """The current object with the body's patch applied.

    Raises:
        RequestError: a patch of no known kind (415), or one that cannot be applied (400, 422).
    """
    body, kind = request.json(), request.target.type
    match request.content_type:
        case "application/merge-patch+json" if isinstance(body, dict):
            return merge_patch(current, body)
        case "application/strategic-merge-patch+json" if isinstance(body, dict) and not kind.custom:
            return without_nulls(strategic_merge(schema_of(kind), current, body))
        case "application/json-patch+json":
            patched = json_patch(current, operations(body))
            check_bounds(patched)  # copies of copies grow fast
            return patched
        case _ if request.content_type in (MERGE_PATCH, STRATEGIC_PATCH) and not isinstance(body, dict):
            raise bad_request(f"a merge patch must be an object, found {type(body).__name__}")
        case _:
            accepted = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH, *(() if kind.custom else (STRATEGIC_PATCH,)))
            raise RequestError(
                415,
                "the body of the request was in an unknown format - accepted media types include: "
                f"{', '.join(accepted)}",
            )


def operations(body: Any) -> list[Plain]:
    """The operations of a JSON patch.

    Raises:
        RequestError: no list of mappings, or too many (400).
    """
    if not isinstance(body, list) or not all(isinstance(item, dict) for item in body):
        raise bad_request("a JSON patch must be a list of operations")
    if len(body) > _MAX_OPERATIONS:
        raise bad_request(f"a JSON patch of {len(body)} operations: expected at most {_MAX_OPERATIONS}")
    return body
