"""What can go wrong with an expression: it does not compile, it fails on a value, or it costs too much."""

from __future__ import annotations

from typing import Final

_LONGEST_LINE: Final = 160
_AROUND: Final = 60  # characters shown before and after the place in a longer line


class CelError(Exception):
    """Base of everything this package raises on purpose."""


class CompileError(CelError):
    """The text is no valid expression for its environment.

    Args:
        message: what is wrong, without the position.
        text: the whole expression.
        offset: where, in code points from the start.
    """

    def __init__(self, message: str, text: str, offset: int) -> None:
        self.message = message
        self.text = text
        self.offset = min(max(offset, 0), len(text))
        before = text[: self.offset]
        self.line = before.count("\n") + 1
        self.column = self.offset - (before.rfind("\n") + 1) + 1
        super().__init__(f"{self.line}:{self.column}: {message}")

    def render(self) -> str:
        """The message, the line it is about (of a long one what is near) and a caret below the place."""
        line = self.text.split("\n")[self.line - 1]
        start = max(0, self.column - 1 - _AROUND) if len(line) > _LONGEST_LINE else 0
        end = self.column + _AROUND if len(line) > _LONGEST_LINE else len(line)
        before = ("..." if start else "") + line[start : self.column - 1]
        shown = before + line[self.column - 1 : end] + ("..." if end < len(line) else "")
        indent = "".join("\t" if char == "\t" else " " for char in before)
        return f"{self.line}:{self.column}: {self.message}\n | {shown}\n | {indent}^"


class EvaluationError(CelError):
    """The expression failed on the values it was given; ``&&``, ``||``, ``all`` and ``exists`` may absorb it.

    ``final``: nothing absorbs it.
    """

    final = False

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


class CostLimitExceededError(EvaluationError):
    """The evaluation used up its cost limit. Never absorbed."""

    final = True

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class AbandonedError(EvaluationError):
    """kube-scheduler's evaluation breaks off here: what it cannot evaluate must not match here. Never absorbed.

    Its list functions that are charged by their elements do so when they are given none, and so does looking up a
    version among constants.
    """

    final = True

    def __init__(self, why: str) -> None:
        super().__init__(f"internal error: {why}")


def no_such_overload() -> EvaluationError:
    """The error for operands of kinds that an operation does not take."""
    return EvaluationError("no such overload")


def no_such_key(key: object) -> EvaluationError:
    """The error for a key that a map does not have."""
    return EvaluationError(f"no such key: {key}")
