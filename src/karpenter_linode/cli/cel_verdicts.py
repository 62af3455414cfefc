"""What a selector says about devices: outcome, cost and the value of every part, once for each distinct device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from karpenter_linode.cel import DEFAULT_COST_LIMIT, CompileError, EvaluationError, Part
from karpenter_linode.dra.device_reasons import with_feature
from karpenter_linode.dra.key_hints import key_hint
from karpenter_linode.dra.selector import compiled
from karpenter_linode.dra.validate import MAX_EXPRESSION, selector_problem
from karpenter_linode.explain.text import Line, counted, names, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from karpenter_linode.cel import Program
    from karpenter_linode.cli.cel_devices import Source
    from karpenter_linode.dra.selector import Shape

Outcome = Literal["match", "no_match", "error"]
_WORDS: Final[dict[Outcome, str]] = {"match": "match", "no_match": "no match", "error": "error"}


class SelectorError(Exception):
    """The API server would refuse the selector; the text says why, with a caret below the place where it can."""


class Verdict(Struct, frozen=True):
    """What a selector says about one device.

    Args:
        outcome: whether it is selected, or that the evaluation failed.
        error: why it failed, else empty.
        hint: what to do about it, where a name is likely misspelt.
        cost: cost units used; None after an error.
        parts: the value of every part of the expression.
    """

    outcome: Outcome
    error: str = ""
    cost: int | None = None
    parts: tuple[Part, ...] = ()
    hint: str = ""


Judged = list[tuple["Source", list[tuple[str, Verdict]]]]
"""Each plan or slice, with the name of each device and what the selector says about it."""


def compile_selector(text: str) -> Program:
    """A selector as the API server would admit it.

    Raises:
        SelectorError: too long, not a valid expression, no bool, or possibly too costly.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SelectorError("not UTF-8 text") from None
    problem = selector_problem(text)
    program = compiled(text) if len(text.encode()) <= MAX_EXPRESSION else None
    if problem or program is None or isinstance(program, CompileError):
        raise SelectorError(problem)
    return program


def judge(program: Program, sources: Iterable[Source]) -> Judged:
    """What a selector says about every device."""
    known: dict[int, Verdict] = {}
    judged: Judged = []
    for source in sources:
        verdicts = []
        for name, shape in source.devices:
            if shape.number not in known:
                known[shape.number] = _verdict(program, shape)
            verdicts.append((name, known[shape.number]))
        judged.append((source, verdicts))
    return judged


def all_verdicts(judged: Judged) -> list[Verdict]:
    """The verdict on each device, in order."""
    return [verdict for _, verdicts in judged for _, verdict in verdicts]


def _verdict(program: Program, shape: Shape) -> Verdict:
    try:
        variables = shape.cel_input()
    except EvaluationError as error:
        return Verdict("error", error.message)
    parts = program.parts(variables)
    try:
        value, cost = program.evaluate_counted(variables)
    except EvaluationError as error:
        hint = key_hint(error.message, shape.driver, shape.device)
        return Verdict("error", with_feature(error.message), parts=parts, hint=hint)
    return Verdict("match" if value else "no_match", cost=cost, parts=parts)


def verdict_data(text: str, program: Program, judged: Judged) -> dict[str, Any]:
    """Everything for machines: each device with each part of the expression."""
    low, high = program.estimate
    return {
        "apiVersion": "karpenter-linode/v1",
        "kind": "SelectorEvaluation",
        "expression": text,
        "matches": sum(verdict.outcome == "match" for verdict in all_verdicts(judged)),
        "estimatedCost": {"min": low, "max": high},
        "costLimit": DEFAULT_COST_LIMIT,
        "devices": [
            {source.kind: source.name, "driver": source.driver, "device": name, **_plain(verdict)}
            for source, verdicts in judged
            for name, verdict in verdicts
        ],
    }


def _plain(verdict: Verdict) -> dict[str, Any]:
    return {
        "outcome": verdict.outcome,
        **({"error": verdict.error} if verdict.error else {}),
        **({"hint": verdict.hint} if verdict.hint else {}),
        **({"cost": verdict.cost} if verdict.cost is not None else {}),
        "parts": [
            {
                "text": part.text,
                "depth": part.depth,
                **({"error": part.error} if part.error else {"value": part.value}),
                "cost": part.cost,
                "position": part.position,
            }
            for part in verdict.parts
        ],
    }


def verdict_lines(program: Program, judged: Judged) -> Iterator[Line]:
    """Everything for people: a summary, a table, and the values that were seen, once for devices alike."""
    verdicts = all_verdicts(judged)
    matching = sum(verdict.outcome == "match" for verdict in verdicts)
    low, high = program.estimate
    cost = max((verdict.cost for verdict in verdicts if verdict.cost is not None), default=None)
    spent = f"cost {'at most ' if len(verdicts) > 1 else ''}{cost}, " if cost is not None else ""
    summary = (
        f"{matching} of {counted(len(verdicts), 'device')} {'matches' if 1 in {matching, len(verdicts)} else 'match'}"
    )
    bounds = f"estimated {low} to {high}, limit {DEFAULT_COST_LIMIT}"
    yield Line(f"{summary}; {spent}{bounds}", "good" if matching else "bad")
    yield Line()
    yield from table(_header(judged), list(_rows(judged)))
    for verdict, holders in _alike(judged):
        yield Line()
        yield from _details(verdict, holders)


def _header(judged: Judged) -> tuple[str, ...]:
    kinds = dict.fromkeys(source.kind.upper() for source, _ in judged)
    return ("/".join(kinds), "DEVICES", "RESULT", "COST")


def _rows(judged: Judged) -> Iterator[tuple[str, ...]]:
    """A row for the devices of one source that came out alike."""
    for source, verdicts in judged:
        groups: dict[Verdict, list[str]] = {}
        for name, verdict in verdicts:
            groups.setdefault(verdict, []).append(name)
        for verdict, devices in groups.items():
            cost = "-" if verdict.cost is None else str(verdict.cost)
            yield (source.name, names(devices), _WORDS[verdict.outcome], cost)


def _alike(judged: Judged) -> list[tuple[Verdict, dict[str, None]]]:
    """Distinct verdicts with the plans and slices they were found on."""
    groups: dict[Verdict, dict[str, None]] = {}
    for source, verdicts in judged:
        for _, verdict in verdicts:
            groups.setdefault(verdict, {})[source.name] = None
    return list(groups.items())


def _details(verdict: Verdict, holders: Iterable[str]) -> Iterator[Line]:
    reason = f": {verdict.error}" if verdict.error else ""
    style: Literal["good", "bad"] = "good" if verdict.outcome == "match" else "bad"
    yield Line(f"{_WORDS[verdict.outcome]} on {names(list(holders))}{reason}", style)
    if verdict.hint:
        yield Line(f"  hint: {verdict.hint}")
    for part in _without_repetition(verdict.parts):
        value = f"error: {part.error}" if part.error else part.value
        text = " ".join(part.text.split())
        yield Line(f"  {'  ' * part.depth}{text} -> {value}", "plain" if part.depth == 0 else "dim")


def _without_repetition(parts: Sequence[Part]) -> Iterator[Part]:
    """The parts without those that an earlier clause has shown already."""
    seen: set[str] = set()
    for part in parts:
        if part.depth == 0 or part.text not in seen:
            yield part
        seen.add(part.text)
