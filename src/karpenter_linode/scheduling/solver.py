"""The simulation: pods in queue order, each to the first place that takes it, until nothing moves any more.

Pure and deterministic; bounded by ``SchedulingOptions.scheduling_steps`` (spec/karpenter-scheduling.md 2.6, 2.7, 2.13).
"""

from __future__ import annotations

from collections import deque
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final

from karpenter_linode.model.reason import Reason
from karpenter_linode.scheduling import min_values
from karpenter_linode.scheduling.effective_zones import count_by_zone
from karpenter_linode.scheduling.placement import Placer
from karpenter_linode.scheduling.pods import DRA_IGNORED
from karpenter_linode.scheduling.problem import ClaimPlacement, ExistingPlacement, Solution, Unplaced
from karpenter_linode.scheduling.refusals import Refusals
from karpenter_linode.scheduling.render import Launch, Renderer, pod_ref
from karpenter_linode.scheduling.shape import queue_order
from karpenter_linode.scheduling.validation import validate
from karpenter_linode.scheduling.world import World

if TYPE_CHECKING:
    from karpenter_linode.model.core import Pod
    from karpenter_linode.scheduling.open_claims import OpenClaim
    from karpenter_linode.scheduling.plan_tables import PlanTables
    from karpenter_linode.scheduling.problem import Problem
    from karpenter_linode.scheduling.shape import Shape

OUT_OF_STEPS: Final = "out-of-steps"
DRA_IGNORED_CODE: Final = "dra-ignored"
IGNORED: Final = "ignored"
NODE_LIMIT: Final = "node-limit"
_LONGEST_RUN: Final = 512


def solve(problem: Problem, tables: PlanTables | None = None) -> Solution:
    """Place pods.

    Args:
        problem: everything that the decision may depend on.
        tables: what to keep of the catalogs for the next problem over the same plans; it changes no answer.

    Returns:
        NodeClaims to create, placements on nodes that exist or are being built, and for every other pod why not. Equal
        problems give equal solutions.
    """
    return Simulation(problem, tables).run()


class Simulation:
    """One problem being solved, for callers who also want to know how it stood before the first pod was placed.

    Args:
        problem: everything that the decision may depend on.
        tables: as for ``solve``.
    """

    def __init__(self, problem: Problem, tables: PlanTables | None = None) -> None:
        self._problem = problem
        self._world = World(problem, tables)
        self._placer = Placer(self._world)
        self._unplaced: list[Unplaced] = []
        self._placements = 0
        self._queue = self._admitted()

    def pending_by_zone(self) -> dict[str, int]:
        """How many pending pods can go to which zone (spec 2.17). To be asked before ``run``."""
        return count_by_zone(self._world, (shape for pod, shape in self._queue if pod.status.phase == "Pending"))

    def run(self) -> Solution:
        """Place the pods; once."""
        left = self._place_all(self._queue)
        refusals = Refusals(self._world)
        for pod, first, last, outcome in left:
            reason = refusals.explain(pod, first, last) if outcome != OUT_OF_STEPS else self._out_of_steps(pod)
            self._unplaced.append(Unplaced(pod_ref(pod), reason))
        kept = [claim for claim in self._world.open.claims if self._launchable(claim)]
        self._note_node_limits(kept)
        renderer = Renderer(self._world)
        return Solution(
            new_node_claims=tuple(renderer.planned(claim) for claim in kept),
            existing=self._existing(),
            unplaced=tuple(sorted(self._unplaced, key=lambda item: item.pod)),
            claims=self._claims(),
            notes=tuple(self._world.notes),
        )

    def _admitted(self) -> list[tuple[Pod, Shape]]:
        """Pods that may be placed, in order; the others are refused at once."""
        world, problem = self._world, self._problem
        admitted = []
        for pod in problem.pods:
            shape = world.shapes.of(pod)
            if shape.refused is None and shape.dra and problem.options.ignore_dra_requests:
                shape.refused = Reason(DRA_IGNORED_CODE, DRA_IGNORED)
            reason = shape.refused
            if reason is None and pod.metadata.uid not in problem.deleting_pod_uids:
                if shape.invalid is None:
                    shape.invalid = validate(pod, world.volumes)
                reason = Reason(IGNORED, f"ignoring pod, {shape.invalid}") if shape.invalid else None
            if reason is None and shape.volumes.error:
                reason = Reason("volumes", shape.volumes.error)
            if reason is not None:
                self._refuse(pod, reason)
            else:
                admitted.append((pod, shape))
        admitted.sort(key=lambda item: queue_order(*item))
        for _, shape in admitted:
            world.topology.learn(shape)
        return admitted

    def _place_all(self, admitted: list[tuple[Pod, Shape]]) -> list[tuple[Pod, Shape, Shape, str]]:
        """Go round until a whole round places nothing; what is left comes with its first and last form and outcome."""
        queue = deque(range(len(admitted)))
        last_length: dict[int, int] = {}
        outcomes: dict[int, tuple[Shape, str]] = {}
        while queue:
            if last_length.get(queue[0]) == len(queue):
                break
            index = queue.popleft()
            pod, shape = admitted[index]
            if self._placer.steps_left <= 0:
                queue.appendleft(index)
                for unreached in queue:
                    outcomes[unreached] = (admitted[unreached][1], OUT_OF_STEPS)
                break
            last, outcome = self._attempt(pod, shape)
            if outcome == "placed":
                self._placements += 1
                outcomes.pop(index, None)
                if last is shape:
                    self._place_equals(shape, admitted, queue, outcomes)
                continue
            outcomes[index] = (last, outcome)
            queue.append(index)
            last_length[index] = len(queue)
        return [(*admitted[index], *outcomes[index]) for index in sorted(outcomes)]

    def _place_equals(
        self,
        shape: Shape,
        admitted: list[tuple[Pod, Shape]],
        queue: deque[int],
        outcomes: dict[int, tuple[Shape, str]],
    ) -> None:
        """Place the pods at the head of the queue that are equal to the one just placed, many at a time."""
        while queue and admitted[queue[0]][1] is shape and self._placer.may_repeat(shape):
            run = list(takewhile(lambda index: admitted[index][1] is shape, islice(queue, _LONGEST_RUN)))
            placed = self._placer.place_more([admitted[index][0] for index in run], shape)
            for _ in range(placed):
                outcomes.pop(queue.popleft(), None)
            self._placements += placed
            if placed < len(run):
                return

    def _attempt(self, pod: Pod, shape: Shape) -> tuple[Shape, str]:
        """Try a pod as it is, then with one preference less at a time; preferences come back at the next attempt."""
        first = shape
        if not shape.dra and shape.failed_at == self._placements:
            return shape.failed_as or shape, "refused"  # nothing was placed since an equal pod failed
        while True:
            outcome = self._placer.place(pod, shape)
            if outcome != "refused":
                return shape, outcome
            relaxed = self._world.shapes.relax(shape)
            if relaxed is None:
                first.failed_at, first.failed_as = self._placements, shape
                return shape, outcome
            shape = relaxed

    def _out_of_steps(self, pod: Pod) -> Reason:
        steps = self._problem.options.scheduling_steps
        text = f"not reached: the simulation ended after {steps} steps; the pod is tried again in the next one"
        return Reason(OUT_OF_STEPS, text, subject=f"Pod {pod.key}", facts=(("steps", str(steps)),))

    def _launchable(self, claim: OpenClaim) -> bool:
        """Whether truncation leaves what minValues asks for; if not, the claim's pods are unplaced."""
        wanted = claim.state.min_values
        if wanted is None or self._problem.options.min_values_policy == "BestEffort":
            return True
        launch = Launch(claim, self._problem.options.reservation_id_label)
        missing = wanted.shortfalls(claim.template.plans, launch.mask)
        if not missing:
            return True
        text = (
            "pod didn\u2019t schedule because NodePool couldn\u2019t meet minValues requirements, "
            f"validating minValues, {min_values.refusal(missing)} (NodePool={claim.template.name})"
        )
        for pod in claim.pods:
            self._refuse(pod, Reason("min-values-truncation", text))
        return False

    def _note_node_limits(self, claims: list[OpenClaim]) -> None:
        """Say which pools have more claims than their limit of nodes lets be created (see ``charge_new``)."""
        for template in self._world.templates:
            planned, left = sum(claim.template is template for claim in claims), template.nodes_left
            if left is not None and planned > left:
                text = f"{planned} NodeClaims planned, limits.nodes has room for {left}: the others are not created"
                self._world.note(NODE_LIMIT, text, f"NodePool {template.name}")

    def _refuse(self, pod: Pod, reason: Reason) -> None:
        named = Reason(reason.code, reason.message, f"Pod {pod.key}", reason.facts, reason.children)
        self._unplaced.append(Unplaced(pod_ref(pod), named))

    def _existing(self) -> tuple[ExistingPlacement, ...]:
        return tuple(
            ExistingPlacement(
                node=node.name,
                pods=tuple(pod_ref(pod) for pod in node.pods),
                node_claim=node.view.node_claim.name if node.view.node_claim is not None else "",
                initialized=node.view.initialized,
            )
            for node in self._world.existing.nodes
            if node.pods
        )

    def _claims(self) -> tuple[ClaimPlacement, ...]:
        devices = self._world.devices
        if devices is None:
            return ()
        left = {
            claim.name: claim.template.plans.names_of(claim.plans) for claim in self._world.open.claims if claim.devices
        }
        return devices.placements(left)
