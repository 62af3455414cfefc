"""The JSON that the API answers with (spec/linode-provider.md 7.2 and 7.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model.linode import Price, RegionPrice

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.model.linode import LinodeType, Region
    from karpenter_linode.sim.linode.records import Cluster, Machine, Member, Pool

BETA: Final = "v4beta"
_ENTERPRISE: Final = "enterprise"


def timestamp(moment: datetime) -> str:
    """UTC, written without a zone."""
    return moment.replace(microsecond=0, tzinfo=None).isoformat()


def plan(item: LinodeType) -> dict[str, Any]:
    """A type."""
    return {
        "id": item.id,
        "label": item.label,
        "class": item.class_,
        "vcpus": item.vcpus,
        "memory": item.memory,
        "disk": item.disk,
        "transfer": item.transfer,
        "network_out": item.network_out,
        "gpus": item.gpus,
        "accelerated_devices": item.accelerated_devices,
        "price": price(item.price),
        "region_prices": [{"id": entry.id, **price(entry)} for entry in item.region_prices],
        "addons": {"backups": {"price": price(Price()), "region_prices": []}},
        "successor": None,
    }


def price(item: Price | RegionPrice) -> dict[str, Any]:
    """A price."""
    return {"hourly": item.hourly, "monthly": item.monthly}


def region(item: Region) -> dict[str, Any]:
    """A region."""
    return {
        "id": item.id,
        "label": item.label,
        "country": item.country,
        "capabilities": list(item.capabilities),
        "status": item.status,
        "site_type": item.site_type,
        "resolvers": {"ipv4": "", "ipv6": ""},
        "placement_group_limits": {"maximum_pgs_per_customer": 100, "maximum_linodes_per_pg": 5},
        "monitors": {"alerts": [], "metrics": []},
    }


def cluster(item: Cluster, version: str) -> dict[str, Any]:
    """An LKE cluster; its tier shows in the beta only."""
    shown: dict[str, Any] = {
        "id": item.id,
        "status": "ready",
        "created": timestamp(item.created),
        "updated": timestamp(item.created),
        "label": item.label,
        "region": item.region,
        "k8s_version": item.k8s_version,
        "control_plane": {"high_availability": item.tier == _ENTERPRISE, "audit_logs_enabled": False},
        "apl_enabled": False,
        "tags": list(item.tags),
        "locks": [],
    }
    if version == BETA:
        shown["tier"] = item.tier
    if item.tier == _ENTERPRISE:
        shown |= {"vpc_id": 1, "subnet_id": 1, "stack_type": "ipv4"}
    return shown


def pool(item: Pool, tier: str, version: str) -> dict[str, Any]:
    """A pool; version, strategy and firewall show for the enterprise tier in the beta."""
    shown: dict[str, Any] = {
        "id": item.id,
        "type": item.plan.id,
        "label": item.label,
        "count": len(item.members),
        "nodes": [member(entry) for entry in item.members if entry.listed],
        "disks": [],
        "autoscaler": item.autoscaler,
        "labels": item.labels,
        "taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in item.taints],
        "tags": list(item.tags),
        "disk_encryption": "enabled",
        "locks": [],
    }
    if tier == _ENTERPRISE and version == BETA:
        shown |= {
            "k8s_version": item.k8s_version,
            "update_strategy": item.update_strategy,
            "firewall_id": item.firewall_id,
        }
    return shown


def member(item: Member) -> dict[str, Any]:
    """A node of a pool."""
    return {"id": item.id, "instance_id": item.machine, "status": "ready" if item.ready else "not_ready"}


def machine(item: Machine) -> dict[str, Any]:
    """An instance; reading one counts towards the visibility of its tags."""
    spec = item.plan
    return {
        "id": item.id,
        "label": item.label,
        "group": "",
        "status": item.status,
        "created": timestamp(item.created),
        "updated": timestamp(item.updated or item.created),
        "type": spec.id,
        "ipv4": [f"192.0.2.{item.id % 254 + 1}"],
        "ipv6": f"2001:db8::{item.id % 0xFFFF:x}/128",
        "image": item.image,
        "region": item.region,
        "site_type": "core",
        "specs": {
            "disk": spec.disk,
            "memory": spec.memory,
            "vcpus": spec.vcpus,
            "gpus": spec.gpus,
            "transfer": spec.transfer,
            "accelerated_devices": spec.accelerated_devices,
        },
        "alerts": {},
        "backups": {"enabled": False, "available": False, "schedule": {"day": None, "window": None}},
        "hypervisor": "kvm",
        "watchdog_enabled": True,
        "tags": list(item.read_tags()),
        "host_uuid": item.host_uuid,
        "has_user_data": False,
        "placement_group": None,
        "disk_encryption": "enabled",
        "lke_cluster_id": item.cluster,
        "capabilities": [],
        "interface_generation": "legacy_config",
        "maintenance_policy": "linode/migrate",
        "locks": [],
    }
