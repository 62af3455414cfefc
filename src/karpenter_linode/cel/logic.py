"""Code of the operators that are more than calls: logic, conditions, comparison, membership."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from karpenter_linode.cel import ast
from karpenter_linode.cel.access import emit_unread
from karpenter_linode.cel.code import Failed, absorb, attempt, raise_first, require_bool
from karpenter_linode.cel.cost import charge, size_of, tenths
from karpenter_linode.cel.errors import AbandonedError, EvaluationError, no_such_overload
from karpenter_linode.cel.relations import compare, contains, differs, equals, is_strict
from karpenter_linode.cel.types import BYTES, STRING
from karpenter_linode.cel.values import NONE, Optional, UInt, kind_of
from karpenter_linode.model.semver import SemVer

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.cel.code import Code, Emit, Frame

_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}
_HASHED: Final = frozenset({bool, float, int, str, UInt})
_UNHASHABLE: Final = frozenset({SemVer, bytes})
"""Kinds whose look-up in a hash table makes Kubernetes give up on the whole expression."""


def _is_plain(node: ast.Node) -> TypeGuard[ast.Constant]:
    """Whether a node is a constant that costs nothing and cannot fail."""
    return isinstance(node, ast.Constant) and not node.failure and not node.lazy


def emit_logic(node: ast.Logic, emit: Emit) -> Code:
    """A chain of ``&&`` or ``||``: an operand that decides wins over errors on either side of it."""
    operands = tuple(map(emit, node.operands))
    neutral = node.conjunction
    decisive = not neutral

    def logic(frame: Frame) -> bool:
        failure: EvaluationError | None = None
        for operand in operands:
            try:
                value = operand(frame)
            except EvaluationError as error:
                failure = failure or absorb(error)
                continue
            if value is decisive:
                return bool(value)
            if value is not neutral:
                failure = failure or no_such_overload()
        if failure is not None:
            raise failure
        return neutral

    return logic


def emit_not(node: ast.Call, emit: Emit) -> Code:
    """``!x``."""
    operand = emit(node.arguments[0])

    def invert(frame: Frame) -> bool:
        frame[0] += 1
        return not require_bool(operand(frame))

    return invert


def emit_conditional(node: ast.Call, emit: Emit) -> Code:
    """``condition ? yes : no``. Errors of the condition are not absorbed."""
    condition = emit(node.arguments[0])
    yes, no = (emit_unread(branch, emit) for branch in node.arguments[1:])

    def choose(frame: Frame) -> Any:
        return yes(frame) if require_bool(condition(frame)) else no(frame)

    return choose


def emit_or(node: ast.Call, emit: Emit) -> Code:
    """``x.or(y)`` and ``x.orValue(y)``: the alternative is computed where there is no value, and nothing is charged."""
    optional, other = map(emit, node.arguments)
    unwraps = node.function == "orValue"

    def choose(frame: Frame) -> Any:
        held = optional(frame)
        if type(held) is not Optional:
            raise no_such_overload()
        if held is NONE:
            return other(frame)
        return held.value if unwraps else held

    return choose


def emit_equality(node: ast.Call, emit: Emit) -> Code:
    """``==`` and ``!=``."""
    left, right = map(emit, node.arguments)
    test, cost = (equals, _equality_cost) if node.function == "_==_" else (differs, _shorter)
    constant = node.arguments[1]
    if _is_plain(constant) and type(constant.value) is str:
        return _equals_text(left, constant.value, test, cost)

    def compare_both(frame: Frame) -> bool:
        one, other = attempt(left, frame), attempt(right, frame)
        charge(frame, cost(one, other))
        if type(one) is Failed or type(other) is Failed:
            raise_first(one, other)
        return test(one, other)

    return compare_both


def _shorter(left: Any, right: Any) -> int:
    """Comparing goes through the shorter one."""
    return tenths(min(size_of(left), size_of(right)))


def _equality_cost(left: Any, right: Any) -> int:
    return 1 if is_strict(left) else _shorter(left, right)


def _equals_text(left: Code, text: str, test: Callable[[Any, Any], bool], cost: Callable[[Any, Any], int]) -> Code:
    length = len(text)
    wanted = test is equals

    def compare_text(frame: Frame) -> bool:
        try:
            value = left(frame)
        except EvaluationError:
            frame[0] += min(length, 1)
            raise
        if type(value) is str:
            size = len(value)
            frame[0] += ((min(length, size)) + 9) // 10
            return (value == text) is wanted
        frame[0] += cost(value, text)
        return test(value, text)

    return compare_text


def emit_order(node: ast.Call, emit: Emit) -> Code:
    """``<``, ``<=``, ``>``, ``>=``."""
    left, right = map(emit, node.arguments)
    test = _ORDER[node.function]
    # Kubernetes goes by sizes only where the types tell that these are texts
    sized = len(node.overloads) == 1 and node.overloads[0].params[0] in (STRING, BYTES)
    constant = node.arguments[1]
    if _is_plain(constant) and type(constant.value) is int:
        return _order_int(left, constant.value, test)

    def order(frame: Frame) -> bool:
        one, other = attempt(left, frame), attempt(right, frame)
        charge(frame, _shorter(one, other) if sized else 1)
        if type(one) is Failed or type(other) is Failed:
            raise_first(one, other)
        return test(compare(one, other), 0)

    return order


def _order_int(left: Code, number: int, test: Callable[[Any, Any], bool]) -> Code:
    def order(frame: Frame) -> bool:
        frame[0] += 1
        value = left(frame)
        if type(value) is int:
            return test(value, number)
        return test(compare(value, number), 0)

    return order


def emit_in(node: ast.Call, emit: Emit) -> Code:
    """``value in container``."""
    value, container = map(emit, node.arguments)
    certain = len(node.overloads) == 1
    constant = node.arguments[1]
    if certain and _is_plain(constant):
        many = constant.value
        if isinstance(many, list) and all(type(element) in _HASHED for element in many):
            return _in_constants(value, many)
    sized = certain and node.overloads[0].params[1].name == "list"
    key = node.arguments[0]
    if not sized and _is_plain(key) and type(key.value) is str:
        return _has_key(key.value, container)

    def member(frame: Frame) -> bool:
        one, many = attempt(value, frame), attempt(container, frame)
        charge(frame, size_of(many) if sized else 1)
        if type(one) is Failed or type(many) is Failed:
            raise_first(one, many)
        return contains(many, one)

    return member


def _in_constants(value: Code, elements: list[Any]) -> Code:
    """Membership in a constant list of plain values is a look-up, and costs no more than the value."""
    texts = frozenset(element for element in elements if type(element) is str)
    only_texts = len(texts) > 0 and all(type(element) is str for element in elements)

    def member(frame: Frame) -> bool:
        one = value(frame)
        if only_texts and type(one) is str:
            return one in texts
        if type(one) in _UNHASHABLE:
            raise AbandonedError(f"a {kind_of(one)} cannot be looked up among constants")
        return contains(elements, one)

    return member


def _has_key(key: str, container: Code) -> Code:
    def member(frame: Frame) -> bool:
        frame[0] += 1
        many = container(frame)
        if isinstance(many, dict):
            return key in many
        return contains(many, key)

    return member
