"""What the code that runs now is doing: which controller, which object. Log lines and counters carry it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from msgspec import Struct

from karpenter_linode.model.meta import KubeObject


class Scope(Struct):
    """One reconcile.

    Args:
        controller: its name.
        kind: kind of the object that it is about, if it is about one.
        key: ``namespace/name`` or name of that object.
        reconcile_id: names this reconcile in log lines; given by the log once the first line is written.
    """

    controller: str
    kind: type[KubeObject] | None = None
    key: str = ""
    reconcile_id: str = ""


SCOPE: Final[ContextVar[Scope | None]] = ContextVar("scope", default=None)
"""The reconcile that the running task works on."""


def controller_name() -> str:
    """The controller that runs now, or ""."""
    scope = SCOPE.get()
    return scope.controller if scope is not None else ""
