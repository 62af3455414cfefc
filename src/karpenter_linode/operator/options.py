"""Options of the controller process, with upstream's names and defaults (spec/karpenter-lifecycle.md 6.1)."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, Literal

from msgspec import Struct

from karpenter_linode.controllers.settings import Settings
from karpenter_linode.model import labels
from karpenter_linode.model.core import TopologySpreadConstraint
from karpenter_linode.scheduling.problem import SchedulingOptions

_DEFAULTS: Final = Settings()  # each default is written where it is used, and taken from there


class Options(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Settings of the whole controller.

    Args:
        batch_idle_duration: a batch of pending pods closes after this much quiet.
        batch_max_duration: a batch never stays open longer.
        ignore_dra_requests: refuse pods with ResourceClaims.
        preference_policy: whether preferences count until they are relaxed.
        min_values_policy: whether minValues may be missed.
        reserved_capacity: the ReservedCapacity feature gate.
        default_spread: topology spread constraints of pods that declare none.
        launch_timeout: a NodeClaim that isn't launched by then is deleted.
        registration_timeout: a NodeClaim whose node hasn't joined by then is deleted.
        workers: objects that one controller works on at a time.
        launch_workers: NodeClaims whose lives are moved on at a time; each may wait for the cloud.
        drain_workers: Nodes drained, and pods evicted, at a time.
    """

    batch_idle_duration: timedelta = _DEFAULTS.batch_idle_duration
    batch_max_duration: timedelta = _DEFAULTS.batch_max_duration
    ignore_dra_requests: bool = _DEFAULTS.scheduling.ignore_dra_requests
    preference_policy: Literal["Respect", "Ignore"] = _DEFAULTS.scheduling.preference_policy
    min_values_policy: Literal["Strict", "BestEffort"] = _DEFAULTS.scheduling.min_values_policy
    reserved_capacity: bool = _DEFAULTS.scheduling.reserved_capacity
    default_spread: tuple[TopologySpreadConstraint, ...] = _DEFAULTS.scheduling.default_spread
    launch_timeout: timedelta = _DEFAULTS.lifecycle.launch_timeout
    registration_timeout: timedelta = _DEFAULTS.lifecycle.registration_timeout
    workers: int = _DEFAULTS.workers
    launch_workers: int = _DEFAULTS.launch_workers
    drain_workers: int = _DEFAULTS.drain_workers

    def scheduling(self) -> SchedulingOptions:
        """The part that a scheduling decision depends on."""
        return SchedulingOptions(
            ignore_dra_requests=self.ignore_dra_requests,
            preference_policy=self.preference_policy,
            min_values_policy=self.min_values_policy,
            reserved_capacity=self.reserved_capacity,
            default_spread=self.default_spread,
            well_known_labels=tuple(sorted(labels.LINODE_WELL_KNOWN)),
        )
