"""``karpenter.sh/v1`` and ``karpenter.k8s.linode/v1alpha1``.

Sources: spec/karpenter-scheduling.md 6, spec/linode-provider.md 1.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from msgspec import Struct, field

from karpenter_linode.model.core import ResourceList, Taint
from karpenter_linode.model.meta import Condition, KubeObject
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement

NEVER = "Never"


class NodeClassRef(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The NodeClass that a pool or claim uses."""

    group: str = ""
    kind: str = ""
    name: str = ""


class NodeClaimTemplateMeta(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Labels and annotations for NodeClaims of a pool."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class NodeClaimTemplateSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Spec for NodeClaims of a pool. Durations keep the text the user wrote."""

    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    requirements: tuple[NodeSelectorRequirement, ...] = ()
    node_class_ref: NodeClassRef = field(default_factory=NodeClassRef)
    termination_grace_period: str | None = None
    expire_after: str | None = None


class NodeClaimTemplate(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The template of a NodePool."""

    metadata: NodeClaimTemplateMeta = field(default_factory=NodeClaimTemplateMeta)
    spec: NodeClaimTemplateSpec = field(default_factory=NodeClaimTemplateSpec)


class Budget(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How many nodes of a pool may be disrupted at once."""

    nodes: str = "10%"
    reasons: tuple[str, ...] | None = None
    schedule: str | None = None
    duration: str | None = None


class Disruption(Struct, frozen=True, rename="camel", omit_defaults=True):
    """When nodes of a pool may be removed."""

    consolidate_after: str = "0s"
    consolidation_policy: str = "WhenEmptyOrUnderutilized"
    budgets: tuple[Budget, ...] = (Budget(),)


class NodePoolSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a NodePool may build."""

    template: NodeClaimTemplate = field(default_factory=NodeClaimTemplate)
    disruption: Disruption = field(default_factory=Disruption)
    limits: ResourceList | None = None
    weight: int | None = None
    replicas: int | None = None


class NodePoolStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a NodePool has built."""

    resources: ResourceList = field(default_factory=dict)
    nodes: int | None = None
    node_class_observed_generation: int | None = None
    conditions: tuple[Condition, ...] = ()


class NodePool(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A NodePool."""

    API_VERSION: ClassVar[str] = "karpenter.sh/v1"
    KIND: ClassVar[str] = "NodePool"
    PLURAL: ClassVar[str] = "nodepools"
    NAMESPACED: ClassVar[bool] = False

    spec: NodePoolSpec = field(default_factory=NodePoolSpec)
    status: NodePoolStatus = field(default_factory=NodePoolStatus)


class NodeClaimResources(Struct, frozen=True, omit_defaults=True):
    """Resources that a NodeClaim must provide."""

    requests: ResourceList = field(default_factory=dict)


class NodeClaimSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a NodeClaim asks the cloud for; immutable."""

    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    requirements: tuple[NodeSelectorRequirement, ...] = ()
    resources: NodeClaimResources = field(default_factory=NodeClaimResources)
    node_class_ref: NodeClassRef = field(default_factory=NodeClassRef)
    termination_grace_period: str | None = None
    expire_after: str | None = None


class NodeClaimStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How far a NodeClaim has come."""

    node_name: str = ""
    provider_id: str = field(name="providerID", default="")
    image_id: str = field(name="imageID", default="")
    capacity: ResourceList = field(default_factory=dict)
    allocatable: ResourceList = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    last_pod_event_time: datetime | None = None


class NodeClaim(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A NodeClaim."""

    API_VERSION: ClassVar[str] = "karpenter.sh/v1"
    KIND: ClassVar[str] = "NodeClaim"
    PLURAL: ClassVar[str] = "nodeclaims"
    NAMESPACED: ClassVar[bool] = False

    spec: NodeClaimSpec = field(default_factory=NodeClaimSpec)
    status: NodeClaimStatus = field(default_factory=NodeClaimStatus)


class KubeletConfiguration(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Kubelet settings; on LKE they only feed the capacity estimate (spec/linode-provider.md 1.3)."""

    cluster_dns: tuple[str, ...] = field(name="clusterDNS", default=())
    max_pods: int | None = None
    pods_per_core: int | None = None
    system_reserved: dict[str, str] = field(default_factory=dict)
    kube_reserved: dict[str, str] = field(default_factory=dict)
    eviction_hard: dict[str, str] = field(default_factory=dict)
    eviction_soft: dict[str, str] = field(default_factory=dict)
    eviction_soft_grace_period: dict[str, str] = field(default_factory=dict)
    eviction_max_pod_grace_period: int | None = None
    cpu_cfs_quota: bool | None = field(name="cpuCFSQuota", default=None)


class InstanceDisk(Struct, frozen=True, omit_defaults=True):
    """A disk of an instance (instance mode)."""

    size: Quantity
    disk_id: int | None = field(name="diskID", default=None)
    label: str = ""
    filesystem: str = ""


class PlacementGroup(Struct, frozen=True, omit_defaults=True, gc=False):
    """A placement group; the key ``compliant_only`` is snake case in the CRD."""

    id: int = 0
    compliant_only: bool | None = None


class LinodeNodeClassSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What the provider reads; every field of the CRD is kept (spec/linode-provider.md 1.2)."""

    authorized_keys: tuple[str, ...] = ()
    authorized_users: tuple[str, ...] = ()
    image: str = ""
    backups_enabled: bool | None = None
    tags: tuple[str, ...] = ()
    firewall_id: int | None = field(name="firewallID", default=None)
    os_disk: InstanceDisk | None = None
    data_disks: dict[str, InstanceDisk] = field(default_factory=dict)
    disk_encryption: str = ""
    configuration: dict[str, str] = field(default_factory=dict)
    placement_group: PlacementGroup | None = None
    vpc_id: int | None = field(name="vpcID", default=None)
    ipv6_options: dict[str, bool] = field(default_factory=dict)
    swap_size: int | None = field(name="swap_size", default=None)
    kubelet: KubeletConfiguration | None = None
    lke_k8s_version: str = field(name="lkeK8sVersion", default="")


class LinodeNodeClassStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Conditions of a LinodeNodeClass."""

    conditions: tuple[Condition, ...] = ()


class LinodeNodeClass(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A LinodeNodeClass."""

    API_VERSION: ClassVar[str] = "karpenter.k8s.linode/v1alpha1"
    KIND: ClassVar[str] = "LinodeNodeClass"
    PLURAL: ClassVar[str] = "linodenodeclasses"
    NAMESPACED: ClassVar[bool] = False

    spec: LinodeNodeClassSpec = field(default_factory=LinodeNodeClassSpec)
    status: LinodeNodeClassStatus = field(default_factory=LinodeNodeClassStatus)
