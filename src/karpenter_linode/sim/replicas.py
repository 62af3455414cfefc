"""Controllers of replicated pods, known by what they own: a pod that goes is replaced by one like it.

Where nobody makes the pods of a ReplicaSet, StatefulSet, ReplicationController or Job, pods that name one as their
controller stand for it, whether the API server holds it or not. (Those with a template have a controller of their own:
``replica_sets``.) So a pod that is evicted, drained or lost comes back,
as it would in a cluster, and a pod whose work is done does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model.core import Pod
from karpenter_linode.ports import AlreadyExistsError, NotFoundError
from karpenter_linode.sim.resource_types import type_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.sim.context import SimContext
    from karpenter_linode.sim.stored import Stored
    from karpenter_linode.sim.watches import Change

_POD: Final = type_of(Pod)
_SETTLE: Final = 0.2
KINDS: Final = frozenset(
    {
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("batch/v1", "Job"),
        ("v1", "ReplicationController"),
    }
)
_COPIED: Final = ("labels", "annotations", "ownerReferences")
_GIVEN_BY_SCHEDULER: Final = "nodeName"


class ReplicaKeeper:
    """Replaces pods of replicated workloads.

    Args:
        context: the world.
        is_done: whether the pod of that UID went since its work was done.
    """

    def __init__(self, context: SimContext, is_done: Callable[[str], bool]) -> None:
        self._context = context
        self._is_done = is_done
        context.store.listen(Pod, self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        if change.stored is None:
            return
        owner = _controller(change.stored)
        phase = change.stored.plain.get("status", {}).get("phase")
        if (
            owner is None
            or owner.get("uid") in self._context.managed
            or self._is_done(change.stored.uid)
            or (phase == "Succeeded" and owner["kind"] == "Job")
        ):
            return
        if change.type == "DELETED":
            self._context.agenda.after(_SETTLE, self._replace, change.stored, owner)
        elif phase == "Failed" and not change.stored.deleting and owner["kind"] != "Job":
            self._context.agenda.after(_SETTLE, self._clear, change.stored)

    def _clear(self, failed: Stored) -> None:
        """A failed pod makes room for its successor."""
        try:
            self._context.store.delete(_POD, failed.name, failed.namespace, uid=failed.uid)
        except NotFoundError:
            return

    def _replace(self, gone: Stored, owner: dict[str, Any]) -> None:
        metadata: dict[str, Any] = {key: gone.metadata[key] for key in _COPIED if key in gone.metadata}
        metadata["namespace"] = gone.namespace
        if owner["kind"] == "StatefulSet":
            metadata["name"] = gone.name
        else:
            metadata["generateName"] = f"{owner['name']}-"
        spec = {key: value for key, value in gone.plain["spec"].items() if key != _GIVEN_BY_SCHEDULER}
        try:
            successor = self._context.store.create(
                {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            )
        except AlreadyExistsError:
            return
        self._context.journal.step(
            f"{owner['kind'].lower()}-controller", f"Pod {successor.key}", f"Pod created in place of {gone.key}"
        )


def _controller(stored: Stored) -> dict[str, Any] | None:
    """The pod's controller, where it is one of those that replace pods."""
    for owner in stored.metadata.get("ownerReferences") or ():
        if owner.get("controller") and (owner.get("apiVersion"), owner.get("kind")) in KINDS:
            found: dict[str, Any] = owner
            return found
    return None
