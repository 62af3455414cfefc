"""The NVIDIA DRA driver, as far as the API server sees it: the ResourceSlices of every GPU node.

Source: spec/nvidia-dra.md 1.2 to 1.4, 2.1 and 2.3. The plug-in runs on a node once it may: the node is ready, carries a
label of GPU discovery, and has no taint but ``nvidia.com/gpu``. Any other taint keeps the devices away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from karpenter_linode.catalog import predict
from karpenter_linode.model import codec
from karpenter_linode.model.core import Node, Toleration
from karpenter_linode.model.labels import GPU_RESOURCE, NVIDIA_DRIVER
from karpenter_linode.model.meta import is_true
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.resource import Device, DeviceAttribute, DeviceCapacity
from karpenter_linode.scheduling.taints import PREFER_NO_SCHEDULE, untolerated
from karpenter_linode.sim.resource_types import served_type, type_of

if TYPE_CHECKING:
    from karpenter_linode.sim.agenda import Appointment
    from karpenter_linode.sim.context import SimContext
    from karpenter_linode.sim.nodes import Machine, NodeLifecycle
    from karpenter_linode.sim.watches import Change

DISCOVERY_LABEL: Final = "feature.node.kubernetes.io/pci-10de.present"
DISCOVERY_LABELS: Final = (
    (DISCOVERY_LABEL, "true"),
    ("feature.node.kubernetes.io/pci-0302_10de.present", "true"),
    ("feature.node.kubernetes.io/pci-0300_10de.present", "true"),
    ("feature.node.kubernetes.io/cpu-model.vendor_id", "NVIDIA"),
    ("nvidia.com/gpu.present", "true"),
)
_TOLERATIONS: Final = (
    Toleration(GPU_RESOURCE, "Exists", "", "NoSchedule"),
    Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute"),
    Toleration("node.kubernetes.io/unreachable", "Exists", "", "NoExecute"),
    *(
        Toleration(f"node.kubernetes.io/{condition}", "Exists", "", "NoSchedule")
        for condition in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    ),
)
"""The plug-in's own toleration, and those that every DaemonSet's pods are given."""

_SLICE: Final = served_type("resource.k8s.io/v1", "ResourceSlice")
_FIRST_PCI_SLOT: Final = 2
_UNKNOWN_BOARD: Final = {
    "productName": DeviceAttribute(string="NVIDIA Graphics Device"),
    "brand": DeviceAttribute(string="Unknown"),
    "architecture": DeviceAttribute(string="Unknown"),
}
_QUADRO_RTX_6000: Final = {
    "productName": DeviceAttribute(string="Quadro RTX 6000"),
    "brand": DeviceAttribute(string="QuadroRTX"),
    "architecture": DeviceAttribute(string="Turing"),
    "cudaComputeCapability": DeviceAttribute(version="7.5.0"),
}
_QUADRO_PLANS: Final = "g1-gpu-rtx6000-"
_QUADRO_MEMORY: Final = "24Gi"

Publishing = Literal["complete", "parts", "regenerated", "never"]


class DriverBehaviour(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """How the driver behaves.

    Args:
        publishing: ``complete`` in one slice; ``parts``: two slices of one generation, apart in time; ``regenerated``:
            first half of the devices as a complete generation, then all of them as a newer one in two parts; or never.
        discovery: whether node feature discovery labels GPU nodes. Without it someone else must set such a label.
        late_seconds: added to the driver's start.
        driver_version: of the kernel driver, as published.
        cuda_version: of the CUDA driver, as published.
    """

    publishing: Publishing = "complete"
    discovery: bool = True
    late_seconds: float = 0.0
    driver_version: str = "580.105.8"
    cuda_version: str = "13.0.0"


class NvidiaDriver:
    """Publishes the GPUs of machines.

    Args:
        context: the world.
        nodes: tells the machine behind a Node.
        behaviour: how; may be replaced while the world runs, for nodes to come.
    """

    def __init__(self, context: SimContext, nodes: NodeLifecycle, behaviour: DriverBehaviour) -> None:
        self._context = context
        self._nodes = nodes
        self.behaviour = behaviour
        self._starting: dict[str, Appointment] = {}
        self._published: dict[str, None] = {}
        self._discovered: dict[str, None] = {}
        context.store.listen(Node, self._node_changed)

    def _node_changed(self, change: Change) -> None:
        if change.stored is None:
            return
        node = change.stored.decode(Node)
        if change.type == "DELETED":
            self._published.pop(node.uid, None)
            self._discovered.pop(node.uid, None)
            self._stop(node.uid)
            return
        machine = self._nodes.machine(node.name)
        if machine is None or not machine.gpus or node.uid in self._published:
            return
        runs = _may_run(node)
        if runs and self.behaviour.discovery and node.uid not in self._discovered:
            self._discovered[node.uid] = None
            delay = self._context.draw(self._context.delays.labels_discovered, f"discovery/{node.name}")
            self._context.agenda.after(delay, self._label, node.name)
        wanted = runs and any(node.metadata.labels.get(key) == value for key, value in DISCOVERY_LABELS)
        if not wanted:
            self._stop(node.uid)
        elif node.uid not in self._starting and self.behaviour.publishing != "never":
            delay = self._context.draw(self._context.delays.driver_start, f"driver/{node.name}")
            delay += self.behaviour.late_seconds
            self._starting[node.uid] = self._context.agenda.after(delay, self._publish, node.name, node.uid)

    def _stop(self, uid: str) -> None:
        """The plug-in may not run on the node any more; what it has not published yet, it will not."""
        starting = self._starting.pop(uid, None)
        if starting is not None:
            starting.cancel()

    def _label(self, node_name: str) -> None:
        if self._context.store.find(Node, node_name) is not None:
            patch = {"metadata": {"labels": {DISCOVERY_LABEL: "true"}}}
            self._context.store.patch(type_of(Node), node_name, patch)

    def _publish(self, node_name: str, uid: str) -> None:
        machine, node = self._nodes.machine(node_name), self._context.store.find(Node, node_name)
        self._starting.pop(uid, None)
        if machine is None or node is None or node.uid != uid:
            return
        self._published[uid] = None
        found = self._devices(machine)
        half = max(1, len(found) // 2)
        match self.behaviour.publishing:
            case "parts":
                self._slice(node, found[:half], 0, generation=1, count=2)
                self._later(node, found[half:], 1, generation=1, count=2)
            case "regenerated":
                first = self._slice(node, found[:half], 0, generation=1, count=1)
                self._context.agenda.after(self._gap(node), self._regenerate, node, first, found, half)
            case _:
                self._slice(node, found, 0, generation=1, count=1)

    def _gap(self, node: Node) -> float:
        return self._context.draw(self._context.delays.driver_part, f"driver-part/{node.name}")

    def _later(self, node: Node, found: tuple[Device, ...], index: int, *, generation: int, count: int) -> None:
        def publish() -> None:
            self._slice(node, found, index, generation=generation, count=count)

        self._context.agenda.after(self._gap(node), publish)

    def _regenerate(self, node: Node, first: str, found: tuple[Device, ...], half: int) -> None:
        """Raise the generation: the slice that stands is updated, the other one follows."""
        if not self._present(node):
            return
        pool = {"name": node.name, "generation": 2, "resourceSliceCount": 2}
        self._context.store.patch(_SLICE, first, {"spec": {"pool": pool}})
        self._later(node, found[half:], 1, generation=2, count=2)

    def _present(self, node: Node) -> bool:
        current = self._context.store.find(Node, node.name)
        return current is not None and current.uid == node.uid

    def _slice(self, node: Node, found: tuple[Device, ...], index: int, *, generation: int, count: int) -> str:
        if not self._present(node):
            return ""
        stored = self._context.store.create(
            {
                "apiVersion": _SLICE.api_version,
                "kind": _SLICE.kind,
                "metadata": {
                    "generateName": f"{index:02d}-{NVIDIA_DRIVER}-{node.name}-",
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid, "controller": True}
                    ],
                },
                "spec": {
                    "driver": NVIDIA_DRIVER,
                    "nodeName": node.name,
                    "pool": {"name": node.name, "generation": generation, "resourceSliceCount": count},
                    "devices": codec.to_plain(found),
                },
            }
        )
        self._context.journal.step(
            "nvidia-dra-driver",
            f"ResourceSlice {stored.name}",
            f"Published {len(found)} devices, generation {generation}, slice {index + 1} of {count}",
            node=node.name,
        )
        return stored.name

    def _devices(self, machine: Machine) -> tuple[Device, ...]:
        """The machine's GPUs as the driver publishes them, in no particular order."""
        random = self._context.random.child(f"gpus/{machine.node_name}")
        found = [self._device(machine, index, _uuid(random.uuid())) for index in range(machine.gpus)]
        return tuple(sorted(found, key=lambda _: random.uniform(0, 1)))

    def _device(self, machine: Machine, index: int, uuid: str) -> Device:
        attributes, capacity = _board(machine.instance_type)
        return Device(
            name=f"gpu-{index}",
            attributes={
                "type": DeviceAttribute(string="gpu"),
                "uuid": DeviceAttribute(string=uuid),
                **attributes,
                "driverVersion": DeviceAttribute(version=self.behaviour.driver_version),
                "cudaDriverVersion": DeviceAttribute(version=self.behaviour.cuda_version),
                "resource.kubernetes.io/pciBusID": DeviceAttribute(string=f"0000:00:{index + _FIRST_PCI_SLOT:02x}.0"),
                "resource.kubernetes.io/pcieRoot": DeviceAttribute(string="pci0000:00"),
            },
            capacity=capacity,
        )


def _board(plan: str) -> tuple[dict[str, DeviceAttribute], dict[str, DeviceCapacity]]:
    """What the board of a plan reports of itself."""
    if plan.startswith(_QUADRO_PLANS):
        return _QUADRO_RTX_6000, {"memory": DeviceCapacity(Quantity.parse(_QUADRO_MEMORY))}
    predicted = predict(plan, 1).slice_templates[0].devices[0]
    attributes = {name: value for name, value in predicted.attributes.items() if name != "type"}
    return attributes or _UNKNOWN_BOARD, predicted.capacity


def _uuid(text: str) -> str:
    return f"GPU-{text}"


def _may_run(node: Node) -> bool:
    """Whether a pod of the plug-in may run on a node."""
    hard = (taint for taint in node.spec.taints if taint.effect != PREFER_NO_SCHEDULE)
    return is_true(node.status.conditions, "Ready") and not untolerated(hard, _TOLERATIONS)


def device_classes() -> tuple[dict[str, Any], ...]:
    """The DeviceClasses that the driver's chart installs."""
    selectors = {
        "gpu.nvidia.com": "gpu",
        "mig.nvidia.com": "mig",
        "vfio.gpu.nvidia.com": "vfio",
    }
    return tuple(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {
                "selectors": [
                    {
                        "cel": {
                            "expression": f"device.driver == '{NVIDIA_DRIVER}' && "
                            f"device.attributes['{NVIDIA_DRIVER}'].type == '{kind}'"
                        }
                    }
                ],
                **({"extendedResourceName": GPU_RESOURCE} if kind == "gpu" else {}),
            },
        }
        for name, kind in selectors.items()
    )
