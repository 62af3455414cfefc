"""Lines, tables, amounts of money and time, lists of names: the small change of every rendering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from karpenter_linode.model.instance_type import NANO_DOLLARS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LineKind = Literal["plain", "title", "good", "bad", "dim"]
_GAP: Final = "  "
_NAMED: Final = 5
_CENT: Final = 2  # decimals that a price shows at least


class Line(Struct, frozen=True):
    """A line of text and what it is, for whoever adds colour."""

    text: str = ""
    kind: LineKind = "plain"


def money(nano_dollars: int) -> str:
    """Dollars without needless zeros, cents at least: ``$0.52``, ``$0.006``, ``$12.00``."""
    whole, rest = divmod(abs(nano_dollars), NANO_DOLLARS)
    decimals = f"{rest:09d}".rstrip("0").ljust(_CENT, "0")
    return f"{'-' if nano_dollars < 0 else ''}${whole}.{decimals}"


def dollars(nano_dollars: int) -> str:
    """The same amount as a bare decimal text, for data: ``0.52``."""
    return money(nano_dollars).replace("$", "")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[Line]:
    """Columns as wide as their widest cell, as kubectl prints them."""
    body = [list(row) for row in rows]
    widths = [max(len(row[column]) for row in [list(header), *body]) for column in range(len(header))]
    lines = [Line(_row(header, widths), "title")]
    return lines + [Line(_row(row, widths)) for row in body]


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def names(items: Sequence[str], shown: int = _NAMED) -> str:
    """The first few names and how many more there are: ``a, b and 3 others``."""
    head, rest = list(items[:shown]), len(items) - shown
    if rest == 1:
        head, rest = list(items), 0
    text = ", ".join(head)
    return f"{text} and {rest} others" if rest > 0 else text


def counted(number: int, one: str, many: str = "") -> str:
    """``1 pod``, ``2 pods``."""
    return f"{number} {one if number == 1 else many or one + 's'}"
