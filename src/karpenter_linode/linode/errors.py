"""What can go wrong with a Linode API call, as a typed family. No message ever holds the token."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from karpenter_linode.ports import CloudError

MAX_REASON: Final = 300


class FieldError(Struct, frozen=True, gc=False):
    """One entry of an error answer; ``field`` is empty where the API names none."""

    reason: str = ""
    field: str = ""


class LinodeApiError(CloudError):
    """A call failed.

    Args:
        route: method and path template, as in ``POST /lke/clusters/{cluster}/pools``.
        status: HTTP status, 0 where there was no answer.
        errors: what the API said.

    Attributes:
        outcome_unknown: the API may have carried out the call although it reports failure.
    """

    outcome_unknown = False

    def __init__(self, route: str, status: int, errors: tuple[FieldError, ...] = ()) -> None:
        self.route, self.status, self.errors = route, status, errors
        said = "; ".join(f"{error.field}: {error.reason}" if error.field else error.reason for error in errors)
        super().__init__(f"{route}: {status or 'no answer'}{f': {said[:MAX_REASON]}' if said else ''}")


class LinodeNotFoundError(LinodeApiError):
    """No such object (404)."""


class LinodeUnauthorizedError(LinodeApiError):
    """The token is missing, wrong or lacks a scope (401, 403). Never a sign that an object is gone."""


class LinodeInvalidError(LinodeApiError):
    """The API refuses what was asked (other 4xx), for the reasons and fields in ``errors``."""


class LinodeRateLimitedError(LinodeApiError):
    """Too many calls (429): certainly not carried out.

    Attributes:
        retry_after: seconds to wait as the API said, at least 1.
    """

    def __init__(self, route: str, status: int, errors: tuple[FieldError, ...] = (), retry_after: float = 1) -> None:
        super().__init__(route, status, errors)
        self.retry_after = max(1.0, retry_after)


class LinodeBusyError(LinodeApiError):
    """The object is busy (``Linode busy.``): certainly not carried out, works later."""


class LinodeServerError(LinodeApiError):
    """The API failed (408, 5xx)."""

    outcome_unknown = True

    def __init__(
        self,
        route: str,
        status: int,
        errors: tuple[FieldError, ...] = (),
        *,
        maintenance: bool = False,
    ) -> None:
        super().__init__(route, status, errors)
        self.maintenance = maintenance


class LinodeTransportError(LinodeApiError):
    """No answer, or an unreadable one: connection refused or dropped, or time ran out."""

    def __init__(self, route: str, cause: str, *, outcome_unknown: bool = True) -> None:
        super().__init__(route, 0, (FieldError(cause),))
        self.outcome_unknown = outcome_unknown


RETRYABLE: Final = (LinodeRateLimitedError, LinodeBusyError, LinodeServerError, LinodeTransportError)
"""Errors that may go away by themselves."""
