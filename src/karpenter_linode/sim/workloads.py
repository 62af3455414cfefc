"""The DaemonSet controller: one pod on every node that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model.core import DaemonSet, Node, Pod, Toleration
from karpenter_linode.ports import NotFoundError
from karpenter_linode.scheduling.taints import NO_EXECUTE, NO_SCHEDULE, untolerated
from karpenter_linode.sim.deletion import TERMINAL
from karpenter_linode.sim.kube_scheduler.filters import matches_node
from karpenter_linode.sim.resource_types import type_of

if TYPE_CHECKING:
    from karpenter_linode.sim.context import SimContext
    from karpenter_linode.sim.watches import Change

_DAEMON_SET: Final = type_of(DaemonSet)
_POD: Final = type_of(Pod)
_SETTLE: Final = 0.2
_HARD: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})
_EVICTING: Final = frozenset({NO_EXECUTE})
DAEMON_TOLERATIONS: Final = (
    *(
        {"key": f"node.kubernetes.io/{condition}", "operator": "Exists", "effect": "NoExecute"}
        for condition in ("not-ready", "unreachable")
    ),
    *(
        {"key": f"node.kubernetes.io/{condition}", "operator": "Exists", "effect": "NoSchedule"}
        for condition in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    ),
)


class DaemonSetController:
    """Keeps the pods of all DaemonSets.

    Args:
        context: the world.
    """

    def __init__(self, context: SimContext) -> None:
        self._context = context
        self._store = context.store
        self._queued: dict[str, None] = {}
        context.store.listen(DaemonSet, self._set_changed)
        context.store.listen(Node, self._node_changed)
        context.store.listen(Pod, self._pod_changed)

    def _set_changed(self, change: Change) -> None:
        if change.stored is not None and change.type != "DELETED":
            self._queue(change.stored.namespace, change.stored.name)

    def _node_changed(self, change: Change) -> None:  # noqa: ARG002  # any change of any node concerns every set
        for daemon_set in self._store.all(DaemonSet):
            self._queue(daemon_set.namespace, daemon_set.name)

    def _pod_changed(self, change: Change) -> None:
        """A daemon's pod that has ended is replaced."""
        if change.stored is None:
            return
        ended = change.type == "DELETED" or change.stored.plain.get("status", {}).get("phase") in TERMINAL
        if ended:
            for owner in change.stored.metadata.get("ownerReferences") or ():
                if owner.get("kind") == "DaemonSet":
                    self._queue(change.stored.namespace, str(owner.get("name")))

    def _queue(self, namespace: str, name: str) -> None:
        key = f"{namespace}/{name}"
        if key not in self._queued:
            self._queued[key] = None
            self._context.agenda.after(_SETTLE, self._sync, namespace, name)

    def _sync(self, namespace: str, name: str) -> None:
        self._queued.pop(f"{namespace}/{name}", None)
        daemon_set = self._store.find(DaemonSet, name, namespace)
        if daemon_set is None or daemon_set.metadata.deletion_timestamp is not None:
            return
        running = self._pods(daemon_set)
        nodes = self._store.all(Node)
        wanted = [node.name for node in nodes if _belongs(daemon_set, node, _HARD)]
        may_stay = {node.name for node in nodes if _belongs(daemon_set, node, _EVICTING)}
        for node_name in wanted:
            if node_name not in running:
                self._create(daemon_set, node_name)
        for node_name, pod in running.items():
            leaves = pod.status.phase in TERMINAL or node_name not in may_stay
            if leaves and pod.metadata.deletion_timestamp is None:
                self._delete(pod)
        ready = sum(pod.status.phase == "Running" for pod in running.values())
        status = {
            "desiredNumberScheduled": len(wanted),
            "currentNumberScheduled": len(running),
            "numberReady": ready,
            "observedGeneration": daemon_set.metadata.generation,
        }
        self._store.patch(_DAEMON_SET, name, {"status": status}, namespace=namespace, subresource="status")

    def _pods(self, daemon_set: DaemonSet) -> dict[str, Pod]:
        """The set's pods by the node that each is for."""
        return {
            _node_of(pod): pod
            for pod in self._store.all(Pod)
            if any(owner.uid == daemon_set.uid for owner in pod.metadata.owner_references)
        }

    def _create(self, daemon_set: DaemonSet, node_name: str) -> None:
        plain = self._store.get(_DAEMON_SET, daemon_set.name, daemon_set.namespace).plain
        template = plain["spec"]["template"]
        spec: dict[str, Any] = template.get("spec") or {}
        owner = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "name": daemon_set.name,
            "uid": daemon_set.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        self._store.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    **(template.get("metadata") or {}),
                    "generateName": f"{daemon_set.name}-",
                    "namespace": daemon_set.namespace,
                    "ownerReferences": [owner],
                },
                "spec": {
                    **spec,
                    "affinity": _pinned(spec.get("affinity") or {}, node_name),
                    "tolerations": [*(spec.get("tolerations") or []), *DAEMON_TOLERATIONS],
                },
            }
        )

    def _delete(self, pod: Pod) -> None:
        try:
            self._store.delete(_POD, pod.name, pod.namespace, uid=pod.uid)
        except NotFoundError:
            return


def _belongs(daemon_set: DaemonSet, node: Node, effects: frozenset[str]) -> bool:
    """Whether the daemon's pod matches a node and tolerates its taints of these effects."""
    spec = daemon_set.spec.template.spec
    given = tuple(Toleration(item["key"], item["operator"], "", item["effect"]) for item in DAEMON_TOLERATIONS)
    taints = [taint for taint in node.spec.taints if taint.effect in effects]
    return matches_node(Pod(spec=spec), node) and not untolerated(taints, (*spec.tolerations, *given))


def _pinned(affinity: dict[str, Any], node_name: str) -> dict[str, Any]:
    """The template's affinity with its required node terms replaced by the one node."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    node_affinity = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
    }
    return {**affinity, "nodeAffinity": node_affinity}


def _node_of(pod: Pod) -> str:
    """The node that a daemon's pod is for, bound or not."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    for term in required.node_selector_terms if required else ():
        for expression in term.match_fields:
            if expression.key == "metadata.name" and expression.values:
                return expression.values[0]
    return ""
