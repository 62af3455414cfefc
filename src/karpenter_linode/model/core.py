"""Core, apps, policy and storage objects, trimmed to the fields that decisions read. Unknown fields are ignored."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from msgspec import Struct, field

from karpenter_linode.model.meta import Condition, KubeObject, LabelSelector
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement

ResourceList = dict[str, Quantity]


class Taint(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A node taint."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A pod's toleration; empty operator means ``Equal``, empty effect means every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSelectorTerm(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Expressions that all must hold."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A node preference with its weight."""

    weight: int = 0
    preference: NodeSelectorTerm = field(default_factory=NodeSelectorTerm)


class NodeAffinity(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Required and preferred node selection."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Pods to stand together with, or apart from, within a topology."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A preferred pod affinity term."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = field(default_factory=PodAffinityTerm)


class PodAffinity(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Pod affinity or anti-affinity."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Struct, frozen=True, rename="camel", omit_defaults=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How evenly matching pods spread over a topology."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class ContainerClaim(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A container's use of one entry of ``spec.resourceClaims``."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Requests, limits and claims of a container or a pod."""

    requests: ResourceList = field(default_factory=dict)
    limits: ResourceList = field(default_factory=dict)
    claims: tuple[ContainerClaim, ...] = ()


class ContainerPort(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A port of a container; only host ports matter to scheduling."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = "TCP"


class Container(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A container, as far as scheduling sees it."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class PodResourceClaim(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """An entry of ``spec.resourceClaims``: a claim by name, or a template to make one from."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodResourceClaimStatus(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The claim made for one entry; a missing name means that the entry needs no claim."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Which container request an implicit claim's request serves."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class ExtendedResourceClaimStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The implicit claim made for extended resources."""

    resource_claim_name: str = ""
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()


class PersistentVolumeClaimSource(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A volume backed by a claim."""

    claim_name: str = ""


class PersistentVolumeClaimSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a volume claim asks for."""

    storage_class_name: str | None = None
    volume_name: str = ""
    access_modes: tuple[str, ...] = ()


class PersistentVolumeClaimTemplate(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The claim made for an ephemeral volume."""

    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)


class EphemeralVolumeSource(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A volume whose claim is made with the pod."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class Volume(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A pod volume; kinds other than claims never constrain scheduling."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: EphemeralVolumeSource | None = None


class SchedulingGate(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A gate that keeps a pod out of scheduling."""

    name: str = ""


class PodSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a pod asks for."""

    node_name: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: ResourceList = field(default_factory=dict)
    resource_claims: tuple[PodResourceClaim, ...] = ()
    volumes: tuple[Volume, ...] = ()
    priority: int | None = None
    priority_class_name: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    scheduler_name: str = ""
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None


class ContainerStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Resources that a running container was really given (in-place resize)."""

    name: str = ""
    allocated_resources: ResourceList = field(default_factory=dict)
    resources: ResourceRequirements | None = None


class PodStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What happened to a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None


class Pod(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A pod."""

    API_VERSION: ClassVar[str] = "v1"
    KIND: ClassVar[str] = "Pod"
    PLURAL: ClassVar[str] = "pods"

    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)


class NodeSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a node is told."""

    provider_id: str = field(name="providerID", default="")
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeAddress(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """An address of a node."""

    type: str = ""
    address: str = ""


class NodeStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a node reports."""

    capacity: ResourceList = field(default_factory=dict)
    allocatable: ResourceList = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()


class Node(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A node."""

    API_VERSION: ClassVar[str] = "v1"
    KIND: ClassVar[str] = "Node"
    PLURAL: ClassVar[str] = "nodes"
    NAMESPACED: ClassVar[bool] = False

    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)


class Namespace(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A namespace; only its labels are read."""

    API_VERSION: ClassVar[str] = "v1"
    KIND: ClassVar[str] = "Namespace"
    PLURAL: ClassVar[str] = "namespaces"
    NAMESPACED: ClassVar[bool] = False


class PodTemplateMeta(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Metadata copied to pods made from a template."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class PodTemplateSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A template for pods."""

    metadata: PodTemplateMeta = field(default_factory=PodTemplateMeta)
    spec: PodSpec = field(default_factory=PodSpec)


class DaemonSetSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a DaemonSet runs."""

    selector: LabelSelector = field(default_factory=LabelSelector)
    template: PodTemplateSpec = field(default_factory=PodTemplateSpec)


class DaemonSet(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A DaemonSet."""

    API_VERSION: ClassVar[str] = "apps/v1"
    KIND: ClassVar[str] = "DaemonSet"
    PLURAL: ClassVar[str] = "daemonsets"

    spec: DaemonSetSpec = field(default_factory=DaemonSetSpec)


class PodDisruptionBudgetSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How many pods may be away at once."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How many evictions are allowed now."""

    disruptions_allowed: int = 0


class PodDisruptionBudget(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A PodDisruptionBudget."""

    API_VERSION: ClassVar[str] = "policy/v1"
    KIND: ClassVar[str] = "PodDisruptionBudget"
    PLURAL: ClassVar[str] = "poddisruptionbudgets"

    spec: PodDisruptionBudgetSpec = field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = field(default_factory=PodDisruptionBudgetStatus)


class PersistentVolumeClaimStatus(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Phase of a volume claim."""

    phase: str = ""


class PersistentVolumeClaim(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A PersistentVolumeClaim."""

    API_VERSION: ClassVar[str] = "v1"
    KIND: ClassVar[str] = "PersistentVolumeClaim"
    PLURAL: ClassVar[str] = "persistentvolumeclaims"

    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = field(default_factory=PersistentVolumeClaimStatus)


class CSISource(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A volume served by a CSI driver."""

    driver: str = ""


class PathSource(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A ``local`` or ``hostPath`` volume."""

    path: str = ""


class VolumeNodeAffinity(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class AWSElasticBlockStoreSource(Struct, frozen=True, omit_defaults=True, gc=False):
    """A volume of the in-tree EBS plugin, attached by its CSI driver."""

    volume_id: str = field(name="volumeID", default="")


class PersistentVolumeSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A volume."""

    csi: CSISource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreSource | None = None
    local: PathSource | None = None
    host_path: PathSource | None = None
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""


class PersistentVolume(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A PersistentVolume."""

    API_VERSION: ClassVar[str] = "v1"
    KIND: ClassVar[str] = "PersistentVolume"
    PLURAL: ClassVar[str] = "persistentvolumes"
    NAMESPACED: ClassVar[bool] = False

    spec: PersistentVolumeSpec = field(default_factory=PersistentVolumeSpec)


class TopologySelectorLabelRequirement(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """One topology key with its values."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Topologies in which a storage class may provision."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A StorageClass (its fields stand at the top level)."""

    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"
    KIND: ClassVar[str] = "StorageClass"
    PLURAL: ClassVar[str] = "storageclasses"
    NAMESPACED: ClassVar[bool] = False

    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """How many volumes a driver may attach to a node."""

    count: int | None = None


class CSINodeDriver(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A CSI driver on a node."""

    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """CSI drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A CSINode; its name is the node's."""

    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"
    KIND: ClassVar[str] = "CSINode"
    PLURAL: ClassVar[str] = "csinodes"
    NAMESPACED: ClassVar[bool] = False

    spec: CSINodeSpec = field(default_factory=CSINodeSpec)


class VolumeAttachmentSource(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """What is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is attached where."""

    node_name: str = ""
    attacher: str = ""
    source: VolumeAttachmentSource = field(default_factory=VolumeAttachmentSource)


class VolumeAttachment(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A VolumeAttachment."""

    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"
    KIND: ClassVar[str] = "VolumeAttachment"
    PLURAL: ClassVar[str] = "volumeattachments"
    NAMESPACED: ClassVar[bool] = False

    spec: VolumeAttachmentSpec = field(default_factory=VolumeAttachmentSpec)


class ObjectReference(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A reference to any object."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EventSource(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Who reported an event."""

    component: str = ""


class Event(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A core/v1 Event."""

    API_VERSION: ClassVar[str] = "v1"
    KIND: ClassVar[str] = "Event"
    PLURAL: ClassVar[str] = "events"

    involved_object: ObjectReference = field(default_factory=ObjectReference)
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 1
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    source: EventSource = field(default_factory=EventSource)
