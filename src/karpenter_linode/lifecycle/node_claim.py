"""The life of a NodeClaim, from launch to finalization (spec/karpenter-lifecycle.md 1.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from karpenter_linode.cluster.view import is_supported
from karpenter_linode.lifecycle.effects import CloudCreate, Effect, Patch, Requeue
from karpenter_linode.lifecycle.finalization import finalize
from karpenter_linode.lifecycle.initialization import initialize
from karpenter_linode.lifecycle.launch import LaunchAnswer, launch
from karpenter_linode.lifecycle.liveness import check_liveness
from karpenter_linode.lifecycle.patches import object_patch, status_patch
from karpenter_linode.lifecycle.registration import register
from karpenter_linode.lifecycle.timing import NOW
from karpenter_linode.model import labels
from karpenter_linode.model.instance import Launched

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.lifecycle.step import LifecycleSettings
    from karpenter_linode.model.karpenter import NodeClaim

_NODE: Final = 0
_TOLD: Final = 1
_ASKED: Final = 2


def reconcile_node_claim(
    claim: NodeClaim,
    view: View,
    now: datetime,
    settings: LifecycleSettings,
    *,
    launched: LaunchAnswer | None = None,
    instance_gone: bool | None = None,
) -> list[Effect]:
    """Decide the next steps of a NodeClaim.

    Args:
        claim: the NodeClaim.
        view: the cluster.
        now: the time.
        settings: time limits and switches.
        launched: the cloud's answer to ``CloudCreate``, if it was asked.
        instance_gone: the cloud's answer to ``CloudDelete``, if it was asked.

    Returns:
        Effects in order. The finalizer is written before the cloud is asked for anything, and what a failed step
        learnt is written as well.
    """
    if not is_supported(claim.spec.node_class_ref):
        return []
    if claim.metadata.deletion_timestamp is not None:
        if isinstance(launched, Launched) and not claim.status.provider_id:
            # Built while the deletion began: the instance has to be on record before it can be taken down.
            step = launch(claim, launched, now)
            return [*step.effects, *_written(claim, step.claim), Requeue(NOW)]
        return finalize(claim, view, now, instance_gone=instance_gone)
    if labels.TERMINATION_FINALIZER not in claim.metadata.finalizers:
        finalizers = (*claim.metadata.finalizers, labels.TERMINATION_FINALIZER)
        finalized = replace(claim, metadata=replace(claim.metadata, finalizers=finalizers))
        return [*object_patch(claim, finalized, locked=True), Requeue(NOW)]
    return _live(claim, view, now, settings, launched)


def _live(
    claim: NodeClaim,
    view: View,
    now: datetime,
    settings: LifecycleSettings,
    launched: LaunchAnswer | None,
) -> list[Effect]:
    step = launch(claim, launched, now)
    effects = list(step.effects)
    if not step.stop:
        step = register(step.claim, view, now)
        effects += step.effects
        step = initialize(step.claim, view, now, ignore_dra_requests=settings.ignore_dra_requests)
        effects += step.effects
        step = check_liveness(step.claim, view, settings, now)
        effects += step.effects
    return [
        *_by_rank(effects, _NODE),
        *_written(claim, step.claim),
        *_by_rank(effects, _TOLD),
        *_by_rank(effects, _ASKED),
    ]


def _by_rank(effects: list[Effect], rank: int) -> list[Effect]:
    # Node writes come first, since conditions build on them. What is told comes after the writes: a failed lock must
    # not have told it. The cloud is asked last.
    return [effect for effect in effects if _rank(effect) == rank]


def _rank(effect: Effect) -> int:
    if isinstance(effect, Patch):
        return _NODE
    return _ASKED if isinstance(effect, CloudCreate) else _TOLD


def _written(before: NodeClaim, after: NodeClaim) -> list[Effect]:
    return [*object_patch(before, after, locked=True), *status_patch(before, after)]
