"""Macros: calls that the parser turns into what no function could be (they name variables, or look at syntax)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from karpenter_linode.cel.ast import SORT_INPUT, Bind, Ident, Loop, LoopKind, Node, OptionalMap, Select, SortBy
from karpenter_linode.cel.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class MacroCall(Struct, frozen=True, eq=False):
    """A call as the parser met it.

    Args:
        text: the whole expression, for messages.
        target: receiver, ``None`` for a global call.
        arguments: in order.
        start: offset of the call's first character.
        end: offset behind its closing bracket.
        position: offset of its opening bracket.
    """

    text: str
    target: Node | None
    arguments: list[Node]
    start: int
    end: int
    position: int


Macro: TypeAlias = "Callable[[MacroCall], Node | None]"
"""Gives the expansion, or ``None`` to leave the call an ordinary one. May raise ``CompileError``."""

MacroTable: TypeAlias = "Mapping[tuple[str, int, bool], Macro]"
"""By (name, number of arguments without receiver, written as a method)."""


def _name(call: MacroCall, index: int, message: str = "argument must be a simple name") -> str:
    argument = call.arguments[index]
    if not isinstance(argument, Ident) or argument.name.startswith("."):
        raise CompileError(message, call.text, argument.position)
    return argument.name


def _names(call: MacroCall, count: int) -> tuple[str, ...]:
    names = tuple(_name(call, index) for index in range(count))
    if len(set(names)) != count:
        raise CompileError(f"duplicate variable name: {names[0]}", call.text, call.arguments[1].position)
    return names


def has(call: MacroCall) -> Node:
    """``has(e.f)``."""
    argument = call.arguments[0]
    if not isinstance(argument, Select) or argument.optional or argument.test:
        raise CompileError(
            "invalid argument to has() macro: expected a field selection such as a.b", call.text, argument.position
        )
    return Select(
        operand=argument.operand,
        name=argument.name,
        test=True,
        start=call.start,
        end=call.end,
        position=call.position,
    )


def loop(kind: LoopKind, variables: int, *, filtered: bool = False, bare: bool = False) -> Macro:
    """A comprehension macro.

    Args:
        kind: what it makes of its elements.
        variables: how many names come first.
        filtered: a condition stands between the names and the body.
        bare: the body is the variable itself and the last argument is the condition (``filter``).
    """

    def expand(call: MacroCall) -> Node | None:
        if call.target is None:
            return None
        names = _names(call, variables)
        last = call.arguments[-1]
        variable = Ident(name=names[0], start=last.start, end=last.end, position=last.position)
        return Loop(
            kind=kind,
            range=call.target,
            variables=names,
            condition=last if bare else call.arguments[variables] if filtered else None,
            body=variable if bare else last,
            start=call.start,
            end=call.end,
            position=call.position,
        )

    return expand


def bind(call: MacroCall) -> Node | None:
    """``cel.bind(name, value, body)``."""
    if not isinstance(call.target, Ident) or call.target.name != "cel":
        return None
    name = _name(call, 0, "cel.bind() variable names must be simple identifiers")
    _, value, body = call.arguments
    return Bind(name=name, value=value, body=body, start=call.start, end=call.end, position=call.position)


def optional_map(*, flat: bool) -> Macro:
    """``target.optMap(name, body)`` and ``optFlatMap``."""

    def expand(call: MacroCall) -> Node | None:
        if call.target is None:
            return None
        return OptionalMap(
            target=call.target,
            name=_name(call, 0, "optMap() variable name must be a simple identifier"),
            body=call.arguments[1],
            flat=flat,
            start=call.start,
            end=call.end,
            position=call.position,
        )

    return expand


def sort_by(call: MacroCall) -> Node | None:
    """``target.sortBy(name, key)``."""
    target = call.target
    if target is None:
        return None
    name = _name(call, 0, "sortBy can only be applied with a simple variable name")
    start, end, position = call.start, call.end, call.position
    source = Ident(name=SORT_INPUT, start=target.start, end=target.end, position=target.position)
    body = call.arguments[1]
    keys = Loop(
        kind="list", range=source, variables=(name,), condition=None, body=body, start=start, end=end, position=position
    )
    return SortBy(target=target, keys=keys, start=start, end=end, position=position)


STANDARD: MacroTable = {
    ("has", 1, False): has,
    ("all", 2, True): loop("all", 1),
    ("exists", 2, True): loop("exists", 1),
    ("exists_one", 2, True): loop("exists_one", 1),
    ("map", 2, True): loop("list", 1),
    ("map", 3, True): loop("list", 1, filtered=True),
    ("filter", 2, True): loop("list", 1, bare=True),
}
TWO_VARIABLES: MacroTable = {
    ("all", 3, True): loop("all", 2),
    ("exists", 3, True): loop("exists", 2),
    ("existsOne", 3, True): loop("exists_one", 2),
    ("exists_one", 3, True): loop("exists_one", 2),
    ("transformList", 3, True): loop("list", 2),
    ("transformList", 4, True): loop("list", 2, filtered=True),
    ("transformMap", 3, True): loop("map", 2),
    ("transformMap", 4, True): loop("map", 2, filtered=True),
    ("transformMapEntry", 3, True): loop("map_entries", 2),
    ("transformMapEntry", 4, True): loop("map_entries", 2, filtered=True),
}
