"""One API call as the handlers see it: path, query, body, and the helpers for lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from karpenter_linode.sim.linode.records import ApiFaultError, not_found
from karpenter_linode.sim.linode.world import LinodeWorld
from karpenter_linode.sim.linode.xfilter import apply_filter

_PAGE_SIZES: Final = (25, 500)
_DEFAULT_PAGE_SIZE: Final = 100
_MAX_DIGITS: Final = 18


class Call(Struct, frozen=True):
    """A call.

    Args:
        world: the state.
        version: ``v4`` or ``v4beta``.
        path: parameters of the path.
        query: parameters of the query.
        body: the JSON body, empty where there is none.
        filter: text of ``X-Filter``, or None.
        authenticated: whether it carries a token.
    """

    world: LinodeWorld
    version: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: dict[str, Any]
    filter: str | None
    authenticated: bool

    def number(self, name: str) -> int:
        """A numeric path parameter, or the API's 404."""
        number = _whole(self.path[name])
        if number is None:
            raise not_found()
        return number

    def page(self, rows: list[dict[str, Any]], fields: frozenset[str] = frozenset()) -> dict[str, Any]:
        """A page of a list, filtered by the fields that may be filtered by (7.4, 7.5)."""
        selected = apply_filter(rows, self.filter, fields)
        number, size = self._query_number("page", 1), self._query_number("page_size", _DEFAULT_PAGE_SIZE)
        if not _PAGE_SIZES[0] <= size <= _PAGE_SIZES[1]:
            raise ApiFaultError(400, f"Must be {_PAGE_SIZES[0]}-{_PAGE_SIZES[1]}", "page_size")
        pages = max(1, -(-len(selected) // size))
        if not 1 <= number <= pages:
            raise not_found()
        data = selected[(number - 1) * size : number * size]
        return {"data": data, "page": number, "pages": pages, "results": len(selected)}

    def _query_number(self, name: str, default: int) -> int:
        number = _whole(self.query.get(name, str(default)))
        if number is None:
            raise ApiFaultError(400, "Must be an integer", name)
        return number


def _whole(text: str) -> int | None:
    """A whole number in digits, or None; one too long for any id is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else None


Handler = Callable[[Call], Any]
