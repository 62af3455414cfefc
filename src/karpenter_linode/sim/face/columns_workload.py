"""Columns of what makes pods, and of budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.sim.face.columns import AGE, NAME, Column, dig, labels_text, number, selector_text, text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

Plain = dict[str, Any]
_NOT_SAID: Final = "N/A"


def _containers(field: str) -> Any:
    def cell(plain: Plain, _now: datetime) -> str:
        containers = dig(plain, "spec", "template", "spec", "containers") or []
        return ",".join(str(item.get(field, "")) for item in containers)

    return cell


def _ready_of(plain: Plain, _now: datetime) -> str:
    return f"{dig(plain, 'status', 'readyReplicas') or 0}/{dig(plain, 'spec', 'replicas') or 0}"


_CONTAINERS: Final = (
    Column("Containers", _containers("name"), wide=True),
    Column("Images", _containers("image"), wide=True),
)
_WIDE: Final = (
    *_CONTAINERS,
    Column("Selector", lambda plain, _now: selector_text(dig(plain, "spec", "selector")), wide=True),
)

WORKLOAD_COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "DaemonSet": (
        NAME,
        number("Desired", "status", "desiredNumberScheduled"),
        number("Current", "status", "currentNumberScheduled"),
        number("Ready", "status", "numberReady"),
        number("Up-to-date", "status", "updatedNumberScheduled"),
        number("Available", "status", "numberAvailable"),
        Column(
            "Node Selector",
            lambda plain, _now: labels_text(dig(plain, "spec", "template", "spec", "nodeSelector")),
        ),
        AGE,
        *_WIDE,
    ),
    "Deployment": (
        NAME,
        Column("Ready", _ready_of),
        number("Up-to-date", "status", "updatedReplicas"),
        number("Available", "status", "availableReplicas"),
        AGE,
        *_WIDE,
    ),
    "ReplicaSet": (
        NAME,
        number("Desired", "spec", "replicas"),
        number("Current", "status", "replicas"),
        number("Ready", "status", "readyReplicas"),
        AGE,
        *_WIDE,
    ),
    "ReplicationController": (
        NAME,
        number("Desired", "spec", "replicas"),
        number("Current", "status", "replicas"),
        number("Ready", "status", "readyReplicas"),
        AGE,
        *_CONTAINERS,
        Column("Selector", lambda plain, _now: labels_text(dig(plain, "spec", "selector")), wide=True),
    ),
    "StatefulSet": (NAME, Column("Ready", _ready_of), AGE, *_CONTAINERS),
    "PodDisruptionBudget": (
        NAME,
        text("Min Available", "spec", "minAvailable", default=_NOT_SAID),
        text("Max Unavailable", "spec", "maxUnavailable", default=_NOT_SAID),
        number("Allowed Disruptions", "status", "disruptionsAllowed"),
        AGE,
    ),
}
