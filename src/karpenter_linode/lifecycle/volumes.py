"""Volumes that keep a drained node waiting (spec/karpenter-lifecycle.md 2.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.lifecycle.drain import is_drainable
from karpenter_linode.model.core import PersistentVolumeClaim

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.core import Pod, VolumeAttachment


def blocking_attachments(node: str, view: View, now: datetime) -> tuple[VolumeAttachment, ...]:
    """Attachments that a node must lose before it goes.

    Attachments without a volume, and those of pods that no drain removes, would never go away by themselves.
    """
    staying = {volume for pod in view.pods_on(node) if not is_drainable(pod, now) for volume in _volumes_of(pod, view)}
    return tuple(
        attachment
        for attachment in view.attachments_on(node)
        if attachment.spec.source.persistent_volume_name
        and attachment.spec.source.persistent_volume_name not in staying
    )


def _volumes_of(pod: Pod, view: View) -> Iterator[str]:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            name = f"{pod.name}-{volume.name}"
        else:
            continue
        claim = view.get(PersistentVolumeClaim, f"{pod.namespace}/{name}")
        if claim is not None and claim.spec.volume_name:
            yield claim.spec.volume_name
