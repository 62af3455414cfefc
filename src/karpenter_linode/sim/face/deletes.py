"""Deleting: one object or many, with grace, preconditions and orphans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.ports import ConflictError, NotFoundError
from karpenter_linode.sim.face.errors import bad_request
from karpenter_linode.sim.face.reads import selected
from karpenter_linode.sim.resource_types import RESOURCE_TYPES

if TYPE_CHECKING:
    from karpenter_linode.sim.face.requests import ApiRequest
    from karpenter_linode.sim.store import Store
    from karpenter_linode.sim.stored import Stored

_POLICIES: Final = ("", "Background", "Foreground", "Orphan")
_LONGEST_GRACE: Final = 2**31


class Deleter:
    """Deletes objects as their clients ask.

    Dependents go in the background whatever policy is asked for but ``Orphan``: the world's garbage collector knows no
    other way.

    Args:
        store: where objects are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def delete(self, request: ApiRequest) -> tuple[Stored, bool]:
        """``DELETE`` of one object.

        Returns:
            The object as it stands after the request, and whether it is gone.

        Raises:
            KubeError: no such object, or a precondition that does not hold.
        """
        target, options = request.target, _options(request)
        current = self._store.get(target.type, target.name, target.namespace)
        return self._delete(current, request, options)

    def delete_many(self, request: ApiRequest) -> tuple[Stored, ...]:
        """``DELETE`` of all objects that the request's selectors pick; those that go meanwhile are passed over."""
        options = _options(request)
        deleted = []
        for stored in selected(self._store, request):
            try:
                deleted.append(self._delete(stored, request, options)[0])
            except NotFoundError:
                continue
        return tuple(deleted)

    def _delete(self, current: Stored, request: ApiRequest, options: dict[str, Any]) -> tuple[Stored, bool]:
        kind = request.target.type
        conditions = options.get("preconditions") or {}
        version = conditions.get("resourceVersion")
        if version and version != current.metadata["resourceVersion"]:
            raise ConflictError(
                f'Operation cannot be fulfilled on {kind.resource} "{current.name}": Precondition failed: '
                f"ResourceVersion in precondition: {version}, ResourceVersion in object meta: "
                f"{current.metadata['resourceVersion']}"
            )
        if request.dry_run:
            return current, not current.metadata.get("finalizers")
        if options.get("propagationPolicy") == "Orphan":
            self._orphan(current.uid)
        self._store.delete(
            kind,
            current.name,
            current.namespace,
            uid=conditions.get("uid") or "",
            grace_period_seconds=options.get("gracePeriodSeconds"),
        )
        try:
            return self._store.get(kind, current.name, current.namespace), False
        except NotFoundError:
            return current, True

    def _orphan(self, uid: str) -> None:
        """Take an owner off its dependents, so that they stay."""
        for kind in RESOURCE_TYPES:
            for stored in self._store.list(kind):
                owners = stored.metadata.get("ownerReferences") or []
                left = [owner for owner in owners if owner.get("uid") != uid]
                if len(left) < len(owners):
                    patch = {"metadata": {"ownerReferences": left}}
                    self._store.patch(kind, stored.name, patch, namespace=stored.namespace)


def _options(request: ApiRequest) -> dict[str, Any]:
    """``DeleteOptions`` from the body, completed by the query.

    Raises:
        RequestError: of the wrong shape (400).
    """
    body = request.json()
    if body is not None and not isinstance(body, dict):
        raise bad_request(f"found {type(body).__name__}, expected DeleteOptions")
    options = dict(body or {})
    if "gracePeriodSeconds" in request.query:
        options["gracePeriodSeconds"] = request.number("gracePeriodSeconds")
    if "propagationPolicy" in request.query:
        options["propagationPolicy"] = request.query["propagationPolicy"]
    grace = options.get("gracePeriodSeconds")
    if grace is not None and (type(grace) is not int or not -1 <= grace < _LONGEST_GRACE):
        raise bad_request(f"gracePeriodSeconds: found {grace!r}, expected a number of seconds")
    conditions = options.get("preconditions") or {}
    if not isinstance(conditions, dict) or not all(
        isinstance(conditions.get(field) or "", str) for field in ("uid", "resourceVersion")
    ):
        raise bad_request("preconditions: expected an object with uid and resourceVersion")
    policy = options.get("propagationPolicy") or ""
    if policy not in _POLICIES:
        raise bad_request(f'propagationPolicy: Invalid value: "{policy}": expected one of {", ".join(_POLICIES[1:])}')
    return options
