"""The disruption controller: how many evictions each PodDisruptionBudget allows now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model.core import Pod, PodDisruptionBudget
from karpenter_linode.model.meta import is_true
from karpenter_linode.model.selectors import selects
from karpenter_linode.sim.deletion import TERMINAL
from karpenter_linode.sim.resource_types import type_of

if TYPE_CHECKING:
    from karpenter_linode.sim.context import SimContext
    from karpenter_linode.sim.watches import Change

_BUDGET: Final = type_of(PodDisruptionBudget)
_SETTLE: Final = 0.1
_PERCENT: Final = 100


class DisruptionController:
    """Keeps ``status.disruptionsAllowed`` of all budgets.

    Args:
        context: the world.
    """

    def __init__(self, context: SimContext) -> None:
        self._context = context
        self._queued: dict[str, None] = {}
        context.store.listen(Pod, self._changed)
        context.store.listen(PodDisruptionBudget, self._changed)

    def _changed(self, change: Change) -> None:
        if change.stored is None or change.stored.namespace in self._queued or not self._has_budgets():
            return
        self._queued[change.stored.namespace] = None
        self._context.agenda.after(_SETTLE, self._recount, change.stored.namespace)

    def _has_budgets(self) -> bool:
        return bool(self._context.store.all(PodDisruptionBudget))

    def _recount(self, namespace: str) -> None:
        self._queued.pop(namespace, None)
        pods = [pod for pod in self._context.store.all(Pod) if pod.namespace == namespace]
        for budget in self._context.store.all(PodDisruptionBudget):
            if budget.namespace == namespace:
                chosen = [pod for pod in pods if selects(budget.spec.selector, pod.metadata.labels)]
                status = budget_status(budget, chosen)
                self._context.store.patch(
                    _BUDGET, budget.name, {"status": status}, namespace=namespace, subresource="status"
                )


def budget_status(budget: PodDisruptionBudget, pods: list[Pod]) -> dict[str, Any]:
    """The status of a budget over the pods it selects.

    Percentages and ``maxUnavailable`` are of the pods that controllers are meant to run; bare pods belong to no
    controller and count for nothing there, as in Kubernetes.
    """
    pods = [pod for pod in pods if pod.status.phase not in TERMINAL]
    managed = sum(any(owner.controller for owner in pod.metadata.owner_references) for pod in pods)
    spec = budget.spec
    if spec.max_unavailable is not None:
        expected = managed
        desired = max(0, expected - _amount(spec.max_unavailable, expected))
    elif isinstance(spec.min_available, str) and spec.min_available.endswith("%"):
        expected = managed
        desired = _amount(spec.min_available, expected)
    else:
        expected = len(pods)
        desired = _amount(spec.min_available or 0, expected)
    healthy = sum(pod.metadata.deletion_timestamp is None and is_true(pod.status.conditions, "Ready") for pod in pods)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    return {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
        "observedGeneration": budget.metadata.generation,
    }


def _amount(value: int | str, whole: int) -> int:
    """A count, or a percentage of the whole, rounded up."""
    text = str(value)
    if text.endswith("%"):
        return -(-int(text[:-1]) * whole // _PERCENT)
    return int(text)
