"""What all Kubernetes objects share: metadata, owner references, conditions, selectors."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from msgspec import Struct, field

from karpenter_linode.model.requirement_spec import NodeSelectorRequirement


class OwnerReference(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A reference from a dependent to its owner."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Object metadata. Times are aware UTC datetimes."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generate_name: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Condition(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A status condition (``metav1.Condition`` and the older node and pod forms)."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int = 0


class LabelSelector(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A label selector: everything in it must hold."""

    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()


class KubeObject(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of every object that the API server stores. Subclasses name their kind in class variables."""

    API_VERSION: ClassVar[str] = ""
    KIND: ClassVar[str] = ""
    PLURAL: ClassVar[str] = ""
    NAMESPACED: ClassVar[bool] = True

    metadata: ObjectMeta = field(default_factory=ObjectMeta)

    @property
    def name(self) -> str:
        """The object's name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The object's namespace, empty for cluster-scoped kinds."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """The object's UID."""
        return self.metadata.uid

    @property
    def key(self) -> str:
        """``namespace/name``, or the bare name of a cluster-scoped object: how messages name it."""
        return f"{self.metadata.namespace}/{self.metadata.name}" if self.metadata.namespace else self.metadata.name


def find_condition(conditions: tuple[Condition, ...], kind: str) -> Condition | None:
    """The condition of that type, or None."""
    return next((condition for condition in conditions if condition.type == kind), None)


def is_true(conditions: tuple[Condition, ...], kind: str) -> bool:
    """Whether the condition of that type is present with status ``True``."""
    condition = find_condition(conditions, kind)
    return condition is not None and condition.status == "True"
