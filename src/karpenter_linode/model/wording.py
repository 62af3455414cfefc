"""Wording that contract texts share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def few(names: Sequence[str], shown: int = 5, separator: str = ", ") -> str:
    """The first few names and how many more there are: ``a, b and 3 other(s)``.

    Args:
        names: all of them, in the order to tell.
        shown: how many are told by name.
        separator: what stands between two of them.
    """
    more = len(names) - shown
    return separator.join(names[:shown]) + (f" and {more} other(s)" if more > 0 else "")
