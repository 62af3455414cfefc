"""From two states of an object to the patch between them. Only what changed is written, never a whole object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karpenter_linode.lifecycle.effects import Patch
from karpenter_linode.model import codec

if TYPE_CHECKING:
    from karpenter_linode.model.meta import KubeObject


def merge_diff(before: Any, after: Any) -> dict[str, Any]:
    """The JSON merge patch from one plain object to another: lists are replaced whole, null removes."""
    patch: dict[str, Any] = {}
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        patch[key] = merge_diff(old, new) if isinstance(old, dict) and isinstance(new, dict) else new
    return patch


def object_patch(before: KubeObject, after: KubeObject, *, locked: bool) -> tuple[Patch, ...]:
    """The patch of everything but the status, or nothing where nothing changed.

    Args:
        before: as read.
        after: as wanted.
        locked: whether the write may only succeed on the version that was read.
    """
    return _patch(before, after, "", locked=locked)


def status_patch(before: KubeObject, after: KubeObject) -> tuple[Patch, ...]:
    """The patch of the status, or nothing where nothing changed. Conditions are a list, so it is always locked."""
    return _patch(before, after, "status", locked=True)


def _patch(before: KubeObject, after: KubeObject, subresource: str, *, locked: bool) -> tuple[Patch, ...]:
    if before == after:
        return ()
    diff = merge_diff(codec.to_plain(before), codec.to_plain(after))
    status = diff.pop("status", None)
    content = {"status": status} if subresource and status else {} if subresource else diff
    if not content:
        return ()
    meta = before.metadata
    lock = meta.resource_version if locked else ""
    return (Patch(type(before), meta.name, content, meta.namespace, subresource, "merge", lock),)
