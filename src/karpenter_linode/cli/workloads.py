"""Deployments, StatefulSets, ReplicaSets and Jobs: the pods that their controllers would make."""

from __future__ import annotations

from typing import Any, Final

Plain = dict[str, Any]

WORKLOADS: Final = frozenset(
    {("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job")}
)
MAX_REPLICAS: Final = 100_000


class WorkloadError(ValueError):
    """A workload whose pods cannot be told. ``path`` is the field."""

    def __init__(self, path: tuple[str, ...], message: str) -> None:
        self.path = path
        super().__init__(message)


def pods_of(workload: Plain) -> list[Plain]:
    """The pods of a workload as plain data, numbered from 0, owned by it.

    A Job's pods are those that run at its start. A pod of a Deployment is shown as owned by the Deployment itself: the
    ReplicaSet between them has no say in scheduling. Volume claim templates of StatefulSets are not followed.

    Raises:
        WorkloadError: no template, or a count that is no count.
    """
    spec = workload.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(template, dict):
        raise WorkloadError(("spec", "template"), "a mapping with the pod's template is missing")
    metadata, own = template.get("metadata") or {}, workload["metadata"]
    name, namespace = str(own.get("name", "")), str(own.get("namespace", ""))
    owner = {
        "apiVersion": workload["apiVersion"],
        "kind": workload["kind"],
        "name": name,
        "uid": str(own.get("uid", "")),
        "controller": True,
    }
    shared = {"namespace": namespace, "labels": metadata.get("labels") or {}, "ownerReferences": [owner]}
    if metadata.get("annotations"):
        shared["annotations"] = metadata["annotations"]
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{index}", **shared},
            "spec": template.get("spec") or {},
        }
        for index in range(_replicas(workload["kind"], spec))
    ]


def _replicas(kind: str, spec: Plain) -> int:
    if kind != "Job":
        return _count(spec, "replicas")
    if spec.get("suspend"):
        return 0
    parallelism = _count(spec, "parallelism")
    return parallelism if spec.get("completions") is None else min(parallelism, _count(spec, "completions"))


def _count(spec: Plain, name: str) -> int:
    value = spec.get(name)
    if value is None:
        return 1
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_REPLICAS:
        raise WorkloadError(("spec", name), f"found {value!r}, expected a whole number from 0 to {MAX_REPLICAS}")
    return value
