"""Deployments, StatefulSets, ReplicaSets and Jobs: the pods that their controllers would make."""

from __future__ import annotations

from typing import ClassVar, Final

from msgspec import Struct, field

from karpenter_linode.model.core import Pod, PodTemplateSpec
from karpenter_linode.model.meta import KubeObject, ObjectMeta, OwnerReference

MAX_REPLICAS: Final = 100_000


class ReplicasSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A template and how often it runs."""

    replicas: int = 1
    template: PodTemplateSpec = field(default_factory=PodTemplateSpec)


class JobSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A template that runs to completion. Null counts mean 1."""

    parallelism: int | None = None
    completions: int | None = None
    suspend: bool = False
    template: PodTemplateSpec = field(default_factory=PodTemplateSpec)

    @property
    def replicas(self) -> int:
        """Pods that run at the same time at the start."""
        if self.suspend:
            return 0
        parallelism = 1 if self.parallelism is None else self.parallelism
        return parallelism if self.completions is None else min(parallelism, self.completions)


class Deployment(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A Deployment."""

    API_VERSION: ClassVar[str] = "apps/v1"
    KIND: ClassVar[str] = "Deployment"
    PLURAL: ClassVar[str] = "deployments"

    spec: ReplicasSpec = field(default_factory=ReplicasSpec)


class ReplicaSet(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A ReplicaSet."""

    API_VERSION: ClassVar[str] = "apps/v1"
    KIND: ClassVar[str] = "ReplicaSet"
    PLURAL: ClassVar[str] = "replicasets"

    spec: ReplicasSpec = field(default_factory=ReplicasSpec)


class StatefulSet(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A StatefulSet. Its volume claim templates are not followed: they matter once volumes are bound to a place."""

    API_VERSION: ClassVar[str] = "apps/v1"
    KIND: ClassVar[str] = "StatefulSet"
    PLURAL: ClassVar[str] = "statefulsets"

    spec: ReplicasSpec = field(default_factory=ReplicasSpec)


class Job(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A Job."""

    API_VERSION: ClassVar[str] = "batch/v1"
    KIND: ClassVar[str] = "Job"
    PLURAL: ClassVar[str] = "jobs"

    spec: JobSpec = field(default_factory=JobSpec)


Workload = Deployment | ReplicaSet | StatefulSet | Job
WORKLOADS: Final[dict[tuple[str, str], type[Workload]]] = {
    (kind.API_VERSION, kind.KIND): kind for kind in (Deployment, ReplicaSet, StatefulSet, Job)
}


def pods_of(workload: Workload) -> list[Pod]:
    """The pods of a workload, numbered from 0, owned by it.

    A pod of a Deployment is shown as owned by the Deployment itself: the ReplicaSet between has no say in scheduling.
    """
    template = workload.spec.template
    owner = OwnerReference(
        api_version=workload.API_VERSION, kind=workload.KIND, name=workload.name, uid=workload.uid, controller=True
    )
    return [
        Pod(
            metadata=ObjectMeta(
                name=f"{workload.name}-{index}",
                namespace=workload.namespace,
                labels=template.metadata.labels,
                annotations=template.metadata.annotations,
                owner_references=(owner,),
            ),
            spec=template.spec,
        )
        for index in range(workload.spec.replicas)
    ]
