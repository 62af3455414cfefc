"""GPU families: which plans carry which GPU model, and where every value comes from."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final, Literal

from msgspec import Struct

from karpenter_linode.model import codec
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.resource import DeviceAttribute

_DATA: Final = "data/gpu_families.json"

Kind = Literal["captured", "estimate"]


class AttributeValue(Struct, frozen=True):
    """An attribute of one GPU with its evidence.

    Args:
        value: as the driver publishes it.
        kind: ``captured`` from a device, or an ``estimate`` from what is known online.
        source: where it was seen, or what it is inferred from.
    """

    value: DeviceAttribute
    kind: Kind
    source: str


class CapacityValue(Struct, frozen=True):
    """A capacity of one GPU with its evidence; arguments as those of ``AttributeValue``."""

    value: Quantity
    kind: Kind
    source: str


class Family(Struct, frozen=True):
    r"""Plans with one GPU model.

    Args:
        name: short stable name.
        title: as people say it.
        pattern: anchored regular expression over plan ids. ``\d`` means ASCII digits.
        attributes: of each GPU, by the driver's attribute name.
        capacity: of each GPU, by the driver's capacity name.
    """

    name: str
    title: str
    pattern: str
    attributes: dict[str, AttributeValue]
    capacity: dict[str, CapacityValue]

    def matches(self, plan_id: str) -> bool:
        """Whether a plan belongs to this family. The whole id must match; nothing may follow, not even a newline."""
        return re.fullmatch(self.pattern, plan_id, re.ASCII) is not None


class _Catalog(Struct, frozen=True):
    driver: str
    families: tuple[Family, ...]


@cache
def _catalog() -> _Catalog:
    text = files("karpenter_linode.catalog").joinpath(_DATA).read_text(encoding="utf-8")
    return codec.decode(text, _Catalog)


def families() -> tuple[Family, ...]:
    """All families, in the order of the data file."""
    return _catalog().families


def driver() -> str:
    """The DRA driver that publishes these devices."""
    return _catalog().driver


def family_of(plan_id: str) -> Family | None:
    """The family of a plan, or None: then only count and type of its GPUs are known."""
    return next((family for family in families() if family.matches(plan_id)), None)
