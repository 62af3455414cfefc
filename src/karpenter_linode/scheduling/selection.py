"""Which nodes a pod selects: ``nodeSelector`` and node affinity (spec/karpenter-scheduling.md 2.6, 3.3).

Expressions are merged by key, but each must hold on its own: ``NotIn x`` beside ``In x`` is a contradiction that no
node meets, not an allowed absence of the label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model import labels
from karpenter_linode.model.requirement import Requirement, RequirementError, exists, from_spec, one_of
from karpenter_linode.model.requirements import EMPTY, Requirements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.model.core import NodeAffinity, NodeSelectorTerm, Pod, PodSpec
    from karpenter_linode.model.requirement_spec import NodeSelectorRequirement

_NEGATIVE: Final = frozenset({"NotIn", "DoesNotExist"})


class Selection:
    """Requirements of a pod on its node.

    Args:
        items: every expression, as written.
    """

    __slots__ = ("_hash", "asks", "contradiction", "needs_hostname", "positive", "requirements")
    requirements: Requirements
    positive: frozenset[str]
    contradiction: str | None
    needs_hostname: bool
    asks: bool

    def __init__(self, items: Iterable[Requirement] = ()) -> None:
        expressions = tuple(items)
        self.requirements = Requirements(expressions) if expressions else EMPTY
        self.positive = frozenset(item.key for item in expressions if item.operator not in _NEGATIVE)
        self.contradiction = next(
            (key for key in sorted(self.positive) if self.requirements.get(key).operator == "DoesNotExist"), None
        )
        self.asks = bool(expressions)
        self.needs_hostname = labels.HOSTNAME in self.requirements
        self._hash = hash((self.requirements, self.positive))

    def __bool__(self) -> bool:
        return self.asks

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Selection) and self.positive == other.positive and self.requirements == other.requirements
        )

    def __hash__(self) -> int:
        return self._hash

    def strictly_met_by(self, node: Requirements) -> bool:
        """Whether a node with these labels or requirements is selected; undefined labels are not assumed."""
        return (
            self.contradiction is None
            and all(key in node for key in self.positive)
            and node.intersects(self.requirements)
        )

    def strict_refusal(self, node: Requirements) -> str | None:
        """Why such a node is not selected, or None."""
        return self.refusal(node, frozenset(node.keys()), frozenset())

    def refusal(self, node: Requirements, defined: frozenset[str], well_known: frozenset[str]) -> str | None:
        """The contract text that says why a node or pool is not selected, or None where it is.

        Args:
            node: requirements of the node or pool.
            defined: keys that the node will really carry.
            well_known: keys that may be left open.
        """
        if self.contradiction is not None:
            key = self.contradiction
            return f"key {key}, the pod's own requirements on it exclude each other"
        undefined = sorted(key for key in self.positive if key not in defined and key not in well_known)
        if undefined:
            known = node.without(*(key for key in node.keys() if key not in defined))  # noqa: SIM118 - a set of requirements iterates over them, not over keys
            text = known.incompatibility(Requirements([self.requirements.get(undefined[0])]), well_known)
            return text or f'label "{undefined[0]}" does not have known values'
        return node.disjoint_keys(self.requirements)


NO_SELECTION: Final = Selection()


def preferred(pod: Pod) -> Selection:
    """What the pod wants: selector, heaviest preferred term and first required term together."""
    return Selection((*_selector(pod.spec), *_heaviest_preference(pod.spec), *_first_required(pod.spec)))


def required(pod: Pod) -> Selection:
    """What the pod insists on: selector and first required term."""
    return Selection((*_selector(pod.spec), *_first_required(pod.spec)))


def required_alternatives(pod: Pod) -> tuple[Selection, ...]:
    """The selector with each required term: one of these must hold."""
    selector = _selector(pod.spec)
    terms = required_terms(pod.spec)
    if not terms:
        return (Selection(selector) if selector else NO_SELECTION,)
    return tuple(Selection((*selector, *term_requirements(term))) for term in terms)


def required_terms(spec: PodSpec) -> tuple[NodeSelectorTerm, ...]:
    """Required node affinity terms, of which one must hold."""
    affinity = _node_affinity(spec)
    selector = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return selector.node_selector_terms if selector is not None else ()


def term_requirements(term: NodeSelectorTerm) -> tuple[Requirement, ...]:
    """The expressions of a term; ``matchFields`` is refused by validation and never read."""
    return tuple(item for expression in term.match_expressions for item in read(expression))


def read(expression: NodeSelectorRequirement) -> tuple[Requirement, ...]:
    """An expression as written by a user: one that cannot be read is a contradiction, met by no node."""
    try:
        return (from_spec(expression),)
    except RequirementError:
        return (exists(expression.key), Requirement(expression.key))


def _node_affinity(spec: PodSpec) -> NodeAffinity | None:
    return spec.affinity.node_affinity if spec.affinity is not None else None


def _selector(spec: PodSpec) -> tuple[Requirement, ...]:
    return tuple(one_of(key, value) for key, value in spec.node_selector.items())


def _first_required(spec: PodSpec) -> tuple[Requirement, ...]:
    terms = required_terms(spec)
    return term_requirements(terms[0]) if terms else ()


def _heaviest_preference(spec: PodSpec) -> tuple[Requirement, ...]:
    affinity = _node_affinity(spec)
    terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity is not None else ()
    if not terms:
        return ()
    return term_requirements(max(terms, key=lambda term: term.weight).preference)
