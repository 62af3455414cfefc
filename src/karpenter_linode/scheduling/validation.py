"""Which pending pods are looked at, and which are ignored (spec/karpenter-scheduling.md 1.7 and 6.4)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.model import labels
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
from karpenter_linode.scheduling.selection import required_terms
from karpenter_linode.scheduling.volumes import BIND_COMPLETED, claim_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.model.core import PersistentVolumeClaimSpec, Pod
    from karpenter_linode.scheduling.volumes import VolumeIndex

_OPERATORS: Final = ("DoesNotExist", "Exists", "Gt", "Gte", "In", "Lt", "Lte", "NotIn")
_BOUNDS: Final = frozenset({"Gt", "Lt", "Gte", "Lte"})
_CAPACITY_TYPES: Final = (labels.CAPACITY_ON_DEMAND, labels.CAPACITY_SPOT, labels.CAPACITY_RESERVED)
_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_DNS: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_INTEGER: Final = re.compile(r"[+]?[0-9]+")
_MAX_NAME: Final = 63
_MAX_PREFIX: Final = 253


class Restrictions(Struct, frozen=True):
    """Which label keys may be asked for.

    Args:
        well_known: keys that the cloud sets.
        domains: domains that Karpenter and the provider keep to themselves.
    """

    well_known: frozenset[str]
    domains: tuple[str, ...] = (labels.KARPENTER_GROUP,)

    def restricts(self, key: str) -> bool:
        """Whether a key must not be used: its domain is kept, and it is no well-known one."""
        if key in self.well_known:
            return False
        if key in labels.RESTRICTED_LABELS:
            return True
        domain = key.split("/", 1)[0] if "/" in key else ""
        return any(domain == kept or domain.endswith("." + kept) for kept in self.domains)


def validate(pod: Pod, volumes: VolumeIndex, restrictions: Restrictions) -> str:
    """Why a pending pod is ignored, or ""; several reasons are joined with "; "."""
    errors = [*_node_pool(pod), *_affinity(pod, restrictions), *_volumes(pod, volumes)]
    return "; ".join(errors)


def requirement_errors(item: NodeSelectorRequirement, restrictions: Restrictions) -> Iterator[str]:
    """What is wrong with a requirement as written (spec 6.4)."""
    key = labels.ALIASES.get(item.key, item.key)
    if item.operator not in _OPERATORS:
        yield f"key {key} has an unsupported operator {item.operator} not in [{' '.join(_OPERATORS)}]"
    if restrictions.restricts(key):
        known = " ".join(sorted(restrictions.well_known))
        kept = " ".join(sorted(restrictions.domains))
        yield (
            f"using label {key} is not allowed as it might interfere with the internal provisioning logic; specify a "
            f"well known label: [{known}], or a custom label that does not use a restricted domain: [{kept}]"
        )
    yield from _well_known_values(key, item)
    if not is_qualified_name(key):
        yield f"key {key} is not a qualified name"
    for value in item.values:
        if len(value) > _MAX_NAME or (value and not _NAME.fullmatch(value)):
            yield f"invalid value {value} for key {key}"
    if item.operator == "In" and not item.values:
        yield f"key {key} with operator In must have a value defined"
    if item.operator == "In" and item.min_values is not None and len(item.values) < item.min_values:
        yield (f"key {key} with operator In must have at least minimum number of values defined in 'values' field")
    if item.operator in _BOUNDS and (len(item.values) != 1 or not _INTEGER.fullmatch(item.values[0])):
        yield f"key {key} with operator {item.operator} must have a single positive integer value"


def _node_pool(pod: Pod) -> Iterator[str]:
    """A pod that refuses the NodePool label will never run on a node of ours."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    expressions: list[NodeSelectorRequirement] = []
    if affinity is not None and affinity.preferred_during_scheduling_ignored_during_execution:
        terms = affinity.preferred_during_scheduling_ignored_during_execution
        expressions += max(terms, key=lambda term: term.weight).preference.match_expressions
    required = required_terms(pod.spec)
    if required:
        expressions += required[0].match_expressions
    if any(item.key == labels.NODEPOOL and item.operator == "DoesNotExist" for item in expressions):
        yield (f"configured to not run on a Karpenter provisioned node (requirement={labels.NODEPOOL} DoesNotExist)")


def _affinity(pod: Pod, restrictions: Restrictions) -> Iterator[str]:
    for key, value in pod.spec.node_selector.items():
        yield from requirement_errors(NodeSelectorRequirement(key, "In", (value,)), restrictions)
    for term in required_terms(pod.spec):
        if term.match_fields:
            yield "node selector term with matchFields is not supported"
        for item in term.match_expressions:
            yield from requirement_errors(item, restrictions)


def _well_known_values(key: str, item: NodeSelectorRequirement) -> Iterator[str]:
    if key != labels.CAPACITY_TYPE or item.operator != "In" or not item.values:
        return
    bad = [value for value in item.values if value not in _CAPACITY_TYPES]
    values, known = " ".join(item.values), " ".join(sorted(_CAPACITY_TYPES))
    if len(bad) == len(item.values):
        yield f"no valid values found in [{values}] for {key}, expected one of: [{known}], got: [{' '.join(bad)}]"
    elif item.min_values is not None and len(item.values) - len(bad) < item.min_values:
        yield (
            f"not enough valid values found in [{values}] for {key}, expected at least {item.min_values} valid values "
            f"from: [{known}], got: {len(item.values) - len(bad)}"
        )


def is_qualified_name(key: str) -> bool:
    """Whether a text is a label key: an optional DNS name, a slash, and a name."""
    prefix, slash, name = key.rpartition("/")
    if slash and (not prefix or len(prefix) > _MAX_PREFIX or not _DNS.fullmatch(prefix)):
        return False
    return bool(name) and len(name) <= _MAX_NAME and _NAME.fullmatch(name) is not None


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
    wrapped = f"{facts}, StorageClass={spec.storage_class_name or ''}"
    if volume is None:
        yield f'failed to validate pvc, persistentvolumes "{name}" not found ({wrapped})'
    elif volume.metadata.deletion_timestamp is not None:
        yield f"failed to validate pvc, persistentvolume is being deleted ({wrapped})"
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
