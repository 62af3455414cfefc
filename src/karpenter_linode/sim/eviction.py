"""The eviction subresource: a delete that PodDisruptionBudgets may refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model.core import Pod, PodDisruptionBudget
from karpenter_linode.model.selectors import selects
from karpenter_linode.ports import ConflictError, KubeError, NotFoundError, TooManyRequestsError
from karpenter_linode.sim.deletion import TERMINAL
from karpenter_linode.sim.resource_types import type_of

if TYPE_CHECKING:
    from karpenter_linode.sim.store import Store

MULTIPLE_BUDGETS: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
_VIOLATES: Final = "Cannot evict pod as it would violate the pod's disruption budget."


class BudgetError(TooManyRequestsError):
    """A PodDisruptionBudget allows no disruption now."""


def matching_budgets(store: Store, pod: Pod) -> list[PodDisruptionBudget]:
    """The budgets whose selector picks a pod."""
    return [
        budget
        for budget in store.all(PodDisruptionBudget)
        if budget.namespace == pod.namespace and selects(budget.spec.selector, pod.metadata.labels)
    ]


def evict(store: Store, name: str, namespace: str, *, uid: str, grace_period_seconds: int | None) -> None:
    """Delete a pod if its budget allows, and charge the budget.

    Pods that have ended, and pods that no node runs, go without being charged. Unready pods follow
    ``unhealthyPodEvictionPolicy``.

    Raises:
        NotFoundError: no such pod.
        ConflictError: it has another UID.
        BudgetError: the budget allows no disruption now.
        KubeError: more than one budget matches (500).
    """
    pod = store.find(Pod, name, namespace)
    if pod is None:
        raise NotFoundError(f'pods "{name}" not found')
    if uid and pod.uid != uid:
        raise ConflictError(f'pods "{name}": the UID in the precondition ({uid}) does not match the UID ({pod.uid})')
    if pod.spec.node_name and pod.status.phase not in TERMINAL and pod.metadata.deletion_timestamp is None:
        budgets = matching_budgets(store, pod)
        if len(budgets) > 1:
            raise KubeError(MULTIPLE_BUDGETS)
        if budgets:
            _charge(store, budgets[0], pod)
    store.delete(type_of(Pod), name, namespace, uid=uid, grace_period_seconds=grace_period_seconds)


def _charge(store: Store, budget: PodDisruptionBudget, pod: Pod) -> None:
    unready = any(condition.type == "Ready" and condition.status != "True" for condition in pod.status.conditions)
    if unready and budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return
    allowed = budget.status.disruptions_allowed
    if allowed <= 0:
        raise BudgetError(_VIOLATES)
    store.patch(
        type_of(PodDisruptionBudget),
        budget.name,
        {"status": {"disruptionsAllowed": allowed - 1}},
        namespace=budget.namespace,
        subresource="status",
    )
