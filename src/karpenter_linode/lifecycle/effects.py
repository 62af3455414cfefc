"""Effects: everything a decider may want done, as values. The controllers' executor carries them out in order.

Order carries meaning: when an optimistic lock fails, the rest of the list is dropped and the object is decided anew.
Effects that ask the cloud (``CloudCreate``, ``CloudDelete``, ``CloudGet``) stand last; the controller puts the answer
into the next call of the decider.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Literal

from msgspec import Struct, field

from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.model.meta import KubeObject

LogLevel = Literal["debug", "info", "warning", "error"]
EventType = Literal["Normal", "Warning"]


class Patch(Struct, frozen=True):
    """Patch an object; a missing one counts as done.

    Args:
        lock: resource version that the object must still have; "" writes without a lock.
    """

    kind: type[KubeObject]
    name: str
    patch: dict[str, Any]
    namespace: str = ""
    subresource: str = ""
    patch_kind: Literal["merge", "strategic"] = "merge"
    lock: str = ""


class Create(Struct, frozen=True):
    """Create an object; one that exists counts as done."""

    object: KubeObject


class Delete(Struct, frozen=True):
    """Start deletion of exactly this object (by UID); a missing one counts as done."""

    kind: type[KubeObject]
    name: str
    namespace: str = ""
    uid: str = ""
    grace_period_seconds: int | None = None


class PublishEvent(Struct, frozen=True):
    """A Kubernetes event about an object."""

    object: KubeObject
    type: EventType
    reason: str
    message: str
    dedupe: tuple[str, ...] = ()
    dedupe_seconds: int = 120


class LogLine(Struct, frozen=True):
    """A log line: a contract message and fields."""

    level: LogLevel
    message: str
    fields: dict[str, Any] = field(default_factory=dict)


class Count(Struct, frozen=True):
    """Add to a counter."""

    name: str
    labels: dict[str, str] = field(default_factory=dict)
    by: int = 1


class Observe(Struct, frozen=True):
    """Add a duration to a histogram or summary."""

    name: str
    labels: dict[str, str]
    value: timedelta


class CloudCreate(Struct, frozen=True):
    """Ask the cloud to build the NodeClaim's instance, or to find it."""

    node_claim: NodeClaim


class CloudDelete(Struct, frozen=True):
    """Ask the cloud to remove an instance."""

    provider_id: str


class CloudGet(Struct, frozen=True):
    """Ask the cloud whether an instance exists."""

    provider_id: str


class Evict(Struct, frozen=True):
    """Hand pods to the eviction queue.

    Args:
        pods: ``(namespace, name, uid)``.
        deadline: when they must be gone; None for no deadline.
    """

    pods: tuple[tuple[str, str, str], ...]
    deadline: datetime | None = None


class Requeue(Struct, frozen=True):
    """Decide this object again after a while; the earliest of several counts."""

    after: timedelta


class Fail(Struct, frozen=True):
    """The reconcile failed: log the message and try again with back-off."""

    message: str


Effect = (
    Patch
    | Create
    | Delete
    | PublishEvent
    | LogLine
    | Count
    | Observe
    | CloudCreate
    | CloudDelete
    | CloudGet
    | Evict
    | Requeue
    | Fail
)
