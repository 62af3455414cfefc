"""The static-drift hash of a NodePool's template, bit for bit as the Go controller computes it.

A cluster that is taken over keeps its nodes only if the hashes agree (spec/karpenter-lifecycle.md 5.1).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from karpenter_linode.model.duration import parse_duration
from karpenter_linode.model.karpenter import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from karpenter_linode.model.core import Taint
    from karpenter_linode.model.karpenter import NodeClaimTemplate

_OFFSET: Final = 14695981039346656037
_PRIME: Final = 1099511628211
_MASK: Final = 2**64 - 1

Field = tuple[str, int | None]


def node_pool_hash(template: NodeClaimTemplate) -> str:
    """Hash of a template's labels, annotations, taints, node class, grace period and expiry, as decimal text."""
    meta, spec = template.metadata, template.spec
    ref = spec.node_class_ref
    return str(
        _struct(
            "NodeClaimTemplate",
            (
                (
                    "ObjectMeta",
                    _optional(
                        "ObjectMeta",
                        (("Labels", _map(meta.labels)), ("Annotations", _map(meta.annotations))),
                    ),
                ),
                (
                    "Spec",
                    _optional(
                        "NodeClaimTemplateSpec",
                        (
                            ("Taints", _list(map(_taint, spec.taints))),
                            ("StartupTaints", _list(map(_taint, spec.startup_taints))),
                            (
                                "NodeClassRef",
                                _struct(
                                    "NodeClassReference",
                                    (("Kind", _text(ref.kind)), ("Name", _text(ref.name)), ("Group", _text(ref.group))),
                                ),
                            ),
                            ("TerminationGracePeriod", _duration("Duration", spec.termination_grace_period)),
                            ("ExpireAfter", _duration("NillableDuration", spec.expire_after)),
                        ),
                    ),
                ),
            ),
        ),
    )


def _fnv(data: bytes) -> int:
    state = _OFFSET
    for byte in data:
        state = (state * _PRIME & _MASK) ^ byte
    return state


def _pair(left: int, right: int) -> int:
    return _fnv(left.to_bytes(8, "little") + right.to_bytes(8, "little"))


def _finish(value: int) -> int:
    return _fnv(value.to_bytes(8, "little"))


def _text(value: str) -> int | None:
    return _fnv(value.encode()) if value else None


def _map(values: Mapping[str, str]) -> int | None:
    if not values:
        return None
    total = 0
    for key, value in values.items():
        total ^= _pair(_fnv(key.encode()), _fnv(value.encode()))
    return _finish(total)


def _list(hashes: Iterable[int]) -> int | None:
    items = list(hashes)
    if not items:
        return None
    total = 0
    for item in items:
        total ^= item
    return total


def _struct(name: str, fields: Iterable[Field]) -> int:
    state = _fnv(name.encode())
    for field, value in fields:
        if value is not None:
            state = _finish(state ^ _pair(_fnv(field.encode()), value))
    return state


def _optional(name: str, fields: tuple[Field, ...]) -> int | None:
    return _struct(name, fields) if any(value is not None for _, value in fields) else None


def _taint(taint: Taint) -> int:
    return _struct("Taint", (("Key", _text(taint.key)), ("Value", _text(taint.value)), ("Effect", _text(taint.effect))))


def _duration(name: str, text: str | None) -> int | None:
    if text is None or text == NEVER:
        return None
    nanoseconds = parse_duration(text) // timedelta(microseconds=1) * 1000
    value = _fnv((nanoseconds & _MASK).to_bytes(8, "little")) if nanoseconds or name == "NillableDuration" else None
    return _struct(name, (("Duration", value),))
