"""Ports: what the shell needs from the outside world, as Protocols over ``model`` values.

``kube``, ``linode`` and ``sim`` implement them; ``controllers`` use them; the pure part never sees them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from msgspec import Struct

from karpenter_linode.model.meta import KubeObject

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from datetime import datetime

    from karpenter_linode.model.instance import CloudInstance, Launched
    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.model.karpenter import NodeClaim, NodePool

T = TypeVar("T", bound=KubeObject)
PatchKind = Literal["merge", "strategic", "json"]


class KubeError(Exception):
    """The API server refused or failed. ``status`` is the HTTP code; the message names verb, kind and object."""

    status = 500


class NotFoundError(KubeError):
    """The object does not exist (404)."""

    status = 404


class ConflictError(KubeError):
    """The object changed since it was read, or a precondition failed (409)."""

    status = 409


class AlreadyExistsError(KubeError):
    """An object of that name exists (409)."""

    status = 409


class GoneError(KubeError):
    """The resource version is too old to watch from (410): list again."""

    status = 410


class InvalidError(KubeError):
    """The API server's validation refused the object (422)."""

    status = 422


class ForbiddenError(KubeError):
    """RBAC or admission refused (403)."""

    status = 403


class TooManyRequestsError(KubeError):
    """Rate limited, or an eviction that a disruption budget does not allow now (429)."""

    status = 429


class Listing(Struct, Generic[T], frozen=True):
    """A consistent list and the resource version to watch from."""

    items: tuple[T, ...]
    resource_version: str


class WatchEvent(Struct, Generic[T], frozen=True):
    """A change; ``DELETED`` carries the last state, ``BOOKMARK`` only a resource version."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: T | None
    resource_version: str


class KubeApi(Protocol):
    """The Kubernetes API, typed. Objects are never PUT back; writes are creates, patches and deletes."""

    async def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        """One object. Raises NotFoundError."""
        ...

    async def list(self, kind: type[T], *, namespace: str = "", label_selector: str = "") -> Listing[T]:
        """All objects of a kind, in every namespace when none is given."""
        ...

    def watch(self, kind: type[T], resource_version: str) -> AsyncIterator[WatchEvent[T]]:
        """Changes after a resource version, until cancelled. Raises GoneError when that version is too old."""
        ...

    async def create(self, obj: T) -> T:
        """Create and return the stored object. Raises AlreadyExistsError, InvalidError."""
        ...

    async def patch(
        self,
        kind: type[T],
        name: str,
        patch: Mapping[str, Any] | Sequence[Any],
        *,
        namespace: str = "",
        subresource: str = "",
        patch_kind: PatchKind = "merge",
    ) -> T:
        """Patch and return the stored object. A ``metadata.resourceVersion`` in the patch is an optimistic lock.

        Raises:
            NotFoundError: no such object.
            ConflictError: the optimistic lock failed.
        """
        ...

    async def delete(
        self,
        kind: type[T],
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Start deletion (finalizers decide when it ends). Raises NotFoundError, ConflictError on another ``uid``."""
        ...

    async def evict(self, name: str, namespace: str, *, uid: str = "", grace_period_seconds: int | None = None) -> None:
        """Evict a pod. Raises NotFoundError, TooManyRequestsError when a budget forbids it now."""
        ...


class CloudError(Exception):
    """The cloud refused or failed; the call may be repeated later."""


class InstanceNotFoundError(CloudError):
    """No such instance: deletion is complete."""


class InsufficientCapacityError(CloudError):
    """Nothing that was asked for can be built now: the NodeClaim is deleted and its pods are scheduled anew."""


class NodeClassNotReadyError(CloudError):
    """The NodeClass cannot be used now: the NodeClaim is deleted."""


class CreateError(CloudError):
    """Creation failed with a reason for the ``Launched`` condition; it is tried again with back-off."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class CloudProvider(Protocol):
    """A cloud that builds nodes (spec/karpenter-scheduling.md 5.1)."""

    name: str

    async def create(self, node_claim: NodeClaim) -> Launched:
        """Build, or find what was built for this NodeClaim before: called again, it never buys twice.

        Raises:
            InsufficientCapacityError, NodeClassNotReadyError, CreateError, CloudError: as their names say.
        """
        ...

    async def delete(self, provider_id: str) -> None:
        """Start deletion; called repeatedly until it raises InstanceNotFoundError."""
        ...

    async def get(self, provider_id: str) -> CloudInstance:
        """One instance. Raises InstanceNotFoundError."""
        ...

    async def list(self) -> tuple[CloudInstance, ...]:
        """All instances of this provider in this cluster, ordered by provider id."""
        ...

    async def instance_types(self, node_pool: NodePool) -> tuple[InstanceType, ...]:
        """All plans for a pool, unavailable ones included, ordered by name."""
        ...


class Clock(Protocol):
    """Time."""

    def now(self) -> datetime:
        """Aware UTC time."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Random(Protocol):
    """Randomness for jitter and names; seeded in the embedded world."""

    def uniform(self, low: float, high: float) -> float:
        """A number between the two."""
        ...

    def token(self, length: int) -> str:
        """Lower-case letters and digits, as Kubernetes' name generator picks them."""
        ...


class EventSink(Protocol):
    """Kubernetes events about objects; implementations dedupe and limit (spec/karpenter-scheduling.md 1.11)."""

    def publish(
        self,
        obj: KubeObject,
        event_type: Literal["Normal", "Warning"],
        reason: str,
        message: str,
        *,
        dedupe: tuple[str, ...] = (),
        dedupe_seconds: int = 120,
    ) -> None:
        """Report. Within ``dedupe_seconds`` an event with equal reason and dedupe values is dropped."""
        ...


class Metrics(Protocol):
    """Metrics under the contract's names (spec/karpenter-lifecycle.md 7)."""

    def increment(self, name: str, labels: Mapping[str, str], by: float = 1) -> None:
        """Add to a counter."""
        ...

    def observe(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Add a sample to a histogram or summary."""
        ...

    def set_gauge(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Set a gauge."""
        ...


class Logger(Protocol):
    """Structured log lines: a contract message and fields. structlog's bound loggers satisfy it."""

    def debug(self, event: str, **fields: Any) -> Any:
        """Upstream's V(1)."""
        ...

    def info(self, event: str, **fields: Any) -> Any:
        """Info level."""
        ...

    def warning(self, event: str, **fields: Any) -> Any:
        """Warning level."""
        ...

    def error(self, event: str, **fields: Any) -> Any:
        """Error level; the cause goes into the field ``error``, and into ``exc_info`` where it is a bug of ours."""
        ...
