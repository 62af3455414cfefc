"""Controller ``disruption``: which nodes leave by our own choice (spec/karpenter-lifecycle.md 3.2, 3.11, 3.13)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cluster.view import state_node_id
from karpenter_linode.controllers.effects import Executor
from karpenter_linode.controllers.reconciler import Loop
from karpenter_linode.disruption.budgets import PoolBudget, pool_budgets
from karpenter_linode.disruption.candidates import survey_candidates
from karpenter_linode.disruption.emptiness import EMPTY, eligible, plan_emptiness, validate_emptiness
from karpenter_linode.lifecycle.disruption_marks import delete_disrupted, mark_disrupted, unmark_disrupted
from karpenter_linode.model import labels
from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.karpenter import NodeClaim, NodePool
from karpenter_linode.ports import KubeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.controllers.runtime import Runtime
    from karpenter_linode.disruption.candidates import Blocked, Candidate, Survey
    from karpenter_linode.disruption.command import Command

NAME: Final = "disruption"
_IDLE: Final = 10.0
_VALIDATION: Final = 15.0
_SETTLE: Final = 2.0  # bindings that were under way when the taint came are visible by then
_BLOCKED_WINDOW: Final = 60


class Disruption(Loop):
    """Removes empty nodes.

    A node is looked at three times more after it was chosen: when the validation wait is over, once its taint has
    settled, and before its NodeClaim is deleted. A pod that came in the meantime keeps its node.
    """

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(NAME, runtime, self.step)
        self._executor = Executor(runtime, NAME)

    async def step(self) -> float:
        """One pass: undo what was left half done, then try to remove empty nodes."""
        await self._heal()
        began, survey = self._runtime.now(), self._survey()
        self._tell_blocked(survey.blocked)
        candidates = eligible(survey)
        self._runtime.metrics.set_gauge(
            "karpenter_voluntary_disruption_eligible_nodes", {"reason": EMPTY.lower()}, len(candidates)
        )
        if not candidates:
            return _IDLE
        command = plan_emptiness(candidates, self._budgets(tell=True))
        if not command.candidates:
            return _IDLE
        await self._runtime.clock.sleep(_VALIDATION)
        valid = self._validated(command)
        self._runtime.metrics.observe(
            "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
            {"reason": command.reason.lower(), "consolidation_type": command.consolidation_type},
            (self._runtime.now() - began).total_seconds(),
        )
        if valid is None:
            return _IDLE
        started = await self._start(valid)
        return 0.0 if started else _IDLE

    def _survey(self) -> Survey:
        return survey_candidates(self._runtime.state, (), self._runtime.now())

    def _budgets(self, *, tell: bool = False) -> dict[str, PoolBudget]:
        state, now = self._runtime.state, self._runtime.now()
        pools = state.all(NodePool)
        budgets = pool_budgets(pools, state.state_nodes(now), EMPTY, now)
        if tell:
            for pool in pools:
                self._tell_budget(pool, budgets[pool.name])
        return budgets

    async def _heal(self) -> None:
        now = self._runtime.now()
        for state in self._runtime.state.state_nodes(now):
            claim = state.node_claim
            if claim is not None and not state.marked_for_deletion:
                await self._executor.carry_out(unmark_disrupted(state.node, claim, now))

    def _validated(self, command: Command) -> Command | None:
        result = validate_emptiness(command, self._survey(), self._budgets())
        if result.dropped:
            self._runtime.metrics.increment(
                "karpenter_voluntary_disruption_failed_validations_total",
                {"consolidation_type": command.consolidation_type},
                result.dropped,
            )
        if result.command is None:
            text = "abandoning empty node consolidation attempt due to pod churn, command is no longer valid"
            self._log("debug", text, error=result.message)
        return result.command

    async def _start(self, command: Command) -> bool:
        ident = self._runtime.random.token(8)
        self._log("info", "disrupting node(s)", **_described(command, ident))
        marked = [candidate for candidate in command.candidates if await self._mark(candidate, command.reason)]
        await self._runtime.clock.sleep(_SETTLE)
        if marked:
            await self._look_for_pods()
        going = self._still_empty(marked)
        for candidate in marked:
            if candidate not in going:
                await self._unmark(candidate)
        for candidate in going:
            await self._remove(candidate, command)
        if going:
            self._count_decision(command)
        return bool(going)

    async def _look_for_pods(self) -> None:
        """Ask the API server itself: a watch that says nothing must not cost a pod its node."""
        for pod in (await self._runtime.kube.list(Pod)).items:
            self._runtime.observe(pod)

    def _still_empty(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        empty = {candidate.id for candidate in eligible(self._survey())}
        return [candidate for candidate in candidates if candidate.id in empty]

    async def _mark(self, candidate: Candidate, reason: str) -> bool:
        node, claim = self._present(candidate)
        if node is None or claim is None:
            return False
        try:
            done = await self._executor.carry_out(mark_disrupted(node, claim, reason, self._runtime.now()))
        except KubeError as error:
            self._log("warning", "failed marking node for disruption", Node=node.name, error=str(error))
            return False
        return not done.conflict

    async def _unmark(self, candidate: Candidate) -> None:
        node, claim = self._present(candidate)
        if claim is not None:
            await self._executor.carry_out(unmark_disrupted(node, claim, self._runtime.now()))

    async def _remove(self, candidate: Candidate, command: Command) -> None:
        node, claim = self._present(candidate)
        if node is None or claim is None or not self._still_empty((candidate,)):
            await self._unmark(candidate)
            return
        ident = state_node_id(node, claim)
        self._runtime.state.mark_for_deletion(ident)
        policy = _snake_case(candidate.pool.spec.disruption.consolidation_policy) if command.consolidation_type else ""
        effects = delete_disrupted(node, claim, self._runtime.state, command.reason, policy)
        try:
            done = await self._executor.carry_out(effects)
        except KubeError:
            self._runtime.state.unmark_for_deletion(ident)
            raise
        if done.conflict:
            self._runtime.state.unmark_for_deletion(ident)

    def _present(self, candidate: Candidate) -> tuple[Node | None, NodeClaim | None]:
        state = candidate.state
        node = self._runtime.state.get(Node, state.node.name) if state.node is not None else None
        claim = self._runtime.state.get(NodeClaim, state.node_claim.name) if state.node_claim is not None else None
        return node, claim

    def _count_decision(self, command: Command) -> None:
        shared = {
            "decision": command.decision,
            "reason": command.reason.lower(),
            "consolidation_type": command.consolidation_type,
        }
        self._runtime.metrics.increment("karpenter_voluntary_disruption_decisions_total", shared)
        for pool in sorted({candidate.pool.name for candidate in command.candidates}):
            self._runtime.metrics.increment(
                "karpenter_voluntary_disruption_decisions_by_nodepool_total", {"nodepool": pool, **shared}
            )

    def _tell_blocked(self, blocked: Iterable[Blocked]) -> None:
        for item in blocked:
            text = item.reason.message
            for obj in filter(None, (item.state.node, item.state.node_claim)) if item.told else ():
                message = text[:1].upper() + text[1:]
                self._runtime.events.publish(obj, "Normal", "DisruptionBlocked", message, dedupe=(obj.uid,))

    def _tell_budget(self, pool: NodePool, budget: PoolBudget) -> None:
        if budget.error:
            self._log("error", "detected disruption budget errors", NodePool=pool.name, error=budget.error)
        if budget.total and not budget.allowed:
            text = f"No allowed disruptions for disruption reason {EMPTY} due to blocking budget"
            self._runtime.events.publish(
                pool,
                "Normal",
                "DisruptionBlocked",
                text,
                dedupe=(pool.uid, EMPTY),
                dedupe_seconds=_BLOCKED_WINDOW,
            )

    def _log(self, level: str, message: str, **fields: Any) -> None:
        getattr(self._runtime.logger, level)(message, controller=NAME, **fields)


def _described(command: Command, ident: str) -> dict[str, Any]:
    nodes = [
        {
            "Node": candidate.name,
            "NodeClaim": candidate.state.node_claim.name if candidate.state.node_claim is not None else "",
            "instance-type": candidate.labels.get(labels.INSTANCE_TYPE, ""),
            "capacity-type": candidate.labels.get(labels.CAPACITY_TYPE, ""),
        }
        for candidate in command.candidates
    ]
    return {
        "command": command.describe(ident),
        "decision": command.decision,
        "disrupted-node-count": len(nodes),
        "replacement-node-count": len(command.replacements),
        "pod-count": sum(len(candidate.pods) for candidate in command.candidates),
        "disrupted-nodes": nodes,
        "replacement-nodes": [{"instance-types": list(item.instance_types)} for item in command.replacements],
    }


def _snake_case(text: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", text).lower()
