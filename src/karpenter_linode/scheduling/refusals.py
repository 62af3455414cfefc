"""Why a pod found no place: the trial is repeated with every answer written down.

Runs once per shape, for pods that end unplaced, against the final state; nothing here changes anything
(spec/karpenter-scheduling.md 2.7: only errors of the templates surface in the event; the rest stands below).

Below each NodePool every plan that the cloud lists for it is accounted for once: in a fact ``plans`` (how many a rule
excludes), or by a reason of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from karpenter_linode.model.reason import Reason
from karpenter_linode.model.requirement import Requirement, exists
from karpenter_linode.model.requirements import Requirements
from karpenter_linode.scheduling import filtering, min_values
from karpenter_linode.scheduling.devices import DRA_OWNS_GPUS, WRAPPER
from karpenter_linode.scheduling.filtering import excluded, exclusions
from karpenter_linode.scheduling.left_out import PLANS, TOO_FEW, left_out, too_few
from karpenter_linode.scheduling.limits import limits_refusal, node_limits_refusal, over_limits
from karpenter_linode.scheduling.reservations import NOT_RESERVABLE
from karpenter_linode.scheduling.taints import refusal as taint_refusal
from karpenter_linode.scheduling.taints import untolerated
from karpenter_linode.scheduling.taken_places import TakenPlaces, topology_code
from karpenter_linode.scheduling.world import SHORT_OF_MIN_VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.model.core import Pod
    from karpenter_linode.scheduling.shape import Shape
    from karpenter_linode.scheduling.template import ClaimState, Template
    from karpenter_linode.scheduling.world import World

NO_TEMPLATES: Final = "nodepool requirements filtered out all available instance types"
NO_POOLS: Final = "no dynamic nodepools found"
WITHOUT_POOLS: Final = "no-nodepools"
RESERVED: Final = "reserved"
_NO_SUCH_DEVICES: Final = "no instance type satisfies both scheduling and dynamic resource requirements"
_ALL_OUT: Final = "of the NodePool are out by this rule"
_UNDECIDED: Final = "no rule refuses it now; it is tried again in the next round"
_OTHERWISE_ABLE: Final = "would do otherwise"


class Refusals:
    """Explains pods of one finished simulation.

    Args:
        world: its final state.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._taken = TakenPlaces(world)
        self._pools = {f"NodePool {pool.name}": pool for pool in world.pools}
        self._left_out: dict[str, tuple[Reason, ...]] = {}  # by NodePool
        self._new: dict[Shape, tuple[Reason, ...]] = {}

    def explain(self, pod: Pod, first: Shape, shape: Shape, outcome: str) -> Reason:
        """The whole tree for a pod; the root is the event's line.

        Args:
            pod: the pod.
            first: its shape as the user wrote it.
            shape: its shape after the last preference was given up.
            outcome: how its last attempt ended; one that waits for a reservation is told by the code ``reserved``,
                whatever the other NodePools say (spec 10, trap 10).
        """
        if shape.refused is not None:
            return _about(shape.refused, pod)
        if shape.dra and self._world.devices is not None:
            claims = self._world.devices.claims_of(pod)
            if isinstance(claims, Reason):
                return _about(claims, pod)
        parts = (*self._on_new(pod, shape), *self._taken.refusals(pod, shape))
        pools = [part for part in parts if part.subject.startswith("NodePool ")]
        decisive = pools or parts[:1]
        return Reason(
            RESERVED if outcome == RESERVED else decisive[0].code,
            "; ".join(part.message for part in decisive),
            subject=f"Pod {pod.key}",
            children=(*parts, *(self._skipped() if self._world.templates else ()), *_given_up(first, shape)),
        )

    def _skipped(self) -> tuple[Reason, ...]:
        """NodePools that no plan is left for: the one that the pod is meant for may be among them."""
        return tuple(_with(note, *self._skipped_plans(note)) for note in self._world.notes)

    def _skipped_plans(self, note: Reason) -> Iterator[Reason]:
        """What became of every plan of a NodePool that a note is about."""
        pool = self._pools.get(note.subject)
        if pool is not None:
            yield from self._plans_left_out(note.subject)
            if note.code == SHORT_OF_MIN_VALUES:
                yield too_few(pool, self._world.plan_sets[pool.name])

    # New claims

    def _on_new(self, pod: Pod, shape: Shape) -> tuple[Reason, ...]:
        """Why no new claim takes it: one reason for each NodePool."""
        found = self._new.get(shape)
        if found is None:
            found = self._by_pool(pod, shape)
            if not shape.dra:  # reasons about devices name the pod's own claims
                self._new[shape] = found
        return found

    def _by_pool(self, pod: Pod, shape: Shape) -> tuple[Reason, ...]:
        world = self._world
        if world.devices is not None and (owned := world.devices.owned_by_dra(shape)) is not None:
            text = (
                f"{owned} is not offered by any plan while Dynamic Resource Allocation owns the GPUs: the legacy "
                "device plugin must not own the same ones; ask for them through a ResourceClaim, or name the resource "
                "in the extendedResourceName of a DeviceClass"
            )
            return (Reason(DRA_OWNS_GPUS, text, facts=(("resource", owned),)),)
        if not world.templates:
            code, text = ("no-templates", NO_TEMPLATES) if world.pools else (WITHOUT_POOLS, NO_POOLS)
            return (Reason(code, text, children=self._skipped()),)
        return tuple(self._by_template(template, pod, shape) for template in world.templates)

    def _by_template(self, template: Template, pod: Pod, shape: Shape) -> Reason:
        subject = f"NodePool {template.name}"
        reason = self._template_refusal(template, pod, shape)
        children = (*reason.children, *self._plans_left_out(subject))
        return msgspec.structs.replace(reason, subject=subject, children=children)

    def _plans_left_out(self, subject: str) -> tuple[Reason, ...]:
        """Plans that the pool's own requirements or the market exclude, whatever the pod."""
        found = self._left_out.get(subject)
        if found is None:
            pool = self._pools[subject]
            found = self._left_out[subject] = left_out(pool, self._world.plan_sets[pool.name])
        return found

    def _template_refusal(self, template: Template, pod: Pod, shape: Shape) -> Reason:
        """Why a template makes no claim; its children account for every plan of the template."""
        if template.nodes_exhausted:
            reason = node_limits_refusal(template)
            return _with(reason, excluded(reason.code, _ALL_OUT, template.start, template.plans.everything))
        within = template.within_limits()
        if not within:
            out = excluded("limits", "need more than is left", template.start, template.plans.everything)
            return _with(limits_refusal(template), out)
        over = over_limits(template)
        taints = untolerated(template.taints, shape.tolerations)
        if taints:
            reason = Reason("taints", taint_refusal(taints))
            return _with(reason, excluded("taints", _ALL_OUT, template.start, within), *over)
        accepted = template.start.accept(shape.selection)
        if accepted is None:
            return _with(_unaccepted(template.start, within, shape), *over)
        last = Reason("volumes", "incompatible volume requirements, no place suits all volumes")
        for alternative in shape.volumes.alternatives:
            state = accepted.accept(alternative)
            if state is None:
                last = Reason("volumes", f"incompatible volume requirements, {accepted.refusal(alternative)}")
                last = _with(last, excluded("volumes", _ALL_OUT, template.start, within))
                continue
            last = self._state_refusal(state, within, pod, shape)
        return _with(last, *over)

    def _state_refusal(self, state: ClaimState, within: int, pod: Pod, shape: Shape) -> Reason:
        """Why a claim in this state would not take the pod; its children account for every plan of the mask."""
        world = self._world
        found = filtering.examine(state, within, shape, {})
        lost: tuple[int, tuple[Reason, ...]] = (0, ())
        if shape.dra and world.devices is not None:
            devices = self._devices(state, found.able, pod)
            if isinstance(devices, Reason):
                if not found.able:
                    return _with(filtering.refusal(state, found, shape), devices)
                return _with(devices, *exclusions(state, found, shape))
            state, lost = devices
            found = filtering.examine(state, within, shape, {})
        if world.topology.active:
            narrowed = self._narrowed(state, within, found.able & ~lost[0], shape)
            if isinstance(narrowed, Reason):
                return narrowed if narrowed.children else _told(narrowed, state, found, shape)
            state = narrowed
            found = filtering.examine(state, within, shape, {})
        return self._last_refusal(state, found, lost, shape)

    def _last_refusal(
        self, state: ClaimState, found: filtering.Findings, lost: tuple[int, tuple[Reason, ...]], shape: Shape
    ) -> Reason:
        """Why the plans that are left do not do."""
        if not found.able:
            return filtering.refusal(state, found, shape)
        without_devices, rejected = found.able & lost[0], lost[1]
        left = found.able & ~without_devices
        lacking = (excluded("dra", "lack the devices", state, without_devices, rejected),) if without_devices else ()
        if not left:
            reason = Reason("dra", _NO_SUCH_DEVICES)
            return _with(reason, *exclusions(state, found, shape), *lacking)
        if state.min_values is not None and (missing := state.min_values.shortfalls(state.template.plans, left)):
            reason, text = Reason("min-values", min_values.refusal(missing)), TOO_FEW
        elif self._world.reservations.active:
            reason, text = Reason(RESERVED, NOT_RESERVABLE), _OTHERWISE_ABLE
        else:
            reason, text = Reason("undecided", _UNDECIDED), "would do now"
        return _with(reason, *exclusions(state, found, shape), *lacking, excluded(reason.code, text, state, left))

    # Topology

    def _narrowed(self, state: ClaimState, within: int, able: int, shape: Shape) -> ClaimState | Reason:
        """The state in the domains that topology leaves, or the rule that leaves none."""
        topology = self._world.topology
        rules = topology.of(shape)
        forbidding = topology.new_host_allowed(rules)
        for check in rules.hosts:
            if check.group is forbidding:
                text = topology.host_refusal(check, self._world.open.next_hostname)
                return Reason(topology_code(check.group.kind), text)
        refused = topology.refusal(rules, state)
        if refused is not None:
            return Reason(topology_code(refused[0]), refused[1])
        narrowed = topology.narrow(rules, state, able or within)
        return narrowed if narrowed is not None else self._conflict(state, within, shape)

    def _conflict(self, state: ClaimState, within: int, shape: Shape) -> Reason:
        """Every rule alone leaves a domain; all together leave none, or none with a plan."""
        topology = self._world.topology
        rules = topology.of(shape)
        common, single = topology.common_domains(rules, state)
        more = Requirements(
            Requirement(key, frozenset(domains[:1] if key in single else domains)) for key, domains in common.items()
        )
        causes = []
        for check in rules.domains:
            key = check.group.topology_key
            node_domains = state.requirements.find(key) or exists(key)
            text = check.group.refusal(check.pod_domains or exists(key), node_domains)
            causes.append(Reason(topology_code(check.group.kind), text))
        clash = state.requirements.incompatibility(more, state.template.plans.well_known)
        if clash is not None:
            out = excluded("requirements", _ALL_OUT, state, within)
            return _with(Reason("requirements", clash), *causes, out)
        merged = state.with_requirements(state.requirements.merge(more))
        found = filtering.examine(merged, within, shape, {})
        if found.able:  # plans without that label; a pod under a rule is not put there
            return _with(causes[0], *causes[1:], excluded(causes[0].code, _ALL_OUT, state, within))
        reason = filtering.refusal(merged, found, shape)
        return _with(reason, *causes)

    # Devices

    def _devices(
        self, state: ClaimState, able: int, pod: Pod
    ) -> tuple[ClaimState, tuple[int, tuple[Reason, ...]]] | Reason:
        """The state with the devices' own requirements and the plans that lack devices, or why none has them."""
        devices = self._world.devices
        claims = devices.claims_of(pod) if devices is not None else ()
        if devices is None or isinstance(claims, Reason):
            return state, (0, ())
        template = state.template
        # Plans too small for the pod are asked as well: what their devices lack is worth knowing.
        mask = able or state.mask
        answer = devices.on_claim(
            self._world.open.next_hostname,
            template.name,
            state.requirements,
            template.plans.sources(mask),
            claims,
            explain=True,
        )
        counted = ((PLANS, str(len(template.plans.names_of(able)))),) if able else ()
        if isinstance(answer, Reason):
            told = msgspec.structs.replace(answer, facts=answer.facts + counted)
            return Reason("dra", f"{WRAPPER}, {answer.message}", children=(told,))
        narrowed = state.narrow(answer.requirements)
        if narrowed is None:
            text = state.requirements.incompatibility(answer.requirements, template.plans.well_known)
            return Reason("dra", f"incompatible dynamic resource requirements, {text}", facts=counted)
        return narrowed, (mask & ~template.plans.named(answer.instance_types), answer.rejected)


def _unaccepted(start: ClaimState, within: int, shape: Shape) -> Reason:
    """Why a template does not meet what the pod selects.

    A pod that contradicts itself is told what the contract says of it: such a key is ``DoesNotExist``.
    """
    selection = shape.selection
    out = excluded("requirements", _ALL_OUT, start, within)
    if selection.contradiction is None:
        return _with(Reason("requirements", f"incompatible requirements, {start.refusal(selection)}"), out)
    own = f"key {selection.contradiction}, the pod's own requirements on it exclude each other"
    clash = start.requirements.incompatibility(selection.requirements, start.template.plans.well_known)
    if clash is None:
        merged = start.with_requirements(start.requirements.merge(selection.requirements))
        found = filtering.examine(merged, within, shape, {})
        if not found.able:
            return _with(filtering.refusal(merged, found, shape), Reason("contradiction", own))
    reason = Reason("requirements", f"incompatible requirements, {clash or own}")
    return _with(reason, Reason("contradiction", own), out)


def _told(reason: Reason, state: ClaimState, found: filtering.Findings, shape: Shape) -> Reason:
    """A refusal of the plans that are able, with what excludes the others."""
    able = (excluded(reason.code, _ALL_OUT, state, found.able),) if found.able else ()
    return _with(reason, *exclusions(state, found, shape), *able)


def _with(reason: Reason, *children: Reason) -> Reason:
    return msgspec.structs.replace(reason, children=(*reason.children, *children))


def _given_up(first: Shape, last: Shape) -> tuple[Reason, ...]:
    """What the pod did without before it was refused for good."""
    steps: list[Reason] = []
    shape: Shape | None = first
    while shape is not None and shape is not last:
        steps.append(Reason("relaxed", shape.relaxed_text))
        shape = shape.relaxed
    if not steps:
        return ()
    return (Reason("relaxation", f"refused although {len(steps)} preference(s) were given up", children=tuple(steps)),)


def _about(reason: Reason, pod: Pod) -> Reason:
    return reason if reason.subject else msgspec.structs.replace(reason, subject=f"Pod {pod.key}")
