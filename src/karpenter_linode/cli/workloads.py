"""Deployments, StatefulSets, Jobs and their like: the pods that their controllers would make."""

from __future__ import annotations

from typing import Any, Final

Plain = dict[str, Any]

WORKLOADS: Final = frozenset(
    {
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("v1", "ReplicationController"),
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

    A Job's pods are those that run at its start, a CronJob's those of one run. A Deployment's belong to a ReplicaSet of
    its name. Volume claim templates of StatefulSets are not followed.

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
        "kind": _owner_kind(workload),
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


def with_selector(workload: Plain) -> Plain | None:
    """What tells which pods belong together, as plain data: the workload trimmed to its selector; None for Jobs.

    A Deployment gives the ReplicaSet that owns its pods.
    """
    if workload["apiVersion"] == "batch/v1":
        return None
    spec = workload.get("spec")
    selector = spec.get("selector") if isinstance(spec, dict) else None
    return {**workload, "kind": _owner_kind(workload), "spec": {"selector": selector} if selector else {}}


def _owner_kind(workload: Plain) -> str:
    kind = str(workload["kind"])
    return "ReplicaSet" if kind == "Deployment" else kind


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
