"""What the API server fills in when an object is written (built-in defaulting, CRD defaults, admission plug-ins).

Sources: spec/dra-allocation.md 1.6, spec/karpenter-scheduling.md 6.1 and 6.2, Kubernetes' pod defaults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.sim.deletion import DEFAULT_GRACE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.sim.resource_types import ResourceType

Plain = dict[str, Any]

SYSTEM_PRIORITIES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
UNREACHABLE_SECONDS: Final = 300
EXPIRE_AFTER: Final = "720h"
_PLAIN_DEFAULTS: Final[dict[str, Plain]] = {
    "PersistentVolumeClaim": {"status": {"phase": "Pending"}},
    "StorageClass": {"volumeBindingMode": "Immediate", "reclaimPolicy": "Delete"},
}


def fill_defaults(kind: ResourceType, plain: Plain, priority_of: Callable[[str], int | None]) -> Plain:
    """The object with the server's defaults, in new mappings where anything was added.

    Args:
        kind: its type.
        plain: the object as written.
        priority_of: the value of a PriorityClass by name.
    """
    match kind.kind:
        case "Pod":
            return _with_spec(plain, _pod_spec(plain.get("spec") or {}, priority_of), {"phase": "Pending"})
        case "DaemonSet":
            spec = plain.get("spec") or {}
            template = spec.get("template") or {}
            pod = _pod_template_spec(template.get("spec") or {})
            return _with_spec(plain, {**spec, "template": {**template, "spec": pod}})
        case "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController":
            return _with_spec(plain, _workload_spec(kind, plain.get("spec") or {}))
        case "ResourceClaim":
            return _with_spec(plain, _claim_spec(plain.get("spec") or {}))
        case "ResourceClaimTemplate":
            spec = plain.get("spec") or {}
            return _with_spec(plain, {**spec, "spec": _claim_spec(spec.get("spec") or {})})
        case "NodePool":
            return _with_spec(plain, _node_pool_spec(plain.get("spec") or {}))
        case "NodeClaim":
            return _with_spec(plain, {"expireAfter": EXPIRE_AFTER, **(plain.get("spec") or {})})
        case "Namespace":
            labels = {
                **(plain["metadata"].get("labels") or {}),
                "kubernetes.io/metadata.name": plain["metadata"]["name"],
            }
            return {"status": {"phase": "Active"}, **plain, "metadata": {**plain["metadata"], "labels": labels}}
        case _:
            return {**_PLAIN_DEFAULTS.get(kind.kind, {}), **plain}


def _with_spec(plain: Plain, spec: Plain, status: Plain | None = None) -> Plain:
    result = {**plain, "spec": spec}
    if status is not None and "status" not in plain:
        result["status"] = status
    return result


def _workload_spec(kind: ResourceType, spec: Plain) -> Plain:
    """Defaults of what makes pods from a template; one without a template is left as it is."""
    template = spec.get("template")
    if not template:
        return spec
    filled = {"replicas": 1, **spec, "template": {**template, "spec": _pod_template_spec(template.get("spec") or {})}}
    if kind.kind == "Deployment":
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
        filled = {"strategy": rolling, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10, **filled}
        if not filled["strategy"].get("type"):
            filled["strategy"] = rolling
    if kind.kind == "ReplicationController":
        filled = {"selector": (template.get("metadata") or {}).get("labels") or {}, **filled}
    return filled


def _pod_template_spec(spec: Plain) -> Plain:
    """Defaults that pods and pod templates share."""
    result = {
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": DEFAULT_GRACE_SECONDS,
        **spec,
    }
    for field in ("containers", "initContainers"):
        if spec.get(field):
            result[field] = [_container(container) for container in spec[field]]
    if spec.get("topologySpreadConstraints"):
        result["topologySpreadConstraints"] = [
            {"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore", **constraint}
            for constraint in spec["topologySpreadConstraints"]
        ]
    return result


def _container(container: Plain) -> Plain:
    """A limit without a request is also the request; a port without a protocol is TCP."""
    result = dict(container)
    resources = container.get("resources") or {}
    if resources.get("limits"):
        requests = {**resources["limits"], **(resources.get("requests") or {})}
        result["resources"] = {**resources, "requests": requests}
    if container.get("ports"):
        result["ports"] = [{"protocol": "TCP", **port} for port in container["ports"]]
    return result


def _pod_spec(spec: Plain, priority_of: Callable[[str], int | None]) -> Plain:
    result = _pod_template_spec(spec)
    if "priority" not in spec:
        name = spec.get("priorityClassName", "")
        value = SYSTEM_PRIORITIES.get(name, priority_of(name) if name else 0)
        result["priority"] = value or 0
    tolerations = list(spec.get("tolerations") or [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_covers_no_execute(toleration, key) for toleration in tolerations):
            timed = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": UNREACHABLE_SECONDS}
            tolerations.append(timed)
    result["tolerations"] = tolerations
    return result


def _covers_no_execute(toleration: Plain, key: str) -> bool:
    return toleration.get("key", "") in {"", key} and toleration.get("effect", "") in {"", "NoExecute"}


def _claim_spec(spec: Plain) -> Plain:
    devices = spec.get("devices") or {}
    if not devices.get("requests"):
        return spec
    requests = []
    for request in devices["requests"]:
        filled = dict(request)
        if request.get("exactly"):
            filled["exactly"] = _device_request(request["exactly"])
        if request.get("firstAvailable"):
            filled["firstAvailable"] = [_device_request(item) for item in request["firstAvailable"]]
        requests.append(filled)
    return {**spec, "devices": {**devices, "requests": requests}}


def _device_request(request: Plain) -> Plain:
    filled = {"allocationMode": "ExactCount", **request}
    if filled["allocationMode"] == "ExactCount" and "count" not in filled:
        filled["count"] = 1
    if filled.get("tolerations"):
        filled["tolerations"] = [{"operator": "Equal", **toleration} for toleration in filled["tolerations"]]
    return filled


def _node_pool_spec(spec: Plain) -> Plain:
    template = spec.get("template") or {}
    claim = {"expireAfter": EXPIRE_AFTER, **(template.get("spec") or {})}
    disruption = {
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "budgets": [{"nodes": "10%"}],
        **(spec.get("disruption") or {}),
    }
    disruption["budgets"] = [{"nodes": "10%", **budget} for budget in disruption["budgets"]]
    return {**spec, "template": {**template, "spec": claim}, "disruption": disruption}
