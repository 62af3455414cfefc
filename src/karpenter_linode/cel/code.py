"""What compiled code is: a closure over a frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from karpenter_linode.cel.errors import EvaluationError, no_such_overload

if TYPE_CHECKING:
    from karpenter_linode.cel.ast import Node

Frame: TypeAlias = list[Any]
"""[cost used, cost limit, variables..., macro variables...]."""

Code: TypeAlias = Callable[[Frame], Any]
Emit: TypeAlias = "Callable[[Node], Code]"


def absorb(error: EvaluationError) -> EvaluationError:
    """An error that the other side of a logical operator may still overrule.

    Raises:
        EvaluationError: one that ends the evaluation whatever surrounds it, such as running out of cost; passed on.
    """
    if error.final:
        raise error
    return error


def failing(message: str, cost: int = 0) -> Code:
    """Code that always fails."""

    def fail(frame: Frame) -> Any:
        frame[0] += cost
        raise EvaluationError(message)

    return fail


class Failed:
    """In the place of a value: computing it failed, which matters only if it is used."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


class Pending:
    """In the place of a bound variable: its value is computed when it is first read."""

    __slots__ = ("code",)

    def __init__(self, code: Code) -> None:
        self.code = code


def attempt(code: Code, frame: Frame) -> Any:
    """A value, or ``Failed``.

    Raises:
        EvaluationError: only one that ends the evaluation.
    """
    try:
        return code(frame)
    except EvaluationError as error:
        return Failed(absorb(error))


def read(frame: Frame, slot: int) -> Any:
    """The value of a variable, computed now if it was not yet.

    Raises:
        EvaluationError: computing it fails, or has failed.
    """
    value = frame[slot]
    if type(value) is Pending:
        value = frame[slot] = attempt(value.code, frame)
    if type(value) is Failed:
        raise value.error
    return value


def raise_first(*values: Any) -> None:
    """Go on only if none of the values failed.

    Raises:
        EvaluationError: the error of the first one that did.
    """
    for value in values:
        if type(value) is Failed:
            raise value.error


def require_bool(value: Any) -> bool:
    """A condition's value.

    Raises:
        EvaluationError: it is no bool.
    """
    if value is True or value is False:
        return bool(value)
    raise no_such_overload()
