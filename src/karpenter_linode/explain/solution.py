"""A Solution in text and as plain data: what will be built, for whom, at what price, and what has no place and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from karpenter_linode.explain.brief import summary
from karpenter_linode.explain.reasons import reason_data, reason_lines
from karpenter_linode.explain.text import Line, counted, dollars, money, names, table
from karpenter_linode.model.kinds import to_manifest
from karpenter_linode.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karpenter_linode.scheduling.problem import (
        ClaimPlacement,
        DeviceChoice,
        PlannedNodeClaim,
        PodRef,
        Solution,
        Unplaced,
    )

_SINGLE_ROWS: Final = 20
_RANGE: Final = 3  # as many names or more are told as the first to the last
_PREDICTED: Final = "virtual/"
_HEADER: Final = ("NODECLAIM", "NODEPOOL", "PLAN", "PRICE/H", "PODS", "DEVICES")


def solution_lines(solution: Solution, *, explain: bool = False) -> list[Line]:
    """A solution for people.

    Args:
        solution: the answer.
        explain: also tell for new NodeClaims which devices their claims get and why other plans are out; those with the
            same plans are told together.
    """
    lines = [_summary(solution)]
    if solution.new_node_claims:
        lines += [Line(), *_claims_table(solution)]
        for title, group in _alike(solution.new_node_claims) if explain else ():
            lines += [Line(), *_detail(title, group, solution)]
    if solution.existing:
        rows = [(place.node, names([pod.key for pod in place.pods])) for place in solution.existing]
        lines += [Line(), *table(("EXISTING NODE", "PODS"), rows)]
    for reason, pods in _same_reason(solution.unplaced):
        lines += [Line(), *_unplaced(reason, pods)]
    for reason in solution.notes:
        lines += [Line(), *reason_lines(reason)]
    return lines


def solution_data(solution: Solution) -> dict[str, Any]:
    """A solution for machines: plain data, always the same members in the same order."""
    return {
        "placed": not solution.unplaced,
        "summary": {
            "newNodes": len(solution.new_node_claims),
            "placedPods": _placed(solution),
            "unplacedPods": len(solution.unplaced),
            "pricePerHour": dollars(_price(solution)),
        },
        "newNodeClaims": [_claim_data(claim, solution) for claim in solution.new_node_claims],
        "existing": [{"node": place.node, "pods": [pod.key for pod in place.pods]} for place in solution.existing],
        "unplaced": [{"pod": item.pod.key, "reason": reason_data(item.reason)} for item in solution.unplaced],
        "resourceClaims": [_placement_data(placement) for placement in solution.claims],
        "notes": [reason_data(reason) for reason in solution.notes],
    }


def _price(solution: Solution) -> int:
    return sum(claim.price for claim in solution.new_node_claims)


def _placed(solution: Solution) -> int:
    new = sum(len(claim.pods) for claim in solution.new_node_claims)
    return new + sum(len(place.pods) for place in solution.existing)


def _summary(solution: Solution) -> Line:
    placed, unplaced, new = _placed(solution), len(solution.unplaced), len(solution.new_node_claims)
    if not placed and not unplaced:
        return Line("no pods to place", "title")
    parts = [counted(new, "new node") + (f" at {money(_price(solution))} per hour" if new else "")]
    parts.append(f"{counted(placed, 'pod')} placed")
    if unplaced:
        parts.append(f"{counted(unplaced, 'pod')} not placed")
    return Line(", ".join(parts), "bad" if unplaced else "good")


def _claims_table(solution: Solution) -> list[Line]:
    """A row for each new NodeClaim; many are told together where they look the same."""
    rows = [_row(claim, solution) for claim in solution.new_node_claims]
    if len(rows) <= _SINGLE_ROWS:
        return table(_HEADER, rows)
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, *rest in rows:
        alike.setdefault(tuple(rest), []).append(name)
    return table((*_HEADER, "NODES"), [(names(group, 1), *rest, str(len(group))) for rest, group in alike.items()])


def _row(claim: PlannedNodeClaim, solution: Solution) -> tuple[str, ...]:
    cheapest = claim.instance_types[0] if claim.instance_types else ""
    others = len(claim.instance_types) - 1
    plan = f"{cheapest} (or {counted(others, 'other plan')})" if others > 0 else cheapest
    devices = sum(len(choices) for _, choices in _devices(claim, solution, cheapest))
    return (claim.id, claim.node_pool, plan, money(claim.price), str(len(claim.pods)), str(devices))


def _devices(claim: PlannedNodeClaim, solution: Solution, plan: str) -> list[tuple[str, list[DeviceChoice]]]:
    """ResourceClaims served by a new NodeClaim, each with the devices it gets should that plan be launched."""
    return [
        (placement.claim, [choice for choice in placement.devices if choice.instance_type in ("", plan)])
        for placement in solution.claims
        if placement.target == claim.id
    ]


def _alike(claims: Sequence[PlannedNodeClaim]) -> list[tuple[str, list[PlannedNodeClaim]]]:
    """NodeClaims that may become the same plans for the same reasons, named together: ``gpu-1 to gpu-4``."""
    groups: dict[tuple[str, tuple[str, ...], tuple[Reason, ...]], list[int]] = {}
    for place, claim in enumerate(claims):
        groups.setdefault((claim.node_pool, claim.instance_types, claim.rejected), []).append(place)
    named = []
    for places in groups.values():
        group = [claims[place] for place in places]
        unbroken = places[-1] - places[0] == len(places) - 1
        ids = f"{group[0].id} to {group[-1].id}" if unbroken and len(group) >= _RANGE else names([c.id for c in group])
        named.append((f"{ids} from NodePool {group[0].node_pool}", group))
    return named


def _detail(title: str, group: Sequence[PlannedNodeClaim], solution: Solution) -> list[Line]:
    first = group[0]
    lines = [Line(title, "title"), Line(f"  allowed plans, cheapest first: {names(first.instance_types, 10)}")]
    for claim in group:
        whose = f"pods of {claim.id}" if len(group) > 1 else "pods"
        lines.append(Line(f"  {whose}: {names([pod.key for pod in claim.pods], 10)}"))
        cheapest = claim.instance_types[0] if claim.instance_types else ""
        for name, choices in _devices(claim, solution, cheapest):
            lines += [Line(f"  claim {name}, request {choice.request}: {_device(choice.device)}") for choice in choices]
    if first.rejected:
        lines.append(Line("  plans not allowed"))
        lines += [Line(f"  {line.text}", line.kind) for line in _forest(first.rejected)]
    return lines


def _device(identity: str) -> str:
    """``driver/pool/device`` in words; pool and name of a predicted device exist in the simulation only."""
    driver, _, device = identity.removeprefix(_PREDICTED).partition("/")
    if identity.startswith(_PREDICTED):
        return f"predicted device {device.rpartition('/')[2]} of {driver}"
    return f"device {identity}"


def _forest(reasons: Sequence[Reason]) -> list[Line]:
    """Several trees with brothers told once: the branches of a nameless root."""
    return reason_lines(Reason("", "", children=tuple(reasons)))[1:]


def _same_reason(unplaced: Sequence[Unplaced]) -> list[tuple[Reason, list[PodRef]]]:
    """Pods by what stopped them, in the order of the first of each; the root's subject, the pod, does not count."""
    groups: dict[Reason, list[PodRef]] = {}
    for item in unplaced:
        groups.setdefault(replace(item.reason, subject=""), []).append(item.pod)
    return list(groups.items())


def _unplaced(reason: Reason, pods: list[PodRef]) -> list[Line]:
    who = f"pod {pods[0].key}" if len(pods) == 1 else f"{len(pods)} pods {names([pod.key for pod in pods])}"
    lines = [Line(f"{who} not placed: {summary(reason)}", "bad")]
    return lines + reason_lines(reason, "  ")[1:]


def _claim_data(claim: PlannedNodeClaim, solution: Solution) -> dict[str, Any]:
    return {
        "id": claim.id,
        "nodePool": claim.node_pool,
        "plans": list(claim.instance_types),
        "pricePerHour": dollars(claim.price),
        "pods": [pod.key for pod in claim.pods],
        "resourceClaims": [placement.claim for placement in solution.claims if placement.target == claim.id],
        "object": to_manifest(claim.node_claim),
        "rejected": [reason_data(reason) for reason in claim.rejected],
    }


def _placement_data(placement: ClaimPlacement) -> dict[str, Any]:
    return {
        "claim": placement.claim,
        "target": placement.target,
        "devices": [_choice_data(choice) for choice in placement.devices],
    }


def _choice_data(choice: DeviceChoice) -> dict[str, Any]:
    data: dict[str, Any] = {"request": choice.request, "device": choice.device}
    if choice.instance_type:
        data["plan"] = choice.instance_type
    if choice.consumed_capacity:
        data["consumedCapacity"] = {name: str(amount) for name, amount in choice.consumed_capacity.items()}
    return data
