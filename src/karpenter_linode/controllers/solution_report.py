"""What people are told about a solution: log lines, events, metrics (spec/karpenter-scheduling.md 1.11 and 2.15)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model import labels
from karpenter_linode.model.core import Pod
from karpenter_linode.model.wording import few
from karpenter_linode.scheduling.pods import DRA_IGNORED, DRA_SKIPPED_LOG

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import timedelta

    from karpenter_linode.controllers.runtime import Runtime
    from karpenter_linode.model.karpenter import NodeClaim
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
        metrics.set_gauge("karpenter_scheduler_unschedulable_pods_count", controller, len(solution.unplaced))
        unplaced_uids = [unplaced.pod.uid for unplaced in solution.unplaced]
        self._runtime.pod_clock.decided((pod.uid for pod in problem.pods), unplaced_uids)
        for unplaced in solution.unplaced:
            self._unplaced(unplaced)
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
