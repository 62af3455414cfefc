"""Why no node that exists or is planned takes a pod, in few words: equal refusals are counted, not repeated.

Runs once per shape, for pods that end unplaced, against the final state; nothing here changes anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from karpenter_linode.model.reason import Reason
from karpenter_linode.model.wording import few
from karpenter_linode.scheduling import filtering
from karpenter_linode.scheduling import ports as host_ports
from karpenter_linode.scheduling import resources as res
from karpenter_linode.scheduling.devices import WRAPPER
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
    from karpenter_linode.scheduling.topology.group import Kind
    from karpenter_linode.scheduling.world import World

_KIND_CODES = {AFFINITY: "pod-affinity", ANTI_AFFINITY: "pod-anti-affinity"}
_EXAMPLES = 3
_EXAMINED = 256  # places looked at one by one; more would say no more


class TakenPlaces:
    """Explains the places that are there already, of one finished simulation.

    Args:
        world: its final state.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._taken: dict[Shape, tuple[tuple[Reason, ...], tuple[ExistingNode, ...]]] = {}

    def refusals(self, pod: Pod, shape: Shape) -> tuple[Reason, ...]:
        """Why no node that exists and no NodeClaim that is planned takes a pod."""
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
                    return topology_code(kind), f"unsatisfiable {kind} on {check.group.topology_key}"
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


def topology_code(kind: Kind) -> str:
    """The machine's word for a refusal by a rule of this kind."""
    return _KIND_CODES.get(kind, "topology-spread")


def _with_trees(reason: Reason, trees: dict[str, list[Reason]]) -> Reason:
    """The refusals by existing nodes with what is below those about devices."""
    if reason.code != "existing-nodes":
        return reason
    children = tuple(
        msgspec.structs.replace(child, children=tuple(trees.get(child.message, ())) if child.code == "dra" else ())
        for child in reason.children
    )
    return msgspec.structs.replace(reason, children=children)


def _counted(code: str, what: str, total: int, refusals: Iterable[tuple[str, tuple[str, str]]]) -> tuple[Reason, ...]:
    """One reason for all places of a kind, with a child for each way in which they refuse."""
    by_refusal: dict[tuple[str, str], list[str]] = {}
    for name, refusal in refusals:
        by_refusal.setdefault(refusal, []).append(name)
    if not by_refusal:
        return ()
    children = []
    for (kind, text), names in by_refusal.items():
        subject = f"{what} {few(names, _EXAMPLES)}"
        children.append(Reason(kind, text, subject, (("count", str(len(names))),)))
    unseen = f" (the first {_EXAMINED} are told)" if total > _EXAMINED else ""
    return (Reason(code, f"none of {total} {what}(s) takes it{unseen}", children=tuple(children)),)
