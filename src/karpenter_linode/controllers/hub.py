"""Fan-out: who wants to know when an object of a kind changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.model.meta import KubeObject


class Change(Struct, frozen=True):
    """A change to an object.

    Args:
        old: before, None where it is new.
        new: now, None where it is gone.
        listed: whether it was learnt from a list, so that nobody knows when it happened.
    """

    old: Any
    new: Any
    listed: bool = False

    @property
    def object(self) -> KubeObject:
        """The object: as it is, or as it last was."""
        return cast("KubeObject", self.new if self.new is not None else self.old)


class Hub:
    """Subscriptions by kind. Handlers only put keys into queues; they neither wait nor fail."""

    def __init__(self) -> None:
        self._handlers: dict[type[KubeObject], list[Callable[[Change], None]]] = {}

    def subscribe(self, kind: type[KubeObject], handler: Callable[[Change], None]) -> None:
        """Call ``handler`` for every change to that kind."""
        self._handlers.setdefault(kind, []).append(handler)

    def publish(self, change: Change) -> None:
        """Tell everybody, in the order of subscription."""
        for handler in self._handlers.get(type(change.object), ()):
            handler(change)
