"""Semantic versions (spec/cel-for-dra.md 5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.cel.cost import traversal
from karpenter_linode.cel.declarations import Argument, Estimate, Library, Overload, function, method
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.types import BOOL, INT, SEMVER, STRING
from karpenter_linode.cel.values import INT_MAX
from karpenter_linode.model.semver import SemVer, SemVerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.cel.types import Type

_PARTS: Final = 3


def _normalized(text: str) -> str:
    """Without a leading ``v`` and leading zeros, with the parts that were left out."""
    parts = text.removeprefix("v").split(".", _PARTS - 1)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped and stripped[0].isdigit() else "0" + stripped
    if len(parts) < _PARTS:
        if any(mark in parts[-1] for mark in "+-"):
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (_PARTS - len(parts))
    return ".".join(parts)


def _parse(text: str, normalize: bool = False) -> SemVer:  # noqa: FBT001, FBT002 - the signature of the CEL function
    try:
        return SemVer.parse(_normalized(text) if normalize else text)
    except SemVerError as error:
        if text.count(".") < _PARTS - 1:
            raise EvaluationError("No Major.Minor.Patch elements found") from None
        raise EvaluationError(str(error)) from None


def _is_semver(text: str, normalize: bool = False) -> bool:  # noqa: FBT001, FBT002 - as above
    try:
        _parse(text, normalize)
    except EvaluationError:
        return False
    return True


def _compare(left: SemVer, right: SemVer) -> int:
    if left.major != right.major:
        return -1 if left.major < right.major else 1
    if left.minor != right.minor:
        return -1 if left.minor < right.minor else 1
    return left.compare(right) if left.patch == right.patch else -1 if left.patch < right.patch else 1


def _parse_estimate(arguments: tuple[Argument, ...]) -> Estimate:
    return Estimate(arguments[0].size.tenths())


def _reader(
    name: str, result: Type, implementation: Callable[..., SemVer] | Callable[..., bool]
) -> tuple[Overload, ...]:
    return tuple(
        function(
            f"{name}_{len(params)}",
            params,
            result,
            implementation,
            cost=traversal,
            estimate=_parse_estimate,
            folding="lazy",
        )
        for params in ((STRING,), (STRING, BOOL))
    )


def _relation(name: str, result: Type, implementation: Callable[[SemVer, SemVer], int]) -> tuple[Overload, ...]:
    return (method(f"semver_{name}", (SEMVER, SEMVER), result, implementation),)


def _number(name: str, read: Callable[[SemVer], int]) -> tuple[Overload, ...]:
    def signed(version: SemVer) -> int:
        """Numbers of versions are unsigned, those of the language are not: they wrap around."""
        number = read(version)
        return number - 2 * (INT_MAX + 1) if number > INT_MAX else number

    return (method(f"semver_{name}", (SEMVER,), INT, signed),)


_OVERLOADS: Final = {
    "semver": _reader("string_to_semver", SEMVER, _parse),
    "isSemver": _reader("is_semver", BOOL, _is_semver),
    "isGreaterThan": _relation("is_greater_than", BOOL, lambda left, right: _compare(left, right) > 0),
    "isLessThan": _relation("is_less_than", BOOL, lambda left, right: _compare(left, right) < 0),
    "compareTo": _relation("compare_to", INT, _compare),
    "major": _number("major", lambda version: version.major),
    "minor": _number("minor", lambda version: version.minor),
    "patch": _number("patch", lambda version: version.patch),
}
LIBRARY: Final = Library("semver", _OVERLOADS)
