"""The static cost: the least and the most that evaluations of an expression can cost, before any is done.

The counterpart of ``cost``, node by node the model of Kubernetes' API validation (spec/cel-for-dra.md section 3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from karpenter_linode.cel import ast
from karpenter_linode.cel.cost import LIST_COST, MAP_COST
from karpenter_linode.cel.declarations import ONE, UNBOUNDED, UNKNOWN, Argument, Estimate, Overload, Range
from karpenter_linode.cel.libraries.lists import comparisons_estimate
from karpenter_linode.cel.types import BYTES, STRING
from karpenter_linode.cel.unify import is_open

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.cel.types import Type

SizeHint: TypeAlias = "Callable[[tuple[str, ...]], tuple[int, int] | None]"
"""Least and most size of what lies at a path, ``None`` if unknown.

A path begins with a variable; fields follow by name, ``@keys``, ``@values`` and ``@items`` stand for the parts of maps
and lists: ``("device", "attributes", "@keys")`` are the domains.
"""

_ZERO: Final = Range(0, 0)
_SCALARS: Final = frozenset(
    ("bool", "int", "uint", "double", "google.protobuf.Timestamp", "google.protobuf.Duration"),
)
# What the parts of a loop cost that no text spells: (before and after it, each condition and accumulator read).
_AROUND: Final = {
    "all": 1,
    "exists": 1,
    "exists_one": 2,
    "list": LIST_COST + 1,
    "map": MAP_COST + 1,
    "map_entries": MAP_COST + 1,
}
_STEP: Final = {"list": LIST_COST + 2, "map": 3, "map_entries": 2}


class _Facts(Struct, frozen=True):
    """What is known of a node: cost, size, sizes of keys and elements, and where in the variables it lies."""

    cost: Range
    size: Range | None = None
    key: Range | None = None
    element: Range | None = None
    path: tuple[str, ...] = ()


def estimate(tree: ast.Node, sizes: SizeHint | None) -> tuple[int, int]:
    """The least and the most cost of a checked, unfolded tree. The most saturates at 2^64 - 1."""
    cost = _Estimator(sizes).visit(tree).cost
    return cost.low, cost.high


def _is_scalar(kind: Type) -> bool:
    return _is_scalar(kind.params[0]) if kind.name == "optional_type" and kind.params else kind.name in _SCALARS


def _fixed(units: int) -> Range:
    return Range(units, units)


class _Estimator:
    def __init__(self, sizes: SizeHint | None) -> None:
        self._hint = sizes
        self._locals: dict[int, _Facts] = {}

    def visit(self, node: ast.Node) -> _Facts:
        match node:
            case ast.Constant():
                return _Facts(_ZERO, _literal_size(node))
            case ast.Ident():
                return self._ident(node)
            case ast.Select():
                return self._select(node)
            case ast.Logic():
                return self._logic(node)
            case ast.Call():
                return self._call(node)
            case ast.ListLiteral() | ast.MapLiteral():
                return self._aggregate(node)
            case _:
                return self._macro(node)

    def _macro(self, node: ast.Node) -> _Facts:
        match node:
            case ast.Loop():
                return self._loop(node)
            case ast.Bind():
                value = self.visit(node.value)
                self._locals[node.slot] = value
                body = self.visit(node.body)
                cost = _fixed(LIST_COST) + value.cost + body.cost
                if isinstance(node.body, ast.Ident) and node.body.slot == node.slot:
                    return _Facts(cost, path=body.path)  # outside of it nothing is known of the variable any more
                return _Facts(cost, body.size, body.key, body.element, body.path)
            case ast.OptionalMap():
                return self._optional_map(node)
            case ast.SortBy():
                return self._sort(node)
            case _:
                return _Facts(UNKNOWN)

    def _size(self, node: ast.Node, facts: _Facts) -> Range | None:
        if facts.size is not None:
            return facts.size
        found = self._hint(facts.path) if self._hint and facts.path else None
        if found is not None:
            return Range(*found)
        return ONE if _is_scalar(node.type) else None

    def _size_or_unknown(self, node: ast.Node, facts: _Facts) -> Range:
        return self._size(node, facts) or UNKNOWN

    def _part(self, path: tuple[str, ...], part: str) -> _Facts:
        return _Facts(_ZERO, path=(*path, part) if path else ())

    def _ident(self, node: ast.Ident) -> _Facts:
        known = self._locals.get(node.slot) if node.slot is not None else None
        if known is not None:
            return _Facts(ONE, known.size, known.key, known.element, known.path)
        return _Facts(ONE, path=(node.name.removeprefix("."),) if node.slot is not None else ())

    def _select(self, node: ast.Select) -> _Facts:
        operand = self.visit(node.operand)
        if node.test:
            return _Facts(operand.cost)
        kind = node.operand.type
        costs = node.optional or kind.kind in ("object", "param") or kind.name == "map"
        path = (*operand.path, node.name) if operand.path and not node.optional else ()
        return _Facts(operand.cost + ONE if costs else operand.cost, path=path)

    def _logic(self, node: ast.Logic) -> _Facts:
        costs = [self.visit(operand).cost for operand in node.operands]
        most = min(sum(cost.high for cost in costs), UNBOUNDED)
        return _Facts(Range(costs[0].low, most), ONE)

    def _call(self, node: ast.Call) -> _Facts:
        facts = [self.visit(argument) for argument in node.arguments]
        if node.function == "dyn":
            only = facts[0]
            return _Facts(only.cost + ONE, self._size(node.arguments[0], only), only.key, only.element, only.path)
        if node.function == ast.CONDITIONAL:
            condition, yes, no = facts
            either = self._size_or_unknown(node.arguments[1], yes) | self._size_or_unknown(node.arguments[2], no)
            elements = yes.element | no.element if yes.element is not None and no.element is not None else None
            return _Facts(condition.cost + (yes.cost | no.cost), either, element=elements)
        cost = _ZERO
        for fact in facts:
            cost = cost + fact.cost
        arguments = tuple(map(self._argument, node.arguments, facts))
        made = [_of_overload(overload, arguments) for overload in node.overloads]
        call = made[0].cost if made else ONE
        size: Range | None = None
        for each in made:
            call = call | each.cost
            size = each.size if size is None else size if each.size is None else size | each.size
        if node.function == ast.INDEX:
            part = "@items" if node.arguments[0].type.name == "list" else "@values"
            return _Facts(cost + call, facts[0].element, path=self._part(facts[0].path, part).path)
        if node.function == "_+_" and facts[0].element is not None and facts[1].element is not None:
            return _Facts(cost + call, size, element=facts[0].element | facts[1].element)
        return _Facts(cost + call, size)

    def _argument(self, node: ast.Node, facts: _Facts) -> Argument:
        found = self._hint((*facts.path, "@items")) if facts.path and self._hint else None
        element = Range(*found) if found else None
        constant = node.value if isinstance(node, ast.Constant) else None
        return Argument(self._size_or_unknown(node, facts), element or UNKNOWN, node.type, constant)

    def _aggregate(self, node: ast.ListLiteral | ast.MapLiteral) -> _Facts:
        parts = ast.children(node)
        facts = [self.visit(part) for part in parts]
        cost = _fixed(LIST_COST if isinstance(node, ast.ListLiteral) else MAP_COST)
        for fact in facts:
            cost = cost + fact.cost
        known = [self._size_or_unknown(part, fact) for part, fact in zip(parts, facts, strict=True)]
        if isinstance(node, ast.ListLiteral):
            return _Facts(cost, _fixed(len(parts)), element=_union(known))
        return _Facts(cost, _fixed(len(node.entries)), _union(known[::2]), _union(known[1::2]))

    def _loop(self, node: ast.Loop) -> _Facts:
        source = self.visit(node.range)
        count = self._size_or_unknown(node.range, source)
        self._enter(node, source)
        made = self.visit(node.body)
        body = made.cost
        if node.kind in ("all", "exists"):
            step = _fixed(2 if node.kind == "all" else 3) + Range(1, min(1 + body.high, UNBOUNDED))
        elif node.kind == "exists_one":
            step = body + Range(1, 2)
        else:
            step = body + _fixed(_STEP[node.kind])
        if node.condition is not None:
            step = self.visit(node.condition).cost + (step | ONE)
        cost = source.cost + _fixed(_AROUND[node.kind]) + count * step
        if node.kind not in ("list", "map", "map_entries"):
            return _Facts(cost, ONE)
        element = Range(0, self._size_or_unknown(node.body, made).high) if node.kind == "list" else None
        return _Facts(cost, count, element=element)

    def _enter(self, node: ast.Loop, source: _Facts) -> None:
        """Say what is known of the loop's variables."""
        lists = node.range.type.name == "list"
        element = _Facts(_ZERO, source.element, path=self._part(source.path, "@items" if lists else "@values").path)
        key = _Facts(_ZERO, source.key, path=self._part(source.path, "@keys").path)
        if len(node.slots) == 1:
            self._locals[node.slots[0]] = element if lists else key
        else:
            self._locals[node.slots[0]] = _Facts(_ZERO, ONE) if lists else key
            self._locals[node.slots[1]] = element

    def _sort(self, node: ast.SortBy) -> _Facts:
        target = self.visit(node.target)
        self._locals[node.slot] = target
        keys = self.visit(node.keys)
        size = self._size_or_unknown(node.keys, keys)
        key = node.keys.body.type
        texts = is_open(key) or key in (STRING, BYTES)
        comparing = comparisons_estimate(size, texts=texts)
        return _Facts(_fixed(LIST_COST + 1) + target.cost + keys.cost + comparing.cost, comparing.size)

    def _optional_map(self, node: ast.OptionalMap) -> _Facts:
        target = self.visit(node.target)
        self._locals[node.slot] = _Facts(_ZERO, target.size, path=target.path)
        body = self.visit(node.body)
        present = _fixed(LIST_COST + (1 if node.flat else 2)) + target.cost + body.cost
        return _Facts(target.cost + ONE + (present | ONE), body.size)


def _of_overload(overload: Overload, arguments: tuple[Argument, ...]) -> Estimate:
    if overload.estimate is not None:
        return overload.estimate(arguments)
    return Estimate(_fixed(overload.cost) if isinstance(overload.cost, int) else ONE)


def _literal_size(node: ast.Constant) -> Range:
    return _fixed(len(node.value)) if isinstance(node.value, str | bytes) else ONE


def _union(ranges: list[Range]) -> Range:
    if not ranges:
        return _ZERO
    joined = ranges[0]
    for each in ranges[1:]:
        joined = joined | each
    return joined
