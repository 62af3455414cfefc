"""Why single devices do not serve a request: taken, not selected (which clause, which value), tainted, too small."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from karpenter_linode.cel import EvaluationError
from karpenter_linode.dra.capacity import consumption
from karpenter_linode.dra.key_hints import MISSING_KEY, key_hint
from karpenter_linode.dra.limits import feature_of_attribute
from karpenter_linode.model.labels import WELL_KNOWN
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.reason import Reason

if TYPE_CHECKING:
    from karpenter_linode.cel import Clause
    from karpenter_linode.dra.devices import Candidate
    from karpenter_linode.dra.prepare import Alternative, PlacedSelector
    from karpenter_linode.dra.view import Usage, View
    from karpenter_linode.model.requirements import Requirements

_LAST_NAME: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)['\"\]]*$")
_SHOWN: Final = 8


class _Finding:
    """What is wrong with a device, without its name."""

    __slots__ = ("code", "facts", "message")

    def __init__(self, code: str, message: str, facts: tuple[tuple[str, str], ...] = ()) -> None:
        self.code = code
        self.message = message
        self.facts = facts

    @property
    def key(self) -> object:
        return (self.code, self.message, self.facts)


def device_reasons(
    view: View, usage: Usage, requirements: Requirements, alternative: Alternative
) -> list[tuple[int, Reason]]:
    """Every device that does not serve an alternative, equal reasons together.

    Returns:
        Devices as bits, and the Reason that they share; in the order of the first device of each.
    """
    grouped: dict[object, tuple[_Finding, list[int]]] = {}
    for index in range(len(view.candidates)):
        finding = _finding(view, usage, requirements, alternative, index)
        if finding is not None:
            grouped.setdefault(finding.key, (finding, []))[1].append(index)
    return [
        (sum(1 << index for index in members), _reason(view, finding, members)) for finding, members in grouped.values()
    ]


def _reason(view: View, finding: _Finding, members: list[int]) -> Reason:
    names = [_name(view.candidates[index]) for index in members]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    subject = f"device{'s' if len(names) > 1 else ''} {', '.join(names[:_SHOWN])}{more}"
    return Reason(finding.code, finding.message, subject=subject, facts=finding.facts)


def _name(candidate: Candidate) -> str:
    return candidate.id.device if candidate.id.template else f"{candidate.id.pool}/{candidate.id.device}"


def _finding(
    view: View, usage: Usage, requirements: Requirements, alternative: Alternative, index: int
) -> _Finding | None:
    candidate = view.candidates[index]
    if usage.taken >> index & 1 and not alternative.admin:
        return _Finding("dra-device-in-use", "in use by another claim")
    for placed in alternative.selectors:
        finding = _not_selected(placed, candidate)
        if finding is not None:
            return finding
    if candidate.unusable:
        return _Finding("dra-device-unusable", candidate.unusable)
    if candidate.id.template and alternative.limits:
        return _Finding("dra-not-promised", f"a predicted device cannot promise {alternative.limits[0]}")
    taint = view.untolerated(alternative, candidate)
    if taint is not None:
        value = f"={taint.value}" if taint.value else ""
        return _Finding("dra-device-taint", f"taint {taint.key}{value}:{taint.effect} is not tolerated")
    unserved = view.unserved(alternative, candidate)
    if unserved:
        return _Finding("dra-device-capacity", unserved)
    return _exhausted(usage, alternative, candidate, index) or _out_of_reach(requirements, candidate)


def _not_selected(placed: PlacedSelector, candidate: Candidate) -> _Finding | None:
    try:
        if placed.selector.holds(candidate.shape):
            return None
        clauses = placed.selector.explain(candidate.shape)
    except EvaluationError as error:
        hint = key_hint(error.message, candidate.shape.driver, candidate.shape.device)
        told = f"{placed.place} fails: {with_feature(error.message)}"
        return _Finding("dra-selector-error", told, (("hint", hint),) if hint else ())
    clause = next((item for item in clauses if item.outcome == "false"), None)
    if clause is None:
        return _Finding("dra-selector", f"{placed.place} is false")
    facts = (("selector", placed.place), ("clause", clause.text), *_only_value(clause))
    return _Finding("dra-selector", _clause_text(clause), facts)


def _only_value(clause: Clause) -> tuple[tuple[str, str], ...]:
    """The value that a clause looks at, where it looks at one alone."""
    if len(clause.observed) != 1:
        return ()
    [(expression, value)] = clause.observed
    return (("name", _last_name(expression)), ("value", value))


def _clause_text(clause: Clause) -> str:
    seen = [f"{_last_name(name)} is {value}" for name, value in clause.observed if value != name]
    return f"{clause.text} is false" + (f": {', '.join(dict.fromkeys(seen))}" if seen else "")


def _last_name(expression: str) -> str:
    found = _LAST_NAME.search(expression)
    return found[1] if found else expression


def with_feature(message: str) -> str:
    """A selector's failure, with the feature behind the key that is missing where it cannot be predicted."""
    found = MISSING_KEY.search(message)
    feature = feature_of_attribute(found[1]) if found else None
    return f"{message}; predicted devices cannot promise {feature}" if feature else message


def _exhausted(usage: Usage, alternative: Alternative, candidate: Candidate, index: int) -> _Finding | None:
    if candidate.counters and not (candidate.shared and index in usage.shares):
        left = usage.remaining.get(candidate.pool, {})
        for counter, amount in candidate.counters:
            if left.get(counter, -1) < amount:
                return _Finding(
                    "dra-counters",
                    f"it needs {amount} of counter {counter[1]} in set {counter[0]}, {left.get(counter, 0)} left",
                    (("needed", str(amount)), ("left", str(left.get(counter, 0)))),
                )
    held = usage.shares.get(index)
    return _full(alternative, candidate, held) if held is not None else None


def _full(alternative: Alternative, candidate: Candidate, held: dict[str, int]) -> _Finding | None:

    amounts = consumption(candidate.device, alternative.capacity)
    if isinstance(amounts, str):
        return _Finding("dra-device-capacity", amounts)
    for name, amount in amounts.items():
        value = candidate.device.capacity[name].value
        left = value.nano - held.get(name, 0)
        if amount > left:
            asked, free = Quantity(amount, value.notation), Quantity(left, value.notation)
            return _Finding("dra-device-capacity", f"{name}: {asked} asked, {free} of {value} left")
    return None


def _out_of_reach(requirements: Requirements, candidate: Candidate) -> _Finding | None:
    if not len(candidate.requirements) or requirements.compatible(candidate.requirements, WELL_KNOWN):
        return None
    detail = requirements.incompatibility(candidate.requirements, WELL_KNOWN)
    return _Finding("dra-device-topology", f"it is usable elsewhere: {detail}")
