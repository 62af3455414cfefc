"""Plans, regions, availability, versions, profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.sim.linode import shapes
from karpenter_linode.sim.linode.records import not_found

if TYPE_CHECKING:
    from karpenter_linode.model.linode import RegionAvailability
    from karpenter_linode.sim.linode.calls import Call

_TYPE_FIELDS: Final = frozenset(
    {"class", "disk", "gpus", "label", "memory", "network_out", "transfer", "vcpus"},
)
_AVAILABILITY_FIELDS: Final = frozenset({"region", "plan", "available"})
_GATED: Final = "blackwell"
_VERSIONS: Final = {"standard": ("1.35", "1.34"), "enterprise": ("v1.34.6+lke2", "v1.31.8+lke1")}


def list_types(call: Call) -> dict[str, Any]:
    """Plans; gated ones show to accounts only."""
    types = (plan for plan in call.world.types.values() if call.authenticated or _GATED not in plan.id)
    return call.page([shapes.plan(item) for item in types], _TYPE_FIELDS)


def get_type(call: Call) -> dict[str, Any]:
    """A plan."""
    item = call.world.types.get(call.path["type"])
    if item is None:
        raise not_found()
    return shapes.plan(item)


def list_regions(call: Call) -> dict[str, Any]:
    """Regions."""
    return call.page([shapes.region(item) for item in call.world.regions.values()])


def get_region(call: Call) -> dict[str, Any]:
    """A region."""
    item = call.world.regions.get(call.path["region"])
    if item is None:
        raise not_found()
    return shapes.region(item)


def region_availability(call: Call) -> list[dict[str, Any]]:
    """Availability in a region, as a bare list."""
    get_region(call)
    return [_row(row) for row in call.world.availability(call.path["region"])]


def list_availability(call: Call) -> dict[str, Any]:
    """Availability in all regions."""
    return call.page([_row(row) for row in call.world.availability()], _AVAILABILITY_FIELDS)


def list_versions(call: Call) -> dict[str, Any]:
    """Kubernetes versions of a tier."""
    tier = call.path["tier"]
    if tier not in _VERSIONS:
        raise not_found()
    return call.page([{"id": version, "tier": tier} for version in _VERSIONS[tier]])


def get_profile(_: Call) -> dict[str, Any]:
    """Whose token it is."""
    return {"username": "emulator", "email": "emulator@example.com", "restricted": False, "timezone": "UTC"}


def _row(row: RegionAvailability) -> dict[str, Any]:
    return {"region": row.region, "plan": row.plan, "available": row.available}
