"""Options of the controller process, with upstream's names and defaults (spec/karpenter-lifecycle.md 6.1)."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from msgspec import Struct

from karpenter_linode.model import labels
from karpenter_linode.model.core import TopologySpreadConstraint
from karpenter_linode.scheduling.problem import SchedulingOptions


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

    batch_idle_duration: timedelta = timedelta(seconds=1)
    batch_max_duration: timedelta = timedelta(seconds=10)
    ignore_dra_requests: bool = True
    preference_policy: Literal["Respect", "Ignore"] = "Respect"
    min_values_policy: Literal["Strict", "BestEffort"] = "Strict"
    reserved_capacity: bool = True
    default_spread: tuple[TopologySpreadConstraint, ...] = ()
    launch_timeout: timedelta = timedelta(minutes=5)
    registration_timeout: timedelta = timedelta(minutes=15)
    workers: int = 10
    launch_workers: int = 1000
    drain_workers: int = 100

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
