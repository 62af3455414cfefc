"""Columns of pods, nodes and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.sim.face.ages import UNKNOWN, age
from karpenter_linode.sim.face.columns import AGE, NAME, NONE, Column, dig, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

Plain = dict[str, Any]
_TERMINAL: Final = frozenset({"Succeeded", "Failed"})
_ROLE: Final = "node-role.kubernetes.io/"


def _ready(plain: Plain, _now: datetime) -> str:
    statuses = dig(plain, "status", "containerStatuses") or []
    ready = sum(bool(item.get("ready")) and dig(item, "state", "running") is not None for item in statuses)
    return f"{ready}/{len(dig(plain, 'spec', 'containers') or ())}"


def _status(plain: Plain, _now: datetime) -> str:
    """The one word that tells how a pod is."""
    phase = dig(plain, "status", "phase") or ""
    reason = str(dig(plain, "status", "reason") or phase)
    conditions = dig(plain, "status", "conditions") or []
    if any(item.get("type") == "PodScheduled" and item.get("reason") == "SchedulingGated" for item in conditions):
        reason = "SchedulingGated"
    for container in reversed(dig(plain, "status", "containerStatuses") or []):
        waiting, ended = dig(container, "state", "waiting"), dig(container, "state", "terminated")
        if waiting and waiting.get("reason"):
            reason = str(waiting["reason"])
        elif ended is not None:
            reason = str(ended.get("reason") or f"ExitCode:{ended.get('exitCode', 0)}")
    if "deletionTimestamp" in plain["metadata"] and phase not in _TERMINAL:
        return "Terminating"
    return reason


def _restarts(plain: Plain, _now: datetime) -> str:
    return str(sum(item.get("restartCount", 0) for item in dig(plain, "status", "containerStatuses") or []))


def _gates(plain: Plain, _now: datetime) -> str:
    gates = [item.get("conditionType") for item in dig(plain, "spec", "readinessGates") or []]
    true = {item.get("type") for item in dig(plain, "status", "conditions") or [] if item.get("status") == "True"}
    return f"{sum(gate in true for gate in gates)}/{len(gates)}" if gates else NONE


def _node_status(plain: Plain, _now: datetime) -> str:
    ready = next((item for item in dig(plain, "status", "conditions") or [] if item.get("type") == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if dig(plain, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(plain: Plain, _now: datetime) -> str:
    labels = plain["metadata"].get("labels") or {}
    return ",".join(sorted(key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE))) or NONE


def _address(kind: str) -> Callable[[Plain, datetime], str]:
    return lambda plain, _now: next(
        (str(item.get("address")) for item in dig(plain, "status", "addresses") or [] if item.get("type") == kind), NONE
    )


def _kernel(plain: Plain, _now: datetime) -> str:
    info = dig(plain, "status", "nodeInfo") or {}
    architecture = f" ({info['architecture']})" if info.get("architecture") else ""
    return f"{info.get('kernelVersion') or UNKNOWN}{architecture}"


def _seen(plain: Plain, field: str, now: datetime) -> str:
    return age(plain.get(field) or plain.get("eventTime"), now)


def _involved(plain: Plain, _now: datetime) -> str:
    kind, name = dig(plain, "involvedObject", "kind") or "", dig(plain, "involvedObject", "name") or ""
    return f"{kind.lower()}/{name}" if name else str(kind).lower()


def _source(plain: Plain, _now: datetime) -> str:
    component = dig(plain, "source", "component") or plain.get("reportingComponent") or ""
    host = dig(plain, "source", "host") or plain.get("reportingInstance") or ""
    return ", ".join(part for part in (component, host) if part)


POD_COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Pod": (
        NAME,
        Column("Ready", _ready),
        Column("Status", _status),
        Column("Restarts", _restarts),
        AGE,
        text("IP", "status", "podIP", default=NONE, wide=True),
        text("Node", "spec", "nodeName", default=NONE, wide=True),
        text("Nominated Node", "status", "nominatedNodeName", default=NONE, wide=True),
        Column("Readiness Gates", _gates, wide=True),
    ),
    "Node": (
        NAME,
        Column("Status", _node_status),
        Column("Roles", _roles),
        AGE,
        text("Version", "status", "nodeInfo", "kubeletVersion"),
        Column("Internal-IP", _address("InternalIP"), wide=True),
        Column("External-IP", _address("ExternalIP"), wide=True),
        text("OS-Image", "status", "nodeInfo", "osImage", default=UNKNOWN, wide=True),
        Column("Kernel-Version", _kernel, wide=True),
        text("Container-Runtime", "status", "nodeInfo", "containerRuntimeVersion", default=UNKNOWN, wide=True),
    ),
    "Event": (
        Column("Last Seen", lambda plain, now: _seen(plain, "lastTimestamp", now)),
        text("Type", "type"),
        text("Reason", "reason"),
        Column("Object", _involved),
        text("Subobject", "involvedObject", "fieldPath", wide=True),
        Column("Source", _source, wide=True),
        Column("Message", lambda plain, _now: str(plain.get("message", "")).strip()),
        Column("First Seen", lambda plain, now: _seen(plain, "firstTimestamp", now), wide=True),
        Column("Count", lambda plain, _now: plain.get("count") or 1, "integer", wide=True),
        Column("Name", lambda plain, _now: plain["metadata"]["name"], format="name", wide=True),
    ),
}
