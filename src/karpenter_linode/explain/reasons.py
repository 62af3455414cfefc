"""Reason trees as indented branches. Brothers that say the same are told once, with all their names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.explain.brief import brief
from karpenter_linode.explain.text import Line, names

if TYPE_CHECKING:
    from karpenter_linode.model.reason import Reason

# A NodeClaim that was only tried has no name yet; the solver's stand-in for one says nothing to people.
_UNNAMED: Final = "NodeClaim hostname-placeholder-"
_NEW: Final = "a new NodeClaim"
# Facts that the line tells in other words: the subject how many are summed up, the message how many devices there are,
# the place of a selector its text, the name of a device its whole identity.
_FOR_MACHINES: Final = frozenset({"count", "plans", "predicted", "devices", "expression", "device"})
_HINT: Final = "hint"  # what would have to change; told below everything else
_PLAIN: Final = frozenset({"selector"})  # facts whose value tells by itself what it is
_NOTHING_ELSE: Final = "this is the only reason"


def reason_lines(reason: Reason, indent: str = "") -> list[Line]:
    """A tree in text.

    Args:
        reason: the root.
        indent: put before every line.
    """
    lines = [Line(f"{indent}{headline(reason)}")]
    _add_children(reason, indent, lines)
    return lines


def headline(reason: Reason) -> str:
    """Subject and message of one node: ``plan g2-gpu-rtx4000a1-s: predicts 1 device, 2 asked``."""
    return _headline(reason, [reason.subject] if reason.subject else [])


def reason_data(reason: Reason) -> dict[str, Any]:
    """A tree as plain data; empty members are left out."""
    data: dict[str, Any] = {"code": reason.code, "message": reason.message}
    if reason.subject:
        data["subject"] = _NEW if reason.subject.startswith(_UNNAMED) else reason.subject
    facts = {name: value for name, value in reason.facts if name != _HINT}
    if facts:
        data["facts"] = facts
    hints = _hints(reason)
    if hints:
        data["hints"] = hints
    if reason.children:
        data["children"] = [reason_data(child) for child in reason.children]
    return data


def _headline(reason: Reason, subjects: list[str]) -> str:
    unsaid = [
        value if name in _PLAIN else f"{name} {value}"
        for name, value in reason.facts
        if value and name not in _FOR_MACHINES and name != _HINT and not _says(reason.message, value)
    ]
    facts = f" ({', '.join(unsaid)})" if unsaid else ""
    who = f"{_joined(subjects)}: " if subjects and not _told(subjects, reason.message) else ""
    return f"{who}{brief(reason.message)}{facts}"


def _hints(reason: Reason) -> list[str]:
    return [value for name, value in reason.facts if name == _HINT]


def _says(message: str, value: str) -> bool:
    """Whether a message holds a value as a word of its own."""
    return re.search(rf"(?<![\w.]){re.escape(value)}(?![\w])", message) is not None


def _told(subjects: list[str], message: str) -> bool:
    """Whether the message already begins with the only subject."""
    return len(subjects) == 1 and message.startswith(subjects[0])


def _joined(subjects: list[str]) -> str:
    """``plan a`` and ``plan b`` as ``plans a, b``."""
    if subjects[0].startswith(_UNNAMED):
        return _NEW
    first, _, _ = subjects[0].partition(" ")
    if len(subjects) > 1 and all(subject.startswith(f"{first} ") for subject in subjects):
        return f"{len(subjects)} {first}s {names([subject[len(first) + 1 :] for subject in subjects])}"
    return names(subjects)


def _add_children(parent: Reason, indent: str, lines: list[Line]) -> None:
    groups = _alike(parent.children)
    hints = _hints(parent)
    for index, (reason, subjects) in enumerate(groups):
        last = index == len(groups) - 1 and not hints
        text = _repeated(reason, subjects) if _repeats(parent, reason, subjects) else _headline(reason, subjects)
        lines.append(Line(f"{indent}{'└─ ' if last else '├─ '}{text}"))
        _add_children(reason, indent + ("   " if last else "│  "), lines)
    for index, hint in enumerate(hints):
        lines.append(Line(f"{indent}{'└─ ' if index == len(hints) - 1 else '├─ '}hint: {hint}"))


def _repeats(parent: Reason, reason: Reason, subjects: list[str]) -> bool:
    """Whether a child passes on what its parent has said, as one with a single cause often does."""
    alone = len(parent.children) == 1 or bool(reason.children) or bool(_hints(reason))
    said = parent.message == reason.message or parent.message.endswith(f", {reason.message}")
    return bool(subjects) and alone and said


def _repeated(reason: Reason, subjects: list[str]) -> str:
    """Such a child only says who it is about."""
    who = _joined(subjects)
    return who if reason.children or _hints(reason) else f"{who}: {_NOTHING_ELSE}"


def _alike(children: tuple[Reason, ...]) -> list[tuple[Reason, list[str]]]:
    """Brothers that differ in their subject only, together; in the order of the first of each."""
    groups: dict[tuple[Any, ...], tuple[Reason, list[str]]] = {}
    for child in children:
        key = (child.code, child.message, child.facts, child.children)
        _, subjects = groups.setdefault(key, (child, []))
        if child.subject and child.subject not in subjects:
            subjects.append(child.subject)
    return list(groups.values())
