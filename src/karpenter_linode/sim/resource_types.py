"""Which kinds the embedded API server serves, and how each behaves (scope, status subresource, generation)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.ports import NotFoundError

if TYPE_CHECKING:
    from karpenter_linode.model.meta import KubeObject


class ResourceType(Struct, frozen=True):
    """A kind as the API server serves it.

    ``status`` says that ``/status`` is a subresource, so that main writes leave it alone and status writes touch
    nothing else. ``generation`` says that a spec change raises ``metadata.generation``. ``keeps_status`` marks the
    kinds whose status survives creation (a kubelet registers its Node with a status; everyone else starts empty).
    """

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True
    status: bool = False
    generation: bool = False
    keeps_status: bool = False

    @property
    def group(self) -> str:
        """The API group, empty for core."""
        return self.api_version.rpartition("/")[0]

    @property
    def resource(self) -> str:
        """``plural.group``, as error messages name it; core kinds have no group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def custom(self) -> bool:
        """Whether a CustomResourceDefinition serves it; those refuse strategic merge patches."""
        return self.group in {"karpenter.sh", "karpenter.k8s.linode", "autoscaling.x-k8s.io"}


RESOURCE_TYPES: Final = (
    ResourceType("v1", "Namespace", "namespaces", namespaced=False, status=True),
    ResourceType("v1", "Pod", "pods", status=True, generation=True),
    ResourceType("v1", "Node", "nodes", namespaced=False, status=True, keeps_status=True),
    ResourceType("v1", "Event", "events"),
    ResourceType("v1", "ConfigMap", "configmaps"),
    ResourceType("v1", "Secret", "secrets"),
    ResourceType("v1", "ServiceAccount", "serviceaccounts"),
    ResourceType("v1", "Service", "services", status=True),
    ResourceType("v1", "PersistentVolumeClaim", "persistentvolumeclaims", status=True, keeps_status=True),
    ResourceType("v1", "PersistentVolume", "persistentvolumes", namespaced=False, status=True, keeps_status=True),
    ResourceType("apps/v1", "DaemonSet", "daemonsets", status=True, generation=True),
    ResourceType("apps/v1", "Deployment", "deployments", status=True, generation=True),
    ResourceType("apps/v1", "ReplicaSet", "replicasets", status=True, generation=True),
    ResourceType("apps/v1", "StatefulSet", "statefulsets", status=True, generation=True),
    ResourceType("v1", "ReplicationController", "replicationcontrollers", status=True, generation=True),
    ResourceType("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", status=True, generation=True),
    ResourceType("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False, generation=True),
    ResourceType("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False),
    ResourceType("storage.k8s.io/v1", "CSINode", "csinodes", namespaced=False),
    ResourceType("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", namespaced=False, status=True),
    ResourceType("coordination.k8s.io/v1", "Lease", "leases"),
    ResourceType("resource.k8s.io/v1", "ResourceSlice", "resourceslices", namespaced=False, generation=True),
    ResourceType("resource.k8s.io/v1", "DeviceClass", "deviceclasses", namespaced=False, generation=True),
    ResourceType("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", status=True),
    ResourceType("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates"),
    ResourceType("karpenter.sh/v1", "NodePool", "nodepools", namespaced=False, status=True, generation=True),
    ResourceType("karpenter.sh/v1", "NodeClaim", "nodeclaims", namespaced=False, status=True, generation=True),
    ResourceType(
        "karpenter.k8s.linode/v1alpha1",
        "LinodeNodeClass",
        "linodenodeclasses",
        namespaced=False,
        status=True,
        generation=True,
    ),
)
_BY_KIND: Final = {(served.api_version, served.kind): served for served in RESOURCE_TYPES}


def served_type(api_version: str, kind: str) -> ResourceType:
    """The type that a manifest's ``apiVersion`` and ``kind`` name.

    Raises:
        NotFoundError: the server does not serve it, in the words of kubectl.
    """
    try:
        return _BY_KIND[api_version, kind]
    except KeyError:
        raise NotFoundError(f'no matches for kind "{kind}" in version "{api_version}"') from None


def type_of(kind: type[KubeObject]) -> ResourceType:
    """The type that a Struct class stands for."""
    return served_type(kind.API_VERSION, kind.KIND)
