"""Code of the macros that bind variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from karpenter_linode.cel import ast
from karpenter_linode.cel.code import Pending, absorb, attempt, raise_first, read, require_bool
from karpenter_linode.cel.cost import LIST_COST, MAP_COST, charge, comparisons
from karpenter_linode.cel.errors import EvaluationError, no_such_overload
from karpenter_linode.cel.relations import same_kind, sort_order
from karpenter_linode.cel.unify import is_open
from karpenter_linode.cel.values import NONE, Optional, decode_key, elements_of, encode_key, make_map, pairs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from karpenter_linode.cel.code import Code, Emit, Frame

Source: TypeAlias = "Callable[[Frame], Iterator[None]]"

# What an iteration costs besides its body: Kubernetes counts the loop condition and the accumulator by their parts.
_ALL = 2
_EXISTS = 3
_COUNT = 2
_APPEND = 2
_INSERT = 3
_INSERT_ENTRIES = 2


def emit_loop(node: ast.Loop, emit: Emit) -> Code:
    """A comprehension macro."""
    source = _source(node, emit)
    if node.kind in ("all", "exists"):
        return _quantifier(source, emit(node.body), decisive=node.kind == "exists")
    if node.kind == "exists_one":
        return _exactly_one(source, emit(node.body))
    condition = emit(node.condition) if node.condition is not None else None
    if node.kind == "list":
        return _collect_list(source, condition, node, emit)
    return _collect_map(source, condition, node, emit)


def _source(node: ast.Loop, emit: Emit) -> Source:
    """Goes through the range: sets the variables, then gives control to the body."""
    source = emit(node.range)
    if len(node.slots) == 1:
        (slot,) = node.slots

        def single(frame: Frame) -> Iterator[None]:
            for element in elements_of(source(frame)):
                frame[slot] = element
                yield

        return single
    first, second = node.slots

    def double(frame: Frame) -> Iterator[None]:
        for key, element in pairs_of(source(frame)):
            frame[first], frame[second] = key, element
            yield

    return double


def _quantifier(source: Source, body: Code, *, decisive: bool) -> Code:
    """``all`` and ``exists``: one decisive element settles it, errors of others notwithstanding."""
    look = _EXISTS if decisive else _ALL

    def quantify(frame: Frame) -> bool:
        failure: EvaluationError | None = None
        settled = False
        for _ in source(frame):
            charge(frame, look)  # whether to go on, which is asked once more when it is settled
            if settled:
                break
            frame[0] += 1
            try:
                value = body(frame)
            except EvaluationError as error:
                failure = failure or absorb(error)
                continue
            if value is decisive:
                settled = True
            elif value is not (not decisive):
                failure = failure or no_such_overload()
        charge(frame, 1)
        if failure is not None and not settled:
            raise failure
        return decisive if settled else not decisive

    return quantify


# The other loops go on behind an error, as in Kubernetes: all that they cost counts where something absorbs it.


def _exactly_one(source: Source, body: Code) -> Code:
    def count(frame: Frame) -> bool:
        found = 0
        failure: EvaluationError | None = None
        for _ in source(frame):
            charge(frame, 0)
            try:
                hit = require_bool(body(frame))
            except EvaluationError as error:
                failure = absorb(error)
                continue
            if hit:
                frame[0] += _COUNT
                found += 1
        charge(frame, 2)
        if failure is not None:
            raise failure
        return found == 1

    return count


def _collect_list(source: Source, condition: Code | None, node: ast.Loop, emit: Emit) -> Code:
    body = emit(node.body)
    constant = isinstance(node.body, ast.Constant) and not node.body.lazy
    step = _APPEND if constant else _APPEND + LIST_COST

    def collect(frame: Frame) -> list[Any]:
        made: list[Any] = []
        failure: EvaluationError | None = None
        for _ in source(frame):
            try:
                if condition is not None and not require_bool(condition(frame)):
                    charge(frame, 0)
                    continue
                charge(frame, step)
                made.append(body(frame))
            except EvaluationError as error:
                failure = absorb(error)
        charge(frame, 1)
        if failure is not None:
            raise failure
        return made

    return collect


def _collect_map(source: Source, condition: Code | None, node: ast.Loop, emit: Emit) -> Code:
    body = emit(node.body)
    insert = _insert_entries(body) if node.kind == "map_entries" else _insert_value(body, node.slots[0])

    def collect(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        failure: EvaluationError | None = None
        for _ in source(frame):
            try:
                if condition is not None and not require_bool(condition(frame)):
                    charge(frame, 0)
                    continue
                insert(frame, made, failed=failure is not None)
            except EvaluationError as error:
                failure = absorb(error)
        charge(frame, 1)
        if failure is not None:
            raise failure
        return made

    return collect


def _insert_value(body: Code, key_slot: int) -> Callable[..., None]:
    def insert(frame: Frame, made: dict[Any, Any], *, failed: bool) -> None:
        if failed:
            charge(frame, 1)
            return
        charge(frame, _INSERT)
        made[encode_key(frame[key_slot])] = body(frame)

    return insert


def _insert_entries(body: Code) -> Callable[..., None]:
    def insert(frame: Frame, made: dict[Any, Any], *, failed: bool) -> None:
        charge(frame, _INSERT_ENTRIES)
        value = body(frame)
        if failed:
            return
        if not isinstance(value, dict):
            raise no_such_overload()
        for key, held in value.items():
            if key in made:
                raise EvaluationError(f"insert failed: key {decode_key(key)} already exists")
            made[key] = held

    return insert


def emit_bind(node: ast.Bind, emit: Emit) -> Code:
    """``cel.bind``: the value is computed where it is first read, and an error of it counts only there."""
    pending, body, slot = Pending(emit(node.value)), emit(node.body), node.slot

    def bind(frame: Frame) -> Any:
        frame[slot] = pending
        return body(frame)

    return bind


def emit_optional_map(node: ast.OptionalMap, emit: Emit) -> Code:
    """``optMap`` and ``optFlatMap``: the target is asked for its value, and once more where the variable is read."""
    target, body, slot, flat = emit(node.target), emit(node.body), node.slot, node.flat
    wrapping = 0 if flat else 1

    def content(frame: Frame) -> Any:
        frame[0] += 1
        held = target(frame)
        return held.value

    pending = Pending(content)

    def apply(frame: Frame) -> Any:
        frame[0] += 1
        held = target(frame)
        if type(held) is not Optional:
            raise no_such_overload()
        if held is NONE:
            frame[0] += 1
            return NONE
        charge(frame, wrapping)
        frame[slot] = pending
        value = body(frame)
        return value if flat else Optional(value)

    return apply


def emit_sort(node: ast.SortBy, emit: Emit) -> Code:
    """``sortBy``: stable, by keys of one kind."""
    pending, keys, slot = Pending(emit(node.target)), emit(node.keys), node.slot
    key = node.keys.body.type
    sized = not is_open(key) and key.kind != "param"

    def sort(frame: Frame) -> list[Any]:
        frame[0] += 1
        frame[slot] = pending
        elements = attempt(lambda inner: read(inner, slot), frame)
        found = attempt(keys, frame)
        charge(frame, comparisons(found) if sized else 1)
        raise_first(elements, found)
        if not isinstance(elements, list | tuple):
            raise no_such_overload()
        if not same_kind(found):
            raise EvaluationError("list elements must have the same type")
        ranked = sorted(range(len(found)), key=lambda index: sort_order(found[index]))
        return [elements[index] for index in ranked]

    return sort


def emit_map(node: ast.MapLiteral, emit: Emit) -> Code:
    """A map literal."""
    entries = [(emit(entry.key), emit(entry.value), entry.optional) for entry in node.entries]

    def build(frame: Frame) -> dict[Any, Any]:
        charge(frame, MAP_COST)
        pairs: list[tuple[Any, Any]] = []
        for key, value, optional in entries:
            name, held = key(frame), value(frame)
            if not optional:
                pairs.append((name, held))
            elif type(held) is not Optional:
                raise EvaluationError(f"cannot initialize optional entry '{name}' from a value that is not optional")
            elif held is not NONE:
                pairs.append((name, held.value))
        return make_map(pairs)

    return build


def emit_list(node: ast.ListLiteral, emit: Emit) -> Code:
    """A list literal."""
    elements = [(emit(element), index in node.optional) for index, element in enumerate(node.elements)]

    def build(frame: Frame) -> list[Any]:
        charge(frame, LIST_COST)
        made: list[Any] = []
        for element, optional in elements:
            value = element(frame)
            if not optional:
                made.append(value)
            elif type(value) is not Optional:
                raise EvaluationError("cannot initialize an optional list element from a value that is not optional")
            elif value is not NONE:
                made.append(value.value)
        return made

    return build
