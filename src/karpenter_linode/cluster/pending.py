"""Which pods call for capacity, and which of those can't be helped (spec/karpenter-scheduling.md 1.6 and 1.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.model import labels
from karpenter_linode.model.core import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
from karpenter_linode.model.validation import requirement_errors
from karpenter_linode.scheduling.pods import is_currently_reschedulable, is_provisionable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.core import NodeSelectorTerm, Volume

NOT_FOR_KARPENTER: Final = "pod-not-for-karpenter"
INVALID_POD: Final = "pod-invalid"
_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"


class Pending(Struct, frozen=True):
    """Pods to place, and pods that were left out with the reason."""

    pods: tuple[Pod, ...] = ()
    ignored: tuple[tuple[Pod, Reason], ...] = ()


def pending_pods(view: View) -> Pending:
    """Unbound pods that kube-scheduler found no place for, less those whose specification can't be served."""
    pods: list[Pod] = []
    ignored: list[tuple[Pod, Reason]] = []
    for pod in view.all(Pod):
        if not is_provisionable(pod):
            continue
        reason = refusal(pod, view)
        if reason is None:
            pods.append(pod)
        else:
            ignored.append((pod, reason))
    return Pending(tuple(pods), tuple(ignored))


def displaced_pods(view: View, now: datetime) -> tuple[Pod, ...]:
    """Pods on nodes that are marked for deletion and that will be moved: they need room elsewhere now."""
    return tuple(
        pod
        for state in view.state_nodes(now)
        if state.marked_for_deletion and state.node is not None
        for pod in view.pods_on(state.node.name)
        if is_currently_reschedulable(pod, view.budgets_in(pod.namespace), now)
    )


def refusal(pod: Pod, view: View) -> Reason | None:
    """Why no node could ever serve a pod, or None. The code tells pods that opted out from pods with a mistake."""
    opted_out = _opted_out(pod)
    errors = [*opted_out, *_selector_errors(pod), *_volume_errors(pod, view)]
    if not errors:
        return None
    code = NOT_FOR_KARPENTER if opted_out else INVALID_POD
    return Reason(code, "; ".join(errors), subject=f"Pod {pod.key}")


def _opted_out(pod: Pod) -> list[str]:
    expressions = [expression for term in _first_terms(pod) for expression in term.match_expressions]
    if any(item.key == labels.NODEPOOL and item.operator == "DoesNotExist" for item in expressions):
        requirement = f"{labels.NODEPOOL} DoesNotExist"
        return [f"configured to not run on a Karpenter provisioned node (requirement={requirement})"]
    return []


def _first_terms(pod: Pod) -> Iterator[NodeSelectorTerm]:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is None:
        return
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    if preferred:
        yield max(preferred, key=lambda term: term.weight).preference
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is not None and required.node_selector_terms:
        yield required.node_selector_terms[0]


def _selector_errors(pod: Pod) -> Iterator[str]:
    for key, value in sorted(pod.spec.node_selector.items()):
        yield from requirement_errors(NodeSelectorRequirement(key=key, operator="In", values=(value,)))
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        if term.match_fields:
            yield "node selector term with matchFields is not supported"
        for expression in term.match_expressions:
            yield from requirement_errors(expression)


def _volume_errors(pod: Pod, view: View) -> Iterator[str]:
    for volume in pod.spec.volumes:
        name = _volume_claim(pod, volume)
        if not name:
            continue
        claim = view.get(PersistentVolumeClaim, f"{pod.namespace}/{name}")
        if claim is None:
            yield (
                f'getting persistent volume claim, persistentvolumeclaims "{name}" not found '
                f"(PersistentVolumeClaim={name})"
            )
            continue
        error = _claim_error(claim, view)
        if error:
            yield error


def _volume_claim(pod: Pod, volume: Volume) -> str:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else ""


def _claim_error(claim: PersistentVolumeClaim, view: View) -> str:
    volume, storage_class = claim.spec.volume_name, claim.spec.storage_class_name or ""
    if claim.metadata.deletion_timestamp is not None:
        return f"persistentvolumeclaim is being deleted (PersistentVolumeClaim={claim.key})"
    if claim.status.phase == "Lost":
        facts = f"(PersistentVolume={volume}, PersistentVolumeClaim={claim.key})"
        return f"persistentvolumeclaim bound to non-existent persistentvolume {facts}"
    if volume:
        return _bound_claim_error(claim, view)
    facts = f"(PersistentVolumeClaim={claim.key}, StorageClass={storage_class})"
    if not storage_class:
        return f"unbound pvc must define a storage class {facts}"
    found = view.get(StorageClass, storage_class)
    if found is None:
        missing = f'storageclasses.storage.k8s.io "{storage_class}" not found'
        return f"failed to validate pvc, failed to get storage class, {missing} {facts}"
    if found.volume_binding_mode == "Immediate":
        return f"failed to validate pvc, pvc with immediate volume binding mode must be bound {facts}"
    return ""


def _bound_claim_error(claim: PersistentVolumeClaim, view: View) -> str:
    volume = view.get(PersistentVolume, claim.spec.volume_name)
    where = f"PersistentVolume={claim.spec.volume_name}, PersistentVolumeClaim={claim.key}"
    facts = f"({where}, StorageClass={claim.spec.storage_class_name or ''})"
    if volume is None:
        return f'failed to validate pvc, persistentvolumes "{claim.spec.volume_name}" not found {facts}'
    if volume.metadata.deletion_timestamp is not None:
        return f"failed to validate pvc, persistentvolume is being deleted {facts}"
    if _BIND_COMPLETED not in claim.metadata.annotations:
        cause = "pvc is considered unbound because it does not contain annotation"
        return f"{cause} ({where}, annotation={_BIND_COMPLETED})"
    return ""
