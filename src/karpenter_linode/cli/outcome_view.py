"""What a simulated run came to: the story line by line, then pods, nodes, devices and the bill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karpenter_linode.cli.output import note, print_data, print_lines, warn
from karpenter_linode.explain.brief import summary
from karpenter_linode.explain.reasons import reason_data, reason_lines
from karpenter_linode.explain.text import Line, counted, dollars, money, names, table
from karpenter_linode.model import codec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from karpenter_linode.operator.outcome import JournalEntry, Outcome, PodOutcome

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


def show_outcome(outcome: Outcome, output: str, *, story: bool, assumptions: list[str], warnings: list[str]) -> None:
    """Print a run.

    Args:
        outcome: what it came to.
        output: ``table``, ``json`` or ``yaml``.
        story: tell the journal first; data hold it always.
        assumptions: what was taken for granted about the input.
        warnings: what looks wrong in the input.
    """
    if output == "table":
        for warning in warnings:
            warn(warning)
        print_lines(outcome_lines(outcome, story=story))
        for text in assumptions:
            note(text)
    else:
        print_data(outcome_data(outcome) | {"assumptions": assumptions, "warnings": warnings}, output)


def outcome_data(outcome: Outcome) -> dict[str, Any]:
    """A run for machines: the members of the Outcome, with amounts of money as decimal dollars in text."""
    data: dict[str, Any] = codec.to_plain(outcome)
    reasons = {item.pod: item.reason for item in outcome.unplaced}
    data["cost"] = dollars(data.pop("nanoDollars", 0))
    for claim in data.get("nodeClaims", ()):
        if "price" in claim:
            claim["pricePerHour"] = dollars(claim.pop("price"))
    for line in (*data.get("bill", ()), *data.get("left", ())):
        line["cost"] = dollars(line.pop("nanoDollars", 0))
    for item in data.get("unplaced", ()):
        item["reason"] = reason_data(reasons[item["pod"]])
    return {"apiVersion": "karpenter-linode/v1", "kind": "Simulation", "succeeded": succeeded(outcome)} | data


def succeeded(outcome: Outcome) -> bool:
    """Whether every pod found a node."""
    return not outcome.unplaced and all(_ran(pod) for pod in outcome.pods)


def _ran(pod: PodOutcome) -> bool:
    return pod.scheduled is not None or pod.deleted


def _since(outcome: Outcome, moment: datetime | None) -> str:
    if moment is None:
        return "-"
    return _clock((moment - outcome.started).total_seconds())


def _story(outcome: Outcome) -> Iterator[Line]:
    width = max((len(entry.source) for entry in outcome.journal), default=0)
    for first, last, times in _told_once(outcome.journal):
        again = f" ({times} times until {_since(outcome, last.at)})" if times > 1 else ""
        yield Line(f"{story_text(first, outcome.started, width)}{again}")


def story_text(entry: JournalEntry, started: datetime, width: int) -> str:
    """A line of the story.

    Args:
        entry: what is told.
        started: time zero of the world.
        width: of the column that tells who did it.
    """
    about = f"{entry.subject}: " if entry.subject else ""
    return f"{_clock((entry.at - started).total_seconds())}  {entry.source:{width}}  {about}{entry.text}"


def _told_once(journal: Iterable[JournalEntry]) -> list[tuple[JournalEntry, JournalEntry, int]]:
    """First and last of each run of entries in which a source says the same of a subject, and how many there are."""
    runs: dict[int, tuple[JournalEntry, JournalEntry, int]] = {}
    current: dict[tuple[str, str], int] = {}
    for number, entry in enumerate(journal):
        who = (entry.source, entry.subject)
        run = runs.get(current.get(who, -1))
        if run is not None and entry.subject and run[0].text == entry.text:
            runs[current[who]] = (run[0], entry, run[2] + 1)
        else:
            current[who] = number
            runs[number] = (entry, entry, 1)
    return list(runs.values())


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
        lines.append(Line(f"pod {item.pod} not placed: {summary(item.reason)}", "bad"))
        lines += reason_lines(item.reason, "  ")[1:]
    return lines


def _verdict(outcome: Outcome) -> Line:
    placed = sum(_ran(pod) for pod in outcome.pods)
    waiting = len(outcome.pods) - placed
    built = sum(claim.launched is not None for claim in outcome.node_claims)
    parts = [
        f"{counted(placed, 'pod')} placed" + (f", {waiting} not" if waiting else ""),
        f"{counted(built, 'node')} built",
        f"{money(outcome.nano_dollars)} billed",
        f"{len(outcome.left)} still billed" if outcome.left else "nothing left billed",
        f"{_clock(outcome.seconds)} of virtual time",
    ]
    if not outcome.quiet:
        parts.append("stopped at the time limit")
    return Line("; ".join(parts), "good" if succeeded(outcome) and not outcome.left else "bad")


def _clock(seconds: float) -> str:
    hours, rest = divmod(int(seconds), _HOUR)  # begun seconds do not count, as in the times that Kubernetes writes
    minutes, rest = divmod(rest, _MINUTE)
    return f"{hours}:{minutes:02d}:{rest:02d}"
