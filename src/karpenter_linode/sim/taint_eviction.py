"""The taint eviction controller: pods leave nodes with a NoExecute taint that they do not, or no longer, tolerate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model.core import Node, Pod
from karpenter_linode.ports import NotFoundError
from karpenter_linode.scheduling.taints import NO_EXECUTE, tolerates
from karpenter_linode.sim.garbage import mark_disruption_target
from karpenter_linode.sim.resource_types import type_of

if TYPE_CHECKING:
    from karpenter_linode.model.core import Taint, Toleration
    from karpenter_linode.sim.agenda import Appointment
    from karpenter_linode.sim.context import SimContext
    from karpenter_linode.sim.watches import Change

_POD: Final = type_of(Pod)


class TaintEviction:
    """Deletes pods at the end of their toleration.

    Args:
        context: the world.
    """

    def __init__(self, context: SimContext) -> None:
        self._context = context
        self._taints: dict[str, tuple[Taint, ...]] = {}
        self._appointments: dict[str, Appointment] = {}
        self._events = context.recorder("taint-eviction-controller")
        context.store.listen(Node, self._node_changed)
        context.store.listen(Pod, self._pod_changed)

    def _node_changed(self, change: Change) -> None:
        if change.stored is None:
            return
        name = change.stored.name
        taints: tuple[Taint, ...] = ()
        if change.type != "DELETED":
            node = change.stored.decode(Node)
            taints = tuple(taint for taint in node.spec.taints if taint.effect == NO_EXECUTE)
        if taints == self._taints.get(name, ()):
            return
        self._taints[name] = taints
        for pod in self._context.store.all(Pod):
            if pod.spec.node_name == name:
                self._consider(pod, taints)

    def _pod_changed(self, change: Change) -> None:
        if change.stored is None:
            return
        if change.type == "DELETED":
            self._call_off(change.stored.uid)
            return
        node_name = change.stored.plain.get("spec", {}).get("nodeName", "")
        taints = self._taints.get(node_name, ())
        if taints and change.stored.uid not in self._appointments:
            self._consider(change.stored.decode(Pod), taints)

    def _consider(self, pod: Pod, taints: tuple[Taint, ...]) -> None:
        self._call_off(pod.uid)
        if not taints or pod.metadata.deletion_timestamp is not None:
            return
        seconds = seconds_tolerated(pod.spec.tolerations, taints)
        if seconds is not None:
            appointment = self._context.agenda.after(seconds, self._evict, pod.name, pod.namespace, pod.uid)
            self._appointments[pod.uid] = appointment

    def _call_off(self, uid: str) -> None:
        appointment = self._appointments.pop(uid, None)
        if appointment is not None:
            appointment.cancel()

    def _evict(self, name: str, namespace: str, uid: str) -> None:
        self._appointments.pop(uid, None)
        pod = self._context.store.find(Pod, name, namespace)
        if pod is None or pod.uid != uid or pod.metadata.deletion_timestamp is not None:
            return
        self._events.record(pod, "Normal", "TaintManagerEviction", f"Marking for deletion Pod {pod.key}")
        mark_disruption_target(
            self._context, pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
        )
        try:
            self._context.store.delete(_POD, name, namespace, uid=uid)
        except NotFoundError:
            return


def seconds_tolerated(tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...]) -> int | None:
    """How long a pod may stay under these taints: 0 for an untolerated one, None for ever."""
    limits: list[int] = []
    for taint in taints:
        matching = [toleration for toleration in tolerations if tolerates(toleration, taint)]
        if not matching:
            return 0
        limits += [t.toleration_seconds for t in matching[:1] if t.toleration_seconds is not None]
    return max(0, min(limits)) if limits else None
