"""One pod, one place: existing nodes, then open claims, then a new claim (spec/karpenter-scheduling.md 2.7 and 2.8).

Everything here answers quickly with yes or no; ``refusals`` rebuilds the reasons for pods that end unplaced.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from karpenter_linode.dra.allocation import Allocation
from karpenter_linode.model.reason import Reason
from karpenter_linode.scheduling import ports as host_ports
from karpenter_linode.scheduling.min_values import lowered
from karpenter_linode.scheduling.taints import untolerated
from karpenter_linode.scheduling.template import ClaimState
from karpenter_linode.scheduling.volumes import NO_VOLUMES, over_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karpenter_linode.model.core import Pod
    from karpenter_linode.scheduling.devices import DeviceDesk
    from karpenter_linode.scheduling.existing import ExistingNode
    from karpenter_linode.scheduling.min_values import Shortfall
    from karpenter_linode.scheduling.open_claims import OpenClaim
    from karpenter_linode.scheduling.resources import Resources
    from karpenter_linode.scheduling.shape import Shape
    from karpenter_linode.scheduling.template import Template
    from karpenter_linode.scheduling.topology.tracker import ShapeTopology
    from karpenter_linode.scheduling.world import World

Outcome = Literal["placed", "refused", "reserved"]


class Fit(Struct, frozen=True, gc=False):
    """How a claim would look with one more pod.

    Args:
        state: its requirements.
        plans: mask of the plans that are left.
        allocation: devices for the pod's claims.
    """

    state: ClaimState
    plans: int
    allocation: Allocation | None = None


class Placer:
    """Tries places for pods and commits the first that takes them.

    Args:
        world: everything that placements change.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._tolerated: dict[tuple[str, object], bool] = {}
        self.steps_left = world.options.scheduling_steps

    def place(self, pod: Pod, shape: Shape) -> Outcome:
        """Find a place for a pod and take it."""
        world = self._world
        rules = world.topology.of(shape) if world.topology.active else None
        if self._on_existing(pod, shape, rules) or self._on_open(pod, shape, rules):
            return "placed"
        if world.devices is not None and world.devices.owned_by_dra(shape):
            return "refused"
        return self._on_new(pod, shape, rules)

    def may_repeat(self, shape: Shape) -> bool:
        """Whether no rule can tell apart pods of a shape that come one after the other."""
        if shape.topology is not None and shape.topology.checks:  # as of the pod just placed; rules only get more
            return False
        if shape.dra or shape.ports or shape.volumes is not NO_VOLUMES or self._world.reservations.active:
            return False
        topology = self._world.topology
        return not topology.active or not topology.of(shape).checks

    def place_more(self, pods: Sequence[Pod], shape: Shape) -> int:
        """Place pods that follow an equal one by arithmetic, as far as no rule tells them apart.

        Args:
            pods: the next pods of the queue, all of this shape.
            shape: one that ``may_repeat``, in the form in which a pod was just placed.

        Returns:
            How many were placed; all went to the place that each alone would have taken.
        """
        world = self._world
        rules = world.topology.of(shape) if world.topology.active else None
        self.steps_left -= 1
        mask = world.existing.candidates(shape)
        if mask:
            node = world.existing.nodes[world.existing.first(pods[0], mask).bit_length() - 1]
            return self._more_on_node(node, world.existing.alike(pods, mask), shape, rules)
        alive = world.open.everything & ~shape.dead_open
        claim = world.open.first(alive)
        return self._more_on_claim(claim, alive, pods, shape, rules) if claim is not None else 0

    def _more_on_node(self, node: ExistingNode, pods: Sequence[Pod], shape: Shape, rules: ShapeTopology | None) -> int:
        count = min((node.free.get(name, 0) // amount for name, amount in shape.items if amount), default=0)
        placed = pods[: min(count, len(pods))]
        self._world.existing.place(node, placed, shape)
        if rules is not None:
            for _ in placed:
                self._world.topology.record_existing(rules, shape, node)
        return len(placed)

    def _more_on_claim(
        self, claim: OpenClaim, alive: int, pods: Sequence[Pod], shape: Shape, rules: ShapeTopology | None
    ) -> int:
        """Fill a claim while it is the first that pods try: until it is full, or another has fewer pods."""
        world = self._world
        if self._accepted(claim, shape) is not claim.state or claim.state.min_values is not None:
            return 0
        most = len(pods)
        others = world.open.fewest_pods(alive & ~claim.bit)
        if others is not None:
            most = min(most, others - len(claim.pods) + 1)
        least, plans = 0, 0
        while least < most:  # the most that some plan still holds
            middle = (least + most + 1) // 2
            found = self.room(claim.template, claim.plans, claim.total, shape, pods=middle)
            if found:
                least, plans = middle, found
            else:
                most = middle - 1
        if least:
            self._commit(claim, pods[:least], shape, rules, Fit(claim.state, plans))
        return least

    # Existing nodes

    def _on_existing(self, pod: Pod, shape: Shape, rules: ShapeTopology | None) -> bool:
        world = self._world
        if not world.existing.everything:
            return False
        mask = world.existing.candidates(shape)
        if mask and rules is not None:
            mask &= world.topology.existing_allowed(rules)
        while mask:
            low = world.existing.first(pod, mask)
            node = world.existing.nodes[low.bit_length() - 1]
            self.steps_left -= 1
            allocation = self._node_takes(node, pod, shape)
            if allocation is not False:
                world.existing.place(node, (pod,), shape)
                if rules is not None:
                    world.topology.record_existing(rules, shape, node)
                if allocation is not None and world.devices is not None:
                    world.devices.commit(node.name, allocation)
                return True
            shape.dead_existing |= low
            mask ^= low
        return False

    def _node_takes(self, node: ExistingNode, pod: Pod, shape: Shape) -> Allocation | Literal[False] | None:
        """Devices on the node, None where the pod needs none, False where the node is out for good."""
        volumes = shape.volumes
        if shape.ports and host_ports.conflict(shape.ports, node.ports) is not None:
            return False
        if volumes.claims and over_limit(node.volumes, volumes.claims, node.volume_limits) is not None:
            return False
        if not any(not item or item.strictly_met_by(node.requirements) for item in volumes.alternatives):
            return False
        devices = self._world.devices
        if not shape.dra or devices is None:
            return None
        claims = devices.claims_of(pod)
        if isinstance(claims, Reason):
            return False
        found = devices.on_node(node, claims)
        return False if isinstance(found, Reason) else found

    # Open claims

    def _on_open(self, pod: Pod, shape: Shape, rules: ShapeTopology | None) -> bool:
        world = self._world
        mask = world.open.everything & ~shape.dead_open
        if mask and rules is not None:
            mask = world.topology.open_allowed(rules, world.templates, mask)
        while mask:
            claim = world.open.first(mask)
            if claim is None:
                return False
            self.steps_left -= 1
            if self._join(claim, pod, shape, rules):
                return True
            mask &= ~(claim.bit | shape.dead_open)
        return False

    def _join(self, claim: OpenClaim, pod: Pod, shape: Shape, rules: ShapeTopology | None) -> bool:
        """Put a pod on an open claim if it fits; what cannot change any more is remembered with the shape."""
        accepted = self._accepted(claim, shape)
        if accepted is None:
            return False
        undecided = False  # whether a later pod of the shape may find room here
        for state in _alternatives(shape, accepted):
            plans = self.room(claim.template, claim.plans & state.mask, claim.total, shape)
            if not plans:
                continue
            fit = self._settle(claim.hostname, pod, shape, rules, state, plans)
            if fit is not None and not _shortfalls(fit) and self._reserve(claim, fit):
                self._commit(claim, (pod,), shape, rules, fit)
                return True
            undecided = undecided or self._world.reservations.active or (rules is not None and bool(rules.domains))
        if not undecided:
            shape.dead_open |= claim.bit
        return False

    def _accepted(self, claim: OpenClaim, shape: Shape) -> ClaimState | None:
        """The claim's state with the pod's own requirements, or None; the same holds for all claims in that state."""
        if not self._tolerates(shape, claim.template):
            for state in claim.template.states:
                shape.dead_open |= state.members
            return None
        accepted = claim.state.accept(shape.selection)
        if accepted is None:
            shape.dead_open |= claim.state.members
        elif shape.ports and host_ports.conflict(shape.ports, claim.ports) is not None:
            shape.dead_open |= claim.bit
            return None
        return accepted

    # New claims

    def _on_new(self, pod: Pod, shape: Shape, rules: ShapeTopology | None) -> Outcome:
        world = self._world
        if rules is not None and world.topology.new_host_allowed(rules) is not None:
            return "refused"
        for template in world.templates:
            if template.name in shape.no_template:
                continue
            self.steps_left -= 1
            outcome = self._open_new(template, pod, shape, rules)
            if outcome != "refused":
                return outcome
        return "refused"

    def _open_new(self, template: Template, pod: Pod, shape: Shape, rules: ShapeTopology | None) -> Outcome:
        world = self._world
        accepted = template.start.accept(shape.selection) if self._tolerates(shape, template) else None
        within = 0 if accepted is None or template.nodes_exhausted else template.within_limits()
        possible = False
        for state in _alternatives(shape, accepted):
            plans = self.room(template, state.mask & within, {}, shape, fresh=True)
            if not plans:
                continue
            possible = True
            fit = self._settle(world.open.next_hostname, pod, shape, rules, state, plans)
            final = self._lowered(fit) if fit is not None else None
            if final is None:
                continue
            if self._unreservable(final):
                return "reserved"
            claim = world.open.open(final.state, final.plans, relaxed_min_values=final is not fit)
            self._reserve(claim, final)
            self._commit(claim, (pod,), shape, rules, final)
            template.charge_new(final.plans)
            return "placed"
        if not possible:
            shape.no_template.add(template.name)  # for good: limits only shrink
        return "refused"

    def _lowered(self, fit: Fit) -> Fit | None:
        """The fit with minValues lowered to what there is, where the policy allows; None where it does not."""
        missing = _shortfalls(fit)
        if not missing:
            return fit
        if self._world.options.min_values_policy == "Strict":
            return None
        state = fit.state.with_requirements(lowered(fit.state.requirements, missing))
        return Fit(state, fit.plans, fit.allocation)

    def _unreservable(self, fit: Fit) -> bool:
        """Whether a new claim could use a reservation but none is left for it."""
        world = self._world
        if not world.reservations.active:
            return False
        return bool(world.reservations.wanted(world.open.next_hostname, frozenset(), fit.state, fit.plans).refusal)

    # Parts

    def room(
        self, template: Template, plans: int, total: Resources, shape: Shape, *, pods: int = 1, fresh: bool = False
    ) -> int:
        """Plans of a mask that hold what a claim holds, its daemons and more pods of a shape.

        Args:
            template: the pool.
            plans: the mask.
            total: what the claim's pods ask for so far.
            shape: the pods to add.
            pods: how many.
            fresh: the claim is empty: resources that only daemons ask for are checked, too.
        """
        thresholds = template.plans.thresholds
        held = 0
        for group in template.groups:
            mask = plans & group.mask
            if not mask or (shape.ports and group.ports and host_ports.conflict(shape.ports, group.ports) is not None):
                continue
            overhead = group.overhead
            for name, amount in shape.items:
                need = amount * pods + total.get(name, 0) + overhead.get(name, 0)
                if need > 0:
                    amounts, masks = thresholds[name]
                    mask &= masks[bisect_left(amounts, need)]
            if fresh:
                for name, amount in overhead.items():
                    if name not in shape.requests:
                        mask &= template.plans.at_least(name, amount)
            held |= mask
        return held

    def _settle(
        self,
        hostname: str,
        pod: Pod,
        shape: Shape,
        rules: ShapeTopology | None,
        state: ClaimState,
        plans: int,
    ) -> Fit | None:
        """Devices, then topology (which may settle a domain): what is left, or None."""
        fit = self._with_devices(hostname, pod, state, plans) if shape.dra else Fit(state, plans)
        if fit is not None and rules is not None and rules.domains:
            narrowed = self._world.topology.narrow(rules, fit.state, fit.plans)
            if narrowed is None:
                return None
            if narrowed is not fit.state:
                fit = Fit(narrowed, fit.plans & narrowed.mask, fit.allocation)
        return fit if fit is not None and fit.plans else None

    def _with_devices(self, hostname: str, pod: Pod, state: ClaimState, plans: int) -> Fit | None:
        devices = self._world.devices
        claims = devices.claims_of(pod) if devices is not None else ()
        if devices is None or isinstance(claims, Reason):
            return None
        template = state.template
        found = devices.on_claim(hostname, template.name, state.requirements, template.plans.sources(plans), claims)
        if isinstance(found, Reason):
            return None
        narrowed = state.narrow(found.requirements)
        if narrowed is None:
            return None
        return Fit(narrowed, plans & narrowed.mask & template.plans.named(found.instance_types), found)

    def _reserve(self, claim: OpenClaim, fit: Fit) -> bool:
        reservations = self._world.reservations
        if not reservations.active:
            return True
        held = reservations.wanted(claim.hostname, claim.reserved, fit.state, fit.plans)
        if held.refusal:
            return False
        reservations.hold(claim.hostname, claim.reserved, held.ids)
        claim.reserved = held.ids
        return True

    def _commit(
        self, claim: OpenClaim, pods: Sequence[Pod], shape: Shape, rules: ShapeTopology | None, fit: Fit
    ) -> None:
        world = self._world
        dropped = claim.plans & ~fit.plans
        if fit.state is not claim.state:
            world.open.move(claim, fit.state)
        claim.plans = fit.plans
        total, count = claim.total, len(pods)
        for name, amount in shape.items:
            total[name] = total.get(name, 0) + amount * count
        claim.pods.extend(pods)
        if shape.ports:
            claim.ports += shape.ports
        world.open.count(claim, count)
        if rules is not None:
            for _ in pods:
                world.topology.record_open(rules, shape, claim)
        if world.devices is not None:
            self._commit_devices(world.devices, claim, fit, dropped)

    @staticmethod
    def _commit_devices(devices: DeviceDesk, claim: OpenClaim, fit: Fit, dropped: int) -> None:
        """Keep the devices, and give back those of plans that the claim can no longer become."""
        if fit.allocation is None and not claim.devices:
            return
        plans = claim.template.plans
        gone = plans.names_of(dropped) if claim.devices else set()
        if fit.allocation is not None:
            claim.devices = True
            for reason in fit.allocation.rejected:
                claim.rejected.setdefault(reason.subject, reason)
            devices.commit(claim.name, fit.allocation)
            gone.update(fit.allocation.instance_types)
        gone -= plans.names_of(fit.plans)
        if gone:
            devices.release(claim.hostname, sorted(gone))

    def _tolerates(self, shape: Shape, template: Template) -> bool:
        if not template.taints:
            return True
        key = (template.name, shape.tolerations)
        found = self._tolerated.get(key)
        if found is None:
            found = self._tolerated[key] = not untolerated(template.taints, shape.tolerations)
        return found


def _alternatives(shape: Shape, state: ClaimState | None) -> Sequence[ClaimState]:
    """The state for each place where the pod's volumes can be."""
    if state is None:
        return ()
    if shape.volumes is NO_VOLUMES:
        return (state,)
    accepted = (state.accept(alternative) for alternative in shape.volumes.alternatives)
    return [found for found in accepted if found is not None]


def _shortfalls(fit: Fit) -> tuple[Shortfall, ...]:
    wanted = fit.state.min_values
    return wanted.shortfalls(fit.state.template.plans, fit.plans) if wanted is not None else ()
