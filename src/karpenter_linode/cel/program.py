"""A compiled expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from karpenter_linode.cel import ast
from karpenter_linode.cel.errors import CostLimitExceededError, EvaluationError
from karpenter_linode.cel.render import render
from karpenter_linode.cel.values import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from karpenter_linode.cel.code import Code, Frame
    from karpenter_linode.cel.emit import Emitter
    from karpenter_linode.cel.scope import Scope
    from karpenter_linode.cel.types import Type

_MACROS: Final = (ast.Loop, ast.Bind, ast.OptionalMap, ast.SortBy)

DEFAULT_COST_LIMIT: Final = 1_000_000
"""What Kubernetes allows a device selector."""


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


class Part(Struct, frozen=True):
    """What one part of an expression came to by itself.

    Args:
        text: the part as written.
        depth: 0 for a clause of the top-level ``&&`` chain, 1 for the parts of a clause, and so on.
        value: the value as people read it, empty after an error.
        error: the error text, else empty.
        cost: cost units it took.
        position: where it starts, in code points.
    """

    text: str
    depth: int
    value: str = ""
    error: str = ""
    cost: int = 0
    position: int = 0


class Program:
    """An expression ready to be evaluated many times. Immutable; made by ``Environment.compile``.

    Args:
        text: the expression.
        tree: checked and folded.
        scope: tells what a frame holds.
        emitter: makes code.
        estimate: the static cost of a text.
        must_be_bool: whether a result of another kind is an error.
    """

    def __init__(
        self,
        text: str,
        tree: ast.Node,
        scope: Scope,
        emitter: Emitter,
        estimate: Callable[[str], tuple[int, int]],
        *,
        must_be_bool: bool,
    ) -> None:
        self.text = text
        self._tree = tree
        self._names = scope.names
        self._used = scope.used
        self._locals = [None] * scope.local_count
        self._emitter = emitter
        self._code = emitter.emit(tree)
        self._must_be_bool = must_be_bool
        self._estimate = estimate

    @property
    def type(self) -> Type:
        """The static type of the expression."""
        return self._tree.type

    @property
    def estimate(self) -> tuple[int, int]:
        """The least and the most that an evaluation can cost, by what is known of the sizes of its inputs."""
        return self._estimate(self.text)

    def evaluate(self, variables: Mapping[str, Any], *, cost_limit: int = DEFAULT_COST_LIMIT) -> Any:
        """The value of the expression.

        Args:
            variables: values by name; a variable that the expression does not read may be missing.
            cost_limit: cost units that the evaluation may take.

        Raises:
            EvaluationError: the expression failed on these values.
            CostLimitExceededError: it used up the cost limit.
        """
        return self._run(self._frame(variables, cost_limit))

    def evaluate_counted(
        self, variables: Mapping[str, Any], *, cost_limit: int = DEFAULT_COST_LIMIT
    ) -> tuple[Any, int]:
        """The value, and the cost units used for it. Raises like ``evaluate``."""
        frame = self._frame(variables, cost_limit)
        return self._run(frame), frame[0]

    def _frame(self, variables: Mapping[str, Any], cost_limit: int) -> Frame:
        try:
            if len(self._names) == 1:
                return [0, cost_limit, variables[self._names[0]], *self._locals]
            return [0, cost_limit, *[variables[name] for name in self._names], *self._locals]
        except KeyError:
            for name in self._names:
                if name in self._used and name not in variables:
                    raise EvaluationError(f"no value given for the variable '{name}'") from None
            return [0, cost_limit, *map(variables.get, self._names), *self._locals]

    def _run(self, frame: Frame) -> Any:
        value = _computed(self._code, frame)
        if self._must_be_bool and value is not True and value is not False:
            raise EvaluationError(f"CEL result of type {kind_of(value)} could not be converted to bool")
        return value

    def explain(self, variables: Mapping[str, Any], *, cost_limit: int = DEFAULT_COST_LIMIT) -> tuple[Clause, ...]:
        """How each clause of the top-level ``&&`` chain comes out by itself, and what it saw.

        Args:
            variables: as for ``evaluate``.
            cost_limit: cost units that each clause may take.
        """
        return tuple(self._explain_clause(clause, variables, cost_limit) for clause in _clauses(self._tree))

    def parts(self, variables: Mapping[str, Any], *, cost_limit: int = DEFAULT_COST_LIMIT) -> tuple[Part, ...]:
        """The value of every part that depends on the variables, each before its own parts.

        Each is computed by itself, so parts that an evaluation would skip are told, too. The insides of macros are left
        out: they stand on variables that have no value outside.

        Args:
            variables: as for ``evaluate``.
            cost_limit: cost units that each part may take.
        """
        return tuple(
            self._part(node, depth, variables, cost_limit)
            for clause in _clauses(self._tree)
            for node, depth in _depending(clause, 0)
        )

    def _part(self, node: ast.Node, depth: int, variables: Mapping[str, Any], cost_limit: int) -> Part:
        frame = self._frame(variables, cost_limit)
        text = self.text[node.start : node.end]
        try:
            value = render(_computed(self._emitter.emit(node), frame))
        except EvaluationError as error:
            return Part(text, depth, error=error.message, cost=frame[0], position=node.start)
        return Part(text, depth, value, cost=frame[0], position=node.start)

    def _explain_clause(self, node: ast.Node, variables: Mapping[str, Any], cost_limit: int) -> Clause:
        outcome, error = _attempt(self._emitter.emit(node), self._frame(variables, cost_limit))
        observed: dict[str, str] = {}
        for part in _observable(node):
            text = self.text[part.start : part.end]
            if text not in observed:
                frame = self._frame(variables, cost_limit)
                try:
                    observed[text] = render(self._emitter.emit(part)(frame))
                except EvaluationError as failure:
                    observed[text] = failure.message
        verdict: Literal["true", "false", "error"] = "error" if error else "true" if outcome else "false"
        return Clause(self.text[node.start : node.end], verdict, error, tuple(observed.items()), node.start)


def _computed(code: Code, frame: Frame) -> Any:
    """What code comes to within the frame's cost; whatever goes wrong is an ``EvaluationError``."""
    try:
        value = code(frame)
    except EvaluationError:
        if frame[0] > frame[1]:
            raise CostLimitExceededError from None
        raise
    except RecursionError:
        raise EvaluationError("expression is nested too deeply to be evaluated here") from None
    except UnicodeError:
        raise EvaluationError("a string has lone surrogates in it") from None
    if frame[0] > frame[1]:
        raise CostLimitExceededError
    return value


def _attempt(code: Code, frame: Frame) -> tuple[bool, str]:
    try:
        value = _computed(code, frame)
    except EvaluationError as error:
        return False, error.message
    if value is True or value is False:
        return bool(value), ""
    return False, f"CEL result of type {kind_of(value)} could not be converted to bool"


def _clauses(node: ast.Node) -> list[ast.Node]:
    if isinstance(node, ast.Logic) and node.conjunction:
        return [clause for operand in node.operands for clause in _clauses(operand)]
    return [node]


def _depending(node: ast.Node, depth: int) -> Iterator[tuple[ast.Node, int]]:
    """The parts that are computed from variables, with how deep they lie; chains of field reads are one part."""
    if depth and isinstance(node, ast.Constant | ast.Ident):
        return
    yield node, depth
    if not _is_path(node):
        parts = ast.children(node)
        for part in parts[:1] if isinstance(node, _MACROS) else parts:
            yield from _depending(part, depth + 1)


def _observable(node: ast.Node) -> list[ast.Node]:
    """The largest parts of a clause that are read straight from variables, such as ``device.capacity['x'].y``."""
    if _is_path(node):
        return [node]
    if isinstance(node, _MACROS):
        # parts of the body stand on variables that have no value outside of it
        return _observable(ast.children(node)[0])
    return [found for child in ast.children(node) for found in _observable(child)]


def _is_path(node: ast.Node) -> bool:
    depth = 0
    while True:
        if isinstance(node, ast.Select) and not node.test:
            node = node.operand
        elif isinstance(node, ast.Call) and node.function in (ast.INDEX, ast.OPTIONAL_INDEX):
            if not isinstance(node.arguments[1], ast.Constant):
                return False
            node = node.arguments[0]
        else:
            return depth > 0 and isinstance(node, ast.Ident) and node.slot is not None
        depth += 1
