"""The simulation: pods in queue order, each to the first place that takes it, until nothing moves any more.

Pure and deterministic; bounded by ``SchedulingOptions.scheduling_steps`` (spec/karpenter-scheduling.md 2.6, 2.7, 2.13).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from karpenter_linode.model.reason import Reason
from karpenter_linode.scheduling import min_values
from karpenter_linode.scheduling.effective_zones import count_by_zone
from karpenter_linode.scheduling.placement import Placer
from karpenter_linode.scheduling.pods import DRA_IGNORED
from karpenter_linode.scheduling.problem import ClaimPlacement, ExistingPlacement, Solution, Unplaced
from karpenter_linode.scheduling.queue import OUT_OF_STEPS, OUT_OF_TIME, Queue
from karpenter_linode.scheduling.refusals import Refusals
from karpenter_linode.scheduling.render import Launch, Renderer, pod_ref
from karpenter_linode.scheduling.shape import queue_order
from karpenter_linode.scheduling.validation import validate
from karpenter_linode.scheduling.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.model.core import Pod
    from karpenter_linode.scheduling.open_claims import OpenClaim
    from karpenter_linode.scheduling.plan_tables import PlanTables
    from karpenter_linode.scheduling.problem import Problem
    from karpenter_linode.scheduling.shape import Shape

DRA_IGNORED_CODE: Final = "dra-ignored"
IGNORED: Final = "ignored"
NODE_LIMIT: Final = "node-limit"
UNREACHED: Final = frozenset({OUT_OF_STEPS, OUT_OF_TIME})


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
    """One problem being solved, for callers who cannot wait for the whole of it, or want to know how it stood before.

    Args:
        problem: everything that the decision may depend on.
        tables: as for ``solve``.

    Attributes:
        solution: the answer, once ``turns`` has come to its end.
    """

    def __init__(self, problem: Problem, tables: PlanTables | None = None) -> None:
        self._problem = problem
        self._world = World(problem, tables)
        self._unplaced: list[Unplaced] = []
        self._pods = self._admitted()
        self._queue = Queue(self._world.shapes, Placer(self._world), self._pods)
        self.solution = Solution()

    @property
    def waiting(self) -> int:
        """How many pods wait for an attempt."""
        return len(self._queue)

    def pending_by_zone(self) -> dict[str, int]:
        """How many pending pods can go to which zone (spec 2.17). To be asked before anything is placed."""
        return count_by_zone(self._world, (shape for pod, shape in self._pods if pod.status.phase == "Pending"))

    def relaxed(self) -> Iterator[tuple[Pod, str]]:
        """What pods gave up to find their place; one entry for each thing given up (spec 2.7)."""
        return self._queue.relaxed()

    def over_limits(self) -> Iterator[tuple[str, int, int]]:
        """NodePools whose limits keep plans out now: name, how many are kept out, how many there are (spec 2.10)."""
        for template in self._world.templates:
            excluded = template.over_limits().bit_count()
            if excluded:
                yield template.name, excluded, len(template.plans)

    def run(self) -> Solution:
        """Place the pods; once."""
        deque(self.turns(), maxlen=0)
        return self.solution

    def cut(self) -> None:
        """Place no further pod. What was placed stands; pods that were not reached say so (spec 2.6)."""
        self._queue.cut()

    def turns(self) -> Iterator[None]:
        """Place the pods, once, in small parts: between two of them the caller may do something else, or ``cut``.

        However it is interrupted, the answer is the same. ``solution`` holds it at the end.
        """
        yield from self._queue.turns()
        refusals = Refusals(self._world)
        for left in self._queue.left():
            if left.outcome in UNREACHED:
                reason = self._unreached(left.pod, left.outcome)
            else:
                reason = refusals.explain(left.pod, left.first, left.last, left.outcome)
            self._unplaced.append(Unplaced(pod_ref(left.pod), reason))
            yield
        kept = [claim for claim in self._world.open.claims if self._launchable(claim)]
        self._note_node_limits(kept)
        renderer, planned = Renderer(self._world), []
        for claim in kept:
            planned.append(renderer.planned(claim))
            yield
        self.solution = Solution(
            new_node_claims=tuple(planned),
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

    def _unreached(self, pod: Pod, code: str) -> Reason:
        steps = str(self._problem.options.scheduling_steps)
        ended = f"after {steps} steps" if code == OUT_OF_STEPS else "by its time limit"
        text = f"not reached: the simulation was ended {ended}; the pod is tried again in the next one"
        facts = (("steps", steps),) if code == OUT_OF_STEPS else ()
        return Reason(code, text, subject=f"Pod {pod.key}", facts=facts)

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
