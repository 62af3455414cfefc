"""Which pods a topology term counts: a label selector in normal form, and namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from karpenter_linode.model.meta import LabelSelector
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
from karpenter_linode.model.selectors import selects

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from karpenter_linode.model.core import PodAffinityTerm
    from karpenter_linode.scheduling.shape import LabelClass


class PodSelector(Struct, frozen=True):
    """Namespaces and a selector; equal ones are equal values, however they were written.

    Args:
        namespaces: where pods are looked for.
        labels: ``matchLabels``, sorted.
        expressions: ``matchExpressions``, sorted, each once.
        nothing: no selector was given: no pod is selected (an empty selector selects all).
    """

    namespaces: tuple[str, ...]
    labels: tuple[tuple[str, str], ...] = ()
    expressions: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    nothing: bool = False

    def selects(self, pods: LabelClass) -> bool:
        """Whether pods with this namespace and these labels are selected; an unreadable selector selects nothing."""
        if self.nothing or pods.namespace not in self.namespaces:
            return False
        expressions = tuple(NodeSelectorRequirement(*expression) for expression in self.expressions)
        return selects(LabelSelector(dict(self.labels), expressions), pods.labels)


def pod_selector(
    namespaces: Iterable[str],
    selector: LabelSelector | None,
    pod_labels: Mapping[str, str],
    match_keys: Iterable[str] = (),
    mismatch_keys: Iterable[str] = (),
) -> PodSelector:
    """The normal form of a selector with ``matchLabelKeys`` and ``mismatchLabelKeys`` written out.

    The API server writes such keys into the selector as well; an expression that is there twice counts once.
    """
    spaces = tuple(sorted(set(namespaces)))
    if selector is None:
        return PodSelector(spaces, nothing=True)
    expressions = {(item.key, item.operator, tuple(sorted(item.values))) for item in selector.match_expressions}
    expressions |= {(key, "In", (pod_labels[key],)) for key in match_keys if key in pod_labels}
    expressions |= {(key, "NotIn", (pod_labels[key],)) for key in mismatch_keys if key in pod_labels}
    return PodSelector(spaces, tuple(sorted(selector.match_labels.items())), tuple(sorted(expressions)))


def term_namespaces(term: PodAffinityTerm, own: str, namespaces: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """The namespaces of an affinity term: its list and those its selector picks; the pod's own when it has neither.

    Args:
        term: the term.
        own: the pod's namespace.
        namespaces: labels of every namespace, by name.
    """
    if term.namespace_selector is None:
        return term.namespaces or (own,)
    picked = (name for name, values in namespaces.items() if selects(term.namespace_selector, values))
    return tuple(sorted({*term.namespaces, *picked}))
