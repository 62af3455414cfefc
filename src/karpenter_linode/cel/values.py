"""The values an expression works on, and their Python forms.

null ``None``, bool ``bool``, int ``int``, uint ``UInt``, double ``float``, string ``str``, bytes ``bytes``, list ``list`` or
``tuple``, map and object ``dict`` (string keys; maps with other keys come from ``make_map``), ``Quantity`` and ``SemVer``
of the model, ``Optional``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class UInt(int):
    """A 64-bit unsigned integer."""

    __slots__ = ()


class DefaultMap(dict[Any, Any]):
    """A map that answers unknown keys with a default. Membership, size and iteration tell only of what is really there.

    Args:
        content: the real entries.
        default: what indexing by any other key gives.
    """

    __slots__ = ("default",)

    def __init__(self, content: Mapping[Any, Any], default: Any) -> None:
        super().__init__(content)
        self.default = default

    def __missing__(self, _key: object) -> Any:
        return self.default


class Optional:
    """A value that may be absent."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value
