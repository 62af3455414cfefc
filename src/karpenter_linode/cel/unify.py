"""Assignability between static types, and the type parameters found on the way."""

from __future__ import annotations

from typing import Final

from karpenter_linode.cel.types import DURATION, DYN, NULL, TIMESTAMP, Type, type_param

_PRIMITIVE: Final = frozenset({"bool", "int", "uint", "double", "string", "bytes", "list", "map", "type", "null_type"})
_NAMED: Final = frozenset({"plain", "generic", "object"})
_OPEN: Final = frozenset({"dyn", "any", "error"})


def is_open(kind: Type) -> bool:
    """Whether anything goes: dyn, any, or the type of something already complained about."""
    return kind.kind in _OPEN


def _strangers(source: Type, target: Type) -> bool:
    """Types that cannot fit each other by their names alone: most overloads of most calls are ruled out here."""
    return (
        source.name != target.name
        and source.kind in _NAMED
        and target.kind in _NAMED
        and source.name != "null_type"
        and target.name != "null_type"
    )


def _nullable(kind: Type) -> bool:
    return kind in (TIMESTAMP, DURATION) or kind.name not in _PRIMITIVE


class Inference:
    """The bindings of type parameters within one expression."""

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._count = 0
        # what types resolve to as long as no binding changes: nested literals would take quadratic time without it
        self._resolved: dict[int, tuple[Type, Type]] = {}
        self._final: dict[int, tuple[Type, Type]] = {}

    def fresh(self) -> Type:
        """A new type parameter."""
        self._count += 1
        return type_param(f"_{self._count}")

    def instantiate(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        """A signature with its parameters replaced by new ones."""
        names: dict[str, Type] = {}
        return tuple(self._renamed(each, names) for each in types)

    def _renamed(self, kind: Type, names: dict[str, Type]) -> Type:
        if kind.kind == "param":
            if kind.name not in names:
                names[kind.name] = self.fresh()
            return names[kind.name]
        if not kind.params:
            return kind
        return Type(kind.name, kind.kind, tuple(self._renamed(each, names) for each in kind.params))

    def resolve(self, kind: Type, *, final: bool = False) -> Type:
        """A type with all bound parameters replaced; unbound ones become dyn when ``final``."""
        if kind.kind == "param":
            bound = self._bound.get(kind.name)
            if bound is not None:
                return self.resolve(bound, final=final)
            return DYN if final else kind
        if not kind.params:
            return kind
        memory = self._final if final else self._resolved
        known = memory.get(id(kind))
        if known is not None:
            return known[1]
        params: list[Type] = []
        for each in kind.params:
            params.append(self.resolve(each, final=final))  # noqa: PERF401 - a comprehension would double the stack
        changed = any(new is not old for new, old in zip(params, kind.params, strict=True))
        made = Type(kind.name, kind.kind, tuple(params)) if changed else kind
        memory[id(kind)] = (kind, made)  # the type is kept alive, so that its id stays its own
        return made

    def _bind(self, name: str, kind: Type) -> None:
        self._bound[name] = kind
        self._resolved.clear()
        self._final.clear()

    def assign_all(self, sources: list[Type], targets: tuple[Type, ...]) -> bool:
        """Whether every source fits its target; bindings are kept only if all do."""
        if any(map(_strangers, sources, targets)):
            return False
        before = self._bound
        self._bound = dict(before)
        if len(sources) == len(targets) and all(map(self._assign, sources, targets)):
            return True
        self._bound = before
        self._resolved.clear()
        self._final.clear()
        return False

    def assign(self, source: Type, target: Type) -> bool:
        """Whether one fits; bindings are kept only if so."""
        return self.assign_all([source], (target,))

    def _assign(self, source: Type, target: Type) -> bool:
        if target.kind == "param":
            verdict = self._assign_param(target, source)
            if verdict is not None:
                return verdict
        if source.kind == "param":
            verdict = self._assign_param(source, target)
            if verdict is not None:
                return verdict
        if is_open(source) or is_open(target):
            return True
        if source is NULL or target is NULL:
            return source == target or _nullable(target if source is NULL else source)
        if source.name != target.name or len(source.params) != len(target.params):
            # `type` without a parameter fits every type of types
            return source.name == target.name == "type"
        return source.name == "type" or all(map(self._assign, source.params, target.params))

    def _assign_param(self, param: Type, other: Type) -> bool | None:
        """Bind a parameter; ``None`` when that decides nothing yet."""
        bound = self._bound.get(param.name)
        if bound is not None:
            if not self._assign(bound, other):
                return False
            resolved, offered = self.resolve(bound), self.resolve(other)
            joined = general(resolved, offered)
            if joined != bound:
                self._bind(param.name, joined)
            return True
        if other == param:
            return True
        if self._occurs(param.name, other):
            return False
        self._bind(param.name, other)
        return True

    def _occurs(self, name: str, kind: Type) -> bool:
        kind = self.resolve(kind)
        found = kind.kind == "param" and kind.name == name
        for each in kind.params:
            found = found or self._occurs(name, each)
        return found

    def join(self, first: Type, second: Type) -> Type:
        """The element type of an aggregate literal that has both: the more general if one fits, else dyn."""
        if self.assign(first, second):
            return general(self.resolve(first), self.resolve(second))
        return DYN


def general(first: Type, second: Type) -> Type:
    """The more general of two types that fit each other."""
    return first if _covers(first, second) else second


def _covers(first: Type, second: Type) -> bool:
    if is_open(first):
        return True
    if first.kind == "param":
        return True
    if is_open(second):
        return False
    if second.kind == "param":
        return False
    if second is NULL and first is not NULL:
        return True
    if first.name != second.name or len(first.params) != len(second.params):
        return False
    return all(map(_covers, first.params, second.params))
