"""From the API server's answers, and from silence, to the errors of ``ports``."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from karpenter_linode.ports import (
    AlreadyExistsError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    KubeError,
    NotFoundError,
    TooManyRequestsError,
)

_SHOWN: Final = 1000
_BY_STATUS: Final[dict[int, type[KubeError]]] = {
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TooManyRequestsError,
}


class UnreachableError(KubeError):
    """No answer came. A write may or may not have happened; ``status`` is 0."""

    status = 0


class UnreadableError(KubeError):
    """The server sent something that is not what its API promises."""


class ConnectionConfigError(Exception):
    """The configuration does not tell how to reach a cluster. The message names the file and what to do."""


class Status(Struct, frozen=True):
    """``metav1.Status``, as far as errors need it."""

    message: str = ""
    reason: str = ""
    code: int = 0


def status_of(content: bytes) -> Status:
    """The Status in an answer; where there is none (a proxy's page), its beginning as the message."""
    try:
        return msgspec.json.decode(content, type=Status)
    except (msgspec.MsgspecError, RecursionError):
        return Status(message=content[:_SHOWN].decode(errors="replace").strip())


def error_from(call: str, code: int, status: Status) -> KubeError:
    """The typed error of a refusal.

    Args:
        call: verb, kind and object, for the message.
        code: HTTP code.
        status: what the server said.
    """
    kind = _BY_STATUS.get(code, KubeError)
    if kind is ConflictError and status.reason == "AlreadyExists":
        kind = AlreadyExistsError
    error = kind(f"{call}: {status.message or status.reason or 'refused'} (HTTP {code})")
    error.status = code
    return error
