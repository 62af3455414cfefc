"""Everything that a simulation reads and changes, built once from a Problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model import labels
from karpenter_linode.model.meta import is_true
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.requirement import RequirementError
from karpenter_linode.model.requirements import Requirements
from karpenter_linode.scheduling.daemons import daemons_of
from karpenter_linode.scheduling.devices import DeviceDesk
from karpenter_linode.scheduling.existing import ExistingNodes, node_labels
from karpenter_linode.scheduling.min_values import MinValues
from karpenter_linode.scheduling.min_values import refusal as min_values_refusal
from karpenter_linode.scheduling.open_claims import OpenClaims
from karpenter_linode.scheduling.plan_tables import PlanTables
from karpenter_linode.scheduling.reservations import Reservations
from karpenter_linode.scheduling.shape import Shapes
from karpenter_linode.scheduling.state_node import NodeView, is_marked_for_deletion
from karpenter_linode.scheduling.taints import PREFER_NO_SCHEDULE
from karpenter_linode.scheduling.template import Template, template_requirements
from karpenter_linode.scheduling.topology.population import Population
from karpenter_linode.scheduling.topology.tracker import Topology
from karpenter_linode.scheduling.topology.universe import PoolDomains, Universe
from karpenter_linode.scheduling.volumes import VolumeIndex

if TYPE_CHECKING:
    from karpenter_linode.model.core import Pod
    from karpenter_linode.model.karpenter import NodePool
    from karpenter_linode.scheduling.daemons import Daemon
    from karpenter_linode.scheduling.plans import PlanSet
    from karpenter_linode.scheduling.problem import Problem

# Codes of notes about NodePools that take no part.
POOL_NOT_READY: Final = "pool-not-ready"
POOL_INVALID: Final = "pool-invalid"
SHORT_OF_MIN_VALUES: Final = "min-values"
WITHOUT_PLANS: Final = "no-instance-types"
NO_PLAN_LEFT: Final = "skipping, nodepool requirements filtered out all instance types"


class World:
    """The state of a simulation.

    Args:
        problem: the input.
        tables: plans that earlier simulations read.
    """

    def __init__(self, problem: Problem, tables: PlanTables | None = None) -> None:
        self.problem = problem
        self.options = problem.options
        self.well_known = labels.WELL_KNOWN | frozenset(problem.options.well_known_labels)
        self.notes: list[Reason] = []
        respect = problem.options.preference_policy == "Respect"
        bound = _by_node(problem.bound_pods)
        daemons = daemons_of(problem.daemon_sets, problem.bound_pods, ignore_dra=problem.options.ignore_dra_requests)
        going = [is_marked_for_deletion(state) for state in problem.nodes]
        staying = [state for state, leaves in zip(problem.nodes, going, strict=True) if not leaves]
        volumes = self.volumes = _volumes(problem)
        self.existing = ExistingNodes(staying, bound, daemons, problem.csi_nodes, volumes, problem.nominations)
        self.pools = self._usable_pools()
        self.plan_sets = self._plan_sets(tables if tables is not None else PlanTables(catalogs=len(self.pools)))
        self.templates = self._templates(daemons)
        self._charge_existing()
        self.open = OpenClaims()
        self.devices = self._device_desk()
        self.reservations = Reservations(
            self.plan_sets.values() if problem.options.reserved_capacity else (),
            problem.options.reservation_id_label,
            strict=problem.options.reserved_offering_mode == "Strict",
        )
        self.shapes = Shapes(
            respect_preferences=respect,
            tolerate_prefer_no_schedule=any(
                taint.effect == PREFER_NO_SCHEDULE for pool in self.pools for taint in pool.spec.template.spec.taints
            ),
            volumes=volumes,
            devices=self.devices,
            deleting_pod_uids=problem.deleting_pod_uids,
        )
        if problem.options.enforce_consolidate_after and problem.now is not None:
            self.existing.hold_back({pool.name: pool for pool in problem.node_pools}, problem.now)
        universe = Universe([_domains_of(pool, self.plan_sets[pool.name]) for pool in self.pools])
        excluded = frozenset(pod.metadata.uid for pod in problem.pods) - {""}
        leaving = (NodeView(state) for state, leaves in zip(problem.nodes, going, strict=True) if leaves)
        population = Population(
            [
                *((node.view, node.labels, False) for node in self.existing.nodes),
                *((view, node_labels(view), True) for view in leaving),
            ],
            bound,
            excluded,
            self.shapes.label_class,
        )
        self.topology = Topology(universe, population, _namespaces(problem), self.existing, respect_preferences=respect)

    def note(self, code: str, message: str, subject: str = "", facts: tuple[tuple[str, str], ...] = ()) -> None:
        """Say something about the whole simulation."""
        self.notes.append(Reason(code, message, subject, facts))

    def _usable_pools(self) -> tuple[NodePool, ...]:
        usable = []
        for pool in sorted(self.problem.node_pools, key=lambda item: item.name, reverse=True):
            subject = f"NodePool {pool.name}"
            if pool.spec.replicas is not None:
                self.note("static-pool", "static NodePools take no pods", subject)
            elif pool.metadata.deletion_timestamp is not None:
                self.note("deleting-pool", "the NodePool is being deleted", subject)
            elif pool.status.conditions and not is_true(pool.status.conditions, "Ready"):
                self.note(POOL_NOT_READY, "ignoring nodepool, not ready", subject)
            elif (error := _unreadable(pool)) is not None:
                self.note(POOL_INVALID, f"invalid value: {error} in requirements, restricted", subject)
            else:
                usable.append(pool)
        return tuple(sorted(usable, key=lambda item: -(item.spec.weight or 0)))  # stable: ties by name descending

    def _plan_sets(self, tables: PlanTables) -> dict[str, PlanSet]:
        types = self.problem.instance_types
        return {pool.name: tables.plan_set(types.get(pool.name, ()), self.well_known) for pool in self.pools}

    def _templates(self, daemons: tuple[Daemon, ...]) -> tuple[Template, ...]:
        templates = []
        for pool in self.pools:
            plans = self.plan_sets[pool.name]
            requirements = template_requirements(pool)
            mask = plans.able(requirements)
            wanted = MinValues.of(requirements)
            missing = wanted.shortfalls(plans, mask) if wanted is not None else ()
            if missing and self.options.min_values_policy == "Strict":
                error = min_values_refusal(missing)
                self.note(SHORT_OF_MIN_VALUES, f"{NO_PLAN_LEFT}: {error}", f"NodePool {pool.name}", (("error", error),))
            elif not mask:
                text = NO_PLAN_LEFT if len(plans) else "skipping, no resolved instance types found"
                self.note(WITHOUT_PLANS, text, f"NodePool {pool.name}")
            else:
                templates.append(Template(pool, plans.subset(mask), daemons))
        return tuple(templates)

    def _charge_existing(self) -> None:
        by_name = {template.name: template for template in self.templates}
        for node in self.existing.nodes:
            template = by_name.get(node.view.node_pool)
            if template is not None:
                template.charge(node.view.capacity)

    def _device_desk(self) -> DeviceDesk | None:
        if self.options.ignore_dra_requests:
            return None
        initialized = frozenset(
            node.view.node.name for node in self.existing.nodes if node.view.node is not None and node.view.initialized
        )
        return DeviceDesk(self.problem, initialized)


def _unreadable(pool: NodePool) -> RequirementError | None:
    try:
        template_requirements(pool)
    except RequirementError as error:
        return error
    return None


def _by_node(pods: tuple[Pod, ...]) -> dict[str, list[Pod]]:
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.spec.node_name:
            by_node.setdefault(pod.spec.node_name, []).append(pod)
    return by_node


def _domains_of(pool: NodePool, plans: PlanSet) -> PoolDomains:
    template = pool.spec.template
    requirements = Requirements.from_specs(template.spec.requirements).merge(
        Requirements.from_labels(template.metadata.labels)
    )
    return PoolDomains(requirements, template.spec.taints, plans)


def _volumes(problem: Problem) -> VolumeIndex:
    return VolumeIndex(
        problem.persistent_volume_claims,
        problem.persistent_volumes,
        problem.storage_classes,
        unsupported_keys=frozenset(problem.options.unsupported_topology_keys),
        unsupported_drivers=frozenset(problem.options.unsupported_provisioners),
    )


def _namespaces(problem: Problem) -> dict[str, dict[str, str]]:
    names = {pod.metadata.namespace for pod in (*problem.pods, *problem.bound_pods)}
    known: dict[str, dict[str, str]] = {name: {} for name in sorted(names)}
    known.update({item.name: item.metadata.labels for item in problem.namespaces})
    return {name: {"kubernetes.io/metadata.name": name, **values} for name, values in known.items()}
