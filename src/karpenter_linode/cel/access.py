"""Reading parts of values: fields, keys, indices, their optional forms, and presence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karpenter_linode.cel import ast
from karpenter_linode.cel.code import read
from karpenter_linode.cel.errors import EvaluationError, no_such_key
from karpenter_linode.cel.values import NONE, DefaultMap, Optional, UInt, encode_key, kind_of

if TYPE_CHECKING:
    from karpenter_linode.cel.code import Code, Emit, Frame


def index_value(value: Any, key: Any) -> Any:
    """``value[key]`` and ``value.key``.

    Raises:
        EvaluationError: no such key, index out of bounds, or nothing that has parts.
    """
    if isinstance(value, dict):
        return _entry(value, key)
    if isinstance(value, list | tuple):
        position = _position(key)
        if not 0 <= position < len(value):
            raise EvaluationError(f"index out of bounds: {position}")
        return value[position]
    if type(value) is Optional:
        return NONE if value is NONE else optional_index(value.value, key)
    raise no_such_key(key)


def _entry(value: dict[Any, Any], key: Any) -> Any:
    try:
        return value[_held(key)]
    except KeyError:
        raise no_such_key(key) from None


def _held(key: Any) -> Any:
    if type(key) not in (str, int, UInt, float, bool):
        raise EvaluationError(f"unsupported key type: {kind_of(key)}")
    return encode_key(key)


def _position(key: Any) -> int:
    if type(key) in (int, UInt) or (type(key) is float and key.is_integer()):
        return int(key)
    raise EvaluationError(f"unsupported index type '{kind_of(key)}' in list")


def optional_index(value: Any, key: Any) -> Optional:
    """``value[?key]`` and ``value.?key``: an optional, empty where there is no such part."""
    if type(value) is Optional:
        if value is NONE:
            return NONE
        value = value.value
    if isinstance(value, dict):
        held = _held(key)
        return Optional(value[held]) if held in value or type(value) is DefaultMap else NONE
    if isinstance(value, list | tuple):
        position = _position(key)
        return Optional(value[position]) if 0 <= position < len(value) else NONE
    raise no_such_key(key)


def has_field(value: Any, name: str) -> bool:
    """``has(value.name)``."""
    if type(value) is Optional:
        if value is NONE:
            return False
        value = value.value
    return isinstance(value, dict) and (name in value or type(value) is DefaultMap)


def emit_ident(node: ast.Ident, _emit: Emit) -> Code:
    """Read a variable."""
    slot, constant = node.slot, node.constant
    if slot is None:
        return lambda _frame: constant

    def variable(frame: Frame) -> Any:
        frame[0] += 1
        return frame[slot]

    def bound_variable(frame: Frame) -> Any:
        frame[0] += 1
        return read(frame, slot)

    return bound_variable if node.bound else variable


def emit_unread(node: ast.Node, emit: Emit) -> Code:
    """Code of a branch or a key.

    Kubernetes counts the reading of what lies at the end of a path where its value is taken up; as a key, or as a
    branch of ``?:``, only the steps to it count.
    """
    code = emit(node)
    counted = 1 if _is_reading(node) else _test_begin(node)
    if not counted:
        return code

    def unread(frame: Frame) -> Any:
        frame[0] -= counted
        return code(frame)

    return unread


def emit_select(node: ast.Select, emit: Emit) -> Code:
    """Read a field, its optional form, or test for it."""
    name = node.name
    if node.test:
        return _emit_test(node, emit)
    if not node.optional:
        return emit_path(node, emit)
    operand = emit(node.operand)
    begin = _begin(node.operand)

    def optional_select(frame: Frame) -> Any:
        frame[0] += begin
        return _optional_step(frame, operand(frame), name)

    return optional_select


def _emit_test(node: ast.Select, emit: Emit) -> Code:
    name, operand, begin = node.name, emit_unread(node.operand, emit), _test_begin(node)

    def test(frame: Frame) -> bool:
        frame[0] += begin
        value = operand(frame)
        if value is NONE:
            return False
        found = has_field(value, name)
        if found or type(value) is not Optional:
            frame[0] += 1
        return found

    return test


def emit_index(node: ast.Call, emit: Emit) -> Code:
    """Read by key or index, or its optional form."""
    operand_node, key_node = node.arguments
    if node.function == ast.INDEX:
        return emit_path(node, emit)
    operand, key = emit(operand_node), emit_unread(key_node, emit)
    begin = _begin(operand_node)

    def optional_at(frame: Frame) -> Any:
        frame[0] += begin
        value = operand(frame)
        return NONE if value is NONE else _optional_step(frame, value, key(frame))

    return optional_at


def _optional_step(frame: Frame, value: Any, key: Any) -> Optional:
    """One step that may find nothing; only what is found is charged for."""
    found = optional_index(value, key)
    if found is not NONE:
        frame[0] += 1
    return found


def _plain_step(frame: Frame, value: Any, key: Any) -> Any:
    if type(value) is Optional:
        return _optional_step(frame, value, key)
    frame[0] += 1
    return index_value(value, key)


def _step(node: ast.Node) -> tuple[ast.Node, str | None] | None:
    """Operand and constant text key of a plain step; ``None`` for what is no plain step, no key for a computed one."""
    if isinstance(node, ast.Select) and not node.optional and not node.test:
        return node.operand, node.name
    if isinstance(node, ast.Call) and node.function == ast.INDEX:
        key = node.arguments[1]
        known = isinstance(key, ast.Constant) and not key.failure and not key.cost and type(key.value) is str
        return node.arguments[0], key.value if isinstance(key, ast.Constant) and known else None
    return None


def _operand(node: ast.Node) -> ast.Node | None:
    """What a step, plain or optional, starts from."""
    if isinstance(node, ast.Select) and not node.test:
        return node.operand
    if isinstance(node, ast.Call) and node.function in (ast.INDEX, ast.OPTIONAL_INDEX):
        return node.arguments[0]
    return None


def _is_choice(node: ast.Node) -> bool:
    return isinstance(node, ast.Call) and node.function == ast.CONDITIONAL


def _is_reading(node: ast.Node) -> bool:
    """Whether a node is a variable or a path that costs 1 besides its steps; one that starts at ``?:`` does not."""
    if _operand(node) is None:
        return isinstance(node, ast.Ident) and node.slot is not None
    return not _is_choice(_start(node))


def _start(node: ast.Node) -> ast.Node:
    """What a path starts from."""
    while (operand := _operand(node)) is not None:
        node = operand
    return node


def _test_begin(node: ast.Node) -> int:
    """-1 for ``has`` on a path that starts at ``?:``: Kubernetes takes back there what it has not counted."""
    test = isinstance(node, ast.Select) and node.test
    return -1 if test and _is_choice(_start(ast.children(node)[0])) else 0


def _begin(operand: ast.Node) -> int:
    """What a path costs besides its steps and what its start costs: 1 if it starts at something computed."""
    variable = isinstance(operand, ast.Ident) and operand.slot is not None
    return 0 if variable or _is_choice(operand) or _operand(operand) is not None else 1


def emit_path(node: ast.Node, emit: Emit) -> Code:
    """Read through a chain of fields and keys; from a variable by constant keys it is one closure, however long."""
    keys: list[str] = []
    base = node
    while (step := _step(base)) is not None and step[1] is not None:
        base = step[0]
        keys.append(step[1])
    keys.reverse()
    if isinstance(base, ast.Ident) and base.slot is not None and keys:
        return _fused(base.slot, keys, bound=base.bound)
    step = _step(node)
    if step is None:
        raise TypeError(node)
    operand_node, name = step
    operand, begin = emit(operand_node), _begin(operand_node)
    if name is None:
        return _emit_computed(operand, emit_unread(ast.children(node)[1], emit), begin)

    def select(frame: Frame) -> Any:
        frame[0] += begin
        return _plain_step(frame, operand(frame), name)

    return select


def _emit_computed(operand: Code, key: Code, begin: int) -> Code:
    def at(frame: Frame) -> Any:
        frame[0] += begin
        value = operand(frame)
        if type(value) is Optional:
            return NONE if value is NONE else _optional_step(frame, value, key(frame))
        frame[0] += 1
        return index_value(value, key(frame))

    return at


def _fused(slot: int, keys: list[str], *, bound: bool) -> Code:
    cost = 1 + len(keys)

    def slowly(frame: Frame) -> Any:
        frame[0] -= len(keys)  # what comes behind a step that fails is not charged for
        value = read(frame, slot)
        for key in keys:
            value = _plain_step(frame, value, key)
        return value

    def bound_path(frame: Frame) -> Any:
        frame[0] += cost
        return slowly(frame)

    if bound:
        return bound_path
    if len(keys) == 1:
        return _fused_one(slot, keys[0], slowly)
    if len(keys) == 3:  # noqa: PLR2004 - variable, field, domain, name: what nearly all device selectors read
        return _fused_three(slot, keys[0], keys[1], keys[2], slowly)

    def path(frame: Frame) -> Any:
        frame[0] += cost
        value = frame[slot]
        try:
            for key in keys:
                value = value[key]
        except (KeyError, TypeError):
            return slowly(frame)
        return value

    return path


def _fused_one(slot: int, key: str, slowly: Code) -> Code:
    def path(frame: Frame) -> Any:
        frame[0] += 2
        try:
            return frame[slot][key]
        except (KeyError, TypeError):
            return slowly(frame)

    return path


def _fused_three(slot: int, first: str, second: str, third: str, slowly: Code) -> Code:
    def path(frame: Frame) -> Any:
        frame[0] += 4
        try:
            return frame[slot][first][second][third]
        except (KeyError, TypeError):
            return slowly(frame)

    return path
