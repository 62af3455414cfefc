"""Validation of what makes pods from a template."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from karpenter_linode.sim.resource_types import ResourceType

Plain = dict[str, Any]

MAX_REPLICAS: Final = 1_000
"""A bound of the embedded world, which keeps all pods in memory; Kubernetes has none."""


def check_workload(kind: ResourceType, spec: Plain) -> list[str]:
    """Problems of a workload's spec; one without a template stands for pods that came from elsewhere."""
    template = spec.get("template")
    if not template:
        return []
    problems = []
    replicas = spec.get("replicas", 1)
    if replicas < 0:
        problems.append(f"spec.replicas: Invalid value: {replicas}: must be greater than or equal to 0")
    if replicas > MAX_REPLICAS:
        problems.append(f"spec.replicas: Invalid value: {replicas}: the embedded world makes at most {MAX_REPLICAS}")
    if not (template.get("spec") or {}).get("containers"):
        problems.append("spec.template.spec.containers: Required value")
    labels = (template.get("metadata") or {}).get("labels") or {}
    selector = spec.get("selector") or {}
    wanted = selector if kind.kind == "ReplicationController" else selector.get("matchLabels") or {}
    if not selector:
        problems.append("spec.selector: Required value")
    elif any(labels.get(key) != value for key, value in wanted.items()):
        problems.append(
            f"spec.template.metadata.labels: Invalid value: {json.dumps(labels)}: "
            "`selector` does not match template `labels`"
        )
    return problems
