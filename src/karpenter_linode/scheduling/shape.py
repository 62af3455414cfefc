"""Shapes: what of a pod can matter to its placement. Pods of one shape are alike to every rule.

Everything that a rule learns about a shape is kept with it, so the work of a rule is paid once per shape and node, not
once per pod.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from karpenter_linode.dra.claims import has_dra_requirements
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.scheduling import resources as res
from karpenter_linode.scheduling.ports import host_ports
from karpenter_linode.scheduling.relaxation import relax
from karpenter_linode.scheduling.selection import NO_SELECTION, preferred, required
from karpenter_linode.scheduling.volumes import NO_VOLUMES

if TYPE_CHECKING:
    from karpenter_linode.model.core import Pod
    from karpenter_linode.model.reason import Reason
    from karpenter_linode.scheduling.devices import DeviceDesk
    from karpenter_linode.scheduling.selection import Selection
    from karpenter_linode.scheduling.topology.tracker import ShapeTopology
    from karpenter_linode.scheduling.volumes import PodVolumes, VolumeIndex

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)  # for pods whose age is not known
_MAX_WIRE_INT: Final = 1 << 63  # msgpack has no greater integers


class LabelClass:
    """A namespace with labels: all that a selector sees of a pod."""

    __slots__ = ("labels", "namespace")

    def __init__(self, namespace: str, labels: dict[str, str]) -> None:
        self.namespace = namespace
        self.labels = labels


class Shape:
    """A class of equal pods.

    Args:
        pod: any of them.
        label_class: namespace and labels.
        respect_preferences: whether preferred node affinity counts.
        volumes: what their volumes ask of the node.
        served: extended resources that come as devices through a claim, not as a count on the node.
    """

    __slots__ = (
        "dead_existing",
        "dead_open",
        "dra",
        "existing_mask",
        "failed_as",
        "failed_at",
        "invalid",
        "items",
        "label_class",
        "no_template",
        "pod",
        "ports",
        "refused",
        "relaxed",
        "relaxed_text",
        "requests",
        "running",
        "selection",
        "size",
        "strict",
        "tolerations",
        "topology",
        "topology_key",
        "volumes",
    )

    def __init__(
        self,
        pod: Pod,
        label_class: LabelClass,
        *,
        respect_preferences: bool,
        volumes: PodVolumes,
        served: frozenset[str],
    ) -> None:
        self.pod = pod
        self.label_class = label_class
        self.requests = {name: amount for name, amount in res.pod_requests(pod).items() if name not in served}
        self.items = tuple(self.requests.items())
        self.size = (-self.requests.get(res.CPU, 0), -self.requests.get(res.MEMORY, 0))
        self.invalid: str | None = None  # why pods of this shape are ignored; None until it was looked at
        self.strict: Selection = NO_SELECTION
        self.selection: Selection = NO_SELECTION
        if pod.spec.node_selector or (pod.spec.affinity is not None and pod.spec.affinity.node_affinity is not None):
            self.strict = required(pod)
            self.selection = preferred(pod) if respect_preferences else self.strict
        self.tolerations = pod.spec.tolerations
        self.ports = host_ports(pod)
        self.dra = bool(served) or has_dra_requirements(pod)
        self.volumes = volumes
        self.running = False  # on a node that stays: only a consolidation may not move it twice
        self.refused: Reason | None = None
        # What was learnt. Rules only ever tighten while solving, so a "no" that no count can undo stays.
        self.topology: ShapeTopology | None = None
        self.topology_key: Any = None  # what of the spec topology rules read; None where there are none
        self.dead_existing = 0
        self.dead_open = 0
        self.existing_mask: int | None = None
        self.no_template: set[str] = set()
        self.failed_at = -1  # how many pods were placed when this failed in every form
        self.failed_as: Shape | None = None  # the last form
        self.relaxed: Shape | None = None
        self.relaxed_text = ""


class Shapes:
    """All shapes of a problem.

    Args:
        respect_preferences: the preference policy.
        tolerate_prefer_no_schedule: whether tolerating PreferNoSchedule taints can help (relaxation step 6).
        volumes: volume claims and what they are bound to.
        devices: ResourceClaims, for what distinguishes pods that use them.
        deleting_pod_uids: pods on deleting nodes.
    """

    def __init__(
        self,
        *,
        respect_preferences: bool,
        tolerate_prefer_no_schedule: bool,
        volumes: VolumeIndex,
        devices: DeviceDesk | None,
        deleting_pod_uids: frozenset[str],
    ) -> None:
        self._respect = respect_preferences
        self._tolerate = tolerate_prefer_no_schedule
        self._volumes = volumes
        self._devices = devices
        self._deleting = deleting_pod_uids
        self._shapes: dict[Any, Shape] = {}
        self._label_classes: dict[Any, LabelClass] = {}
        self._encode = msgspec.msgpack.Encoder(enc_hook=_encode_quantity).encode

    def of(self, pod: Pod) -> Shape:
        """The shape of a pod."""
        meta = pod.metadata
        spec = pod.spec
        running = pod.status.phase != "Pending" and meta.uid not in self._deleting
        claims = None
        if self._devices is not None and self._devices.has_claims(pod):
            claims = self._devices.shape_key(pod)
            spec = msgspec.structs.replace(spec, resource_claims=())  # names of claims do not distinguish pods
        statuses = (pod.status.container_statuses, pod.status.init_container_statuses)
        resized = self._encode(statuses) if any(statuses) else b""
        volumes = meta.name if spec.volumes else ""  # names of ephemeral volumes' claims come from the pod's
        key = (meta.namespace, tuple(meta.labels.items()), self._encode(spec), running, claims, resized, volumes)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._build(pod)
            shape.running = running
            self._shapes[key] = shape
        return shape

    def relax(self, shape: Shape) -> Shape | None:
        """The same shape with one preference less, or None when nothing is left to give up."""
        if shape.relaxed is not None:
            return None if shape.relaxed is shape else shape.relaxed
        step = relax(shape.pod, tolerate_prefer_no_schedule=self._tolerate)
        if step is None:
            shape.relaxed = shape
            return None
        shape.relaxed = self.of(step[0])
        shape.relaxed_text = step[1]
        return shape.relaxed

    def label_class(self, namespace: str, values: dict[str, str]) -> LabelClass:
        """The one class with this namespace and these labels."""
        key = (namespace, tuple(values.items()))
        found = self._label_classes.get(key)
        if found is None:
            found = self._label_classes[key] = LabelClass(namespace, values)
        return found

    def _build(self, pod: Pod) -> Shape:
        label_class = self.label_class(pod.namespace, pod.metadata.labels)
        spec = pod.spec
        volumes = self._volumes.of(pod) if spec.volumes else NO_VOLUMES
        served = self._devices.served(res.pod_requests(pod)) if self._devices is not None else frozenset()
        shape = Shape(pod, label_class, respect_preferences=self._respect, volumes=volumes, served=served)
        affinity = spec.affinity
        if spec.topology_spread_constraints or (
            affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
        ):
            read = (spec.topology_spread_constraints, affinity, spec.node_selector, spec.tolerations)
            shape.topology_key = (label_class, self._encode(read))
        return shape


def queue_order(pod: Pod, shape: Shape) -> tuple[tuple[int, int], datetime, str, str, str]:
    """Sort key of the queue: CPU and memory descending, then age, UID and name (spec 2.6)."""
    meta = pod.metadata
    return shape.size, meta.creation_timestamp or _LONG_AGO, meta.uid, meta.namespace, meta.name


def _encode_quantity(value: object) -> int | str:
    if isinstance(value, Quantity):
        return value.nano if value.nano < _MAX_WIRE_INT else str(value.nano)
    msg = f"cannot encode {type(value)!r}"
    raise NotImplementedError(msg)
