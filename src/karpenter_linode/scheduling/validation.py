"""Which pending pods are looked at, and which are ignored (spec/karpenter-scheduling.md 1.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.model import labels
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
from karpenter_linode.model.validation import requirement_errors
from karpenter_linode.scheduling.selection import required_terms
from karpenter_linode.scheduling.volumes import BIND_COMPLETED, claim_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.model.core import PersistentVolumeClaimSpec, Pod, StorageClass
    from karpenter_linode.scheduling.volumes import VolumeIndex


def validate(pod: Pod, volumes: VolumeIndex) -> str:
    """Why a pending pod is ignored, or ""; several reasons are joined with "; "."""
    return "; ".join(filter(None, (opt_out(pod), *_affinity(pod), *_volumes(pod, volumes))))


def opt_out(pod: Pod) -> str:
    """What a pod says that will never run on a node of ours by its own wish, or "": it refuses the NodePool label."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    expressions: list[NodeSelectorRequirement] = []
    if affinity is not None and affinity.preferred_during_scheduling_ignored_during_execution:
        terms = affinity.preferred_during_scheduling_ignored_during_execution
        expressions += max(terms, key=lambda term: term.weight).preference.match_expressions
    required = required_terms(pod.spec)
    if required:
        expressions += required[0].match_expressions
    if any(item.key == labels.NODEPOOL and item.operator == "DoesNotExist" for item in expressions):
        return f"configured to not run on a Karpenter provisioned node (requirement={labels.NODEPOOL} DoesNotExist)"
    return ""


def _affinity(pod: Pod) -> Iterator[str]:
    for key, value in pod.spec.node_selector.items():
        yield from requirement_errors(NodeSelectorRequirement(key, "In", (value,)))
    for term in required_terms(pod.spec):
        if term.match_fields:
            yield "node selector term with matchFields is not supported"
        for item in term.match_expressions:
            yield from requirement_errors(item)


def _volumes(pod: Pod, index: VolumeIndex) -> Iterator[str]:
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if not name:
            continue
        key = f"{pod.namespace}/{name}"
        claim = index.claims.get(key)
        if claim is None:
            missing = f'persistentvolumeclaims "{name}" not found'
            yield f"getting persistent volume claim, {missing} (PersistentVolumeClaim={name})"
        elif claim.metadata.deletion_timestamp is not None:
            yield f"persistentvolumeclaim is being deleted (PersistentVolumeClaim={key})"
        elif claim.status.phase == "Lost":
            yield (
                "persistentvolumeclaim bound to non-existent persistentvolume "
                f"(PersistentVolume={claim.spec.volume_name}, PersistentVolumeClaim={key})"
            )
        elif claim.spec.volume_name:
            yield from _bound(key, claim.spec, index, complete=BIND_COMPLETED in claim.metadata.annotations)
        else:
            yield from _unbound(key, claim.spec, index)


def _bound(key: str, spec: PersistentVolumeClaimSpec, index: VolumeIndex, *, complete: bool) -> Iterator[str]:
    name = spec.volume_name
    facts = f"PersistentVolume={name}, PersistentVolumeClaim={key}"
    volume = index.volumes.get(name)
    storage_class = f"StorageClass={spec.storage_class_name or ''}"
    wrapped = f"{facts}, {storage_class}"
    if volume is None:
        yield f'failed to validate pvc, persistentvolumes "{name}" not found ({wrapped})'
    elif volume.metadata.deletion_timestamp is not None:
        yield f"failed to validate pvc, persistentvolume is being deleted ({wrapped})"
    elif index.driver(spec) in index.unsupported_drivers:
        yield _unsupported_driver(facts, index.driver(spec), storage_class)
    elif not complete:
        yield f"pvc is considered unbound because it does not contain annotation ({facts}, annotation={BIND_COMPLETED})"


def _unbound(key: str, spec: PersistentVolumeClaimSpec, index: VolumeIndex) -> Iterator[str]:
    name = index.storage_class(spec)
    if not name:
        yield f"unbound pvc must define a storage class (PersistentVolumeClaim={key}, StorageClass=)"
        return
    facts = f"PersistentVolumeClaim={key}, StorageClass={name}"
    found = index.classes.get(name)
    if found is None:
        missing = f'storageclasses.storage.k8s.io "{name}" not found'
        yield f"failed to validate pvc, failed to get storage class, {missing} ({facts})"
    elif found.volume_binding_mode == "Immediate":
        yield f"failed to validate pvc, pvc with immediate volume binding mode must be bound ({facts})"
    elif (topology := _unsupported_key(found, index)) is not None:
        yield f"failed to validate pvc, storage class uses unsupported topology key ({facts}, TopologyKey={topology})"
    elif index.driver(spec) in index.unsupported_drivers:
        yield _unsupported_driver(f"PersistentVolumeClaim={key}", index.driver(spec), f"StorageClass={name}")


def _unsupported_key(found: StorageClass, index: VolumeIndex) -> str | None:
    keys = (item.key for term in found.allowed_topologies for item in term.match_label_expressions)
    return next((key for key in keys if key in index.unsupported_keys), None)


def _unsupported_driver(claim: str, driver: str, storage_class: str) -> str:
    return f"failed to validate pvc, provisioner is not supported ({claim}, Provisioner={driver}, {storage_class})"
