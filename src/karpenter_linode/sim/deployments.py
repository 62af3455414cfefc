"""Deployments: a ReplicaSet for each version of the template, and the way from one to the next."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model.timestamps import rfc3339
from karpenter_linode.ports import AlreadyExistsError, NotFoundError
from karpenter_linode.sim.events import forget_oldest
from karpenter_linode.sim.replica_sets import controller_of, has_template
from karpenter_linode.sim.resource_types import served_type

if TYPE_CHECKING:
    from karpenter_linode.sim.context import SimContext
    from karpenter_linode.sim.stored import Stored
    from karpenter_linode.sim.watches import Change

Plain = dict[str, Any]

DEPLOYMENT: Final = served_type("apps/v1", "Deployment")
REPLICA_SET: Final = served_type("apps/v1", "ReplicaSet")
HASH_LABEL: Final = "pod-template-hash"
_SETTLE: Final = 0.1
_DIGITS: Final = 10
_QUARTER: Final = "25%"


class DeploymentController:
    """Keeps the ReplicaSets of all Deployments.

    Args:
        context: the world.
    """

    def __init__(self, context: SimContext) -> None:
        self._context, self._store = context, context.store
        self._queued: dict[tuple[str, str], None] = {}
        context.store.listen(DEPLOYMENT, self._changed)
        context.store.listen(REPLICA_SET, self._set_changed)

    def _changed(self, change: Change) -> None:
        if change.stored is not None and change.type != "DELETED" and has_template(change.stored.plain):
            self._context.managed[change.stored.uid] = None
            forget_oldest(self._context.managed, self._context.keep)
            self._queue(change.stored.namespace, change.stored.name)

    def _set_changed(self, change: Change) -> None:
        owner = None if change.stored is None else controller_of(change.stored.plain)
        if owner is not None and change.stored is not None and owner.get("uid") in self._context.managed:
            self._queue(change.stored.namespace, str(owner.get("name")))

    def _queue(self, namespace: str, name: str) -> None:
        if (namespace, name) not in self._queued:
            self._queued[namespace, name] = None
            self._context.agenda.after(_SETTLE, self._sync, namespace, name)

    def _sync(self, namespace: str, name: str) -> None:
        self._queued.pop((namespace, name), None)
        try:
            found = self._store.get(DEPLOYMENT, name, namespace)
        except NotFoundError:
            return
        if found.deleting or not has_template(found.plain):
            return
        sets = [item for item in self._store.list(REPLICA_SET, namespace=namespace) if _belongs(item, found)]
        digest = template_hash(found.plain["spec"]["template"])
        new = next((item for item in sets if item.metadata["labels"].get(HASH_LABEL) == digest), None)
        old = [item for item in sets if item is not new]
        if not found.plain["spec"].get("paused"):
            self._roll(found, new, old, digest)
        self._tell_status(found, new, old)

    def _roll(self, found: Stored, new: Stored | None, old: list[Stored], digest: str) -> None:
        """Take the next step from the old sets to the new one, within surge and unavailability."""
        spec = found.plain["spec"]
        wanted, kept = int(spec.get("replicas", 1)), sum(_asked(item) for item in old)
        there = sum(max(_asked(item), _count(item, "replicas")) for item in old)
        strategy = spec.get("strategy") or {}
        if strategy.get("type") == "Recreate":
            surge, missing = 0, wanted
            target = 0 if any(_count(item, "replicas") for item in old) else wanted
        else:
            rolling = strategy.get("rollingUpdate") or {}
            surge = _share(rolling.get("maxSurge", _QUARTER), wanted, up=True)
            missing = _share(rolling.get("maxUnavailable", _QUARTER), wanted, up=False)
            surge = surge or int(not missing)
            target = min(wanted, max(wanted + surge - there, _asked(new) if new is not None else 0))
        if new is None:
            self._create(found, digest, target)
        elif _asked(new) != target:
            self._scale(new, target)
        spare = kept - max(wanted - missing - (_count(new, "availableReplicas") if new is not None else 0), 0)
        for item in old:
            less = min(max(spare, 0), _asked(item))
            if less:
                self._scale(item, _asked(item) - less)
                spare -= less

    def _create(self, found: Stored, digest: str, replicas: int) -> None:
        spec = found.plain["spec"]
        template = spec["template"]
        labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: digest}
        selector = spec.get("selector") or {}
        owner = {
            "apiVersion": DEPLOYMENT.api_version,
            "kind": DEPLOYMENT.kind,
            "name": found.name,
            "uid": found.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        manifest = {
            "apiVersion": REPLICA_SET.api_version,
            "kind": REPLICA_SET.kind,
            "metadata": {
                "name": f"{found.name}-{digest}",
                "namespace": found.namespace,
                "labels": labels,
                "ownerReferences": [owner],
            },
            "spec": {
                "replicas": replicas,
                "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}},
                "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
            },
        }
        try:
            self._store.create(manifest)
        except AlreadyExistsError:
            return  # somebody else's set of that name; it stands in the way until it goes
        self._context.journal.step(
            "deployment-controller",
            f"Deployment {found.key}",
            f"Scaled up replica set {found.name}-{digest} to {replicas}",
        )

    def _scale(self, item: Stored, replicas: int) -> None:
        self._store.patch(REPLICA_SET, item.name, {"spec": {"replicas": replicas}}, namespace=item.namespace)

    def _tell_status(self, found: Stored, new: Stored | None, old: list[Stored]) -> None:
        sets = [*old, *([new] if new is not None else [])]
        wanted = int(found.plain["spec"].get("replicas", 1))
        available = sum(_count(item, "availableReplicas") for item in sets)
        enough = available >= wanted - _share(_QUARTER, wanted, up=False)
        status = {
            "observedGeneration": found.metadata.get("generation", 1),
            "replicas": sum(_count(item, "replicas") for item in sets),
            "updatedReplicas": _count(new, "replicas") if new is not None else 0,
            "readyReplicas": sum(_count(item, "readyReplicas") for item in sets),
            "availableReplicas": available,
            "unavailableReplicas": max(wanted - available, 0),
            "conditions": [self._available(found, enough=enough)],
        }
        self._store.patch(DEPLOYMENT, found.name, {"status": status}, namespace=found.namespace, subresource="status")

    def _available(self, found: Stored, *, enough: bool) -> Plain:
        value = "True" if enough else "False"
        for item in (found.plain.get("status") or {}).get("conditions") or ():
            if item.get("type") == "Available" and item.get("status") == value:
                condition: Plain = item
                return condition
        now = rfc3339(self._context.clock.now())
        return {
            "type": "Available",
            "status": value,
            "reason": "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
            "message": f"Deployment {'has' if enough else 'does not have'} minimum availability.",
            "lastTransitionTime": now,
            "lastUpdateTime": now,
        }


def template_hash(template: Plain) -> str:
    """A short name for a version of a template."""
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def _belongs(item: Stored, found: Stored) -> bool:
    owner = controller_of(item.plain)
    return owner is not None and owner.get("uid") == found.uid


def _asked(item: Stored) -> int:
    return int(item.plain["spec"].get("replicas", 1))


def _count(item: Stored, field: str) -> int:
    return int((item.plain.get("status") or {}).get(field) or 0)


def _share(value: Any, of: int, *, up: bool) -> int:
    """A count, or a percentage of one, rounded up or down."""
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        whole, rest = divmod(int(value[:-1]) * of, 100)
        return whole + (1 if up and rest else 0)
    return value if isinstance(value, int) else 0
