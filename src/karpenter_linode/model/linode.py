"""Linode API objects, trimmed to the fields in use (spec/linode-provider.md 7.2). JSON keys are snake case."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from msgspec import Struct, field

MIN_TAG: Final = 3
MAX_TAG: Final = 50
"""Characters of a tag (spec/linode-provider.md 7.6)."""


class Price(Struct, frozen=True, gc=False):
    """Dollars; null means that the plan isn't sold this way."""

    hourly: Decimal | None = None
    monthly: Decimal | None = None


class RegionPrice(Struct, frozen=True, gc=False):
    """Dollars in one region, in place of the base price."""

    id: str = ""
    hourly: Decimal | None = None
    monthly: Decimal | None = None


class LinodeType(Struct, frozen=True, omit_defaults=True):
    """A plan of ``GET /linode/types``. Memory and disk are MiB, transfer GB a month, network_out Mbit/s."""

    id: str
    label: str = ""
    class_: str = field(name="class", default="")
    vcpus: int = 0
    memory: int = 0
    disk: int = 0
    transfer: int = 0
    network_out: int = 0
    gpus: int = 0
    accelerated_devices: int = 0
    price: Price = field(default_factory=Price)
    region_prices: tuple[RegionPrice, ...] = ()


class RegionAvailability(Struct, frozen=True, gc=False):
    """A row of the availability list. Only plans of limited deployment are listed: absent means available."""

    region: str = ""
    plan: str = ""
    available: bool = False


class Region(Struct, frozen=True, omit_defaults=True):
    """A region."""

    id: str
    label: str = ""
    country: str = ""
    capabilities: tuple[str, ...] = ()
    status: str = ""
    site_type: str = ""


class LKECluster(Struct, frozen=True, omit_defaults=True):
    """An LKE cluster."""

    id: int
    label: str = ""
    region: str = ""
    k8s_version: str = ""
    tier: str = ""
    status: str = ""
    tags: tuple[str, ...] = ()


class LKENode(Struct, frozen=True, omit_defaults=True, gc=False):
    """A member of an LKE pool; the instance id is missing until the instance exists."""

    id: str
    instance_id: int | None = None
    status: str = ""


class LKETaint(Struct, frozen=True, gc=False):
    """A taint of an LKE pool."""

    key: str = ""
    value: str = ""
    effect: str = ""


class LKEPool(Struct, frozen=True, omit_defaults=True):
    """An LKE node pool."""

    id: int
    type: str = ""
    label: str | None = None
    count: int = 0
    nodes: tuple[LKENode, ...] = ()
    labels: dict[str, str] | None = None
    taints: tuple[LKETaint, ...] | None = None
    tags: tuple[str, ...] = ()
    k8s_version: str | None = None
    firewall_id: int | None = None


class LinodeInstance(Struct, frozen=True, omit_defaults=True):
    """A Linode. Times are UTC, written without a zone."""

    id: int
    label: str = ""
    status: str = ""
    type: str | None = None
    region: str = ""
    created: str = ""
    tags: tuple[str, ...] = ()
    lke_cluster_id: int | None = None
