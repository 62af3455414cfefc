"""Tree to closures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel import ast
from karpenter_linode.cel.access import emit_ident, emit_index, emit_select
from karpenter_linode.cel.code import Failed, attempt, failing, raise_first
from karpenter_linode.cel.cost import charge
from karpenter_linode.cel.declarations import Function, has_parameter
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.logic import (
    emit_conditional,
    emit_equality,
    emit_in,
    emit_logic,
    emit_not,
    emit_or,
    emit_order,
)
from karpenter_linode.cel.loops import emit_bind, emit_list, emit_loop, emit_map, emit_optional_map, emit_sort
from karpenter_linode.cel.unify import is_open

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from karpenter_linode.cel.code import Code, Emit, Frame
    from karpenter_linode.cel.declarations import Cost
    from karpenter_linode.cel.types import Type


_BINARY: Final = 2
_ALWAYS_IN_ORDER: Final = frozenset({"format"})
_PREPARED: Final = frozenset({"matches", "find", "findAll"})
"""Functions that Kubernetes builds anew around a constant pattern."""


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
            special = _OPERATORS.get(node.function)
            return self._call(node) if special is None else special(node, self.emit)
        return _EMITTERS[type(node)](node, self.emit)

    def _call(self, node: ast.Call) -> Code:
        arguments = tuple(map(self.emit, node.arguments))
        only = node.overloads[0] if len(node.overloads) == 1 else None
        cost = _cost(node)
        in_order = _in_order(node)
        if self._checked and only is not None and not any(map(_unsure, only.params, node.arguments)):
            return _direct(only.implementation, cost, arguments, in_order=in_order)
        function = self._functions[node.function]
        if self._checked and only is not None and len(function.overloads) > 1:
            function = Function(function.name, (only,))
        constant = node.arguments[-1]
        if len(arguments) == _BINARY and isinstance(constant, ast.Constant) and not constant.failure:
            return _dispatched_constant(function, cost, arguments[0], constant, in_order=in_order, member=node.member)
        return _dispatched(function, cost, arguments, in_order=in_order, member=node.member)


def _cost(node: ast.Call) -> Cost:
    """What a call is charged: by its overload if that is known, by its name otherwise."""
    first = next((each for each in node.overloads if len(each.params) == len(node.arguments)), None)
    if first is None:
        return 1  # unchecked, and bound to fail
    return first.cost if len(node.overloads) == 1 or first.loose is None else first.loose


def _in_order(node: ast.Call) -> bool:
    """Whether the first argument that fails ends a call: those behind it are not computed, and it is not charged.

    Kubernetes has calls of one and of two arguments that compute all of them first. Which ones are of this kind is a
    matter of how each is put together there.
    """
    if len(node.arguments) > _BINARY or node.function in _ALWAYS_IN_ORDER:
        return True
    if node.function in _PREPARED:
        pattern = node.arguments[1]
        return isinstance(pattern, ast.Constant) and type(pattern.value) is str
    return len(node.overloads) > 1 and node.function[0] not in "_-!@"


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
    return param.kind not in ("param", "dyn") and (is_open(argument.type) or _is_guess(argument))


def _is_guess(node: ast.Node) -> bool:
    """Whether a type was concluded from what surrounds the node: ``dyn(x).value()`` has whatever type is wanted."""
    return (
        isinstance(node, ast.Call)
        and any(has_parameter(each.result) for each in node.overloads)
        and any(is_open(argument.type) or _is_guess(argument) for argument in node.arguments)
    )


def _direct(implementation: Callable[..., Any], cost: Cost, arguments: tuple[Code, ...], *, in_order: bool) -> Code:
    if not isinstance(cost, int):
        return _direct_sized(implementation, cost, arguments, in_order=in_order)
    if len(arguments) == 1:
        (only,) = arguments

        def unary(frame: Frame) -> Any:
            frame[0] += cost
            return implementation(only(frame))

        return unary
    if len(arguments) == _BINARY and not in_order:
        left, right = arguments

        def binary(frame: Frame) -> Any:
            frame[0] += cost
            try:
                one = left(frame)
            except EvaluationError:
                attempt(right, frame)
                raise
            return implementation(one, right(frame))

        return binary

    def call(frame: Frame) -> Any:
        values = _values(frame, arguments, cost, in_order=in_order)
        return implementation(*values)

    return call


def _values(frame: Frame, arguments: tuple[Code, ...], cost: Cost, *, in_order: bool) -> list[Any]:
    """The arguments of a call, and the call charged for."""
    values = [argument(frame) for argument in arguments[:-1]] if in_order else []
    values += [attempt(argument, frame) for argument in arguments[len(values) :]]
    charge(frame, cost if isinstance(cost, int) else cost(*values))
    raise_first(*values)
    return values


def _direct_sized(
    implementation: Callable[..., Any], cost: Callable[..., int], arguments: tuple[Code, ...], *, in_order: bool
) -> Code:
    def call(frame: Frame) -> Any:
        return implementation(*_values(frame, arguments, cost, in_order=in_order))

    return call


def _dispatched(function: Function, cost: Cost, arguments: tuple[Code, ...], *, in_order: bool, member: bool) -> Code:
    select = function.select

    def call(frame: Frame) -> Any:
        values = tuple(_values(frame, arguments, cost, in_order=in_order))
        return select(values, member=member).implementation(*values)

    return call


def _dispatched_constant(
    function: Function, cost: Cost, argument: Code, constant: ast.Constant, *, in_order: bool, member: bool
) -> Code:
    """A call on something unknown and a constant, such as ``x.isGreaterThan(semver("1.0.0"))``."""
    value, own = constant.value, constant.cost
    fixed = own + cost if isinstance(cost, int) else None
    known: dict[type, Callable[..., Any]] = {}

    def price(given: Any) -> int:
        return own + (cost if isinstance(cost, int) else cost(given, value))

    def call(frame: Frame) -> Any:
        try:
            given = argument(frame)
        except EvaluationError as error:
            if not in_order:
                frame[0] += price(Failed(error))
            raise
        if fixed is not None:
            frame[0] += fixed
        else:
            charge(frame, price(given))
        implementation = known.get(type(given))
        if implementation is None:
            implementation = function.select((given, value), member=member).implementation
            known[type(given)] = implementation
        return implementation(given, value)

    return call


_OPERATORS: Final[Mapping[str, Callable[[ast.Call, Callable[[ast.Node], Code]], Code]]] = {
    "!_": emit_not,
    "_==_": emit_equality,
    "_!=_": emit_equality,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), emit_order),
    "@in": emit_in,
    "or": emit_or,
    "orValue": emit_or,
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
