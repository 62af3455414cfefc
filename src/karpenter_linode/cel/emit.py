"""Tree to closures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel import ast
from karpenter_linode.cel.access import emit_ident, emit_index, emit_select
from karpenter_linode.cel.code import failing
from karpenter_linode.cel.cost import charge
from karpenter_linode.cel.logic import (
    emit_conditional,
    emit_equality,
    emit_in,
    emit_logic,
    emit_not,
    emit_order,
)
from karpenter_linode.cel.loops import emit_bind, emit_list, emit_loop, emit_map, emit_optional_map, emit_sort
from karpenter_linode.cel.unify import is_open

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from karpenter_linode.cel.code import Code, Emit, Frame
    from karpenter_linode.cel.declarations import Function, Overload
    from karpenter_linode.cel.types import Type


_BINARY: Final = 2


class Emitter:
    """Compiles checked and folded trees.

    Args:
        functions: for the calls whose overload only run time can tell.
        checked: whether static types can be relied on.
    """

    def __init__(self, functions: Mapping[str, Function], *, checked: bool) -> None:
        self._functions = functions
        self._checked = checked

    def emit(self, node: ast.Node) -> Code:
        """The code of a node."""
        if isinstance(node, ast.Call):
            special = None if node.member else _OPERATORS.get(node.function)
            return self._call(node) if special is None else special(node, self.emit)
        return _EMITTERS[type(node)](node, self.emit)

    def _call(self, node: ast.Call) -> Code:
        arguments = tuple(map(self.emit, node.arguments))
        certain = self._checked and len(node.overloads) == 1
        if certain and not any(map(_unsure, node.overloads[0].params, node.arguments)):
            return _direct(node.overloads[0], arguments)
        function = self._functions[node.function]
        constant = node.arguments[-1]
        if len(arguments) == _BINARY and isinstance(constant, ast.Constant) and not constant.failure:
            return _dispatched_constant(function, arguments[0], constant, member=node.member)
        return _dispatched(function, arguments, member=node.member)


def _emit_literal(node: ast.Constant, _emit: Emit) -> Code:
    value, cost = node.value, node.cost
    if node.failure:
        return failing(node.failure, cost)
    if not cost:
        return lambda _frame: value

    def constant(frame: Frame) -> Any:
        frame[0] += cost
        return value

    return constant


def _unsure(param: Type, argument: ast.Node) -> bool:
    """Whether only run time can tell if an argument is of the kind that a parameter asks for."""
    return is_open(argument.type) and param.kind not in ("param", "dyn")


def _direct(overload: Overload, arguments: tuple[Code, ...]) -> Code:
    implementation, cost = overload.implementation, overload.cost
    if not isinstance(cost, int):
        return _direct_sized(implementation, cost, arguments)
    if len(arguments) == 1:
        (only,) = arguments

        def unary(frame: Frame) -> Any:
            frame[0] += cost
            return implementation(only(frame))

        return unary
    if len(arguments) == _BINARY:
        left, right = arguments

        def binary(frame: Frame) -> Any:
            frame[0] += cost
            return implementation(left(frame), right(frame))

        return binary

    def call(frame: Frame) -> Any:
        frame[0] += cost
        return implementation(*[argument(frame) for argument in arguments])

    return call


def _direct_sized(implementation: Callable[..., Any], cost: Callable[..., int], arguments: tuple[Code, ...]) -> Code:
    def call(frame: Frame) -> Any:
        values = [argument(frame) for argument in arguments]
        charge(frame, cost(*values))
        return implementation(*values)

    return call


def _dispatched(function: Function, arguments: tuple[Code, ...], *, member: bool) -> Code:
    select = function.select

    def call(frame: Frame) -> Any:
        values = tuple([argument(frame) for argument in arguments])
        overload = select(values, member=member)
        cost = overload.cost
        charge(frame, cost if isinstance(cost, int) else cost(*values))
        return overload.implementation(*values)

    return call


def _dispatched_constant(function: Function, argument: Code, constant: ast.Constant, *, member: bool) -> Code:
    """A call on something unknown and a constant, such as ``x.isGreaterThan(semver("1.0.0"))``."""
    value = constant.value
    known: dict[type, tuple[Callable[..., Any], int]] = {}

    def call(frame: Frame) -> Any:
        given = argument(frame)
        entry = known.get(type(given))
        if entry is not None:
            frame[0] += entry[1]
            return entry[0](given, value)
        frame[0] += constant.cost
        overload = function.select((given, value), member=member)
        cost = overload.cost
        if isinstance(cost, int):
            known[type(given)] = overload.implementation, cost + constant.cost
        charge(frame, cost if isinstance(cost, int) else cost(given, value))
        return overload.implementation(given, value)

    return call


_OPERATORS: Final[Mapping[str, Callable[[ast.Call, Callable[[ast.Node], Code]], Code]]] = {
    "!_": emit_not,
    "_==_": emit_equality,
    "_!=_": emit_equality,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), emit_order),
    "@in": emit_in,
    ast.CONDITIONAL: emit_conditional,
    ast.INDEX: emit_index,
    ast.OPTIONAL_INDEX: emit_index,
}
_EMITTERS: Final[Mapping[type[ast.Node], Callable[[Any, Callable[[ast.Node], Code]], Code]]] = {
    ast.Constant: _emit_literal,
    ast.Ident: emit_ident,
    ast.Select: emit_select,
    ast.Logic: emit_logic,
    ast.ListLiteral: emit_list,
    ast.MapLiteral: emit_map,
    ast.Loop: emit_loop,
    ast.Bind: emit_bind,
    ast.OptionalMap: emit_optional_map,
    ast.SortBy: emit_sort,
}
