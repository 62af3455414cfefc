"""Controller ``provisioner``: from a batch of pending pods to NodeClaims (spec/karpenter-scheduling.md 1.5 to 1.9)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Final

from karpenter_linode.cluster.learnt import LearntPlans
from karpenter_linode.cluster.pending import NOT_FOR_KARPENTER, pending_pods
from karpenter_linode.cluster.problem import build_problem
from karpenter_linode.cluster.view import is_supported, state_node_id
from karpenter_linode.controllers.preferences import PreferenceWarnings
from karpenter_linode.controllers.reconciler import Loop
from karpenter_linode.controllers.solution_report import SolutionReport
from karpenter_linode.controllers.solving import UnderWay, solve_in_turns
from karpenter_linode.lifecycle.node_pool import exceeded_limit, node_pool_usage, usage_at_creation
from karpenter_linode.model.core import Node
from karpenter_linode.model.karpenter import NodeClaim, NodePool
from karpenter_linode.ports import CloudError, KubeError
from karpenter_linode.scheduling import PlanTables, Simulation
from karpenter_linode.scheduling.solver import UNREACHED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.cluster.pending import Pending
    from karpenter_linode.controllers.batcher import Batcher
    from karpenter_linode.controllers.runtime import Runtime
    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.scheduling.problem import PlannedNodeClaim, Problem, Solution
    from karpenter_linode.scheduling.resources import Resources

NAME: Final = "provisioner"


class Provisioner(Loop):
    """Solves one batch after another. It never waits for a launch: what it created counts at once.

    Args:
        runtime: ports and state.
        batcher: closes batches.

    Attributes:
        last: the last problem and its solution, for reports.
        under_way: the decision that is being made now, if any.
    """

    def __init__(self, runtime: Runtime, batcher: Batcher) -> None:
        super().__init__(NAME, runtime, self.step)
        self._batcher = batcher
        self._report = SolutionReport(runtime)
        self._preferences = PreferenceWarnings(runtime)
        self._tables = PlanTables()
        self.last: tuple[Problem, Solution] | None = None
        self.under_way: UnderWay | None = None
        self._decisions = count(1)
        self._learnt = LearntPlans()
        self._unsure = False  # whether a NodeClaim may exist that the mirror doesn't show yet

    async def step(self) -> float:
        """Wait for a batch and provide for it; what may be old is read while the batch is still open."""
        await self._batcher.opened()
        await asyncio.gather(self._batcher.wait(), self._read_ahead())
        await self.provide()
        return 0.0

    async def provide(self) -> None:
        """Solve the problem of this moment and create what the solution asks for.

        Raises:
            KubeError: NodeClaims could not be created; all were tried.
        """
        if self._unsure:
            await self._look_for_created()
        pools = self._supported_pools()
        predicted = await self._instance_types(pools)
        view, now = self._runtime.state.snapshot(), self._runtime.now()
        self._learnt.learn(view)
        instance_types = self._learnt.adjusted(predicted, pools)
        pending = pending_pods(view)
        self._ignore(pending)
        self._preferences.look_at(pending.pods)
        self._report.lost_owners(pending.pods, view)
        problem = build_problem(view, pending, instance_types, self._runtime.settings.scheduling, now)
        if not problem.pods:
            self._report.pending_by_zone({})
            self._runtime.state.recall()
            return
        self._report.begins(problem)
        simulation = Simulation(problem, self._tables)
        self._report.pending_by_zone(simulation.pending_by_zone())
        self._report.over_limits(simulation.over_limits())
        self.under_way = UnderWay(str(next(self._decisions)), simulation, now)
        try:
            solution = await solve_in_turns(simulation, self._runtime.clock)
        finally:
            self.under_way = None
        self.last = (problem, solution)
        self._report.relaxed(simulation.relaxed())
        self._report.solved(problem, solution, self._runtime.now() - now)
        self._nominate(solution)
        await self._create_all(solution.new_node_claims)

    async def _read_ahead(self) -> None:
        """Let the cloud provider ask for plans and availability now; ``provide`` meets the errors."""
        for pool in self._supported_pools():
            with suppress(CloudError, KubeError):
                await self._runtime.cloud.instance_types(pool)

    async def _look_for_created(self) -> None:
        """A NodeClaim whose creation seemed to fail may exist all the same: a second one would buy a second Linode."""
        for claim in (await self._runtime.kube.list(NodeClaim)).items:
            self._runtime.observe(claim)
        self._unsure = False

    def _supported_pools(self) -> list[NodePool]:
        pools = self._runtime.state.all(NodePool)
        return [pool for pool in pools if is_supported(pool.spec.template.spec.node_class_ref)]

    async def _instance_types(self, pools: Iterable[NodePool]) -> dict[str, tuple[InstanceType, ...]]:
        found: dict[str, tuple[InstanceType, ...]] = {}
        for pool in pools:
            resolved = await self._resolve(pool)
            if isinstance(resolved, CloudError):
                text, fields = "skipping, unable to resolve instance types", {"error": str(resolved)}
                self._runtime.logger.error(text, controller=NAME, NodePool=pool.name, **fields)
                continue
            found[pool.name] = resolved
            if not resolved:
                text = "skipping, no resolved instance types found"
                self._runtime.logger.info(text, controller=NAME, NodePool=pool.name)
        return found

    async def _resolve(self, pool: NodePool) -> tuple[InstanceType, ...] | CloudError:
        try:
            return await self._runtime.cloud.instance_types(pool)
        except CloudError as error:
            return error

    def _ignore(self, pending: Pending) -> None:
        self._runtime.metrics.set_gauge("karpenter_scheduler_ignored_pods_count", {}, len(pending.ignored))
        for pod, reason in pending.ignored:
            text = f"ignoring pod, {reason.message}"
            self._runtime.logger.debug("ignoring pod", controller=NAME, Pod=pod.key, error=reason.message)
            if reason.code != NOT_FOR_KARPENTER:
                self._report.failed_scheduling(pod, text)

    def _nominate(self, solution: Solution) -> None:
        """Expect pods where they were sent; those that were not reached stay where they were sent before."""
        until = self._runtime.now() + self._runtime.settings.nomination_window
        state, sent = self._runtime.state, dict[str, str]()
        before = state.recall()
        for item in solution.unplaced:
            if item.reason.code in UNREACHED and item.pod.uid in before:
                sent[item.pod.uid] = before[item.pod.uid]
        for placement in solution.existing:
            claim = state.get(NodeClaim, placement.node_claim) if placement.node_claim else None
            ident = state_node_id(state.get(Node, placement.node), claim)
            if ident:
                state.nominate(ident, until)
            sent.update((pod.uid, placement.node_claim or placement.node) for pod in placement.pods)
        state.send(sent)

    async def _create_all(self, planned: tuple[PlannedNodeClaim, ...]) -> None:
        # Racing passes may overshoot a limit by what was created meanwhile, as upstream documents.
        usage = node_pool_usage(self._runtime.state, self._runtime.now()) if planned else {}
        counted = usage_at_creation([item.node_pool for item in planned], usage)
        created = await asyncio.gather(*map(self._create, planned, counted), return_exceptions=True)
        errors = [error for error in created if isinstance(error, BaseException)]
        for error in errors:
            if not isinstance(error, KubeError):
                raise error
        if errors:
            raise KubeError("; ".join(f"creating node claim, {error}" for error in errors))

    async def _create(self, planned: PlannedNodeClaim, usage: Resources) -> None:
        pool = self._runtime.state.get(NodePool, planned.node_pool)
        if pool is None:
            raise KubeError(f'getting current resource usage, nodepools.karpenter.sh "{planned.node_pool}" not found')
        exceeded = exceeded_limit(pool, usage)
        if exceeded is not None:
            raise KubeError(exceeded.message)
        try:
            claim = await self._runtime.kube.create(planned.node_claim)
        except KubeError:
            self._unsure = True
            raise
        # In the state before anything else can run: the next pass must see it, however long the watch takes.
        self._runtime.observe(claim)
        until = self._runtime.now() + self._runtime.settings.nomination_window
        state = self._runtime.state
        state.nominate(state_node_id(None, claim), until)
        state.send({pod.uid: claim.name for pod in planned.pods})
        self._report.created(claim, planned)
