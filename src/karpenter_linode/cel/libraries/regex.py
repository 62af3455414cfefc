"""Regular expressions: RE2 syntax and RE2 time, whatever the pattern."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel import ast
from karpenter_linode.cel.cost import pattern_cost
from karpenter_linode.cel.declarations import ONE, Argument, Estimate, Library, Range, function, method
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.types import BOOL, INT, STRING, list_of

if TYPE_CHECKING:
    from collections.abc import Callable

_CACHED: Final = 512
_MEMORY: Final = 8 << 20  # bytes that one compiled pattern may take


@lru_cache(maxsize=_CACHED)
def _compiled(pattern: str) -> Any:
    """A compiled pattern, or the complaint about it as a string."""
    import re2  # noqa: PLC0415 - only expressions with patterns pay for it

    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeError) as error:
        return f"{error}"


def compile_pattern(pattern: str) -> Any:
    """A compiled pattern.

    Raises:
        EvaluationError: it does not follow RE2's syntax, or is too large.
    """
    compiled = _compiled(pattern)
    if isinstance(compiled, str):
        raise EvaluationError(f"Illegal regex: {compiled}")
    return compiled


def _check(index: int, name: str) -> Callable[[list[ast.Node]], str | None]:
    """A literal pattern must compile."""

    def check(arguments: list[ast.Node]) -> str | None:
        pattern = arguments[index]
        if not isinstance(pattern, ast.Constant) or type(pattern.value) is not str:
            return None
        compiled = _compiled(pattern.value)
        return f"invalid {name} argument: {compiled}" if isinstance(compiled, str) else None

    return check


def _matches(text: str, pattern: str) -> bool:
    return compile_pattern(pattern).search(text) is not None


def _find(text: str, pattern: str) -> str:
    match = compile_pattern(pattern).search(text)
    return match[0] if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found: list[str] = []
    end = -1
    for match in compile_pattern(pattern).finditer(text):
        if 0 <= limit <= len(found):
            break
        if match[0] or match.start() != end:  # nothing is found right behind a match
            found.append(match[0])
        end = match.end()
    return found


def _estimate(arguments: tuple[Argument, ...]) -> Estimate:
    text, pattern = arguments[0].size, arguments[1].size
    quarter = Range((pattern.low + 3) // 4, (pattern.high + 3) // 4)
    return Estimate((text + ONE).tenths() * quarter, Range(0, text.high))


_OVERLOADS: Final = {
    "matches": (
        function(
            "matches",
            (STRING, STRING),
            BOOL,
            _matches,
            cost=pattern_cost,
            estimate=_estimate,
            check=_check(1, "matches"),
        ),
        method(
            "matches_string",
            (STRING, STRING),
            BOOL,
            _matches,
            cost=pattern_cost,
            estimate=_estimate,
            check=_check(1, "matches"),
        ),
    ),
    "find": (
        method(
            "string_find",
            (STRING, STRING),
            STRING,
            _find,
            cost=pattern_cost,
            estimate=_estimate,
            check=_check(1, "find"),
        ),
    ),
    "findAll": (
        method(
            "string_find_all",
            (STRING, STRING),
            list_of(STRING),
            _find_all,
            cost=pattern_cost,
            estimate=_estimate,
            check=_check(1, "findAll"),
        ),
        method(
            "string_find_all_limit",
            (STRING, STRING, INT),
            list_of(STRING),
            _find_all,
            cost=pattern_cost,
            estimate=_estimate,
            check=_check(1, "findAll"),
        ),
    ),
}
LIBRARY: Final = Library("regex", _OVERLOADS)
