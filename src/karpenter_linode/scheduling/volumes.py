"""Volumes: where they may be, and how many a node can attach (spec/karpenter-scheduling.md 1.10 and 4.4)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.model import labels
from karpenter_linode.model.requirement import Requirement
from karpenter_linode.scheduling.selection import NO_SELECTION, Selection, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from karpenter_linode.model.core import (
        PersistentVolume,
        PersistentVolumeClaim,
        PersistentVolumeClaimSpec,
        Pod,
        StorageClass,
        Volume,
    )

DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_IN_TREE: Final = {"kubernetes.io/aws-ebs": "ebs.csi.aws.com"}
_MAX_ALTERNATIVES: Final = 256  # the cross product of many volumes with many zones must stay small


class PodVolumes(Struct, frozen=True):
    """What the volumes of a pod ask of its node.

    Args:
        alternatives: placements of which one must hold; the empty selection alone where nothing is asked.
        claims: ``(driver, namespace/name)`` of every claim that takes an attachment.
        error: why they could not be looked up, or "".
    """

    alternatives: tuple[Selection, ...] = (NO_SELECTION,)
    claims: frozenset[tuple[str, str]] = frozenset()
    error: str = ""


NO_VOLUMES: Final = PodVolumes()


class VolumeIndex:
    """Claims, volumes and storage classes by name.

    Args:
        claims: every claim.
        volumes: every volume.
        classes: every storage class.
        unsupported_keys: topology keys that the provider cannot place volumes by.
        unsupported_drivers: drivers whose volumes it cannot attach.
    """

    def __init__(
        self,
        claims: Iterable[PersistentVolumeClaim],
        volumes: Iterable[PersistentVolume],
        classes: Iterable[StorageClass],
        *,
        unsupported_keys: frozenset[str] = frozenset(),
        unsupported_drivers: frozenset[str] = frozenset(),
    ) -> None:
        self.unsupported_keys = unsupported_keys
        self.unsupported_drivers = unsupported_drivers
        self.claims = {claim.key: claim for claim in claims}
        self.volumes = {volume.name: volume for volume in volumes}
        self.classes = {item.name: item for item in classes}
        defaults = [item for item in self.classes.values() if item.metadata.annotations.get(DEFAULT_CLASS) == "true"]
        newest = max(defaults, key=lambda item: (_created(item), item.name), default=None)
        self.default_class = newest.name if newest is not None else ""

    def of(self, pod: Pod) -> PodVolumes:
        """What the volumes of a pod ask of its node."""
        alternatives: tuple[Selection, ...] = (NO_SELECTION,)
        attached: set[tuple[str, str]] = set()
        for name, spec in self.claims_of(pod):
            key = f"{pod.namespace}/{name}"
            claim = self.claims.get(key)
            if claim is None and spec is None:
                error = f'persistentvolumeclaims "{name}" not found'
                return PodVolumes(error=f"discovering persistent volume claim, {error}")
            wanted = claim.spec if claim is not None else spec
            if wanted is None:
                continue
            terms = self._terms(wanted)
            if isinstance(terms, str):
                return PodVolumes(error=terms)
            alternatives = _combine(alternatives, terms)
            driver = self.driver(wanted)
            if driver:
                attached.add((driver, key))
        return PodVolumes(alternatives, frozenset(attached))

    def claims_of(self, pod: Pod) -> Iterator[tuple[str, PersistentVolumeClaimSpec | None]]:
        """Names of the claims of a pod; an ephemeral volume's claim may not exist yet, its spec then stands for it."""
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            if name:
                template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
                yield name, template.spec if template is not None else None

    def storage_class(self, spec: PersistentVolumeClaimSpec) -> str:
        """The storage class of a claim; one that names none gets the newest default class, as the API server says."""
        return self.default_class if spec.storage_class_name is None else spec.storage_class_name

    def driver(self, spec: PersistentVolumeClaimSpec) -> str:
        """The CSI driver whose attachments a claim counts against, or "" where nothing is counted."""
        if spec.volume_name:
            volume = self.volumes.get(spec.volume_name)
            if volume is None:
                return ""
            if volume.spec.csi is not None:
                return volume.spec.csi.driver
            return _IN_TREE["kubernetes.io/aws-ebs"] if volume.spec.aws_elastic_block_store is not None else ""
        found = self.classes.get(self.storage_class(spec))
        return _IN_TREE.get(found.provisioner, found.provisioner) if found is not None else ""

    def _terms(self, spec: PersistentVolumeClaimSpec) -> tuple[Selection, ...] | str:
        if spec.volume_name:
            volume = self.volumes.get(spec.volume_name)
            if volume is None:
                name = spec.volume_name
                return f'getting persistent volume, persistentvolumes "{name}" not found (PersistentVolume={name})'
            return _volume_terms(volume)
        name = self.storage_class(spec)
        if not name:
            return ()
        found = self.classes.get(name)
        if found is None:
            missing = f'storageclasses.storage.k8s.io "{name}" not found'
            return f"getting storage class, {missing} (StorageClass={name})"
        return tuple(
            Selection(Requirement(item.key, frozenset(item.values)) for item in term.match_label_expressions)
            for term in found.allowed_topologies
        )


def claim_name(pod: Pod, volume: Volume) -> str:
    """The claim behind a volume, or "" for a volume of another kind."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else ""


def over_limit(
    held: frozenset[tuple[str, str]], wanted: frozenset[tuple[str, str]], limits: Mapping[str, int]
) -> str | None:
    """The contract text for the first driver (by name) with too many volumes, or None. Shared claims count once."""
    together = held | wanted
    for driver in sorted({driver for driver, _ in wanted}):
        limit = limits.get(driver)
        count = sum(1 for other, _ in together if other == driver)
        if limit is not None and count > limit:
            return f"would exceed volume limit (provisioner={driver}, volume-count={count}, volume-limit={limit})"
    return None


def _volume_terms(volume: PersistentVolume) -> tuple[Selection, ...]:
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    if required is None:
        return ()
    local = volume.spec.local is not None or volume.spec.host_path is not None
    terms = []
    for term in required.node_selector_terms:
        expressions = [item for item in term.match_expressions if not (local and item.key == labels.HOSTNAME)]
        if term.match_expressions:
            terms.append(Selection(part for item in expressions for part in read(item)))
    return tuple(terms)


def _combine(left: tuple[Selection, ...], right: tuple[Selection, ...]) -> tuple[Selection, ...]:
    """Every pair that can hold together; if none can, all pairs, so that the pod fails where its volumes are named."""
    if not right:
        return left
    pairs = [Selection((*one.requirements, *other.requirements)) for one, other in product(left, right)]
    possible = [pair for pair in pairs if pair.contradiction is None]
    return tuple((possible or pairs)[:_MAX_ALTERNATIVES])


def _created(item: StorageClass) -> str:
    created = item.metadata.creation_timestamp
    return created.isoformat() if created is not None else ""
