"""Code of the macros that bind variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karpenter_linode.cel.code import Failed, absorb, require_bool
from karpenter_linode.cel.cost import LIST_COST, MAP_COST, charge
from karpenter_linode.cel.errors import EvaluationError, no_such_overload
from karpenter_linode.cel.relations import same_kind, sort_order
from karpenter_linode.cel.values import NONE, Optional, decode_key, elements_of, encode_key, make_map, pairs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from karpenter_linode.cel import ast
    from karpenter_linode.cel.code import Code, Emit, Frame

# What an iteration costs besides its body: Kubernetes counts the loop condition and the accumulator by their parts.
_ALL = 3
_EXISTS = 4
_COUNT = 2
_APPEND = 2 + LIST_COST
_INSERT = 3


def emit_loop(node: ast.Loop, emit: Emit) -> Code:
    """A comprehension macro."""
    source = _source(node, emit)
    body = emit(node.body)
    condition = emit(node.condition) if node.condition is not None else None
    if node.kind in ("all", "exists"):
        return _quantifier(source, body, decisive=node.kind == "exists")
    if node.kind == "exists_one":
        return _exactly_one(source, body)
    if node.kind == "list":
        return _collect_list(source, condition, body)
    return _collect_map(source, condition, body, node)


def _source(node: ast.Loop, emit: Emit) -> Callable[[Frame], Iterator[None]]:
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


def _quantifier(source: Callable[[Frame], Iterator[None]], body: Code, *, decisive: bool) -> Code:
    """``all`` and ``exists``: one decisive element settles it, errors of others notwithstanding."""
    step = _EXISTS if decisive else _ALL

    def quantify(frame: Frame) -> bool:
        failure: EvaluationError | None = None
        for _ in source(frame):
            charge(frame, step)
            try:
                value = body(frame)
            except EvaluationError as error:
                failure = failure or absorb(error)
                continue
            if value is decisive:
                charge(frame, step)  # the loop condition once more, and the result
                return bool(value)
            if value is not (not decisive):
                failure = failure or no_such_overload()
        charge(frame, 1)
        if failure is not None:
            raise failure
        return not decisive

    return quantify


def _exactly_one(source: Callable[[Frame], Iterator[None]], body: Code) -> Code:
    def count(frame: Frame) -> bool:
        found = 0
        for _ in source(frame):
            hit = require_bool(body(frame))
            charge(frame, _COUNT if hit else 1)
            found += hit
        charge(frame, 2)
        return found == 1

    return count


def _collect_list(source: Callable[[Frame], Iterator[None]], condition: Code | None, body: Code) -> Code:
    def collect(frame: Frame) -> list[Any]:
        charge(frame, LIST_COST + 1)
        made: list[Any] = []
        for _ in source(frame):
            if condition is not None and not require_bool(condition(frame)):
                charge(frame, 1)
                continue
            charge(frame, _APPEND)
            made.append(body(frame))
        return made

    return collect


def _collect_map(
    source: Callable[[Frame], Iterator[None]],
    condition: Code | None,
    body: Code,
    node: ast.Loop,
) -> Code:
    key_slot = node.slots[0]
    entries = node.kind == "map_entries"

    def collect(frame: Frame) -> dict[Any, Any]:
        charge(frame, MAP_COST + 1)
        made: dict[Any, Any] = {}
        for _ in source(frame):
            if condition is not None and not require_bool(condition(frame)):
                charge(frame, 1)
                continue
            charge(frame, _INSERT)
            value = body(frame)
            if not entries:
                made[encode_key(frame[key_slot])] = value
                continue
            if not isinstance(value, dict):
                raise no_such_overload()
            for key, held in value.items():
                if key in made:
                    raise EvaluationError(f"insert failed: key {decode_key(key)} already exists")
                made[key] = held
        return made

    return collect


def emit_bind(node: ast.Bind, emit: Emit) -> Code:
    """``cel.bind``: an error of the value counts only where the variable is read."""
    value, body, slot = emit(node.value), emit(node.body), node.slot

    def bind(frame: Frame) -> Any:
        charge(frame, LIST_COST)
        try:
            frame[slot] = value(frame)
        except EvaluationError as error:
            frame[slot] = Failed(absorb(error))
        return body(frame)

    return bind


def emit_optional_map(node: ast.OptionalMap, emit: Emit) -> Code:
    """``optMap`` and ``optFlatMap``."""
    target, body, slot, flat = emit(node.target), emit(node.body), node.slot, node.flat

    def apply(frame: Frame) -> Optional:
        held = target(frame)
        charge(frame, 1)
        if type(held) is not Optional:
            raise no_such_overload()
        if held is NONE:
            return NONE
        frame[0] += LIST_COST + 2
        frame[slot] = held.value
        value = body(frame)
        if not flat:
            return Optional(value)
        if type(value) is not Optional:
            raise no_such_overload()
        return value

    return apply


def emit_sort(node: ast.SortBy, emit: Emit) -> Code:
    """``sortBy``: stable, by keys of one kind."""
    target, keys, slot = emit(node.target), emit(node.keys), node.slot

    def sort(frame: Frame) -> list[Any]:
        elements = target(frame)
        if not isinstance(elements, list | tuple):
            raise no_such_overload()
        charge(frame, LIST_COST + 2 + len(elements))
        frame[slot] = elements
        found = keys(frame)
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
