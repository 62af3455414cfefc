"""Garbage collection: dependents follow their owners, and pods follow their nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.timestamps import rfc3339
from karpenter_linode.ports import NotFoundError
from karpenter_linode.sim.deletion import TERMINAL
from karpenter_linode.sim.replicas import KINDS as REPLICATED
from karpenter_linode.sim.resource_types import RESOURCE_TYPES, ResourceType, served_type, type_of

if TYPE_CHECKING:
    from karpenter_linode.sim.context import SimContext
    from karpenter_linode.sim.watches import Change

Dependent = tuple[ResourceType, str, str]
_POD: Final = type_of(Pod)


class GarbageCollector:
    """Deletes, in the background, objects all of whose owners are gone.

    Owners of kinds that this server does not serve count as present, as for Kubernetes' collector, which cannot resolve
    them either. So do the controllers of replicated pods, for which the pods stand (``replicas``).

    Args:
        context: the world.
    """

    def __init__(self, context: SimContext) -> None:
        self._context = context
        self._dependents: dict[str, dict[Dependent, None]] = {}
        for kind in RESOURCE_TYPES:
            context.store.listen(kind, self._listener(kind))

    def _listener(self, kind: ResourceType) -> Any:
        return lambda change: self._changed(kind, change)

    def _changed(self, kind: ResourceType, change: Change) -> None:
        stored = change.stored
        if stored is None:
            return
        dependent = (kind, stored.namespace, stored.name)
        owners = stored.metadata.get("ownerReferences") or ()
        if change.type == "DELETED":
            for owner in owners:
                self._dependents.get(owner.get("uid", ""), {}).pop(dependent, None)
            for other in self._dependents.pop(stored.uid, {}):
                self._look_later(other)
            return
        for owner in owners:
            self._dependents.setdefault(owner.get("uid", ""), {})[dependent] = None
        if owners and change.type == "ADDED" and not any(self._exists(owner, stored.namespace) for owner in owners):
            self._look_later(dependent)

    def _look_later(self, dependent: Dependent) -> None:
        kind, namespace, name = dependent
        delay = self._context.draw(self._context.delays.garbage_collection, f"gc/{kind.kind}/{namespace}/{name}")
        self._context.agenda.after(delay, self._collect, dependent)

    def _exists(self, owner: dict[str, Any], namespace: str) -> bool:
        if (owner.get("apiVersion"), owner.get("kind")) in REPLICATED and owner.get("uid") not in self._context.managed:
            return True  # nobody made its pods here: they stand for it
        try:
            kind = served_type(str(owner.get("apiVersion")), str(owner.get("kind")))
        except NotFoundError:
            return True
        try:
            stored = self._context.store.get(kind, str(owner.get("name")), namespace if kind.namespaced else "")
        except NotFoundError:
            return False
        return stored.uid == owner.get("uid")

    def _collect(self, dependent: Dependent) -> None:
        """Delete a dependent without owners; take dangling references off one that has an owner left."""
        kind, namespace, name = dependent
        try:
            stored = self._context.store.get(kind, name, namespace)
        except NotFoundError:
            return
        owners = stored.metadata.get("ownerReferences") or []
        present = [owner for owner in owners if self._exists(owner, namespace)]
        if not owners or len(present) == len(owners):
            return
        if present:
            patch = {"metadata": {"ownerReferences": present, "uid": stored.uid}}
            self._context.store.patch(kind, name, patch, namespace=namespace)
        elif not stored.deleting:
            self._context.journal.step("garbage-collector", f"{kind.kind} {stored.key}", "Deleted, its owner is gone")
            self._context.store.delete(kind, name, namespace, uid=stored.uid)


class PodGarbageCollector:
    """Force-deletes pods whose node no longer exists, after a quarantine.

    Args:
        context: the world.
    """

    def __init__(self, context: SimContext) -> None:
        self._context = context
        context.store.listen(Node, self._node_changed)

    def _node_changed(self, change: Change) -> None:
        if change.type == "DELETED" and change.stored is not None:
            name = change.stored.name
            delay = self._context.draw(self._context.delays.orphan_quarantine, f"orphans/{name}")
            self._context.agenda.after(delay, self._collect, name)

    def _collect(self, node_name: str) -> None:
        store = self._context.store
        if store.find(Node, node_name) is not None:
            return
        for pod in store.all(Pod):
            if pod.spec.node_name != node_name:
                continue
            if pod.status.phase not in TERMINAL:
                mark_disruption_target(self._context, pod, "DeletionByPodGC", "PodGC: node no longer exists", "Failed")
            self._context.journal.step("pod-garbage-collector", pod, "Pod deleted, its node is gone", node=node_name)
            store.delete(_POD, pod.name, pod.namespace, uid=pod.uid, grace_period_seconds=0)


def mark_disruption_target(context: SimContext, pod: Pod, reason: str, message: str, phase: str = "") -> None:
    """Write the condition that tells why a pod is about to be deleted, and a phase where one is given."""
    now = rfc3339(context.clock.now())
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
    }
    status: dict[str, Any] = {"conditions": [condition], **({"phase": phase} if phase else {})}
    context.store.patch(
        _POD, pod.name, {"status": status}, namespace=pod.namespace, subresource="status", patch_kind="strategic"
    )
