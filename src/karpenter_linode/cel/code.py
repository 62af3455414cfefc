"""What compiled code is: a closure over a frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from karpenter_linode.cel.errors import CostLimitExceededError, EvaluationError, no_such_overload

if TYPE_CHECKING:
    from karpenter_linode.cel.ast import Node

Frame: TypeAlias = list[Any]
"""[cost used, cost limit, variables..., macro variables...]."""

Code: TypeAlias = Callable[[Frame], Any]
Emit: TypeAlias = "Callable[[Node], Code]"


def absorb(error: EvaluationError) -> EvaluationError:
    """An error that the other side of a logical operator may still overrule; running out of cost is none.

    Raises:
        CostLimitExceededError: passed on.
    """
    if isinstance(error, CostLimitExceededError):
        raise error
    return error


def failing(message: str, cost: int = 0) -> Code:
    """Code that always fails."""

    def fail(frame: Frame) -> Any:
        frame[0] += cost
        raise EvaluationError(message)

    return fail


class Failed:
    """In the place of a bound variable: computing its value failed, which matters only if it is read."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


def require_bool(value: Any) -> bool:
    """A condition's value.

    Raises:
        EvaluationError: it is no bool.
    """
    if value is True or value is False:
        return bool(value)
    raise no_such_overload()
