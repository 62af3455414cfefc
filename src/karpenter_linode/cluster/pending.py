"""Which pods call for capacity, and which of those can't be helped (spec/karpenter-scheduling.md 1.6 and 1.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.model.core import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from karpenter_linode.model.reason import Reason
from karpenter_linode.scheduling.pods import is_currently_reschedulable, is_provisionable
from karpenter_linode.scheduling.validation import opt_out, validate
from karpenter_linode.scheduling.volumes import VolumeIndex

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.cluster.view import View

NOT_FOR_KARPENTER: Final = "pod-not-for-karpenter"
INVALID_POD: Final = "pod-invalid"


class Pending(Struct, frozen=True):
    """Pods to place, and pods that were left out with the reason."""

    pods: tuple[Pod, ...] = ()
    ignored: tuple[tuple[Pod, Reason], ...] = ()


def pending_pods(view: View) -> Pending:
    """Unbound pods that kube-scheduler found no place for, less those whose specification can't be served."""
    pods: list[Pod] = []
    ignored: list[tuple[Pod, Reason]] = []
    volumes = VolumeIndex(view.all(PersistentVolumeClaim), view.all(PersistentVolume), view.all(StorageClass))
    for pod in view.all(Pod):
        if not is_provisionable(pod):
            continue
        reason = refusal(pod, volumes)
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


def refusal(pod: Pod, volumes: VolumeIndex) -> Reason | None:
    """Why no node could ever serve a pod, or None. The code tells pods that opted out from pods with a mistake."""
    errors = validate(pod, volumes)
    if not errors:
        return None
    return Reason(NOT_FOR_KARPENTER if opt_out(pod) else INVALID_POD, errors, subject=f"Pod {pod.key}")
