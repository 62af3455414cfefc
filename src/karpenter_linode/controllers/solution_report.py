"""What people are told about a solution: log lines, events, metrics (spec/karpenter-scheduling.md 1.11 and 2.15)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cluster.problem import replicated
from karpenter_linode.model import labels
from karpenter_linode.model.core import Pod
from karpenter_linode.model.karpenter import NodePool
from karpenter_linode.model.wording import few
from karpenter_linode.scheduling.default_spread import SpreadSelectors
from karpenter_linode.scheduling.pods import DRA_IGNORED, DRA_SKIPPED_LOG
from karpenter_linode.scheduling.refusals import RESERVED, WITHOUT_POOLS
from karpenter_linode.scheduling.solver import UNREACHED
from karpenter_linode.scheduling.world import (
    NO_PLAN_LEFT,
    POOL_INVALID,
    POOL_NOT_READY,
    SHORT_OF_MIN_VALUES,
    WITHOUT_PLANS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import timedelta

    from karpenter_linode.cluster.view import View
    from karpenter_linode.controllers.runtime import Runtime
    from karpenter_linode.model.karpenter import NodeClaim
    from karpenter_linode.model.reason import Reason
    from karpenter_linode.scheduling.problem import (
        ExistingPlacement,
        PlannedNodeClaim,
        PodRef,
        Problem,
        Solution,
        Unplaced,
    )

_CONTROLLER: Final = "provisioner"
_FAILED_WINDOW: Final = 300
_POOL_WINDOW: Final = 60
_BY_MIN_VALUES: Final = " due to minValues incompatibility"
_OUT_OF_ORDER: Final = frozenset({POOL_NOT_READY, POOL_INVALID})
_WITHOUT_ERROR: Final = UNREACHED | {RESERVED}
_BY_ZONE: Final = "karpenter_scheduler_pending_pods_by_effective_zone_count"


class SolutionReport:
    """Tells what the provisioner decided.

    Args:
        runtime: ports and state.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._zones: set[str] = set()

    def begins(self, problem: Problem) -> None:
        """A decision is being made."""
        self._log(
            "debug",
            "computing scheduling decision for provisionable pod(s)",
            **{
                "pending-pods": len(problem.pods) - len(problem.deleting_pod_uids),
                "deleting-pods": len(problem.deleting_pod_uids),
            },
        )

    def pending_by_zone(self, counts: Mapping[str, int]) -> None:
        """How many pending pods can go to which zone; zones that no pod is left for fall to zero."""
        for zone in sorted(self._zones | counts.keys()):
            labels_of_zone = {"controller": _CONTROLLER, "zone": zone}
            self._runtime.metrics.set_gauge(_BY_ZONE, labels_of_zone, counts.get(zone, 0))
        self._zones = set(counts)

    def solved(self, problem: Problem, solution: Solution, took: timedelta) -> None:
        """A decision was made."""
        metrics, controller = self._runtime.metrics, {"controller": _CONTROLLER}
        metrics.observe("karpenter_scheduler_scheduling_duration_seconds", controller, took.total_seconds())
        self._notes(solution.notes)
        refused = self._not_placed(solution, took)
        metrics.set_gauge("karpenter_scheduler_unschedulable_pods_count", controller, len(refused))
        unreached = {item.pod.uid for item in solution.unplaced if item.reason.code in UNREACHED}
        decided = (pod.uid for pod in problem.pods if pod.uid not in unreached)
        self._runtime.pod_clock.decided(decided, (item.pod.uid for item in solution.unplaced))
        for placement in solution.existing:
            self._nominated(placement.pods, _where(placement))
        if not solution.new_node_claims:
            return
        pods = [f"{pod.namespace}/{pod.name}" for pod in problem.pods]
        self._log("info", "found provisionable pod(s)", Pods=few(pods), duration=f"{took.total_seconds()}s")
        placed = sum(len(item.pods) for item in solution.new_node_claims)
        self._log(
            "info",
            "computed new nodeclaim(s) to fit pod(s)",
            nodeclaims=len(solution.new_node_claims),
            pods=placed,
        )
        waiting = [item for item in solution.existing if not item.initialized]
        if waiting:
            count = sum(len(item.pods) for item in waiting)
            self._log("info", "computed unready node(s) will fit pod(s)", nodes=len(waiting), pods=count)

    def created(self, claim: NodeClaim, planned: PlannedNodeClaim) -> None:
        """A NodeClaim was created for some pods."""
        self._log(
            "info",
            "created nodeclaim",
            NodePool=planned.node_pool,
            NodeClaim=claim.name,
            requests={name: str(amount) for name, amount in sorted(claim.spec.resources.requests.items())},
            **{"instance-types": few(planned.instance_types)},
        )
        relaxed = claim.metadata.annotations.get(labels.MIN_VALUES_RELAXED, "false")
        self._runtime.metrics.increment(
            "karpenter_nodeclaims_created_total",
            {"reason": "provisioned", "nodepool": planned.node_pool, "min_values_relaxed": relaxed},
        )
        self._nominated(planned.pods, f"nodeclaim/{claim.name}")

    def failed_scheduling(self, pod: Pod, text: str) -> None:
        """Tell a pod's owner why it stays where it is."""
        self._runtime.events.publish(
            pod,
            "Warning",
            "FailedScheduling",
            f"Failed to schedule pod, {text}",
            dedupe=(pod.uid,),
            dedupe_seconds=_FAILED_WINDOW,
        )

    def relaxed(self, given_up: Iterable[tuple[Pod, str]]) -> None:
        """What pods gave up to find their place."""
        text = "relaxing soft constraints for pod since it previously failed to schedule"
        for pod, what in given_up:
            self._log("debug", text, Pod=pod.key, reason=what)

    def over_limits(self, pools: Iterable[tuple[str, int, int]]) -> None:
        """NodePools whose limits keep plans out."""
        text = "instance types were excluded because they would breach limits"
        for name, excluded, total in pools:
            self._log("debug", text, NodePool=name, excluded=excluded, total=total)

    def lost_owners(self, pods: Iterable[Pod], view: View) -> None:
        """Workloads that a default topology spread asks about and that are not there."""
        if not self._runtime.settings.scheduling.default_spread:
            return
        selectors = SpreadSelectors((), replicated(view))
        text = "ignoring pod owner when deducing default topology spread constraints"
        for pod in pods:
            lost = "" if pod.spec.topology_spread_constraints else selectors.lost_owner(pod)
            if lost:
                self._log("debug", text, Pod=pod.key, error=f"{lost} not found")

    def _notes(self, notes: Iterable[Reason]) -> None:
        """NodePools that nothing could be built from."""
        for note in notes:
            name = note.subject.removeprefix("NodePool ")
            if note.code in _OUT_OF_ORDER:
                self._log("error", note.message, NodePool=name)
            elif note.code == SHORT_OF_MIN_VALUES:
                self._log("info", NO_PLAN_LEFT, NodePool=name, minValuesIncompatibleErr=note.fact("error"))
                self._without_plans(name, _BY_MIN_VALUES)
            elif note.code == WITHOUT_PLANS:
                self._log("info", note.message, NodePool=name)
                self._without_plans(name)

    def _without_plans(self, name: str, cause: str = "") -> None:
        pool = self._runtime.state.get(NodePool, name)
        if pool is not None:
            text = f"NodePool requirements filtered out all compatible available instance types{cause}"
            self._runtime.events.publish(
                pool, "Warning", "NoCompatibleInstanceTypes", text, dedupe=(pool.uid,), dedupe_seconds=_POOL_WINDOW
            )

    def _not_placed(self, solution: Solution, took: timedelta) -> tuple[Unplaced, ...]:
        """Tell of every pod without a place; returns those that an error stands against, as upstream counts them.

        A pod that waits for a reservation, or was not reached, has no error: it is tried again soon.
        """
        deferred = [item.pod.key for item in solution.unplaced if item.reason.code == RESERVED]
        if deferred:
            text = (
                "deferring scheduling decision for provisionable pod(s) to future simulation due to limited reserved "
                "offering capacity"
            )
            self._log("debug", text, Pods=few(deferred))
        unreached = sum(item.reason.code in UNREACHED for item in solution.unplaced)
        if unreached:
            duration = f"{took.total_seconds()}s"
            self._log("debug", "scheduling simulation timed out", duration=duration, unreached=unreached)
        if any(item.reason.code == WITHOUT_POOLS for item in solution.unplaced):
            self._log("info", "no dynamic nodepools found")
        refused = tuple(item for item in solution.unplaced if item.reason.code not in _WITHOUT_ERROR)
        for unplaced in refused:
            if unplaced.reason.code != WITHOUT_POOLS:
                self._unplaced(unplaced)
        return refused

    def _unplaced(self, unplaced: Unplaced) -> None:
        pod = self._runtime.state.get(Pod, unplaced.pod.key)
        message = unplaced.reason.message
        if message == DRA_IGNORED:
            self._log("info", DRA_SKIPPED_LOG, Pod=unplaced.pod.key)
        else:
            self._log("error", "could not schedule pod", Pod=unplaced.pod.key, error=message)
        if pod is not None:
            self.failed_scheduling(pod, message)

    def _nominated(self, pods: Iterable[PodRef], where: str) -> None:
        for ref in pods:
            pod = self._runtime.state.get(Pod, ref.key)
            if pod is not None:
                message = f"Pod should schedule on: {where}"
                self._runtime.events.publish(pod, "Normal", "Nominated", message, dedupe=(pod.uid,))

    def _log(self, level: str, message: str, **fields: Any) -> None:
        getattr(self._runtime.logger, level)(message, controller=_CONTROLLER, **fields)


def _where(placement: ExistingPlacement) -> str:
    claim = (f"nodeclaim/{placement.node_claim}",) if placement.node_claim else ()
    node = (f"node/{placement.node}",) if placement.node != placement.node_claim else ()
    return ", ".join((*claim, *node))
