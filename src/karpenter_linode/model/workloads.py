"""Services and the controllers of replicated pods, trimmed to what tells which pods belong together."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct, field

from karpenter_linode.model.meta import KubeObject, LabelSelector


class PlainSelectorSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which pods are meant, by labels that they must all carry; None where an object selects none."""

    selector: dict[str, str] | None = None


class SelectorSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which pods are meant, by a selector."""

    selector: LabelSelector = field(default_factory=LabelSelector)


class Service(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A Service."""

    API_VERSION: ClassVar[str] = "v1"
    KIND: ClassVar[str] = "Service"
    PLURAL: ClassVar[str] = "services"

    spec: PlainSelectorSpec = field(default_factory=PlainSelectorSpec)


class ReplicationController(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A ReplicationController."""

    API_VERSION: ClassVar[str] = "v1"
    KIND: ClassVar[str] = "ReplicationController"
    PLURAL: ClassVar[str] = "replicationcontrollers"

    spec: PlainSelectorSpec = field(default_factory=PlainSelectorSpec)


class ReplicaSet(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A ReplicaSet."""

    API_VERSION: ClassVar[str] = "apps/v1"
    KIND: ClassVar[str] = "ReplicaSet"
    PLURAL: ClassVar[str] = "replicasets"

    spec: SelectorSpec = field(default_factory=SelectorSpec)


class StatefulSet(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A StatefulSet."""

    API_VERSION: ClassVar[str] = "apps/v1"
    KIND: ClassVar[str] = "StatefulSet"
    PLURAL: ClassVar[str] = "statefulsets"

    spec: SelectorSpec = field(default_factory=SelectorSpec)
