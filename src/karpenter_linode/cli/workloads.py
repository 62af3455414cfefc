"""Deployments, StatefulSets, ReplicaSets, Jobs and CronJobs: the pods that their controllers would make."""

from __future__ import annotations

from typing import Any, Final

Plain = dict[str, Any]

WORKLOADS: Final = frozenset(
    {
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
    }
)
MAX_REPLICAS: Final = 100_000


class WorkloadError(ValueError):
    """A workload whose pods cannot be told. ``path`` is the field."""

    def __init__(self, path: tuple[str, ...], message: str) -> None:
        self.path = path
        super().__init__(message)


def pods_of(workload: Plain) -> tuple[list[Plain], tuple[str, ...]]:
    """The pods of a workload as plain data, numbered from 0, owned by it, and the path of the template they come from.

    A Job's pods are those that run at its start, a CronJob's those of one run. A pod of a Deployment is shown as owned
    by the Deployment itself: the ReplicaSet between them has no say in scheduling. Volume claim templates of
    StatefulSets are not followed.

    Raises:
        WorkloadError: no template, or a count that is no count.
    """
    spec, at = _templated(workload)
    template = spec.get("template")
    if not isinstance(template, dict):
        raise WorkloadError((*at, "template"), "a mapping with the pod's template is missing")
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
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{index}", **shared},
            "spec": template.get("spec") or {},
        }
        for index in range(_replicas(workload, spec, at))
    ]
    return pods, (*at, "template")


def _templated(workload: Plain) -> tuple[Plain, tuple[str, ...]]:
    """The specification that holds the pod's template, and its path; a CronJob's is that of its jobs."""
    at = ("spec", "jobTemplate", "spec") if workload["kind"] == "CronJob" else ("spec",)
    found: Any = workload
    for name in at:
        found = found.get(name) if isinstance(found, dict) else None
    return (found if isinstance(found, dict) else {}), at


def _replicas(workload: Plain, spec: Plain, at: tuple[str, ...]) -> int:
    if workload["kind"] not in {"Job", "CronJob"}:
        return _count(spec, "replicas", at)
    if spec.get("suspend") or workload["spec"].get("suspend"):
        return 0
    parallelism = _count(spec, "parallelism", at)
    return parallelism if spec.get("completions") is None else min(parallelism, _count(spec, "completions", at))


def _count(spec: Plain, name: str, at: tuple[str, ...]) -> int:
    value = spec.get(name)
    if value is None:
        return 1
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_REPLICAS:
        raise WorkloadError((*at, name), f"found {value!r}, expected a whole number from 0 to {MAX_REPLICAS}")
    return value
