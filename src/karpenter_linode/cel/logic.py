"""Code of the operators that are more than calls: logic, conditions, comparison, membership."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel import ast
from karpenter_linode.cel.code import absorb, require_bool
from karpenter_linode.cel.cost import charge, size_of, tenths
from karpenter_linode.cel.errors import EvaluationError, no_such_overload
from karpenter_linode.cel.relations import compare, contains, differs, equals
from karpenter_linode.cel.values import UInt
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
_PRIMITIVE: Final = frozenset({bool, bytes, float, int, str, UInt})


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
    condition, yes, no = map(emit, node.arguments)

    def choose(frame: Frame) -> Any:
        return yes(frame) if require_bool(condition(frame)) else no(frame)

    return choose


def emit_equality(node: ast.Call, emit: Emit) -> Code:
    """``==`` and ``!=``."""
    left, right = map(emit, node.arguments)
    test = equals if node.function == "_==_" else differs
    constant = node.arguments[1]
    if isinstance(constant, ast.Constant) and not constant.failure and type(constant.value) is str:
        return _equals_text(left, constant.value, test)

    def compare_both(frame: Frame) -> bool:
        one, other = left(frame), right(frame)
        charge(frame, tenths(min(size_of(one), size_of(other))))
        return test(one, other)

    return compare_both


def _equals_text(left: Code, text: str, test: Callable[[Any, Any], bool]) -> Code:
    length = len(text)
    wanted = test is equals

    def compare_text(frame: Frame) -> bool:
        value = left(frame)
        if type(value) is str:
            size = len(value)
            frame[0] += ((min(length, size)) + 9) // 10
            return (value == text) is wanted
        frame[0] += tenths(min(size_of(value), length))
        return test(value, text)

    return compare_text


def emit_order(node: ast.Call, emit: Emit) -> Code:
    """``<``, ``<=``, ``>``, ``>=``."""
    left, right = map(emit, node.arguments)
    test = _ORDER[node.function]
    constant = node.arguments[1]
    if isinstance(constant, ast.Constant) and not constant.failure and type(constant.value) is int:
        return _order_int(left, constant.value, test)

    def order(frame: Frame) -> bool:
        one, other = left(frame), right(frame)
        charge(frame, tenths(min(size_of(one), size_of(other))))
        return test(compare(one, other), 0)

    return order


def _order_int(left: Code, number: int, test: Callable[[Any, Any], bool]) -> Code:
    def order(frame: Frame) -> bool:
        value = left(frame)
        frame[0] += 1
        if type(value) is int:
            return test(value, number)
        return test(compare(value, number), 0)

    return order


def emit_in(node: ast.Call, emit: Emit) -> Code:
    """``value in container``."""
    value, container = map(emit, node.arguments)
    constant = node.arguments[1]
    if isinstance(constant, ast.Constant) and not constant.failure and isinstance(constant.value, list):
        return _in_constants(value, constant.value)
    key = node.arguments[0]
    if isinstance(key, ast.Constant) and not key.failure and type(key.value) is str:
        return _has_key(key.value, container)

    def member(frame: Frame) -> bool:
        one, many = value(frame), container(frame)
        charge(frame, 1 if isinstance(many, dict) else size_of(many))
        return contains(many, one)

    return member


def _in_constants(value: Code, elements: list[Any]) -> Code:
    texts = frozenset(element for element in elements if type(element) is str)
    only_texts = all(type(element) is str for element in elements)
    hashed = bool(elements) and all(type(element) in _PRIMITIVE for element in elements)
    size = len(elements)

    def member(frame: Frame) -> bool:
        one = value(frame)
        frame[0] += size
        if only_texts and type(one) is str:
            return one in texts
        if hashed and type(one) is SemVer:
            # kube-scheduler hashes the value here and cannot hash versions; what fails there must not match here
            raise no_such_overload()
        charge(frame, 0)
        return contains(elements, one)

    return member


def _has_key(key: str, container: Code) -> Code:
    def member(frame: Frame) -> bool:
        many = container(frame)
        if isinstance(many, dict):
            frame[0] += 1
            return key in many
        charge(frame, size_of(many))
        return contains(many, key)

    return member
