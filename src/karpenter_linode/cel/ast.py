"""The syntax tree. The checker writes types and resolutions into it; nothing changes it after that."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from karpenter_linode.cel.declarations import Overload
from karpenter_linode.cel.types import DYN, Type

INDEX = "_[_]"
OPTIONAL_INDEX = "_[?_]"
CONDITIONAL = "_?_:_"
SORT_INPUT = "@input"
"""The name under which ``sortBy`` keeps its list; no source text can spell it."""

LoopKind = Literal["all", "exists", "exists_one", "list", "map", "map_entries"]


class Node(Struct, eq=False, kw_only=True):
    """A part of an expression.

    Args:
        start: offset of its first character, in code points.
        end: offset behind its last character.
        position: where messages about it point to.
        type: its static type, once checked.
    """

    start: int = 0
    end: int = 0
    position: int = 0
    type: Type = DYN


class Constant(Node, kw_only=True):
    """A constant: written as such, or the outcome of folding.

    Args:
        value: the constant.
        cost: what its evaluation still costs: folding makes it faster, not cheaper.
        failure: the error that its evaluation always ends in, instead of a value.
        lazy: computed from calls whose errors belong to run time.
    """

    value: Any = None
    cost: int = 0
    failure: str = ""
    lazy: bool = False


class Ident(Node, kw_only=True):
    """A name.

    Args:
        name: as written, with its leading dot if it has one.
        slot: its place in the frame; ``None`` for a constant, such as a type name.
        constant: its value then.
        bound: it comes from ``cel.bind``, so the place may hold the error that computing the value ended in.
    """

    name: str
    slot: int | None = None
    constant: Any = None
    bound: bool = False


class Select(Node, kw_only=True):
    """``operand.name``, ``operand.?name`` (``optional``) and ``has(operand.name)`` (``test``)."""

    operand: Node
    name: str
    optional: bool = False
    test: bool = False


class Call(Node, kw_only=True):
    """A function, method or operator; for methods the receiver is the first argument.

    Args:
        function: name; operators have names such as ``_+_``.
        arguments: receiver first when ``member``.
        member: written as a method.
        overloads: what the checker found to be possible.
    """

    function: str
    arguments: list[Node]
    member: bool = False
    overloads: tuple[Overload, ...] = ()


class Logic(Node, kw_only=True):
    """A whole chain of ``&&`` or of ``||``, flat."""

    conjunction: bool
    operands: list[Node]


class ListLiteral(Node, kw_only=True):
    """``[a, ?b]``; ``optional`` has the indices of the elements written with a question mark."""

    elements: list[Node]
    optional: frozenset[int] = frozenset()


class Entry(Struct, eq=False):
    """One entry of a map literal, or one field of a message literal (key is then the name as a literal)."""

    key: Node
    value: Node
    optional: bool = False


class MapLiteral(Node, kw_only=True):
    """``{k: v, ?k: v}``."""

    entries: list[Entry]


class MessageLiteral(Node, kw_only=True):
    """``Name{field: value}``. There are no message types to construct: kept to be refused with its name."""

    name: str
    entries: list[Entry]


class Loop(Node, kw_only=True):
    """A comprehension macro.

    Args:
        kind: what becomes of the element results.
        range: the list or map gone through.
        variables: one name (element, or key of a map) or two (index and element, or key and value).
        condition: which elements take part, for the kinds that build something.
        body: predicate or transformation.
        slots: frame places of the variables, once checked.
    """

    kind: LoopKind
    range: Node
    variables: tuple[str, ...]
    condition: Node | None
    body: Node
    slots: tuple[int, ...] = ()


class Bind(Node, kw_only=True):
    """``cel.bind(name, value, body)``."""

    name: str
    value: Node
    body: Node
    slot: int = -1


class OptionalMap(Node, kw_only=True):
    """``target.optMap(name, body)``, and ``optFlatMap`` (``flat``)."""

    target: Node
    name: str
    body: Node
    flat: bool
    slot: int = -1


class SortBy(Node, kw_only=True):
    """``target.sortBy(name, key)``: ``keys`` is the loop that computes the keys."""

    target: Node
    keys: Loop
    slot: int = -1


def children(node: Node) -> list[Node]:
    """The direct parts of a node, in the order of the text."""
    match node:
        case Select():
            return [node.operand]
        case Call():
            return node.arguments
        case Logic():
            return node.operands
        case ListLiteral():
            return node.elements
        case MapLiteral() | MessageLiteral():
            return [part for entry in node.entries for part in (entry.key, entry.value)]
        case Loop():
            return [node.range, *([node.condition] if node.condition else []), node.body]
        case Bind():
            return [node.value, node.body]
        case OptionalMap():
            return [node.target, node.body]
        case SortBy():
            return [node.target, node.keys]
        case _:
            return []


def qualified_name(node: Node) -> str:
    """The dotted name that a node spells, empty when it is no such thing."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.optional and not node.test:
        parts.append(node.name)
        node = node.operand
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, Ident) else ""
