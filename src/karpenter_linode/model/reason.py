"""``Reason``: why something was refused, as a tree. Every rejection on a decision path returns one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator


class Reason(Struct, frozen=True, omit_defaults=True):
    """One refusal and the refusals it follows from.

    Args:
        code: stable word for machines, kebab-case (``taints``, ``limits``, ``dra-no-device``).
        message: one line for people, without a full stop; contract texts of the specs stand here verbatim.
        subject: what was refused, as ``Kind name`` (``NodePool gpu``, ``plan g2-gpu-rtx4000a1-s``, ``device gpu-0``).
        facts: values behind the message in a fixed order (``("predicted", "1")``, ``("asked", "2")``).
        children: the refusals this one sums up, in evaluation order.
    """

    code: str
    message: str
    subject: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    children: tuple[Reason, ...] = ()

    def fact(self, name: str) -> str | None:
        """The value of a fact of this node, or None."""
        return next((value for key, value in self.facts if key == name), None)

    def walk(self) -> Iterator[Reason]:
        """This node and all below it, depth first, in evaluation order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def __str__(self) -> str:
        return self.message
