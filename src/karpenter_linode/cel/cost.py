"""The cost model: what evaluation is charged for, in the units of Kubernetes (spec/cel-for-dra.md section 3).

Reading a variable or a part of one costs 1, a call 1 or by the size of what it goes through; constants and ``has``
cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karpenter_linode.cel.errors import CostLimitExceededError
from karpenter_linode.cel.values import Optional

if TYPE_CHECKING:
    from karpenter_linode.cel.code import Frame

LIST_COST = 10
MAP_COST = 30


def size_of(value: Any) -> int:
    """The size that costs go by: characters, bytes, elements, entries; 1 for anything else."""
    if isinstance(value, str | bytes | list | tuple | dict):
        return len(value)
    if type(value) is Optional:
        return size_of(value.value)
    return 1


def tenths(size: int) -> int:
    """A tenth, rounded up: the price of going through a text once."""
    return (size + 9) // 10


def traversal(value: Any, *_: Any) -> int:
    """Going through the first argument."""
    return tenths(size_of(value))


def traversal_twice(value: Any, *_: Any) -> int:
    """Going through the first argument and building a result of its size."""
    return tenths(2 * size_of(value))


def pattern_cost(text: Any, pattern: Any) -> int:
    """Matching a pattern: the text's price times that of the pattern, at about four characters for each part of it."""
    return tenths(1 + size_of(text)) * ((size_of(pattern) + 3) // 4)


def charge(frame: Frame, units: int) -> None:
    """Add to the cost used so far.

    Raises:
        CostLimitExceededError: that was too much.
    """
    frame[0] += units
    if frame[0] > frame[1]:
        raise CostLimitExceededError
