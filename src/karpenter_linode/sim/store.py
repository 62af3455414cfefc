"""The embedded API server's store: JSON objects with the semantics that controllers rely on.

One counter numbers every write. A write that changes nothing is no write. Main and status writes leave each other's
part alone. Deletion waits for finalizers, and for a pod's grace period until its kubelet confirms. What the server
fills in and refuses is in ``defaults`` and ``validation``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from karpenter_linode.model.codec import DecodeError
from karpenter_linode.model.kinds import find_kind
from karpenter_linode.model.timestamps import rfc3339
from karpenter_linode.ports import AlreadyExistsError, ConflictError, InvalidError, KubeError, NotFoundError
from karpenter_linode.sim import deletion
from karpenter_linode.sim.api_selectors import field_predicate, label_predicate
from karpenter_linode.sim.defaults import fill_defaults
from karpenter_linode.sim.patches import json_patch, merge_patch
from karpenter_linode.sim.resource_types import RESOURCE_TYPES, ResourceType, served_type, type_of
from karpenter_linode.sim.schemas import schema_of
from karpenter_linode.sim.stored import Stored
from karpenter_linode.sim.strategic import strategic_merge
from karpenter_linode.sim.validation import check_create, check_update
from karpenter_linode.sim.watches import HISTORY, Change, ChangeType, History

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from karpenter_linode.model.meta import KubeObject
    from karpenter_linode.ports import Clock, PatchKind
    from karpenter_linode.sim.seeded import SeededRandom

T = TypeVar("T", bound="KubeObject")
ObjectKey = tuple[str, str]

_SERVER_OWNED: Final = (
    "name",
    "namespace",
    "generateName",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
)
_SUFFIX: Final = 5


class _Table:
    """Objects of one type, their history and those who listen in process."""

    def __init__(self, clock: Clock, history: int) -> None:
        self.objects: dict[ObjectKey, Stored] = {}
        self.history = History(clock, history)
        self.listeners: list[Callable[[Change], None]] = []


class Store:
    """Objects by type, namespace and name.

    Args:
        clock: gives creation and deletion times.
        random: draws UIDs and name suffixes.
        history: changes kept for each type before older watches get a 410.
    """

    def __init__(self, clock: Clock, random: SeededRandom, *, history: int = HISTORY) -> None:
        self._clock = clock
        self._uids = random.child("uids")
        self._names = random.child("names")
        self._version = 0
        self._untold: deque[tuple[_Table, Change]] = deque()
        self._telling = False
        self._tables = {(kind.api_version, kind.kind): _Table(clock, history) for kind in RESOURCE_TYPES}

    # Reading

    def get(self, kind: ResourceType, name: str, namespace: str = "") -> Stored:
        """One object.

        Raises:
            NotFoundError: there is none of that name.
        """
        stored = self._table(kind).objects.get((namespace, name))
        if stored is None:
            raise NotFoundError(f'{kind.resource} "{name}" not found')
        return stored

    def list(
        self, kind: ResourceType, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> tuple[Stored, ...]:
        """Objects in key order, of one namespace or of all, picked by label and field selectors."""
        objects = self._table(kind).objects
        tests = ([label_predicate(labels)] if labels else []) + ([field_predicate(fields)] if fields else [])
        return tuple(
            objects[key]
            for key in sorted(objects)
            if (not namespace or key[0] == namespace) and all(test(objects[key].plain) for test in tests)
        )

    def find(self, kind: type[T], name: str, namespace: str = "") -> T | None:
        """One object as a Struct, or None."""
        stored = self._table(type_of(kind)).objects.get((namespace, name))
        return None if stored is None else stored.decode(kind)

    def all(self, kind: type[T]) -> Iterable[T]:
        """All objects of a kind as Structs, in key order."""
        objects = self._table(type_of(kind)).objects
        return [objects[key].decode(kind) for key in sorted(objects)]

    @property
    def resource_version(self) -> str:
        """The number of the last write."""
        return str(self._version)

    def history(self, kind: ResourceType) -> History:
        """Changes of a type, to watch, compact or break."""
        return self._table(kind).history

    def listen(self, kind: type[KubeObject] | ResourceType, listener: Callable[[Change], None]) -> None:
        """Call back at once on every change of a type; for parts of the control plane that live beside the store."""
        served = kind if isinstance(kind, ResourceType) else type_of(kind)
        self._table(served).listeners.append(listener)

    # Writing

    def create(self, plain: Mapping[str, Any], *, dry_run: bool = False) -> Stored:
        """Store a new object: defaults filled in, status dropped where status is a subresource.

        Args:
            plain: the object.
            dry_run: check and answer, but keep nothing.

        Raises:
            NotFoundError: unknown kind, or no such namespace.
            AlreadyExistsError: the name is taken.
            InvalidError: the server's validation refuses it.
        """
        kind = served_type(str(plain.get("apiVersion", "")), str(plain.get("kind", "")))
        metadata = dict(plain.get("metadata") or {})
        namespace = (metadata.get("namespace") or "default") if kind.namespaced else ""
        table = self._table(kind)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{self._names.token(_SUFFIX)}"
        name = str(metadata.get("name", ""))
        if namespace and ("", namespace) not in self._tables["v1", "Namespace"].objects:
            raise NotFoundError(f'namespaces "{namespace}" not found')
        if (namespace, name) in table.objects:
            raise AlreadyExistsError(f'{kind.resource} "{name}" already exists')
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "generation", "namespace"):
            metadata.pop(field, None)
        if namespace:
            metadata["namespace"] = namespace
        metadata |= {"uid": self._uids.uuid(), "creationTimestamp": rfc3339(self._clock.now())}
        if kind.generation:
            metadata["generation"] = 1
        new = {key: value for key, value in plain.items() if key != "status" or not kind.status or kind.keeps_status}
        new = fill_defaults(kind, {**new, "metadata": metadata}, self.priority_of)
        check_create(kind, new)
        return self._put(kind, new, "ADDED", dry_run=dry_run)

    def patch(
        self,
        kind: ResourceType,
        name: str,
        patch: Mapping[str, Any] | Sequence[Any],
        *,
        namespace: str = "",
        subresource: str = "",
        patch_kind: PatchKind = "merge",
    ) -> Stored:
        """Apply a patch to the current object and store the result.

        Raises:
            NotFoundError: no such object.
            ConflictError: the patch names another resourceVersion or uid.
            InvalidError: the server's validation refuses the result.
            PatchError: a strategic merge patch that makes no sense.
        """
        current = self.get(kind, name, namespace)
        if not isinstance(patch, Mapping):
            new = json_patch(current.plain, patch)
        elif patch_kind == "strategic":
            if kind.custom:
                raise _unsupported_patch()
            new = strategic_merge(schema_of(kind), current.plain, patch)
        else:
            new = merge_patch(current.plain, patch)
        return self._update(kind, current, new, subresource)

    def replace(self, plain: Mapping[str, Any], *, subresource: str = "", dry_run: bool = False) -> Stored:
        """Put an object in place of the stored one; a resourceVersion in it is an optimistic lock.

        Args:
            plain: the object.
            subresource: the part that is written; the main one by default.
            dry_run: check and answer, but keep nothing.

        Raises:
            NotFoundError, ConflictError, InvalidError: as for ``patch``.
        """
        kind = served_type(str(plain.get("apiVersion", "")), str(plain.get("kind", "")))
        metadata = plain.get("metadata") or {}
        namespace = (metadata.get("namespace") or "default") if kind.namespaced else ""
        current = self.get(kind, str(metadata.get("name", "")), namespace)
        return self._update(kind, current, dict(plain), subresource, dry_run=dry_run)

    def delete(
        self,
        kind: ResourceType,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Start deletion, or end it where nothing holds the object.

        Raises:
            NotFoundError: no such object.
            ConflictError: it has another UID.
        """
        current = self.get(kind, name, namespace)
        if uid and uid != current.uid:
            raise ConflictError(
                f'Operation cannot be fulfilled on {kind.resource} "{name}": Precondition failed: '
                f"UID in precondition: {uid}, UID in object meta: {current.uid}"
            )
        new = deletion.begin(kind, current.plain, self._clock.now(), grace_period_seconds)
        if new is None or deletion.is_complete(new):
            self._remove(kind, current, new or current.plain)
        elif new is not current.plain:
            self._put(kind, new, "MODIFIED")

    def bind(self, name: str, namespace: str, node: str) -> Stored:
        """The ``pods/binding`` subresource: assign a pod to a node.

        Raises:
            NotFoundError: no such pod.
            ConflictError: it is assigned already, or being deleted.
        """
        kind = served_type("v1", "Pod")
        current = self.get(kind, name, namespace)
        prefix = f'Operation cannot be fulfilled on pods/binding "{name}":'
        if current.deleting:
            raise ConflictError(f"{prefix} pod {name} is being deleted, cannot be assigned to a host")
        assigned = current.plain.get("spec", {}).get("nodeName")
        if assigned:
            raise ConflictError(f'{prefix} pod {name} is already assigned to node "{assigned}"')
        spec, status = current.plain["spec"], current.plain.get("status", {})
        conditions = [item for item in status.get("conditions", []) if item.get("type") != "PodScheduled"]
        conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": rfc3339(self._clock.now())})
        new = {**current.plain, "spec": {**spec, "nodeName": node}, "status": {**status, "conditions": conditions}}
        return self._put(kind, new, "MODIFIED")

    def priority_of(self, class_name: str) -> int | None:
        """The value of a PriorityClass, or None where there is no such class."""
        stored = self._tables["scheduling.k8s.io/v1", "PriorityClass"].objects.get(("", class_name))
        return None if stored is None else int(stored.plain.get("value", 0))

    # Inside

    def _table(self, kind: ResourceType) -> _Table:
        return self._tables[kind.api_version, kind.kind]

    def _update(
        self, kind: ResourceType, current: Stored, new: dict[str, Any], subresource: str, *, dry_run: bool = False
    ) -> Stored:
        self._check_locks(kind, current, new.get("metadata") or {})
        if subresource == "status":
            new = {**current.plain, "status": new.get("status") or {}}
        elif subresource:
            raise NotFoundError(f"the server could not find the requested resource: {kind.plural}/{subresource}")
        else:
            new = _with_server_fields(kind, current.plain, new)
            new = fill_defaults(kind, new, self.priority_of)
            new["metadata"] |= _next_generation(kind, current.plain, new)
        if new == current.plain:
            return current
        check_update(kind, current.plain, new, subresource)
        if deletion.is_complete(new) and not dry_run:
            return self._remove(kind, current, new)
        return self._put(kind, new, "MODIFIED", dry_run=dry_run)

    def _check_locks(self, kind: ResourceType, current: Stored, metadata: Mapping[str, Any]) -> None:
        version = metadata.get("resourceVersion")
        if version and str(version) != current.metadata["resourceVersion"]:
            raise ConflictError(
                f'Operation cannot be fulfilled on {kind.resource} "{current.name}": the object has been modified; '
                "please apply your changes to the latest version and try again"
            )
        uid = metadata.get("uid")
        if uid and uid != current.uid:
            raise ConflictError(
                f'Operation cannot be fulfilled on {kind.resource} "{current.name}": Precondition failed: '
                f"UID in precondition: {uid}, UID in object meta: {current.uid}"
            )

    def _put(self, kind: ResourceType, plain: dict[str, Any], change: ChangeType, *, dry_run: bool = False) -> Stored:
        table, stored = self._table(kind), self._numbered(plain)
        _check_shape(kind, stored)
        if dry_run:
            return stored
        self._version += 1
        before = table.objects.get((stored.namespace, stored.name))
        table.objects[stored.namespace, stored.name] = stored
        self._tell(table, change, stored, before)
        return stored

    def _remove(self, kind: ResourceType, current: Stored, last: dict[str, Any]) -> Stored:
        table = self._table(kind)
        del table.objects[current.namespace, current.name]
        stored = self._numbered(last)
        self._version += 1
        self._tell(table, "DELETED", stored, current)
        return stored

    def _numbered(self, plain: dict[str, Any]) -> Stored:
        """The object with the number of the write that is under way."""
        return Stored({**plain, "metadata": {**plain["metadata"], "resourceVersion": str(self._version + 1)}})

    def _tell(self, table: _Table, change_type: ChangeType, stored: Stored, before: Stored | None) -> None:
        """Hand out a change. What listeners write meanwhile is handed out after it, so that all hear in one order."""
        change = Change(change_type, stored, self._version, self._clock.now(), before)
        table.history.add(change)
        self._untold.append((table, change))
        if self._telling:
            return
        self._telling = True
        try:
            while self._untold:
                heard, news = self._untold.popleft()
                for listener in heard.listeners:
                    listener(news)
        finally:
            self._telling = False


def _check_shape(kind: ResourceType, stored: Stored) -> None:
    """Refuse (400) an object whose fields do not have the kind's types, before anybody else has to read it."""
    struct = find_kind(kind.api_version, kind.kind)
    if struct is None:
        return
    try:
        stored.decode(struct)
    except DecodeError as failure:
        error = InvalidError(
            f'{kind.kind} in version "{kind.api_version}" cannot be handled as a {kind.kind}: {stored.key}: {failure}'
        )
        error.status = 400
        raise error from None


def _unsupported_patch() -> KubeError:
    error = InvalidError(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    error.status = 415
    return error


def _with_server_fields(kind: ResourceType, current: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The new object with what a main write may not change taken from the current one."""
    kept = {field: current["metadata"][field] for field in _SERVER_OWNED if field in current["metadata"]}
    metadata = {key: value for key, value in (new.get("metadata") or {}).items() if key not in _SERVER_OWNED}
    result = {**new, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {**metadata, **kept}}
    if kind.status:
        result.pop("status", None)
        if "status" in current:
            result["status"] = current["status"]
    return result


def _next_generation(kind: ResourceType, current: dict[str, Any], new: dict[str, Any]) -> dict[str, int]:
    """The generation to write: one more when anything but metadata and status changed."""
    if not kind.generation:
        return {}
    besides = ("metadata", "status")
    changed = {k: v for k, v in current.items() if k not in besides} != {
        k: v for k, v in new.items() if k not in besides
    }
    return {"generation": int(current["metadata"].get("generation", 0)) + changed}
