"""The NodePool hash, equal to upstream's so that annotations written by either are understood by both.

Procedure: spec/karpenter-scheduling.md 9 (FNV-1, 64 bits, order of lists irrelevant, zero values left out).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from karpenter_linode.model.duration import parse_duration
from karpenter_linode.model.karpenter import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from karpenter_linode.model.core import Taint
    from karpenter_linode.model.karpenter import NodeClaimTemplateSpec, NodePool

_OFFSET: Final = 14695981039346656037
_PRIME: Final = 1099511628211
_MASK: Final = (1 << 64) - 1
_DEFAULT_EXPIRE_AFTER: Final = "720h"


def node_pool_hash(pool: NodePool) -> str:
    """The value of ``karpenter.sh/nodepool-hash``: a decimal over everything of the template but its requirements."""
    metadata, spec = pool.spec.template.metadata, pool.spec.template.spec
    meta_fields = (("Labels", _map(metadata.labels)), ("Annotations", _map(metadata.annotations)))
    meta_hash = _struct("ObjectMeta", meta_fields) if metadata.labels or metadata.annotations else None
    return str(_struct("NodeClaimTemplate", (("ObjectMeta", meta_hash), ("Spec", _spec(spec)))))


def _spec(spec: NodeClaimTemplateSpec) -> int:
    reference = spec.node_class_ref
    reference_fields = (
        ("Kind", _optional_string(reference.kind)),
        ("Name", _optional_string(reference.name)),
        ("Group", _optional_string(reference.group)),
    )
    grace = spec.termination_grace_period
    expire = spec.expire_after or _DEFAULT_EXPIRE_AFTER
    fields = (
        ("Taints", _taints(spec.taints)),
        ("StartupTaints", _taints(spec.startup_taints)),
        ("NodeClassRef", _struct("NodeClassReference", reference_fields)),
        ("TerminationGracePeriod", _duration("Duration", grace) if grace is not None else None),
        ("ExpireAfter", _duration("NillableDuration", expire) if expire != NEVER else None),
    )
    return _struct("NodeClaimTemplateSpec", fields)


def _taints(taints: Iterable[Taint]) -> int | None:
    result: int | None = None
    for taint in taints:
        fields = (
            ("Key", _optional_string(taint.key)),
            ("Value", _optional_string(taint.value)),
            ("Effect", _optional_string(taint.effect)),
        )
        result = (result or 0) ^ _struct("Taint", fields)
    return result


def _duration(type_name: str, text: str) -> int:
    nanoseconds = parse_duration(text) // timedelta(microseconds=1) * 1000
    # A pointer to zero counts as set (NillableDuration); a plain zero field does not (Duration).
    present = nanoseconds != 0 or type_name == "NillableDuration"
    return _struct(type_name, (("Duration", _fnv(_bytes(nanoseconds)) if present else None),))


def _map(values: Mapping[str, str]) -> int | None:
    if not values:
        return None
    result = 0
    for key, value in values.items():
        result ^= _pair(_string(key), _string(value))
    return _fnv(_bytes(result))


def _struct(type_name: str, fields: Iterable[tuple[str, int | None]]) -> int:
    result = _string(type_name)
    for name, value in fields:
        if value is not None:
            result = _fnv(_bytes(result ^ _pair(_string(name), value)))
    return result


def _pair(key: int, value: int) -> int:
    return _fnv(_bytes(key) + _bytes(value))


def _optional_string(text: str) -> int | None:
    return _string(text) if text else None


def _string(text: str) -> int:
    return _fnv(text.encode())


def _bytes(number: int) -> bytes:
    return (number & _MASK).to_bytes(8, "little")


def _fnv(data: bytes) -> int:
    result = _OFFSET
    for byte in data:
        result = (result * _PRIME & _MASK) ^ byte
    return result
