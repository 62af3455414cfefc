"""What names stand for: declared variables, type names, and the variables of macros."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from karpenter_linode.cel import ast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from karpenter_linode.cel.types import Type

FIRST_SLOT = 2
"""Frames begin with the cost used and the cost limit; variables come behind."""


def candidates(name: str, container: str) -> list[str]:
    """The full names that a name may mean, the innermost container first; a leading dot means exactly the rest."""
    if name.startswith("."):
        return [name[1:]]
    parts = container.split(".") if container else []
    return [".".join([*parts[:count], name]) for count in range(len(parts), -1, -1)]


class Scope:
    """The names of one expression, each with a type and a place in the frame.

    Args:
        variables: declared variables.
        constants: names that stand for a value, such as type names.
        container: the namespace that short names are looked up in first.
    """

    def __init__(
        self, variables: Mapping[str, Type], constants: Mapping[str, tuple[Type, Any]], container: str
    ) -> None:
        self.container = container
        self._variables = variables
        self._constants = constants
        self._locals: list[tuple[str, Type, int]] = []
        self._bound: set[int] = set()
        self.used: set[str] = set()
        self._slots = FIRST_SLOT + len(variables)
        self._places = {name: FIRST_SLOT + index for index, name in enumerate(variables)}

    @property
    def names(self) -> tuple[str, ...]:
        """All variables, in the order of their places."""
        return tuple(self._variables)

    @property
    def local_count(self) -> int:
        """How many places macro variables take, behind those of the variables."""
        return self._slots - FIRST_SLOT - len(self._variables)

    def resolve(self, node: ast.Ident) -> bool:
        """Find what an identifier means and write it into the node."""
        for name, kind, slot in reversed(self._locals):
            if name == node.name:
                node.slot, node.type, node.bound = slot, kind, slot in self._bound
                return True
        return self._global(node, node.name)

    def resolve_qualified(self, node: ast.Select) -> ast.Ident | None:
        """The identifier that a chain of selections spells, when a variable or constant has that dotted name."""
        name = ast.qualified_name(node)
        if not name or self.is_local(name):
            return None
        ident = ast.Ident(name=name, start=node.start, end=node.end, position=node.position)
        return ident if self._global(ident, name) else None

    def is_local(self, name: str) -> bool:
        """Whether the first part of a dotted name is a macro variable."""
        first = name.split(".", 1)[0]
        return any(local == first for local, _, _ in self._locals)

    def _global(self, node: ast.Ident, name: str) -> bool:
        for candidate in candidates(name, self.container):
            if candidate in self._variables:
                node.type, node.slot = self._variables[candidate], self._places[candidate]
                self.used.add(candidate)
                return True
            if candidate in self._constants:
                node.type, node.constant = self._constants[candidate]
                return True
        return False

    def object_type(self, name: str) -> Type | None:
        """The object type of a name, when a variable is of that type."""
        for kind in self._variables.values():
            if kind.kind == "object" and kind.name == name:
                return kind
        return None

    @contextmanager
    def local(
        self, names: tuple[str, ...], kinds: tuple[Type, ...], *, bound: bool = False
    ) -> Iterator[tuple[int, ...]]:
        """Macro variables, visible inside the ``with`` block. Gives their slots."""
        slots = tuple(range(self._slots, self._slots + len(names)))
        self._slots += len(names)
        if bound:
            self._bound.update(slots)
        self._locals.extend(zip(names, kinds, slots, strict=True))
        yield slots
        del self._locals[len(self._locals) - len(names) :]
