"""NodePools as templates for NodeClaims, and the states that a planned claim passes through.

A state is a template with narrowed requirements. States are interned: equal ones are one object that remembers what
each selection makes of it, so a rule is evaluated once per pair, not once per pod (spec/karpenter-scheduling.md 2.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model import labels
from karpenter_linode.model.quantity import NANO
from karpenter_linode.model.requirement import one_of
from karpenter_linode.model.requirements import Requirements
from karpenter_linode.scheduling import resources as res
from karpenter_linode.scheduling.daemons import daemon_groups
from karpenter_linode.scheduling.min_values import MinValues
from karpenter_linode.scheduling.node_pool_hash import node_pool_hash

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from karpenter_linode.model.core import Taint
    from karpenter_linode.model.karpenter import NodePool
    from karpenter_linode.scheduling.daemons import Daemon, DaemonGroup
    from karpenter_linode.scheduling.plans import Market, PlanSet
    from karpenter_linode.scheduling.resources import Resources
    from karpenter_linode.scheduling.selection import Selection

# Keys that exist only while simulating; they never reach a NodeClaim.
SIMULATION_KEYS: Final = frozenset({labels.HOSTNAME, labels.REGISTERED, labels.INITIALIZED})
_TRUE: Final = "true"


class ClaimState:
    """A template under requirements that pods and topology have narrowed.

    Args:
        template: where it comes from.
        requirements: what a node made now will meet.
    """

    __slots__ = ("_accepted", "_narrowed", "market", "mask", "members", "min_values", "requirements", "template")

    def __init__(self, template: Template, requirements: Requirements) -> None:
        self.template = template
        self.requirements = requirements
        self.market: Market = template.plans.market(requirements)
        self.mask = template.plans.meeting(requirements) & self.market.mask & template.plans.usable
        self.members = 0  # open claims in this state, as a mask
        self.min_values = MinValues.of(requirements)
        self._accepted: dict[Selection, ClaimState | None] = {}
        self._narrowed: dict[Requirements, ClaimState | None] = {}

    def accept(self, selection: Selection) -> ClaimState | None:
        """The state after a pod (or a volume) with this selection joined, or None where it cannot."""
        if not selection.asks:
            return self
        try:
            return self._accepted[selection]
        except KeyError:
            found = self._accepted[selection] = self._accept(selection)
            return found

    def narrow(self, more: Requirements) -> ClaimState | None:
        """The state under more requirements (topology, devices), or None where they cannot hold."""
        try:
            return self._narrowed[more]
        except KeyError:
            found: ClaimState | None = None
            if self.requirements.compatible(more, self.template.plans.well_known):
                found = self.template.state(self.requirements.merge(more))
            self._narrowed[more] = found
            return found

    def with_requirements(self, requirements: Requirements) -> ClaimState:
        """The state under exactly these requirements."""
        return self.template.state(requirements)

    def refusal(self, selection: Selection) -> str | None:
        """Why ``accept`` gives None, as contract text."""
        if selection.needs_hostname and not _meets_unknown_hostname(selection):
            item = selection.requirements.get(labels.HOSTNAME)
            return f"key {labels.HOSTNAME}, {item} not in {labels.HOSTNAME} In [the new node's own name]"
        defined = frozenset(self.requirements.keys())  # custom keys among them become labels of the node
        return selection.refusal(self.requirements, defined, self.template.plans.well_known)

    def _accept(self, selection: Selection) -> ClaimState | None:
        if self.refusal(selection) is not None:
            return None
        more = selection.requirements
        if selection.needs_hostname:
            more = more.without(labels.HOSTNAME)
        return self.template.state(self.requirements.merge(more))


class Template:
    """A NodePool, ready to make claims from.

    Args:
        pool: the NodePool.
        plans: the plans that are left after the pool's own requirements.
        daemons: DaemonSets of the cluster.
    """

    def __init__(self, pool: NodePool, plans: PlanSet, daemons: Sequence[Daemon]) -> None:
        self.pool = pool
        self.name = pool.name
        self.plans = plans
        spec = pool.spec.template.spec
        self.taints: tuple[Taint, ...] = spec.taints
        self.labels = template_labels(pool)
        self.requirements = template_requirements(pool)
        self.groups: tuple[DaemonGroup, ...] = daemon_groups(daemons, self.requirements, self.taints, plans)
        self.annotations = {
            **pool.spec.template.metadata.annotations,
            labels.NODEPOOL_HASH: node_pool_hash(pool),
            labels.NODEPOOL_HASH_VERSION: labels.NODEPOOL_HASH_VERSION_VALUE,
        }
        self.remaining: Resources | None = res.from_resource_list(pool.spec.limits) if pool.spec.limits else None
        self._states: dict[Requirements, ClaimState] = {}
        self.start = self.state(self.requirements)

    def state(self, requirements: Requirements) -> ClaimState:
        """The one state with these requirements."""
        found = self._states.get(requirements)
        if found is None:
            found = self._states[requirements] = ClaimState(self, requirements)
        return found

    @property
    def states(self) -> Collection[ClaimState]:
        """Every state that has come up, in order of appearance."""
        return self._states.values()

    def charge(self, usage: Resources) -> None:
        """Take the usage of a node (``nodes`` included) off what the limits leave."""
        if self.remaining is not None:
            self.remaining = res.subtract(self.remaining, usage)

    def charge_new(self, mask: int) -> None:
        """Take a new claim off what the limits leave, as large as the largest of its plans.

        A limit of ``nodes`` is held against nodes that exist only (spec 2.10): claims beyond it are noted, and their
        creation is refused.
        """
        if self.remaining is not None:
            for name, left in self.remaining.items():
                self.remaining[name] = left - self.plans.greatest_capacity(mask, name)

    def within_limits(self) -> int:
        """Plans whose capacity the limits still have room for."""
        mask = self.plans.everything
        for name, left in (self.remaining or {}).items():
            if name != labels.NODES_RESOURCE:
                mask &= self.plans.of_capacity_up_to(name, left)
        return mask

    def over_limits(self) -> int:
        """Plans larger than what the limits leave."""
        return self.plans.everything & ~self.within_limits()

    @property
    def nodes_left(self) -> int | None:
        """How many more nodes the pool may have beside those that exist, or None where that is not limited."""
        left = (self.remaining or {}).get(labels.NODES_RESOURCE)
        return None if left is None else max(0, left // NANO)

    @property
    def nodes_exhausted(self) -> bool:
        """Whether the pool may not have another node."""
        return self.nodes_left == 0


def template_labels(pool: NodePool) -> dict[str, str]:
    """Labels of every NodeClaim of a pool: the template's own, the pool and the node class."""
    reference = pool.spec.template.spec.node_class_ref
    return {
        **pool.spec.template.metadata.labels,
        labels.NODEPOOL: pool.name,
        f"{reference.group}/{reference.kind.lower()}": reference.name,
    }


def template_requirements(pool: NodePool) -> Requirements:
    """Requirements of every node of a pool, those that only DaemonSets look at included."""
    return (
        Requirements.from_specs(pool.spec.template.spec.requirements)
        .merge(Requirements.from_labels(template_labels(pool)))
        .add(one_of(labels.REGISTERED, _TRUE), one_of(labels.INITIALIZED, _TRUE))
    )


def _meets_unknown_hostname(selection: Selection) -> bool:
    item = selection.requirements.get(labels.HOSTNAME)
    return item.complement and item.gte is None and item.lte is None
