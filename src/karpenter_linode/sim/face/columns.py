"""What a table's column is, and the columns of the kinds that need few.

The columns are those of Kubernetes' own printers, so that kubectl's output is what its users know.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from karpenter_linode.sim.face.ages import age

if TYPE_CHECKING:
    from collections.abc import Mapping

Plain = dict[str, Any]
NONE: Final = "<none>"
UNSET: Final = "<unset>"


class Column(Struct, frozen=True):
    """A column.

    Args:
        name: its header.
        cell: the cell of an object, given the present.
        type: of its cells, as OpenAPI names it.
        wide: whether it is shown with ``-o wide`` alone.
        format: ``name`` for the object's name.
    """

    name: str
    cell: Callable[[Plain, datetime], Any]
    type: str = "string"
    wide: bool = False
    format: str = ""

    def definition(self) -> Plain:
        """The ``columnDefinitions`` entry."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": "",
            "priority": int(self.wide),
        }


def dig(plain: Any, *path: str) -> Any:
    """The value at a path of mappings, or None."""
    for step in path:
        plain = plain.get(step) if isinstance(plain, dict) else None
    return plain


def text(name: str, *path: str, default: str = "", wide: bool = False) -> Column:
    """A column of the text at a path."""

    def cell(plain: Plain, _now: datetime) -> str:
        value = dig(plain, *path)
        return default if value is None or value == "" else str(value)

    return Column(name, cell, wide=wide)


def number(name: str, *path: str) -> Column:
    """A column of the number at a path; 0 where there is none."""
    return Column(name, lambda plain, _now: dig(plain, *path) or 0, "integer")


def since(name: str, *path: str, wide: bool = False) -> Column:
    """A column of the age of the time at a path."""
    return Column(name, lambda plain, now: age(dig(plain, *path), now), wide=wide)


NAME: Final = Column("Name", lambda plain, _now: plain["metadata"]["name"], format="name")
AGE: Final = since("Age", "metadata", "creationTimestamp")


def labels_text(labels: Any) -> str:
    """Labels as ``a=b,c=d``."""
    found = [f"{key}={value}" for key, value in sorted(labels.items())] if isinstance(labels, dict) else []
    return ",".join(found) or NONE


def selector_text(selector: Any) -> str:
    """A label selector as kubectl writes it."""
    parts = [f"{key}={value}" for key, value in sorted((dig(selector, "matchLabels") or {}).items())]
    for item in dig(selector, "matchExpressions") or []:
        key, values = item.get("key", ""), ",".join(item.get("values") or [])
        operator = item.get("operator")
        parts.append(
            {"Exists": key, "DoesNotExist": f"!{key}"}.get(operator, f"{key} {str(operator).lower()} ({values})")
        )
    return ",".join(parts) or NONE


def _count(*path: str) -> Callable[[Plain, datetime], int]:
    return lambda plain, _now: sum(len(dig(plain, part) or ()) for part in path)


def _phase(plain: Plain, _now: datetime) -> str:
    return "Terminating" if "deletionTimestamp" in plain["metadata"] else str(dig(plain, "status", "phase") or "")


_SHORT_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(*path: str) -> Callable[[Plain, datetime], str]:
    return lambda plain, _now: ",".join(_SHORT_MODES.get(str(mode), str(mode)) for mode in dig(plain, *path) or ())


def _ports(plain: Plain, _now: datetime) -> str:
    ports = dig(plain, "spec", "ports") or []
    return ",".join(f"{item.get('port')}/{item.get('protocol', 'TCP')}" for item in ports) or NONE


def _claim_of_volume(plain: Plain, _now: datetime) -> str:
    claim = dig(plain, "spec", "claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


DEFAULT_COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "": (NAME, AGE),
    "Namespace": (NAME, Column("Status", _phase), AGE),
    "ConfigMap": (NAME, Column("Data", _count("data", "binaryData"), "integer"), AGE),
    "Secret": (NAME, text("Type", "type"), Column("Data", _count("data"), "integer"), AGE),
    "ServiceAccount": (NAME, AGE),
    "Service": (
        NAME,
        text("Type", "spec", "type"),
        text("Cluster-IP", "spec", "clusterIP", default=NONE),
        Column("External-IP", lambda _plain, _now: NONE),
        Column("Port(s)", _ports),
        AGE,
        Column("Selector", lambda plain, _now: labels_text(dig(plain, "spec", "selector")), wide=True),
    ),
    "PersistentVolumeClaim": (
        NAME,
        Column("Status", _phase),
        text("Volume", "spec", "volumeName"),
        text("Capacity", "status", "capacity", "storage"),
        Column("Access Modes", _modes("status", "accessModes")),
        text("StorageClass", "spec", "storageClassName"),
        text("VolumeAttributesClass", "spec", "volumeAttributesClassName", default=UNSET),
        AGE,
        text("VolumeMode", "spec", "volumeMode", default=UNSET, wide=True),
    ),
    "PersistentVolume": (
        NAME,
        text("Capacity", "spec", "capacity", "storage"),
        Column("Access Modes", _modes("spec", "accessModes")),
        text("Reclaim Policy", "spec", "persistentVolumeReclaimPolicy"),
        Column("Status", _phase),
        Column("Claim", _claim_of_volume),
        text("StorageClass", "spec", "storageClassName"),
        text("VolumeAttributesClass", "spec", "volumeAttributesClassName", default=UNSET),
        text("Reason", "status", "reason"),
        AGE,
        text("VolumeMode", "spec", "volumeMode", default=UNSET, wide=True),
    ),
    "StorageClass": (
        NAME,
        text("Provisioner", "provisioner"),
        text("ReclaimPolicy", "reclaimPolicy"),
        text("VolumeBindingMode", "volumeBindingMode"),
        Column("AllowVolumeExpansion", lambda plain, _now: bool(plain.get("allowVolumeExpansion")), "boolean"),
        AGE,
    ),
    "CSINode": (
        NAME,
        Column("Drivers", lambda plain, _now: len(dig(plain, "spec", "drivers") or ()), "integer"),
        AGE,
    ),
    "VolumeAttachment": (
        NAME,
        text("Attacher", "spec", "attacher"),
        text("PV", "spec", "source", "persistentVolumeName"),
        text("Node", "spec", "nodeName"),
        Column("Attached", lambda plain, _now: bool(dig(plain, "status", "attached")), "boolean"),
        AGE,
    ),
    "Lease": (NAME, text("Holder", "spec", "holderIdentity"), AGE),
    "PriorityClass": (
        NAME,
        number("Value", "value"),
        Column("Global-Default", lambda plain, _now: bool(plain.get("globalDefault")), "boolean"),
        AGE,
        text("PreemptionPolicy", "preemptionPolicy", wide=True),
    ),
}
