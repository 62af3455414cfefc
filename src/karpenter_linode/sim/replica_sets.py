"""ReplicaSets, StatefulSets and ReplicationControllers: as many pods as they ask for.

Sets without a template have pods that came from elsewhere; ``replicas`` looks after those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model.core import Pod
from karpenter_linode.ports import AlreadyExistsError, InvalidError, NotFoundError
from karpenter_linode.sim.deletion import TERMINAL
from karpenter_linode.sim.events import forget_oldest
from karpenter_linode.sim.resource_types import ResourceType, served_type, type_of

if TYPE_CHECKING:
    from karpenter_linode.sim.context import SimContext
    from karpenter_linode.sim.stored import Stored
    from karpenter_linode.sim.watches import Change

Plain = dict[str, Any]

_POD: Final = type_of(Pod)
_SETTLE: Final = 0.2
_MOST_AT_ONCE: Final = 500  # as the burst of Kubernetes' controllers; the rest follows a sync later
KINDS: Final = {
    ("apps/v1", "ReplicaSet"): served_type("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"): served_type("apps/v1", "StatefulSet"),
    ("v1", "ReplicationController"): served_type("v1", "ReplicationController"),
}


class ReplicaSetController:
    """Keeps the pods of all sets.

    Args:
        context: the world.
    """

    def __init__(self, context: SimContext) -> None:
        self._context, self._store = context, context.store
        self._queued: dict[tuple[ResourceType, str, str], None] = {}
        for kind in KINDS.values():
            context.store.listen(kind, self._set_changed)
        context.store.listen(_POD, self._pod_changed)

    def _set_changed(self, change: Change) -> None:
        stored = change.stored
        if stored is None or change.type == "DELETED" or not has_template(stored.plain):
            return
        self._context.managed[stored.uid] = None
        forget_oldest(self._context.managed, self._context.keep)
        self._queue(served_type(stored.plain["apiVersion"], stored.plain["kind"]), stored.namespace, stored.name)

    def _pod_changed(self, change: Change) -> None:
        owner = None if change.stored is None else controller_of(change.stored.plain)
        if owner is None or change.stored is None or owner.get("uid") not in self._context.managed:
            return
        kind = KINDS.get((str(owner.get("apiVersion")), str(owner.get("kind"))))
        if kind is not None:
            self._queue(kind, change.stored.namespace, str(owner.get("name")))

    def _queue(self, kind: ResourceType, namespace: str, name: str) -> None:
        key = (kind, namespace, name)
        if key not in self._queued:
            self._queued[key] = None
            self._context.agenda.after(_SETTLE, self._sync, *key)

    def _sync(self, kind: ResourceType, namespace: str, name: str) -> None:
        self._queued.pop((kind, namespace, name), None)
        try:
            found = self._store.get(kind, name, namespace)
        except NotFoundError:
            return
        if found.deleting:
            return
        pods = [pod for pod in self._store.list(_POD, namespace=namespace) if _belongs(pod, found)]
        alive = [pod for pod in pods if not pod.deleting and phase_of(pod) not in TERMINAL]
        wanted = int(found.plain["spec"].get("replicas", 1))
        for pod in (pod for pod in pods if phase_of(pod) == "Failed" and not pod.deleting):
            self._delete(pod)
        if kind.kind == "StatefulSet":
            self._keep_ordinals(found, pods, wanted)
        else:
            self._keep_count(found, alive, wanted)
        self._tell_status(kind, found, alive)

    def _keep_count(self, owner: Stored, alive: list[Stored], wanted: int) -> None:
        for _ in range(min(wanted - len(alive), _MOST_AT_ONCE)):
            self._create(owner, {"generateName": f"{owner.name}-"})
        for pod in sorted(alive, key=_dispensable)[: max(len(alive) - wanted, 0)]:
            self._delete(pod)

    def _keep_ordinals(self, owner: Stored, pods: list[Stored], wanted: int) -> None:
        """Pods of a StatefulSet have their numbers; one that ends is followed by one of its name."""
        there = {pod.name for pod in pods}
        for number in range(min(wanted, _MOST_AT_ONCE + len(there))):
            if f"{owner.name}-{number}" not in there:
                self._create(owner, {"name": f"{owner.name}-{number}"})
        kept = {f"{owner.name}-{number}" for number in range(wanted)}
        for pod in pods:
            if pod.name not in kept and not pod.deleting:
                self._delete(pod)

    def _create(self, owner: Stored, name: Plain) -> None:
        template = owner.plain["spec"]["template"]
        metadata = {key: value for key, value in (template.get("metadata") or {}).items() if key in _FROM_TEMPLATE}
        reference = {
            **{key: owner.plain[key] for key in ("apiVersion", "kind")},
            "name": owner.name,
            "uid": owner.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata, **name, "namespace": owner.namespace, "ownerReferences": [reference]},
            "spec": template.get("spec") or {},
        }
        try:
            self._store.create(manifest)
        except (AlreadyExistsError, InvalidError, NotFoundError) as error:
            self._context.journal.step(
                f"{owner.plain['kind'].lower()}-controller",
                f"{owner.plain['kind']} {owner.key}",
                f"FailedCreate: {error}",
            )

    def _delete(self, pod: Stored) -> None:
        try:
            self._store.delete(_POD, pod.name, pod.namespace, uid=pod.uid)
        except NotFoundError:
            return

    def _tell_status(self, kind: ResourceType, owner: Stored, alive: list[Stored]) -> None:
        ready = sum(is_ready(pod) for pod in alive)
        status = {
            "replicas": len(alive),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "observedGeneration": owner.metadata.get("generation", 1),
        }
        if kind.kind == "StatefulSet":
            status |= {"updatedReplicas": len(alive), "currentReplicas": len(alive)}
        else:
            status["fullyLabeledReplicas"] = len(alive)
        patch = {"status": status}
        self._store.patch(kind, owner.name, patch, namespace=owner.namespace, subresource="status")


_FROM_TEMPLATE: Final = ("labels", "annotations", "finalizers")


def has_template(plain: Plain) -> bool:
    """Whether a workload says what its pods look like."""
    return bool((plain.get("spec") or {}).get("template"))


def controller_of(plain: Plain) -> Plain | None:
    """The owner reference of an object's controller."""
    owners: list[Plain] = plain["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def phase_of(pod: Stored) -> str:
    """A pod's phase."""
    return str((pod.plain.get("status") or {}).get("phase", ""))


def is_ready(pod: Stored) -> bool:
    """Whether a pod is ready."""
    conditions = (pod.plain.get("status") or {}).get("conditions") or []
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)


def _belongs(pod: Stored, owner: Stored) -> bool:
    reference = controller_of(pod.plain)
    return reference is not None and reference.get("uid") == owner.uid


def _dispensable(pod: Stored) -> tuple[bool, bool, str]:
    """Pods that go first: without a node, then not ready, then by name."""
    return bool(pod.plain["spec"].get("nodeName")), is_ready(pod), pod.name
