"""Constant folding: calls on constants are computed once, at compile time, where that changes nothing but the speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.cel import ast
from karpenter_linode.cel.cost import LIST_COST, MAP_COST
from karpenter_linode.cel.declarations import Function
from karpenter_linode.cel.errors import CompileError, EvaluationError
from karpenter_linode.cel.values import KEYS, kind_of, make_map

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def fold(node: ast.Node, text: str) -> ast.Node:
    """The tree with constant calls and literals replaced by constants; literal arguments are looked at on the way.

    Raises:
        CompileError: a conversion of a constant that cannot succeed, or a literal argument that its function refuses.
    """
    match node:
        case ast.Call():
            _look_at_literals(node, text)
            node.arguments = [fold(argument, text) for argument in node.arguments]
            _check_key(node, text)
            return _fold_call(node, text)
        case ast.ListLiteral():
            node.elements = [fold(element, text) for element in node.elements]
            return node if node.optional else _constant_aggregate(node, node.elements, LIST_COST, list)
        case ast.MapLiteral():
            for entry in node.entries:
                entry.key, entry.value = fold(entry.key, text), fold(entry.value, text)
            if not any(entry.optional for entry in node.entries):
                return _constant_aggregate(node, ast.children(node), MAP_COST, _paired)
        case ast.Ident() if node.slot is None:
            start, end, position = node.start, node.end, node.position
            return ast.Constant(value=node.constant, start=start, end=end, position=position, type=node.type)
        case ast.Select():
            node.operand = fold(node.operand, text)
        case ast.Logic():
            node.operands = [fold(operand, text) for operand in node.operands]
        case _:
            _fold_macro(node, text)
    return node


def _fold_macro(node: ast.Node, text: str) -> None:
    match node:
        case ast.Loop():
            node.range = fold(node.range, text)
            node.condition = node.condition and fold(node.condition, text)
            node.body = fold(node.body, text)
        case ast.Bind():
            node.value, node.body = fold(node.value, text), fold(node.body, text)
        case ast.OptionalMap():
            node.target, node.body = fold(node.target, text), fold(node.body, text)
        case ast.SortBy():
            node.target = fold(node.target, text)
            _fold_macro(node.keys, text)


def _look_at_literals(node: ast.Call, text: str) -> None:
    for overload in node.overloads:
        if overload.check is not None:
            complaint = overload.check(node.arguments)
            if complaint:
                raise CompileError(complaint, text, node.arguments[-1].position)


def _check_key(node: ast.Call, text: str) -> None:
    """A constant that can be no key is an error before any evaluation; a computed one is an error of it."""
    if node.function not in (ast.INDEX, ast.OPTIONAL_INDEX):
        return
    key = node.arguments[1]
    if isinstance(key, ast.Constant) and not key.failure and not key.lazy and type(key.value) not in KEYS:
        kind = kind_of(key.value)
        raise CompileError(f"program instantiation failed: invalid qualifier type: {kind}", text, node.position)


def _fold_call(node: ast.Call, text: str) -> ast.Node:
    values = _constants(node.arguments)
    if values is None:
        return _empty_membership(node)
    foldings = {overload.folding for overload in node.overloads} - {"never"}
    if not foldings:
        return node
    eager = foldings == {"eager"} and not any(
        argument.lazy for argument in node.arguments if isinstance(argument, ast.Constant)
    )
    made = ast.Constant(start=node.start, end=node.end, position=node.position, type=node.type, lazy=not eager)
    made.cost = sum(_cost(argument) for argument in node.arguments)
    try:
        overload = Function(node.function, node.overloads).select(tuple(values), member=node.member)
        if not eager:
            made.cost += overload.cost if isinstance(overload.cost, int) else overload.cost(*values)
        made.value = overload.implementation(*values)
    except EvaluationError as error:
        if eager:
            raise CompileError(f"program instantiation failed: {error.message}", text, node.position) from error
        made.failure = error.message
    return made


def _empty_membership(node: ast.Call) -> ast.Node:
    """Nothing is in an empty list, whatever else might be wrong with it."""
    many = node.arguments[-1] if node.arguments else None
    if node.function == "@in" and isinstance(many, ast.Constant) and many.value == [] and not many.failure:
        return ast.Constant(value=False, start=node.start, end=node.end, position=node.position, type=node.type)
    return node


def _constant_aggregate(
    node: ast.Node,
    parts: list[ast.Node],
    cost: int,
    build: Callable[[list[Any]], Any],
) -> ast.Node:
    """A list or map literal as one constant, when all of it is."""
    values = _constants(parts)
    if values is None:
        return node
    lazy = any(part.lazy for part in parts if isinstance(part, ast.Constant))
    made = ast.Constant(start=node.start, end=node.end, position=node.position, type=node.type, lazy=lazy)
    parts_cost = sum(map(_cost, parts))
    made.cost = cost + parts_cost if parts_cost else 0
    try:
        made.value = build(values)
    except EvaluationError as error:
        made.failure = error.message
    return made


def _paired(values: list[Any]) -> dict[Any, Any]:
    return make_map(zip(values[::2], values[1::2], strict=True))


def _constants(nodes: list[ast.Node]) -> list[Any] | None:
    if all(isinstance(node, ast.Constant) and not node.failure for node in nodes):
        return [node.value for node in nodes if isinstance(node, ast.Constant)]
    return None


def _cost(node: ast.Node) -> int:
    return node.cost if isinstance(node, ast.Constant) else 0
