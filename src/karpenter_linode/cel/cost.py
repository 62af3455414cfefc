"""The cost model: what evaluation is charged for, in the units of Kubernetes (spec/cel-for-dra.md section 3).

Reading a variable or a part of one costs 1, a call 1 or by the size of what it goes through; constants cost nothing.
What fails is charged like what succeeds: another operand may still decide, and the bill is the same then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel.errors import AbandonedError, CostLimitExceededError
from karpenter_linode.cel.values import Optional, decode_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.cel.code import Frame

LIST_COST: Final = 10
MAP_COST: Final = 30
_FREE: Final = 1000
_MOST_PARTS: Final = 2_000_000
_SIZES: dict[type, Callable[[Any], int]] = {}


def register_size(python_type: type, size: Callable[[Any], int]) -> None:
    """Tell the size of values of a type that is no text, list or map. For libraries, at import."""
    _SIZES[python_type] = size


def size_of(value: Any) -> int:
    """The size that costs go by: characters, bytes, elements, entries; 1 for anything else, and for what failed."""
    if isinstance(value, str | bytes | list | tuple | dict):
        return len(value)
    if type(value) is Optional:
        return size_of(value.value)
    size = _SIZES.get(type(value))
    return size(value) if size is not None else 1


def tenths(size: int) -> int:
    """A tenth, rounded up: the price of going through a text once."""
    return (size + 9) // 10


def bulk(size: int) -> int:
    """What a large result costs beyond what Kubernetes charges for it.

    Kubernetes shares the parts of joined lists and charges a dispatched ``+`` 1 however long the text. Here results
    are copied; a tenth of what goes beyond a thousand elements bounds the work of expressions that keep on doubling.
    """
    return max(0, size - _FREE) // 10


def traversal(value: Any, *_: Any) -> int:
    """Going through the first argument."""
    return tenths(size_of(value))


def traversal_twice(value: Any, *_: Any) -> int:
    """Going through the first argument and building a result of its size."""
    return tenths(2 * size_of(value))


def pattern_cost(text: Any, pattern: Any, *_: Any) -> int:
    """Matching a pattern: the text's price times that of the pattern, at about four characters for each part of it."""
    return tenths(1 + size_of(text)) * ((size_of(pattern) + 3) // 4)


def walk(value: Any, *_: Any) -> int:
    """Going through a value and all its parts: a tenth of its bytes, rounded down, for a text, else 1."""
    total, visited = 0, 0
    left = [value]
    while left:
        value = left.pop()
        visited += 1
        if isinstance(value, str | bytes):
            total += (len(value) if isinstance(value, bytes) or value.isascii() else len(value.encode())) // 10
        elif isinstance(value, list | tuple):
            left.extend(value)
        elif isinstance(value, dict):
            left.extend(map(decode_key, value))
            left.extend(value.values())
        else:
            total += 1
        if visited > _MOST_PARTS:
            raise CostLimitExceededError  # parts may be shared, and a walk then takes exponential time
    return total


def comparisons(values: Any) -> int:
    """Comparing the elements of a list with each other, at 2 a pair and a tenth more for texts.

    Raises:
        AbandonedError: there is no list.
    """
    if not isinstance(values, list | tuple):
        raise AbandonedError("only a list can be sorted or searched for what is distinct")
    pairs = len(values) * len(values)
    extra = pairs // 10 if values and isinstance(values[0], str | bytes) else 0
    return 1 + LIST_COST + 2 * pairs + extra


def charge(frame: Frame, units: int) -> None:
    """Add to the cost used so far.

    Raises:
        CostLimitExceededError: that was too much.
    """
    frame[0] += units
    if frame[0] > frame[1]:
        raise CostLimitExceededError
