"""Semantic versions 2.0.0, strictly read (spec/cel-for-dra.md 5.2: Kubernetes uses blang/semver)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

_NUMBER: Final = r"(0|[1-9][0-9]{0,19})"
_PATTERN: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?",
)
_MAX_NUMBER: Final = 2**64 - 1
_MAX_DIGITS: Final = len(str(_MAX_NUMBER))
_SHOWN: Final = 80


class SemVerError(ValueError):
    """The text is no semantic version. The message quotes it."""


class SemVer(Struct, frozen=True, order=False):
    """A version. Ordering is precedence (2.0.0 section 11): build metadata never counts, yet it is part of the text."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()
    build: tuple[str, ...] = ()

    @staticmethod
    def parse(text: str) -> SemVer:
        """Read a strict version.

        Raises:
            SemVerError: not ``MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD]``; the message quotes the text.
        """
        return _parse(text)

    def compare(self, other: SemVer) -> int:
        """-1, 0 or 1 by precedence."""
        mine, theirs = (self.major, self.minor, self.patch), (other.major, other.minor, other.patch)
        if mine != theirs:
            return -1 if mine < theirs else 1
        return _compare_prerelease(self.prerelease, other.prerelease)

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(self.prerelease)
        return text + ("+" + ".".join(self.build) if self.build else "")


@lru_cache(maxsize=1024)
def _parse(text: str) -> SemVer:
    match = _PATTERN.fullmatch(text)
    if match is None:
        msg = f"{text[:_SHOWN]!r} is not a semantic version: expected MAJOR.MINOR.PATCH without leading zeros"
        raise SemVerError(msg)
    numbers = [int(part) for part in match.groups()[:3]]
    prerelease = tuple((match[4] or "").split(".")) if match[4] else ()
    build = tuple((match[5] or "").split(".")) if match[5] else ()
    bad_number = any(_is_bad_number(part) for part in prerelease)
    if max(numbers) > _MAX_NUMBER or "" in prerelease or "" in build or bad_number:
        msg = f"{text[:_SHOWN]!r} is not a semantic version: empty part, leading zero or number out of range"
        raise SemVerError(msg)
    return SemVer(numbers[0], numbers[1], numbers[2], prerelease, build)


def _is_bad_number(part: str) -> bool:
    """A numeric identifier with a leading zero, or too great for 64 bits, as blang/semver has it."""
    if not part.isdigit():
        return False
    return len(part) > _MAX_DIGITS or (len(part) > 1 and part[0] == "0") or int(part) > _MAX_NUMBER


def _compare_prerelease(mine: tuple[str, ...], theirs: tuple[str, ...]) -> int:
    if not mine or not theirs:
        return (not mine) - (not theirs)
    for left, right in zip(mine, theirs, strict=False):
        if left == right:
            continue
        if left.isdigit() and right.isdigit():
            if int(left) == int(right):
                continue
            return -1 if int(left) < int(right) else 1
        if left.isdigit() != right.isdigit():
            return -1 if left.isdigit() else 1
        return -1 if left < right else 1
    return (len(mine) > len(theirs)) - (len(mine) < len(theirs))
