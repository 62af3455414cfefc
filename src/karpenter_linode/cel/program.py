"""A compiled expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_COST_LIMIT = 1_000_000


class Clause(Struct, frozen=True):
    """How one clause of the top-level ``&&`` chain came out.

    Args:
        text: the clause as written.
        outcome: ``true``, ``false`` or ``error``.
        error: the error text, else empty.
        observed: (sub-expression as written, value seen) for what the clause reads from the variables.
        position: where the clause starts, in code points.
    """

    text: str
    outcome: Literal["true", "false", "error"]
    error: str = ""
    observed: tuple[tuple[str, str], ...] = ()
    position: int = 0


class Program:
    """An expression ready to be evaluated many times. Immutable; made by ``Environment.compile``."""

    text: str
    estimate: tuple[int, int]

    def evaluate(self, variables: Mapping[str, Any], *, cost_limit: int = DEFAULT_COST_LIMIT) -> Any:
        """The value of the expression.

        Raises:
            EvaluationError: the expression failed on these values.
            CostLimitExceededError: it used up the cost limit.
        """
        raise NotImplementedError

    def evaluate_counted(self, variables: Mapping[str, Any], *, cost_limit: int = DEFAULT_COST_LIMIT) -> tuple[Any, int]:
        """The value and the cost used."""
        raise NotImplementedError

    def explain(self, variables: Mapping[str, Any]) -> tuple[Clause, ...]:
        """The clauses of the top-level ``&&`` chain, each with its own outcome and what it saw."""
        raise NotImplementedError
