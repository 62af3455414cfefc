"""One requirement on a label: a set of allowed values, written as a list, its complement, or integer bounds.

Semantics: spec/karpenter-scheduling.md 3.1 and 3.2. Values are immutable and hashable; equal requirements are equal.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from karpenter_linode.model import labels
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
MAX_INT64: Final = 2**63 - 1
_SHOWN_VALUES: Final = 5
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,64}")  # no label value is longer, and Python reads no endless numbers


class RequirementError(ValueError):
    """A requirement cannot be read: unknown operator or a bound that is no integer. Names key and value."""


class Requirement:
    """Allowed values of one label key.

    Args:
        key: label key; old spellings are normalised (``labels.ALIASES``).
        complement: whether ``values`` are the excluded ones.
        values: allowed values, or excluded ones with ``complement``.
        gte: inclusive lower bound on the value read as an integer.
        lte: inclusive upper bound.
        min_values: how many distinct values the chosen instance types must keep (NodePool flexibility).
    """

    __slots__ = ("_hash", "complement", "gte", "key", "lte", "min_values", "values")
    key: str
    complement: bool
    values: frozenset[str]
    gte: int | None
    lte: int | None
    min_values: int | None

    def __init__(
        self,
        key: str,
        values: frozenset[str] = frozenset(),
        *,
        complement: bool = False,
        gte: int | None = None,
        lte: int | None = None,
        min_values: int | None = None,
    ) -> None:
        self.key = labels.ALIASES.get(key, key)
        self.complement = complement
        self.values = values
        self.gte = gte
        self.lte = lte
        self.min_values = min_values
        self._hash = hash((self.key, complement, values, gte, lte, min_values))

    @property
    def operator(self) -> Operator:
        """The operator this set amounts to; an empty list of values is ``DoesNotExist``."""
        if self.complement:
            return "NotIn" if self.values else "Exists"
        return "In" if self.values else "DoesNotExist"

    def __len__(self) -> int:
        """How many values are allowed; bounds do not count (spec 3.1)."""
        return MAX_INT64 - len(self.values) if self.complement else len(self.values)

    def __bool__(self) -> bool:
        return True

    def has(self, value: str) -> bool:
        """Whether a value is allowed."""
        return (value in self.values) != self.complement and _within(value, self.gte, self.lte)

    def intersection(self, other: Requirement) -> Requirement:
        """The values that both allow."""
        gte, lte = _greatest(self.gte, other.gte), _least(self.lte, other.lte)
        min_values = _greatest(self.min_values, other.min_values)
        if gte is not None and lte is not None and gte > lte:
            return Requirement(self.key, min_values=min_values)
        complement = self.complement and other.complement
        if complement:
            values = self.values | other.values
        elif self.complement:
            values = other.values - self.values
        elif other.complement:
            values = self.values - other.values
        else:
            values = self.values & other.values
        if gte is not None or lte is not None:
            values = frozenset(value for value in values if _within(value, gte, lte))
        if not complement:
            gte = lte = None
        return Requirement(self.key, values, complement=complement, gte=gte, lte=lte, min_values=min_values)

    def intersects(self, other: Requirement) -> bool:
        """Whether some value is allowed by both; two complements always meet (spec 3.2)."""
        if self.complement and other.complement:
            gte, lte = _greatest(self.gte, other.gte), _least(self.lte, other.lte)
            return gte is None or lte is None or gte <= lte
        if not self.complement and not other.complement:
            return not self.values.isdisjoint(other.values)  # bounds live on complements only
        concrete, rest = (other, self) if self.complement else (self, other)
        return any(rest.has(value) and _within(value, concrete.gte, concrete.lte) for value in concrete.values)

    def specs(self) -> tuple[NodeSelectorRequirement, ...]:
        """The written form: one entry, or one for each bound (spec 3.5)."""
        bounds = [("Gte", self.gte), ("Lte", self.lte)]
        if self.gte is not None or self.lte is not None:
            return tuple(
                NodeSelectorRequirement(self.key, operator, (str(bound),), self.min_values)
                for operator, bound in bounds
                if bound is not None
            )
        return (NodeSelectorRequirement(self.key, self.operator, tuple(sorted(self.values)), self.min_values),)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Requirement)
            and self._hash == other._hash
            and (self.key, self.complement, self.values, self.gte, self.lte, self.min_values)
            == (other.key, other.complement, other.values, other.gte, other.lte, other.min_values)
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        text = f"{self.key} {self.operator}"
        if self.values:
            shown = sorted(self.values)
            more = f" and {len(shown) - _SHOWN_VALUES} others" if len(shown) > _SHOWN_VALUES else ""
            text += f" [{' '.join(shown[:_SHOWN_VALUES])}{more}]"
        text += f" >={self.gte}" if self.gte is not None else ""
        text += f" <={self.lte}" if self.lte is not None else ""
        return text + (f" minValues {self.min_values}" if self.min_values is not None else "")

    def __repr__(self) -> str:
        return f"Requirement({self})"


def requirement(key: str, operator: str, values: tuple[str, ...] = (), min_values: int | None = None) -> Requirement:
    """Read a requirement from its written form.

    Raises:
        RequirementError: unknown operator, or a bound that is no single integer.
    """
    match operator:
        case "In":
            return Requirement(key, frozenset(values), min_values=min_values)
        case "NotIn":
            return Requirement(key, frozenset(values), complement=True, min_values=min_values)
        case "Exists":
            return Requirement(key, complement=True, min_values=min_values)
        case "DoesNotExist":
            return Requirement(key, min_values=min_values)
        case "Gt" | "Lt" | "Gte" | "Lte":
            return _bounded(key, operator, values, min_values)
        case _:
            msg = (
                f"key {key} has an unsupported operator {operator} not in [DoesNotExist Exists Gt Gte In Lt Lte NotIn]"
            )
            raise RequirementError(msg)


def from_spec(spec: NodeSelectorRequirement) -> Requirement:
    """Read a requirement from an API object. Raises as ``requirement``."""
    return requirement(spec.key, spec.operator, spec.values, spec.min_values)


def exists(key: str) -> Requirement:
    """Any value."""
    return Requirement(key, complement=True)


def one_of(key: str, *values: str) -> Requirement:
    """Exactly these values."""
    return Requirement(key, frozenset(values))


def _bounded(key: str, operator: str, values: tuple[str, ...], min_values: int | None) -> Requirement:
    if len(values) != 1 or not _INTEGER.fullmatch(values[0]):
        msg = f"key {key} with operator {operator} must have a single positive integer value, found {list(values)}"
        raise RequirementError(msg)
    bound = int(values[0])
    if operator == "Gt" and bound >= MAX_INT64:
        return Requirement(key, min_values=min_values)
    gte = {"Gt": bound + 1, "Gte": bound}.get(operator)
    lte = {"Lt": bound - 1, "Lte": bound}.get(operator)
    return Requirement(key, complement=True, gte=gte, lte=lte, min_values=min_values)


def _within(value: str, gte: int | None, lte: int | None) -> bool:
    if gte is None and lte is None:
        return True
    if not _INTEGER.fullmatch(value):
        return False
    number = int(value)
    if not -MAX_INT64 <= number <= MAX_INT64:
        return False
    return (gte is None or number >= gte) and (lte is None or number <= lte)


def _greatest(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return max(left, right)


def _least(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return min(left, right)
