"""Why a pod found no place: the trial is repeated with every answer written down.

Runs once per shape, for pods that end unplaced, against the final state; nothing here changes anything
(spec/karpenter-scheduling.md 2.7: only errors of the templates surface in the event; the rest stands below).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from karpenter_linode.model.quantity import DECIMAL_SI, Quantity
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.requirement import exists
from karpenter_linode.scheduling import filtering, min_values
from karpenter_linode.scheduling import ports as host_ports
from karpenter_linode.scheduling import resources as res
from karpenter_linode.scheduling.devices import DRA_OWNS_GPUS, WRAPPER
from karpenter_linode.scheduling.limits import over_limits
from karpenter_linode.scheduling.not_offered import not_offered
from karpenter_linode.scheduling.reservations import NOT_RESERVABLE
from karpenter_linode.scheduling.taints import refusal as taint_refusal
from karpenter_linode.scheduling.taints import untolerated
from karpenter_linode.scheduling.topology.group import AFFINITY, ANTI_AFFINITY
from karpenter_linode.scheduling.volumes import over_limit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.model.core import Pod
    from karpenter_linode.scheduling.existing import ExistingNode
    from karpenter_linode.scheduling.open_claims import OpenClaim
    from karpenter_linode.scheduling.shape import Shape
    from karpenter_linode.scheduling.template import ClaimState, Template
    from karpenter_linode.scheduling.topology.group import Kind
    from karpenter_linode.scheduling.world import World

NO_TEMPLATES = "nodepool requirements filtered out all available instance types"
NO_POOLS = "no dynamic nodepools found"
_KIND_CODES = {AFFINITY: "pod-affinity", ANTI_AFFINITY: "pod-anti-affinity"}
_ABOUT_PLANS = frozenset({"dra", "instance-types", "min-values"})  # refusals that larger plans might not share
_EXAMPLES = 3
_EXAMINED = 256  # places looked at one by one; more would say no more


class Refusals:
    """Explains pods of one finished simulation.

    Args:
        world: its final state.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._unsold: dict[str, tuple[Reason, ...]] = {}  # by NodePool
        self._new: dict[Shape, tuple[Reason, ...]] = {}
        self._taken: dict[Shape, tuple[tuple[Reason, ...], tuple[ExistingNode, ...]]] = {}

    def explain(self, pod: Pod, first: Shape, shape: Shape) -> Reason:
        """The whole tree for a pod; the root is the event's line.

        Args:
            pod: the pod.
            first: its shape as the user wrote it.
            shape: its shape after the last preference was given up.
        """
        if shape.refused is not None:
            return _about(shape.refused, pod)
        if shape.dra and self._world.devices is not None:
            claims = self._world.devices.claims_of(pod)
            if isinstance(claims, Reason):
                return _about(claims, pod)
        parts = (*self._on_new(pod, shape), *self._on_taken(pod, shape))
        pools = [part for part in parts if part.subject.startswith("NodePool ")]
        decisive = pools or parts[:1]
        return Reason(
            decisive[0].code,
            "; ".join(part.message for part in decisive),
            subject=f"Pod {pod.key}",
            children=(*parts, *self._skipped(), *_given_up(first, shape)),
        )

    def _skipped(self) -> tuple[Reason, ...]:
        """NodePools that no plan is left for: the one that the pod is meant for may be among them."""
        return tuple(self._world.notes) if self._world.templates else ()

    # New claims

    def _on_new(self, pod: Pod, shape: Shape) -> tuple[Reason, ...]:
        """Why no new claim takes it: one reason for each NodePool."""
        found = self._new.get(shape)
        if found is None:
            found = self._pools(pod, shape)
            if not shape.dra:  # reasons about devices name the pod's own claims
                self._new[shape] = found
        return found

    def _pools(self, pod: Pod, shape: Shape) -> tuple[Reason, ...]:
        world = self._world
        if world.devices is not None and (owned := world.devices.owned_by_dra(shape)) is not None:
            text = (
                f"{owned} is not offered by any plan while Dynamic Resource Allocation owns the GPUs: the legacy "
                "device plugin must not own the same ones; ask for them through a ResourceClaim, or name the resource "
                "in the extendedResourceName of a DeviceClass"
            )
            return (Reason(DRA_OWNS_GPUS, text, facts=(("resource", owned),)),)
        if not world.templates:
            code, text = ("no-templates", NO_TEMPLATES) if world.pools else ("no-nodepools", NO_POOLS)
            return (Reason(code, text, children=tuple(world.notes)),)
        return tuple(self._by_template(template, pod, shape) for template in world.templates)

    def _by_template(self, template: Template, pod: Pod, shape: Shape) -> Reason:
        reason = self._template_refusal(template, pod, shape)
        if reason.code in _ABOUT_PLANS:
            others = (*over_limits(template), *self._not_offered(template))
            reason = msgspec.structs.replace(reason, children=(*reason.children, *others))
        return msgspec.structs.replace(reason, subject=f"NodePool {template.name}")

    def _not_offered(self, template: Template) -> tuple[Reason, ...]:
        found = self._unsold.get(template.name)
        if found is None:
            kinds = self._world.problem.instance_types.get(template.name, ())
            found = self._unsold[template.name] = not_offered(template, kinds)
        return found

    def _template_refusal(self, template: Template, pod: Pod, shape: Shape) -> Reason:
        if template.nodes_exhausted:
            return Reason("node-limits", f"node limits have been exhausted for nodepool (NodePool={template.name})")
        within = template.within_limits()
        if not within:
            text = f"all available instance types exceed limits for nodepool (NodePool={template.name})"
            return Reason("limits", text, children=_limits(template))
        taints = untolerated(template.taints, shape.tolerations)
        if taints:
            return Reason("taints", taint_refusal(taints))
        accepted = template.start.accept(shape.selection)
        if accepted is None:
            return Reason("requirements", f"incompatible requirements, {template.start.refusal(shape.selection)}")
        last = Reason("volumes", "incompatible volume requirements, no place suits all volumes")
        for alternative in shape.volumes.alternatives:
            state = accepted.accept(alternative)
            if state is None:
                last = Reason("volumes", f"incompatible volume requirements, {accepted.refusal(alternative)}")
                continue
            last = self._state_refusal(state, within, pod, shape)
        return last

    def _state_refusal(self, state: ClaimState, within: int, pod: Pod, shape: Shape) -> Reason:
        world = self._world
        found = filtering.examine(state, within, shape, {})
        left = found.compatible & found.fitting
        if shape.dra and world.devices is not None:
            devices = self._devices(state, left, pod)
            if isinstance(devices, Reason):
                return devices if left else self._combined(filtering.refusal(state, found, shape), devices)
            state, left = devices
        if world.topology.active:
            narrowed = self._narrowed(state, left or within, shape)
            if isinstance(narrowed, Reason):
                return narrowed
            state = narrowed
            found = filtering.examine(state, within, shape, {})
            left &= found.compatible & found.fitting
        if not left:
            return filtering.refusal(state, found, shape)
        if state.min_values is not None and (missing := state.min_values.shortfalls(state.template.plans, left)):
            return Reason("min-values", min_values.refusal(missing), children=filtering.exclusions(state, found, shape))
        if world.reservations.active:
            return Reason("reserved", NOT_RESERVABLE)
        return Reason("undecided", "no rule refuses it now; it is tried again in the next round")

    def _narrowed(self, state: ClaimState, plans: int, shape: Shape) -> ClaimState | Reason:
        """The state in the domains that topology leaves, or the rule that leaves none."""
        topology = self._world.topology
        rules = topology.of(shape)
        forbidding = topology.new_host_allowed(rules)
        for check in rules.hosts:
            if check.group is forbidding:
                text = topology.host_refusal(check, self._world.open.next_hostname)
                return Reason(_topology_code(check.group.kind), text)
        refused = topology.refusal(rules, state)
        if refused is not None:
            return Reason(_topology_code(refused[0]), refused[1])
        narrowed = topology.narrow(rules, state, plans)
        return narrowed if narrowed is not None else self._conflict(rules.domains[0].group.kind, state, shape)

    def _devices(self, state: ClaimState, left: int, pod: Pod) -> tuple[ClaimState, int] | Reason:
        devices = self._world.devices
        claims = devices.claims_of(pod) if devices is not None else ()
        if devices is None or isinstance(claims, Reason):
            return state, left
        template = state.template
        # Plans too small for the pod are asked as well: what their devices lack is worth knowing.
        mask = left or state.mask
        answer = devices.on_claim(
            self._world.open.next_hostname,
            template.name,
            state.requirements,
            template.plans.sources(mask),
            claims,
            explain=True,
        )
        if isinstance(answer, Reason):
            return Reason("dra", f"{WRAPPER}, {answer.message}", children=(answer,))
        narrowed = state.narrow(answer.requirements)
        if narrowed is None:
            text = state.requirements.incompatibility(answer.requirements, template.plans.well_known)
            return Reason("dra", f"incompatible dynamic resource requirements, {text}")
        left &= narrowed.mask & template.plans.named(answer.instance_types)
        if not left:
            text = "no instance type satisfies both scheduling and dynamic resource requirements"
            return Reason("dra", text, children=answer.rejected)
        return narrowed, left

    @staticmethod
    def _combined(first: Reason, second: Reason) -> Reason:
        return msgspec.structs.replace(first, children=(*first.children, second))

    def _conflict(self, kind: Kind, state: ClaimState, shape: Shape) -> Reason:
        """Every rule alone leaves a domain, all together leave none."""
        rules = self._world.topology.of(shape)
        texts = []
        for check in rules.domains:
            key = check.group.topology_key
            item = state.requirements.find(key) or exists(key)
            texts.append(check.group.refusal(check.pod_domains or exists(key), item))
        return Reason(_topology_code(kind), texts[0], children=tuple(Reason("topology", text) for text in texts[1:]))

    # Existing nodes and open claims, in few words

    def _on_taken(self, pod: Pod, shape: Shape) -> tuple[Reason, ...]:
        """Why no node that exists or is planned takes it; equal refusals are counted, not repeated."""
        found = self._taken.get(shape)
        if found is None:
            nodes, claims = self._world.existing.nodes, self._world.open.claims
            on_nodes = [(node, self._node_refusal(node, pod, shape)) for node in nodes[:_EXAMINED]]
            on_claims = [(claim.name, self._claim_refusal(claim, shape)) for claim in claims[:_EXAMINED]]
            reasons = (
                *_counted("existing-nodes", "existing node", len(nodes), ((node.name, why) for node, why in on_nodes)),
                *_counted("planned-claims", "planned NodeClaim", len(claims), on_claims),
            )
            lacking = [node for node, (code, _) in on_nodes if code == "dra"][:_EXAMPLES]
            found = self._taken[shape] = (reasons, tuple(lacking))
        reasons, nodes_lacking = found
        trees = self._device_trees(nodes_lacking, pod)
        return tuple(_with_trees(reason, trees) for reason in reasons) if trees else reasons

    def _device_trees(self, nodes: tuple[ExistingNode, ...], pod: Pod) -> dict[str, list[Reason]]:
        """By refusal, what is wrong with the devices of some nodes; told for each pod, as it may name its claims."""
        devices = self._world.devices
        claims = devices.claims_of(pod) if devices is not None and nodes else ()
        trees: dict[str, list[Reason]] = {}
        if devices is None or isinstance(claims, Reason):
            return trees
        for node in nodes:
            answer = devices.on_node(node, claims, explain=True)
            if isinstance(answer, Reason):
                found = [msgspec.structs.replace(child, facts=child.facts + answer.facts) for child in answer.children]
                trees.setdefault(f"{WRAPPER}, {answer.message}", []).extend(found)
        return trees

    def _node_refusal(self, node: ExistingNode, pod: Pod, shape: Shape) -> tuple[str, str]:
        taints = untolerated(node.view.taints, shape.tolerations)
        if taints:
            return "taints", taint_refusal(taints)
        if shape.running and node.bit & self._world.existing.waiting:
            return "consolidate-after", "consolidateAfter of the node has not passed"
        text = over_limit(node.volumes, shape.volumes.claims, node.volume_limits)
        if text is not None:
            return "volumes", f"checking volume usage, {text}"
        clash = host_ports.conflict(shape.ports, node.ports)
        if clash is not None:
            return "host-ports", f"checking host port usage, {host_ports.refusal(*clash)}"
        if not res.fits(shape.requests, node.free):
            missing = ", ".join(name for name, _, _ in res.shortfalls(shape.requests, node.free))
            return "resources", f"exceeds node resources ({missing})"
        text = shape.selection.strict_refusal(node.requirements)
        if text is not None:
            return "requirements", text
        if not any(item.strictly_met_by(node.requirements) for item in shape.volumes.alternatives):
            return "volumes", "incompatible volume requirements"
        return self._node_topology(node, pod, shape)

    def _node_topology(self, node: ExistingNode, pod: Pod, shape: Shape) -> tuple[str, str]:
        world = self._world
        if world.topology.active:
            rules = world.topology.of(shape)
            for check in (*rules.hosts, *rules.domains):
                if not world.topology.existing_allowed_by(check) & node.bit:
                    kind = check.group.kind
                    return _topology_code(kind), f"unsatisfiable {kind} on {check.group.topology_key}"
        if shape.dra and world.devices is not None:
            claims = world.devices.claims_of(pod)
            if not isinstance(claims, Reason):
                answer = world.devices.on_node(node, claims)
                if isinstance(answer, Reason):
                    return "dra", f"{WRAPPER}, {answer.message}"
        return "other", "refused"

    def _claim_refusal(self, claim: OpenClaim, shape: Shape) -> tuple[str, str]:
        template = claim.template
        taints = untolerated(template.taints, shape.tolerations)
        if taints:
            return "taints", taint_refusal(taints)
        state = claim.state.accept(shape.selection)
        if state is None:
            return "requirements", "incompatible requirements"
        clash = host_ports.conflict(shape.ports, claim.ports)
        if clash is not None:
            return "host-ports", host_ports.refusal(*clash)
        found = filtering.examine(state, claim.plans, shape, claim.total)
        if not found.compatible & found.fitting:
            return "resources", "no allowed plan has room for one more"
        if self._world.topology.active:
            rules = self._world.topology.of(shape)
            if not self._world.topology.open_allowed(rules, self._world.templates, claim.bit):
                return "topology", "a topology rule forbids it"
        return ("dra", "no devices left for it") if shape.dra else ("other", "refused")


def _with_trees(reason: Reason, trees: dict[str, list[Reason]]) -> Reason:
    """The refusals by existing nodes with what is below those about devices."""
    if reason.code != "existing-nodes":
        return reason
    children = tuple(
        msgspec.structs.replace(child, children=tuple(trees.get(child.message, ())) if child.code == "dra" else ())
        for child in reason.children
    )
    return msgspec.structs.replace(reason, children=children)


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


def _topology_code(kind: Kind) -> str:
    return _KIND_CODES.get(kind, "topology-spread")


def _counted(code: str, what: str, total: int, refusals: Iterable[tuple[str, tuple[str, str]]]) -> tuple[Reason, ...]:
    """One reason for all places of a kind, with a child for each way in which they refuse."""
    by_refusal: dict[tuple[str, str], list[str]] = {}
    for name, refusal in refusals:
        by_refusal.setdefault(refusal, []).append(name)
    if not by_refusal:
        return ()
    children = []
    for (kind, text), names in by_refusal.items():
        more = f" and {len(names) - _EXAMPLES} other(s)" if len(names) > _EXAMPLES else ""
        subject = f"{what} {', '.join(names[:_EXAMPLES])}{more}"
        children.append(Reason(kind, text, subject, (("count", str(len(names))),)))
    unseen = f" (the first {_EXAMINED} are told)" if total > _EXAMINED else ""
    return (Reason(code, f"none of {total} {what}(s) takes it{unseen}", children=tuple(children)),)


def _limits(template: Template) -> tuple[Reason, ...]:
    remaining = template.remaining or {}
    smallest: dict[str, tuple[int, str]] = {}
    for plan in template.plans.plans:
        for name in remaining:
            amount = plan.capacity.get(name, 0)
            if name not in smallest or amount < smallest[name][0]:
                smallest[name] = (amount, plan.name)
    limits = template.pool.spec.limits or {}
    return tuple(
        Reason(
            "limit",
            f"{name}: limit {limits[name]}, {Quantity(remaining[name], limits[name].notation)} left, "
            f"the smallest plan {smallest[name][1]} has {Quantity(smallest[name][0], DECIMAL_SI)}",
            facts=(("resource", name), ("limit", str(limits[name])), ("plan", smallest[name][1])),
        )
        for name in sorted(remaining)
        if name in smallest and smallest[name][0] > remaining[name]
    )


def _about(reason: Reason, pod: Pod) -> Reason:
    return reason if reason.subject else msgspec.structs.replace(reason, subject=f"Pod {pod.key}")
