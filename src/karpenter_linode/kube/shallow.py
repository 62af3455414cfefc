"""JSON that is nested deeper than a decoder goes, without what lies so deep.

Whoever may create a ResourceClaim may write thousands of levels into a driver's parameters, and the API server takes
them. Nothing that is read here lies anywhere near so deep; the rest of such an object, and of all others that come with
it, still counts.
"""

from __future__ import annotations

import re
from typing import Final

LEVELS: Final = 64
"""Lists and objects within each other that are left."""
# Texts as a whole, so that brackets within them do not count; one without an end reaches to the end of the data.
_PARTS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_OPENING: Final = (b"{", b"[")
_CLOSING: Final = (b"}", b"]")


def shallow(text: bytes, levels: int = LEVELS) -> bytes:
    """The same JSON with ``null`` in place of each list and object below so many others. Takes time in proportion.

    Args:
        text: JSON; of what is none, something comes back that is none either.
        levels: how many to leave.
    """
    kept: list[bytes] = []
    depth = start = 0
    for found in _PARTS.finditer(text):
        part = found[0]
        if part in _OPENING:
            if depth == levels:
                kept += (text[start : found.start()], b"null")
            depth += 1
        elif part in _CLOSING:
            depth -= 1
            if depth == levels:
                start = found.end()
    if depth <= levels:
        kept.append(text[start:])
    return b"".join(kept)
