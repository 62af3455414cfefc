"""Sets of requirements, one for each label key, and whether two can meet (spec/karpenter-scheduling.md 3.3 to 3.6).

The algebra stands in ``model`` because devices (``dra``) and pods (``scheduling``) are both placed with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model import labels
from karpenter_linode.model.requirement import Requirement, exists, from_spec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from karpenter_linode.model.requirement_spec import NodeSelectorRequirement

_NEGATIVE: Final = frozenset({"NotIn", "DoesNotExist"})
STRICT: Final[frozenset[str]] = frozenset()


class Requirements:
    """An immutable set of requirements. A key that is not in it allows everything."""

    __slots__ = ("_by_key", "_hash")

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        by_key: dict[str, Requirement] = {}
        for item in requirements:
            present = by_key.get(item.key)
            by_key[item.key] = item if present is None else present.intersection(item)
        self._by_key = by_key
        self._hash: int | None = None

    @staticmethod
    def from_labels(values: Mapping[str, str]) -> Requirements:
        """Each label as ``In [value]``."""
        return Requirements(Requirement(key, frozenset((value,))) for key, value in values.items())

    @staticmethod
    def from_specs(specs: Iterable[NodeSelectorRequirement]) -> Requirements:
        """The requirements of an API object. Raises ``RequirementError``."""
        return Requirements(from_spec(spec) for spec in specs)

    def add(self, *requirements: Requirement) -> Requirements:
        """These and more; a key that is already there is intersected."""
        return Requirements((*self._by_key.values(), *requirements))

    def merge(self, other: Requirements) -> Requirements:
        """Both sets at once."""
        if not len(other):
            return self
        return self.add(*other) if self._by_key else other

    def replace(self, item: Requirement) -> Requirements:
        """The same set with one key set to exactly this requirement."""
        return Requirements({**self._by_key, item.key: item}.values())

    def without(self, *keys: str) -> Requirements:
        """The same set with some keys left open."""
        return Requirements(item for key, item in self._by_key.items() if key not in keys)

    def get(self, key: str) -> Requirement:
        """The requirement on a key; ``Exists`` where there is none."""
        return self._by_key.get(key) or exists(key)

    def find(self, key: str) -> Requirement | None:
        """The requirement on a key, or None where there is none."""
        return self._by_key.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._by_key

    def __iter__(self) -> Iterator[Requirement]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    def keys(self) -> Iterable[str]:
        """The keys that are constrained, in insertion order."""
        return self._by_key.keys()

    def intersects(self, other: Requirements) -> bool:
        """Whether no key that both constrain rules the other out (spec 3.4, ``Intersects``)."""
        small, large = self._by_key, other._by_key
        if len(large) < len(small):
            small, large = large, small
        for key, item in small.items():
            opposite = large.get(key)
            if opposite is not None and not meet(item, opposite):
                return False
        return True

    def compatible(self, other: Requirements, allow_undefined: frozenset[str] = STRICT) -> bool:
        """Whether ``other`` (a pod) can be met here (a node or a pool); spec 3.4, ``Compatible``."""
        by_key = self._by_key
        for key, item in other._by_key.items():
            mine = by_key.get(key)
            if mine is None:
                if key not in allow_undefined and item.operator not in _NEGATIVE:
                    return False
            elif not meet(mine, item):
                return False
        return True

    def incompatibility(self, other: Requirements, allow_undefined: frozenset[str] = STRICT) -> str | None:
        """The contract text that says why ``other`` cannot be met here, or None where it can."""
        for key, item in other._by_key.items():
            if key in allow_undefined or key in self._by_key or item.operator in _NEGATIVE:
                continue
            return f'label "{key}" does not have known values{self._hint(key, allow_undefined)}'
        return self.disjoint_keys(other)

    def disjoint_keys(self, other: Requirements) -> str | None:
        """Which keys rule ``other`` out, as contract text, or None."""
        clashes = [
            f"key {key}, {item} not in {self._by_key[key]}"
            for key, item in sorted(other._by_key.items())
            if key in self._by_key and not meet(self._by_key[key], item)
        ]
        return "; ".join(clashes) or None

    def specs(self) -> tuple[NodeSelectorRequirement, ...]:
        """The written form, sorted by key, so that equal sets are written alike."""
        return tuple(spec for key in sorted(self._by_key) for spec in self._by_key[key].specs())

    def _hint(self, key: str, allow_undefined: frozenset[str]) -> str:
        tail = key.split("/", 1)[-1]
        for candidate in (*sorted(allow_undefined), *sorted(self._by_key)):
            if key in candidate or candidate.endswith(tail):
                return f' (typo of "{candidate}"?)'
        return ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Requirements) and self._by_key == other._by_key

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._by_key.values()))
        return self._hash

    def __str__(self) -> str:
        shown = sorted(str(item) for key, item in self._by_key.items() if key not in labels.RESTRICTED_LABELS)
        return ", ".join(shown)

    def __repr__(self) -> str:
        return f"Requirements({self})"


def meet(left: Requirement, right: Requirement) -> bool:
    """Whether two requirements on one key can hold together; two that an absent label meets always can (spec 3.4)."""
    return left.intersects(right) or (left.operator in _NEGATIVE and right.operator in _NEGATIVE)


EMPTY: Final = Requirements()
