"""What the API refuses in pools and instances (spec/linode-provider.md 7.6)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model.linode import LKETaint
from karpenter_linode.sim.linode.records import ApiFaultError

if TYPE_CHECKING:
    from collections.abc import Mapping

_TAG: Final = (3, 50)
_INSTANCE_LABEL: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{1,62})[A-Za-z0-9]")
_KEY_PART: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_MAX_KEY: Final = 128
_MAX_TAINT_KEY: Final = 253
_MAX_TAINT_VALUE: Final = 63
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_RESERVED: Final = ("kubernetes.io", "linode.com")
POOL_LIMITS: Final = {"standard": 100, "enterprise": 500}
STANDARD_CLUSTER_LIMIT: Final = 250


def integer(body: Mapping[str, Any], name: str) -> int:
    """A positive whole number."""
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ApiFaultError(400, f"{name} must be a positive integer", name)
    return value


def integers(body: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """A list of whole numbers."""
    value = body.get(name)
    if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
        raise ApiFaultError(400, f"{name} must be a list of integers", name)
    return tuple(value)


def tags(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Tags, without duplicates."""
    value = body.get("tags") or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ApiFaultError(400, "tags must be a list of strings", "tags")
    for item in value:
        if not _TAG[0] <= len(item) <= _TAG[1]:
            raise ApiFaultError(400, f"Length must be {_TAG[0]}-{_TAG[1]} characters", "tags")
    return tuple(dict.fromkeys(value))


def labels(body: Mapping[str, Any]) -> dict[str, str]:
    """Labels of a pool."""
    value = body.get("labels") or {}
    if not isinstance(value, dict):
        raise ApiFaultError(400, "labels must be an object", "labels")
    for key, text in value.items():
        if any(domain in key for domain in _RESERVED):
            raise ApiFaultError(400, f"Label key {key} may not contain kubernetes.io or linode.com", "labels")
        prefix, _, name = key.rpartition("/")
        if len(key) > _MAX_KEY or not _KEY_PART.fullmatch(name) or ("/" in key and not prefix):
            raise ApiFaultError(400, f"Label key {key} is invalid", "labels")
        if not isinstance(text, str) or not _LABEL_VALUE.fullmatch(text):
            raise ApiFaultError(400, f"Label {key} must have a value of 1-63 characters", "labels")
    return dict(value)


def taints(body: Mapping[str, Any]) -> tuple[LKETaint, ...]:
    """Taints of a pool."""
    value = body.get("taints") or []
    if not isinstance(value, list):
        raise ApiFaultError(400, "taints must be a list", "taints")
    return tuple(_taint(item) for item in value)


def instance_label(text: Any) -> str:
    """The label of an instance."""
    if not isinstance(text, str) or not _INSTANCE_LABEL.fullmatch(text):
        raise ApiFaultError(400, "Label must be 3-64 characters", "label")
    return text


def _taint(item: Any) -> LKETaint:
    if not isinstance(item, dict):
        raise ApiFaultError(400, "taint must be an object", "taints")
    key, value, effect = (item.get(name, "") for name in ("key", "value", "effect"))
    if not isinstance(key, str) or not 0 < len(key) <= _MAX_TAINT_KEY or any(domain in key for domain in _RESERVED):
        raise ApiFaultError(400, f"Taint key {key!r} is invalid", "taints")
    if not isinstance(value, str) or len(value) > _MAX_TAINT_VALUE or any(domain in value for domain in _RESERVED):
        raise ApiFaultError(400, f"Taint value {value!r} is invalid", "taints")
    if effect not in _EFFECTS:
        raise ApiFaultError(400, f"Taint effect {effect!r} is invalid", "taints")
    return LKETaint(key, value, effect)
