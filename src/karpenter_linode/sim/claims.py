"""The resource claim controller: it makes claims from templates and takes them back when nobody uses them.

Sources: spec/dra-allocation.md 1.6 and 1.7, Kubernetes' ``resourceclaim`` controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.dra.claims import make_claim
from karpenter_linode.model import codec, kinds, labels
from karpenter_linode.model.core import Pod
from karpenter_linode.model.resource import ResourceClaim, ResourceClaimTemplate
from karpenter_linode.ports import NotFoundError
from karpenter_linode.sim.deletion import TERMINAL
from karpenter_linode.sim.resource_types import type_of

if TYPE_CHECKING:
    from karpenter_linode.model.core import PodResourceClaim
    from karpenter_linode.model.resource import ResourceClaimConsumerReference
    from karpenter_linode.sim.context import SimContext
    from karpenter_linode.sim.watches import Change

_CLAIM: Final = type_of(ResourceClaim)
_POD: Final = type_of(Pod)
_FIRST_RETRY: Final = 0.005
_LAST_RETRY: Final = 1000.0


class ClaimController:
    """Makes, releases and deletes claims.

    Args:
        context: the world.
    """

    def __init__(self, context: SimContext) -> None:
        self._context = context
        self._store = context.store
        self._events = context.recorder("resource_claim")
        self._tries: dict[str, int] = {}
        self._queued: dict[str, None] = {}
        context.store.listen(Pod, self._pod_changed)
        context.store.listen(ResourceClaim, self._claim_changed)

    def _pod_changed(self, change: Change) -> None:
        if change.stored is None:
            return
        plain = change.stored.plain
        implicit = plain.get("status", {}).get("extendedResourceClaimStatus")
        if not implicit and not plain.get("spec", {}).get("resourceClaims"):
            return
        pod = change.stored.decode(Pod)
        if change.type == "DELETED" or _done(pod):
            self._tries.pop(pod.uid, None)
            for name in _claim_names(pod):
                self._queue_claim(name, pod.namespace)
        elif pod.uid not in self._tries and _missing_entries(pod):
            self._tries[pod.uid] = 0
            delay = self._context.draw(self._context.delays.claim_made, f"claims/{pod.key}")
            self._context.agenda.after(delay, self._sync_pod, pod.name, pod.namespace, pod.uid)

    def _sync_pod(self, name: str, namespace: str, uid: str) -> None:
        """Make the claims that a pod still misses; try again later when a template does not exist."""
        pod = self._store.find(Pod, name, namespace)
        if pod is None or pod.uid != uid or _done(pod):
            return
        statuses: list[dict[str, Any]] = []
        missing = False
        for entry in _missing_entries(pod):
            template = self._store.find(ResourceClaimTemplate, entry.resource_claim_template_name or "", namespace)
            if template is None:
                missing = True
                message = (
                    f'PodResourceClaim {entry.name}: resource claim template "{entry.resource_claim_template_name}": '
                    f'resourceclaimtemplate.resource.k8s.io "{entry.resource_claim_template_name}" not found'
                )
                self._events.record(pod, "Warning", "FailedResourceClaimCreation", message)
                continue
            claim = self._existing(pod, entry) or self._make(pod, entry, template)
            statuses.append({"name": entry.name, "resourceClaimName": claim.name})
        if statuses:
            self._store.patch(
                _POD,
                name,
                {"status": {"resourceClaimStatuses": statuses}},
                namespace=namespace,
                subresource="status",
                patch_kind="strategic",
            )
        if missing:
            wait = min(_LAST_RETRY, _FIRST_RETRY * 2.0 ** self._tries[uid])
            self._tries[uid] += 1
            self._context.agenda.after(wait, self._sync_pod, name, namespace, uid, background=True)
        else:
            self._tries.pop(uid, None)

    def _existing(self, pod: Pod, entry: PodResourceClaim) -> ResourceClaim | None:
        """The claim made before, where its name was not recorded in the pod."""
        return next(
            (
                claim
                for claim in self._store.all(ResourceClaim)
                if claim.metadata.annotations.get(labels.POD_CLAIM_NAME) == entry.name
                and _controlled_by(claim, pod.uid)
            ),
            None,
        )

    def _make(self, pod: Pod, entry: PodResourceClaim, template: ResourceClaimTemplate) -> ResourceClaim:
        claim = self._store.create(kinds.to_manifest(make_claim(pod, entry, template))).decode(ResourceClaim)
        self._context.journal.step("resource-claim-controller", claim, f"ResourceClaim created for pod {pod.key}")
        return claim

    def _claim_changed(self, change: Change) -> None:
        if change.stored is None or change.type == "DELETED":
            return
        claim = change.stored.decode(ResourceClaim)
        unprotected = claim.metadata.deletion_timestamp is not None and claim.status.allocation is None
        if unprotected or any(self._is_gone(claim, user) for user in claim.status.reserved_for):
            self._queue_claim(claim.name, claim.namespace)

    def _queue_claim(self, name: str, namespace: str) -> None:
        key = f"{namespace}/{name}"
        if key not in self._queued:
            self._queued[key] = None
            delay = self._context.draw(self._context.delays.claim_released, f"release/{key}")
            self._context.agenda.after(delay, self._sync_claim, name, namespace)

    def _sync_claim(self, name: str, namespace: str) -> None:
        """Drop consumers that have ended; without consumers the allocation goes, then a generated claim."""
        self._queued.pop(f"{namespace}/{name}", None)
        claim = self._store.find(ResourceClaim, name, namespace)
        if claim is None:
            return
        left = [user for user in claim.status.reserved_for if not self._is_gone(claim, user)]
        if len(left) < len(claim.status.reserved_for):
            status: dict[str, Any] = {"reservedFor": codec.to_plain(left) if left else None}
            if not left:
                status["allocation"] = None
                self._context.journal.step("resource-claim-controller", claim, "ResourceClaim deallocated")
            self._store.patch(_CLAIM, name, {"status": status}, namespace=namespace, subresource="status")
        if not left:
            self._unprotect(name, namespace)
            self._delete_generated(name, namespace)

    def _is_gone(self, claim: ResourceClaim, user: ResourceClaimConsumerReference) -> bool:
        """Whether a consumer is a pod that needs the claim no more. Other consumers are not ours to judge."""
        return user.resource == "pods" and not user.api_group and self._pod_gone(user.name, claim.namespace, user.uid)

    def _pod_gone(self, name: str, namespace: str, uid: str) -> bool:
        pod = self._store.find(Pod, name, namespace)
        return pod is None or pod.uid != uid or _done(pod)

    def _unprotect(self, name: str, namespace: str) -> None:
        """Take the finalizer off a claim that is not allocated."""
        claim = self._store.find(ResourceClaim, name, namespace)
        if claim is None or claim.status.allocation is not None:
            return
        if labels.CLAIM_FINALIZER in claim.metadata.finalizers:
            kept = [finalizer for finalizer in claim.metadata.finalizers if finalizer != labels.CLAIM_FINALIZER]
            self._store.patch(_CLAIM, name, {"metadata": {"finalizers": kept}}, namespace=namespace)

    def _delete_generated(self, name: str, namespace: str) -> None:
        """A claim made for one pod ends with that pod's work, before the pod object does."""
        claim = self._store.find(ResourceClaim, name, namespace)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return
        for owner in claim.metadata.owner_references:
            if owner.controller and owner.kind == "Pod" and self._pod_gone(owner.name, namespace, owner.uid):
                try:
                    self._store.delete(_CLAIM, name, namespace, uid=claim.uid)
                except NotFoundError:
                    return


def _done(pod: Pod) -> bool:
    """Whether a pod no longer uses its claims: it has ended, or it is being deleted and never had a node."""
    return pod.status.phase in TERMINAL or (pod.metadata.deletion_timestamp is not None and not pod.spec.node_name)


def _missing_entries(pod: Pod) -> list[PodResourceClaim]:
    known = {status.name for status in pod.status.resource_claim_statuses}
    return [
        entry for entry in pod.spec.resource_claims if entry.resource_claim_template_name and entry.name not in known
    ]


def _claim_names(pod: Pod) -> list[str]:
    generated = [status.resource_claim_name for status in pod.status.resource_claim_statuses]
    named = [entry.resource_claim_name for entry in pod.spec.resource_claims]
    implicit = pod.status.extended_resource_claim_status
    extended = [implicit.resource_claim_name] if implicit is not None else []
    return [name for name in (*generated, *named, *extended) if name]


def _controlled_by(claim: ResourceClaim, uid: str) -> bool:
    return any(owner.controller and owner.uid == uid for owner in claim.metadata.owner_references)
