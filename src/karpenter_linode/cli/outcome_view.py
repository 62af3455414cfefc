"""What a simulated run came to: the story line by line, then pods, nodes, devices and the bill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karpenter_linode.explain.reasons import headline, reason_lines
from karpenter_linode.explain.text import Line, counted, money, names, table
from karpenter_linode.model import codec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from karpenter_linode.operator.outcome import Outcome, PodOutcome

_MINUTE = 60
_HOUR = 3600


def outcome_lines(outcome: Outcome, *, story: bool) -> list[Line]:
    """A run for people.

    Args:
        outcome: what it came to.
        story: tell the journal first.
    """
    lines = list(_story(outcome)) if story else []
    for block in (_pods(outcome), _node_claims(outcome), _devices(outcome), _bill(outcome), _unplaced(outcome)):
        if block:
            lines += [Line(), *block] if lines else block
    return [*lines, Line(), _verdict(outcome)]


def outcome_data(outcome: Outcome) -> dict[str, Any]:
    """A run for machines."""
    data: dict[str, Any] = codec.to_plain(outcome)
    return {"apiVersion": "karpenter-linode/v1", "kind": "Simulation", "succeeded": succeeded(outcome)} | data


def succeeded(outcome: Outcome) -> bool:
    """Whether every pod found a node."""
    return not outcome.unplaced and all(_ran(pod) for pod in outcome.pods)


def _ran(pod: PodOutcome) -> bool:
    return pod.scheduled is not None or pod.deleted


def _since(outcome: Outcome, moment: datetime | None) -> str:
    if moment is None:
        return "-"
    seconds = round((moment - outcome.started).total_seconds())
    hours, rest = divmod(seconds, _HOUR)
    minutes, seconds = divmod(rest, _MINUTE)
    return f"{hours}:{minutes:02d}:{seconds:02d}"


def _story(outcome: Outcome) -> Iterator[Line]:
    width = max((len(entry.source) for entry in outcome.journal), default=0)
    for entry in outcome.journal:
        yield Line(f"{_since(outcome, entry.at)}  {entry.source:{width}}  {entry.subject}: {entry.text}")


def _pods(outcome: Outcome) -> list[Line]:
    header = ("POD", "PHASE", "NODE", "CREATED", "SCHEDULED", "STARTED", "FINISHED")
    rows = [
        (
            pod.pod,
            pod.phase,
            pod.node or "-",
            *(_since(outcome, at) for at in (pod.created, pod.scheduled, pod.started, pod.finished)),
        )
        for pod in outcome.pods
    ]
    return table(header, rows) if rows else []


def _node_claims(outcome: Outcome) -> list[Line]:
    header = ("NODECLAIM", "PLAN", "PRICE/H", "CREATED", "LAUNCHED", "REGISTERED", "INITIALIZED", "DELETED")
    rows = [
        (
            claim.name,
            claim.instance_type or f"({names(claim.instance_types, 2)})",
            money(claim.price) if claim.price else "-",
            *(
                _since(outcome, at)
                for at in (claim.created, claim.launched, claim.registered, claim.initialized, claim.deleted)
            ),
        )
        for claim in outcome.node_claims
    ]
    return table(header, rows) if rows else []


def _devices(outcome: Outcome) -> list[Line]:
    rows = [
        (item.claim, item.request, f"{item.driver}/{item.pool}/{item.device}", names(item.pods))
        for item in outcome.devices
    ]
    return table(("RESOURCECLAIM", "REQUEST", "DEVICE", "PODS"), rows) if rows else []


def _bill(outcome: Outcome) -> list[Line]:
    rows = [
        (
            line.instance,
            line.instance_type,
            _since(outcome, line.since),
            _since(outcome, line.until),
            str(line.hours),
            money(line.nano_dollars),
        )
        for line in outcome.bill
    ]
    return table(("LINODE", "PLAN", "FROM", "UNTIL", "HOURS", "COST"), rows) if rows else []


def _unplaced(outcome: Outcome) -> list[Line]:
    lines: list[Line] = []
    for item in outcome.unplaced:
        lines.append(Line(f"pod {item.pod} not placed: {headline(item.reason)}", "bad"))
        lines += reason_lines(item.reason, "  ")[1:]
    return lines


def _verdict(outcome: Outcome) -> Line:
    placed = sum(_ran(pod) for pod in outcome.pods)
    waiting = len(outcome.pods) - placed
    parts = [
        f"{counted(placed, 'pod')} placed" + (f", {waiting} not" if waiting else ""),
        f"{counted(len(outcome.node_claims), 'node')} built",
        f"{money(outcome.nano_dollars)} billed",
        f"{len(outcome.left)} still billed" if outcome.left else "nothing left billed",
        f"{_since_seconds(outcome.seconds)} of virtual time",
    ]
    if not outcome.quiet:
        parts.append("stopped at the time limit")
    return Line("; ".join(parts), "good" if succeeded(outcome) and not outcome.left else "bad")


def _since_seconds(seconds: float) -> str:
    hours, rest = divmod(round(seconds), _HOUR)
    minutes, seconds = divmod(rest, _MINUTE)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
