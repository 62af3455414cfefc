"""From machines to Node objects and back: kubelet registration, cloud controller manager, node lifecycle controller.

A Node appears not ready, without provider id and cloud labels; the cloud controller fills those in; then it turns
Ready. When a machine stops, its Node turns Unknown after a while; when the machine is gone, the cloud controller
deletes the Node.
Source: spec/linode-provider.md 7.3 and 7.7, Kubernetes' node controllers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from karpenter_linode.model import codec, labels
from karpenter_linode.model.core import Node, ResourceList, Taint
from karpenter_linode.model.meta import find_condition
from karpenter_linode.model.timestamps import rfc3339
from karpenter_linode.ports import AlreadyExistsError
from karpenter_linode.sim.resource_types import type_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.sim.context import SimContext

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNINITIALIZED: Final = "node.cloudprovider.kubernetes.io/uninitialized"
POOL_ID_LABEL: Final = "lke.linode.com/pool-id"
HOST_UUID_LABEL: Final = "node.k8s.linode.com/host-uuid"
CLOUD_LABELS: Final = frozenset(
    {
        labels.INSTANCE_TYPE,
        labels.REGION,
        labels.LINODE_TOPOLOGY_REGION,
        HOST_UUID_LABEL,
        POOL_ID_LABEL,
        "beta.kubernetes.io/instance-type",
    },
)
"""Labels that a Node has once the cloud controller manager has seen it, and not before."""
_PRESSURES: Final = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


class Machine(Struct, frozen=True):
    """A booted machine that joins the cluster.

    Args:
        node_name: the name its kubelet registers.
        provider_id: ``linode://<instance id>``.
        instance_type: the plan.
        region: where it stands.
        pool_id: the LKE pool, as text.
        host_uuid: of the hypervisor.
        capacity: what the kubelet reports.
        allocatable: what it leaves to pods.
        gpus: physical GPUs.
        labels: every label that LKE and the cloud controller will set, those of the pool included.
        taints: taints of the LKE pool.
        kubelet_version: as the kubelet reports it.
    """

    node_name: str
    provider_id: str
    instance_type: str
    region: str
    pool_id: str
    host_uuid: str
    capacity: ResourceList
    allocatable: ResourceList
    gpus: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    kubelet_version: str = ""


class NodeLifecycle:
    """Keeps Node objects in step with machines.

    Args:
        context: the world.
    """

    def __init__(self, context: SimContext) -> None:
        self._context = context
        self._machines: dict[str, Machine] = {}
        self._alive: dict[str, bool] = {}
        self._when_alive: list[Callable[[str], None]] = []
        self._events = context.recorder("cloud-node-lifecycle-controller")

    def machine(self, node_name: str) -> Machine | None:
        """The machine behind a Node, while it exists."""
        return self._machines.get(node_name)

    def is_alive(self, node_name: str) -> bool:
        """Whether the node's kubelet runs."""
        return self._alive.get(node_name, False)

    def alive(self) -> list[str]:
        """Nodes whose kubelet runs, by name."""
        return sorted(name for name, lives in self._alive.items() if lives)

    def when_alive(self, listener: Callable[[str], None]) -> None:
        """Call back with the node's name whenever a kubelet starts."""
        self._when_alive.append(listener)

    def booted(self, machine: Machine) -> None:
        """A machine is up and its kubelet registers."""
        self._machines[machine.node_name] = machine
        self._alive[machine.node_name] = True
        store, delays = self._context.store, self._context.delays
        for listener in self._when_alive:
            listener(machine.node_name)
        try:
            store.create(self._node(machine))
        except AlreadyExistsError:
            self._become_ready(machine.node_name)
            return
        self._context.journal.step("kubelet", f"Node {machine.node_name}", "Node registered, not ready")
        name = machine.node_name
        self._context.agenda.after(
            self._context.draw(delays.cloud_node_init, f"cloud-init/{name}"), self._initialize, name
        )
        self._context.agenda.after(self._context.draw(delays.node_ready, f"ready/{name}"), self._become_ready, name)

    def stopped(self, node_name: str) -> None:
        """A machine is down: its kubelet is silent, and its Node will turn Unknown."""
        if self._alive.get(node_name):
            self._alive[node_name] = False
            self._context.agenda.after(self._context.delays.node_monitor_grace, self._become_unknown, node_name)

    def gone(self, node_name: str) -> None:
        """A machine no longer exists: as stopped, and then its Node is deleted."""
        self._machines.pop(node_name, None)
        delays = self._context.delays
        self.stopped(node_name)
        wait = delays.node_monitor_grace + self._context.draw(delays.cloud_node_delete, f"cloud-delete/{node_name}")
        self._context.agenda.after(wait, self._delete, node_name)

    def _node(self, machine: Machine) -> dict[str, Any]:
        taints = [Taint(UNINITIALIZED, "true", "NoSchedule"), Taint(NOT_READY, "", "NoSchedule"), *machine.taints]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": machine.node_name,
                "labels": {
                    "beta.kubernetes.io/arch": "amd64",
                    "beta.kubernetes.io/os": "linux",
                    labels.ARCH: "amd64",
                    labels.OS: "linux",
                    labels.HOSTNAME: machine.node_name,
                    **{key: value for key, value in machine.labels.items() if key not in CLOUD_LABELS},
                },
            },
            "spec": {"taints": codec.to_plain(taints)},
            "status": {
                "capacity": codec.to_plain(machine.capacity),
                "allocatable": codec.to_plain(machine.allocatable),
                "conditions": self._conditions(ready=False),
                "nodeInfo": {
                    "architecture": "amd64",
                    "operatingSystem": "linux",
                    **({"kubeletVersion": machine.kubelet_version} if machine.kubelet_version else {}),
                },
            },
        }

    def _conditions(self, *, ready: bool) -> list[dict[str, Any]]:
        now = rfc3339(self._context.clock.now())
        conditions = [_condition(kind, "False", reason, message, now) for kind, reason, message in _PRESSURES]
        if ready:
            conditions.append(_condition("Ready", "True", "KubeletReady", "kubelet is posting ready status", now))
        else:
            message = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"
            conditions.append(_condition("Ready", "False", "KubeletNotReady", message, now))
        return conditions

    def _initialize(self, node_name: str) -> None:
        """The cloud controller manager knows the machine: provider id, labels, and its taint comes off.

        By then the node lifecycle controller has seen the unready node, too, and taints it NoExecute.
        """
        machine, node = self._machines.get(node_name), self._context.store.find(Node, node_name)
        if machine is None or node is None:
            return
        cloud_labels = {key: value for key, value in machine.labels.items() if key in CLOUD_LABELS} | {
            labels.INSTANCE_TYPE: machine.instance_type,
            "beta.kubernetes.io/instance-type": machine.instance_type,
            labels.REGION: machine.region,
            labels.LINODE_TOPOLOGY_REGION: machine.region,
            POOL_ID_LABEL: machine.pool_id,
            HOST_UUID_LABEL: machine.host_uuid,
        }
        taints = [taint for taint in node.spec.taints if taint.key != UNINITIALIZED]
        if any(taint.key == NOT_READY for taint in taints):
            taints.append(Taint(NOT_READY, "", "NoExecute", self._context.clock.now()))
        self._patch(
            node_name,
            {
                "metadata": {"labels": cloud_labels},
                "spec": {"providerID": machine.provider_id, "taints": codec.to_plain(taints)},
            },
        )
        self._context.journal.step("cloud-controller-manager", node, "Node initialized", providerID=machine.provider_id)

    def _become_ready(self, node_name: str) -> None:
        node = self._context.store.find(Node, node_name)
        if node is None or not self.is_alive(node_name):
            return
        self._set_conditions(node, self._conditions(ready=True))
        self._set_taints(node_name, ())
        self._context.journal.step("kubelet", node, "Node is ready")

    def _become_unknown(self, node_name: str) -> None:
        """The node lifecycle controller has not heard of the kubelet for its grace period."""
        node = self._context.store.find(Node, node_name)
        if node is None or self.is_alive(node_name):
            return
        now = rfc3339(self._context.clock.now())
        message = "Kubelet stopped posting node status."
        kinds = [kind for kind, _, _ in _PRESSURES] + ["Ready"]
        conditions = [_condition(kind, "Unknown", "NodeStatusUnknown", message, now) for kind in kinds]
        self._set_conditions(node, conditions)
        now_unreachable = [
            Taint(UNREACHABLE, "", effect, self._context.clock.now()) for effect in ("NoSchedule", "NoExecute")
        ]
        self._set_taints(node_name, now_unreachable)
        self._context.journal.step("node-lifecycle-controller", node, "Node status is unknown")

    def _set_conditions(self, node: Node, conditions: list[dict[str, Any]]) -> None:
        """Write conditions; one whose status stays keeps its transition time."""
        for condition in conditions:
            old = find_condition(node.status.conditions, condition["type"])
            if old is not None and old.status == condition["status"] and old.last_transition_time is not None:
                condition["lastTransitionTime"] = rfc3339(old.last_transition_time)
        self._patch(node.name, {"status": {"conditions": conditions}}, "status")

    def _set_taints(self, node_name: str, condition_taints: list[Taint] | tuple[Taint, ...]) -> None:
        """Put the taints of the node's condition in place of older ones of that sort."""
        node = self._context.store.find(Node, node_name)
        if node is None:
            return
        kept = [taint for taint in node.spec.taints if taint.key not in {NOT_READY, UNREACHABLE}]
        self._patch(node_name, {"spec": {"taints": codec.to_plain([*kept, *condition_taints])}})

    def _delete(self, node_name: str) -> None:
        """The cloud controller manager removes a Node that is not ready and whose machine is gone."""
        node = self._context.store.find(Node, node_name)
        if node is None or node_name in self._machines:
            return
        ready = find_condition(node.status.conditions, "Ready")
        if ready is not None and ready.status == "True":
            return
        self._events.record(
            node,
            "Normal",
            "DeletingNode",
            f"Deleting node {node_name} because it does not exist in the cloud provider",
        )
        self._context.store.delete(type_of(Node), node_name)

    def _patch(self, node_name: str, patch: dict[str, Any], subresource: str = "") -> None:
        self._context.store.patch(type_of(Node), node_name, patch, subresource=subresource)


def _condition(kind: str, status: str, reason: str, message: str, now: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now}
