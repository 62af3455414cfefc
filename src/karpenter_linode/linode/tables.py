"""The plans and regions that ship with the program: ``plan`` works offline with them, the emulator serves them.

The data file notes where each value was seen (``data/plans.json``, from spec/linode-provider.md 7.8 and 7.9). A live
controller never reads it: it asks the API.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final

from msgspec import Struct, field

from karpenter_linode.model import codec
from karpenter_linode.model.linode import LinodeType, Region, RegionAvailability

DEFAULT_REGION: Final = "us-ord"


class BundledPlan(Struct, frozen=True):
    """A plan as ``GET /linode/types`` shows it, and where each of its values comes from.

    Args:
        type: the plan.
        provenance: value names to the name of their source in ``Tables.sources``, with remarks in parentheses.
    """

    type: LinodeType
    provenance: dict[str, str] = field(default_factory=dict)


class LimitedPlan(Struct, frozen=True):
    """A plan that only some regions have."""

    plan: str
    available_in: tuple[str, ...] = ()


class Tables(Struct, frozen=True):
    """The data file.

    Args:
        sources: names of sources and what they are.
        types: every plan whose vCPUs, memory, disk and price are known.
        omitted: plans that exist but are left out, and why.
        regions: the regions.
        limited: plans of limited deployment; all others are taken to be available everywhere.
    """

    sources: dict[str, str]
    types: tuple[BundledPlan, ...]
    omitted: dict[str, str]
    regions: tuple[Region, ...]
    limited: tuple[LimitedPlan, ...]


@cache
def bundled_tables() -> Tables:
    """The data file, read once."""
    return codec.decode(resources.files(__package__).joinpath("data/plans.json").read_bytes(), Tables)


def bundled_types() -> tuple[LinodeType, ...]:
    """Every bundled plan, in the order of the file."""
    return tuple(plan.type for plan in bundled_tables().types)


def bundled_regions() -> tuple[Region, ...]:
    """Every bundled region, by id."""
    return bundled_tables().regions


def bundled_availability(region: str) -> tuple[RegionAvailability, ...]:
    """The rows that ``GET /regions/{region}/availability`` would hold: plans of limited deployment only."""
    return tuple(
        RegionAvailability(region, limited.plan, region in limited.available_in) for limited in bundled_tables().limited
    )
