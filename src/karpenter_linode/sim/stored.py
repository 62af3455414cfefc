"""One version of one stored object: plain JSON, and its Struct once somebody asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from karpenter_linode.model import codec

if TYPE_CHECKING:
    from karpenter_linode.model.meta import KubeObject

T = TypeVar("T", bound="KubeObject")


class Stored:
    """Immutable by agreement: ``plain`` is shared between all readers and never changed in place."""

    __slots__ = ("_decoded", "plain")

    def __init__(self, plain: dict[str, Any]) -> None:
        self.plain = plain
        self._decoded: KubeObject | None = None

    def decode(self, kind: type[T]) -> T:
        """The object as a Struct; decoded once.

        Raises:
            DecodeError: the stored object does not have the kind's shape.
        """
        decoded = self._decoded
        if not isinstance(decoded, kind):
            decoded = self._decoded = codec.convert(self.plain, kind)
        return decoded

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata mapping."""
        metadata: dict[str, Any] = self.plain["metadata"]
        return metadata

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.metadata["name"])

    @property
    def namespace(self) -> str:
        """The namespace, empty for cluster-scoped kinds."""
        return str(self.metadata.get("namespace", ""))

    @property
    def uid(self) -> str:
        """The UID."""
        return str(self.metadata["uid"])

    @property
    def deleting(self) -> bool:
        """Whether deletion has begun."""
        return "deletionTimestamp" in self.metadata

    @property
    def key(self) -> str:
        """``namespace/name``, or the bare name."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
