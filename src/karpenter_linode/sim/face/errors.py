"""Errors as clients of Kubernetes expect them: ``metav1.Status`` with code, reason and details."""

from __future__ import annotations

from typing import Any, Final

from karpenter_linode.ports import AlreadyExistsError, KubeError
from karpenter_linode.sim.eviction import BudgetError
from karpenter_linode.sim.validation import RefusedError

_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    504: "Timeout",
}
RETRY_SECONDS: Final = 1


class RequestError(KubeError):
    """A request that cannot be served as it is.

    Args:
        status: the HTTP code.
        message: what was found and what was expected.
        causes: single reasons, for conflicts between field managers.
    """

    def __init__(self, status: int, message: str, causes: tuple[dict[str, Any], ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.causes = causes


def bad_request(message: str) -> RequestError:
    """A 400."""
    return RequestError(400, message)


def no_such_path() -> RequestError:
    """The 404 of paths that mean nothing; clients tell it from a missing object by its words."""
    return RequestError(404, "the server could not find the requested resource")


def status_of(error: KubeError) -> dict[str, Any]:
    """The Status object of an error."""
    reason = "AlreadyExists" if isinstance(error, AlreadyExistsError) else _REASONS.get(error.status, "Unknown")
    details: dict[str, Any] = {}
    if isinstance(error, RefusedError):
        causes = [_cause(problem) for problem in error.problems]
        details = {"name": error.name, "group": error.kind.group, "kind": error.kind.kind, "causes": causes}
    elif isinstance(error, RequestError) and error.causes:
        details["causes"] = list(error.causes)
    if error.status == 429:  # noqa: PLR2004  # the code is the name
        details["retryAfterSeconds"] = RETRY_SECONDS
    if isinstance(error, BudgetError):
        details["causes"] = [{"reason": "DisruptionBudget", "message": str(error)}]
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": str(error),
        "reason": reason,
        **({"details": details} if details else {}),
        "code": error.status,
    }


def success(*, group: str, resource: str, name: str, uid: str) -> dict[str, Any]:
    """The Status object of a deletion that is complete."""
    details = {"name": name, "group": group, "kind": resource, "uid": uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


def _cause(problem: str) -> dict[str, Any]:
    """A cause from a problem of the form ``field.path: what: more``."""
    field, _, message = problem.partition(": ")
    known = {
        "Required value": "FieldValueRequired",
        "Not found": "FieldValueNotFound",
        "Forbidden": "FieldValueForbidden",
    }
    reason = next((value for key, value in known.items() if message.startswith(key)), "FieldValueInvalid")
    return {"reason": reason, "message": message, "field": field}
