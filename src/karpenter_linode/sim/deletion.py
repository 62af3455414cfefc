"""How deletion proceeds: grace periods of pods, finalizers of everything."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model.timestamps import parse_rfc3339, rfc3339

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.sim.resource_types import ResourceType

DEFAULT_GRACE_SECONDS: Final = 30
TERMINAL: Final = frozenset({"Succeeded", "Failed"})


def begin(kind: ResourceType, plain: dict[str, Any], now: datetime, asked: int | None) -> dict[str, Any] | None:
    """The object once a delete request has been taken in; None when it goes at once; itself when nothing changes.

    Args:
        kind: its type; only pods have a grace period.
        plain: the stored object.
        now: time of the request.
        asked: ``gracePeriodSeconds`` of the request.
    """
    metadata = plain["metadata"]
    grace = _grace(plain, asked) if kind.kind == "Pod" else 0
    finalizers = bool(metadata.get("finalizers"))
    if "deletionTimestamp" in metadata:
        given = int(metadata.get("deletionGracePeriodSeconds", 0))
        if grace == 0 and not finalizers:
            return None
        if grace >= given or (asked is None and grace > 0):
            return plain
        begun = parse_rfc3339(metadata["deletionTimestamp"]) - timedelta(seconds=given)
        return _marked(plain, begun, grace, raise_generation=False)
    if grace == 0 and not finalizers:
        return None
    return _marked(plain, now, grace, raise_generation=True)


def is_complete(plain: dict[str, Any]) -> bool:
    """Whether nothing holds a deleted object any more: no finalizer, no grace period still running."""
    metadata = plain["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
    )


def _grace(pod: dict[str, Any], asked: int | None) -> int:
    """A pod's grace period: none while no kubelet knows it, none once it has ended."""
    spec = pod.get("spec", {})
    if not spec.get("nodeName") or pod.get("status", {}).get("phase") in TERMINAL:
        return 0
    grace = int(spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)) if asked is None else asked
    return 1 if grace < 0 else grace


def _marked(plain: dict[str, Any], begun: datetime, grace: int, *, raise_generation: bool) -> dict[str, Any]:
    metadata = {
        **plain["metadata"],
        "deletionTimestamp": rfc3339(begun + timedelta(seconds=grace)),
        "deletionGracePeriodSeconds": grace,
    }
    if raise_generation and metadata.get("generation"):
        metadata["generation"] += 1
    return {**plain, "metadata": metadata}
