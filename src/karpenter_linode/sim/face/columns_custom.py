"""Columns of our own kinds: the ``additionalPrinterColumns`` of their CRDs."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.sim.face.ages import age
from karpenter_linode.sim.face.columns import NAME, Column
from karpenter_linode.sim.schemas import custom_version

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.sim.resource_types import ResourceType

Plain = dict[str, Any]

# A member, whose dots are escaped, or the items of a list in which a member has a value.
_STEP: Final = re.compile(r"\.((?:\\.|[^.\[\\])+)|\[\?\(@\.(\w+)\s*==\s*[\"']([^\"']*)[\"']\)\]")


@cache
def custom_columns(kind: ResourceType) -> tuple[Column, ...]:
    """The columns of a kind that a CRD serves, its name first."""
    version = custom_version(kind)
    printed = version.get("additionalPrinterColumns", ()) if version is not None else ()
    return (NAME, *(_column(item) for item in printed))


def _column(item: Plain) -> Column:
    steps, dated = parse_path(item["jsonPath"]), item["type"] == "date"

    def cell(plain: Plain, now: datetime) -> Any:
        found = next(iter(find(plain, steps)), None)
        if dated:
            return age(found, now)
        return str(found) if item["type"] == "string" and found is not None else found

    return Column(item["name"], cell, "string" if dated else item["type"], wide=bool(item.get("priority", 0)))


def parse_path(text: str) -> tuple[tuple[str, ...], ...]:
    r"""The steps of a JSONPath: ``.member``, with ``\.`` for a dot in a name, and ``[?(@.field=="value")]``.

    Raises:
        ValueError: anything else of the language, which no column uses.
    """
    steps: list[tuple[str, ...]] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise ValueError(f"JSONPath {text!r}: cannot be read from position {position}")
        steps.append((match[1].replace("\\", ""),) if match[1] else (match[2], match[3]))
        position = match.end()
    return tuple(steps)


def find(plain: Any, steps: tuple[tuple[str, ...], ...]) -> list[Any]:
    """The values that a path leads to."""
    found = [plain]
    for step in steps:
        if len(step) == 1:
            found = [item[step[0]] for item in found if isinstance(item, dict) and step[0] in item]
        else:
            lists = [item for item in found if isinstance(item, list)]
            found = [one for items in lists for one in items if isinstance(one, dict) and one.get(step[0]) == step[1]]
    return found
