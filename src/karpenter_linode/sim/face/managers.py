"""Field managers: who owns which field of an object, and what happens when two want the same one (KEP-555)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from karpenter_linode.sim.face import fields
from karpenter_linode.sim.face.errors import RequestError
from karpenter_linode.sim.face.fields import Path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from karpenter_linode.sim.schemas import Schema

Plain = dict[str, Any]


class Manager(Struct, frozen=True):
    """Who writes, and how: the identity of an entry of ``managedFields``."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""


class _Owned(Struct):
    paths: set[Path]
    time: str


class Ownership:
    """The owners of an object's fields.

    Args:
        schema: of the object's kind.
        entries: its ``metadata.managedFields``.
    """

    def __init__(self, schema: Schema, entries: Any) -> None:
        self._schema = schema
        self._owned: dict[Manager, _Owned] = {}
        for entry in entries if isinstance(entries, list) else ():
            manager = Manager(
                entry.get("manager", ""),
                entry.get("operation", "Update"),
                entry.get("apiVersion", ""),
                entry.get("subresource", ""),
            )
            self._owned[manager] = _Owned(fields.from_fields(entry.get("fieldsV1")), entry.get("time", ""))

    def entries(self) -> list[Plain]:
        """``managedFields`` for the object."""
        return [
            {
                "manager": manager.name,
                "operation": manager.operation,
                "apiVersion": manager.api_version,
                **({"time": owned.time} if owned.time else {}),
                "fieldsType": "FieldsV1",
                "fieldsV1": fields.to_fields(owned.paths),
                **({"subresource": manager.subresource} if manager.subresource else {}),
            }
            for manager, owned in self._owned.items()
            if owned.paths
        ]

    def updated(self, manager: Manager, old: Mapping[str, Any], new: Mapping[str, Any], time: str) -> None:
        """Note a write that is no apply: what it changed is now the manager's, and nobody else's."""
        status = manager.subresource == "status"
        before = dict(fields.paths_of(self._schema, fields.owned_part(old, status=status)))
        after = dict(fields.paths_of(self._schema, fields.owned_part(new, status=status)))
        gone = before.keys() - after.keys()
        changed = {path for path, value in after.items() if not _inner(path, after) and before.get(path) != value}
        changed |= after.keys() - before.keys()
        if not gone and not changed:
            return
        for other, owned in self._owned.items():
            if other.subresource == manager.subresource or not status:
                owned.paths -= gone if other == manager else gone | (changed & before.keys())
        mine = self._owned.setdefault(manager, _Owned(set(), time))
        mine.paths |= changed
        mine.time = time

    def applied(
        self, manager: Manager, live: Mapping[str, Any], config: Mapping[str, Any], time: str, *, force: bool
    ) -> Plain:
        """Lay an applied configuration over the live object, and note that its fields are the manager's.

        What the manager applied before and no longer does goes, unless somebody else has it too.

        Returns:
            The object to write, without ``managedFields``.

        Raises:
            RequestError: fields belong to others and differ (409), unless forced.
        """
        part = fields.owned_part(config, status=manager.subresource == "status")
        wanted = dict(fields.paths_of(self._schema, part))
        self._settle(manager, dict(fields.paths_of(self._schema, live)), wanted, force=force)
        before = self._owned.get(manager) or _Owned(set(), time)
        kept = {prefix for path in wanted for prefix in _prefixes(path)}
        others = {
            prefix
            for other, owned in self._owned.items()
            if other != manager
            for path in owned.paths
            for prefix in _prefixes(path)
        }
        gone = before.paths - kept - others
        result: Plain = fields.without(self._schema, fields.merged(self._schema, live, part), gone)
        paths = set(wanted)
        self._owned[manager] = _Owned(paths, before.time if before.paths == paths and before.time else time)
        return result

    def _settle(self, manager: Manager, live: Mapping[Path, Any], wanted: Mapping[Path, Any], *, force: bool) -> None:
        """Find the fields that others own with another value; take them, or refuse."""
        differing = {
            path for path, value in wanted.items() if path in live and live[path] != value and not _inner(path, wanted)
        }
        conflicts = {
            other: owned.paths & differing
            for other, owned in self._owned.items()
            if other != manager and owned.paths & differing
        }
        if conflicts and not force:
            raise _conflict(conflicts)
        for other, paths in conflicts.items():
            self._owned[other].paths -= paths


def _inner(path: Path, paths: Mapping[Path, Any]) -> bool:
    """Whether a path is that of a list's item with fields of its own."""
    return path[-1].startswith("k:") and path in paths


def _prefixes(path: Path) -> list[Path]:
    return [path[:length] for length in range(1, len(path) + 1)]


def _conflict(conflicts: Mapping[Manager, set[Path]]) -> RequestError:
    """The refusal, in the API server's words."""
    causes: list[Plain] = []
    lines: list[str] = []
    for manager in sorted(conflicts, key=lambda item: item.name):
        paths = [fields.shown(path) for path in sorted(conflicts[manager])]
        using = f'"{manager.name}" using {manager.api_version}'
        if manager.subresource:
            using = f'"{manager.name}" with subresource "{manager.subresource}" using {manager.api_version}'
        causes += [
            {"reason": "FieldManagerConflict", "message": f"conflict with {using}", "field": path} for path in paths
        ]
        if len(paths) == 1:
            lines.append(f"conflict with {using}: {paths[0]}")
        else:
            lines.append(f"conflicts with {using}:\n- " + "\n- ".join(paths))
    count = len(causes)
    message = f"Apply failed with {count} conflict{'s' if count > 1 else ''}: " + "\n".join(lines)
    return RequestError(409, message, tuple(causes))
