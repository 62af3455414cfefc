"""Label selectors and node selector terms against labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.model.requirement import RequirementError, from_spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from karpenter_linode.model.core import NodeSelectorTerm
    from karpenter_linode.model.meta import LabelSelector
    from karpenter_linode.model.requirement_spec import NodeSelectorRequirement


def selects(selector: LabelSelector | None, values: Mapping[str, str]) -> bool:
    """Whether a selector picks these labels: nil picks nothing, an empty one everything, an invalid one nothing."""
    if selector is None:
        return False
    if any(values.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(expression_holds(expression, values) for expression in selector.match_expressions)


def term_holds(term: NodeSelectorTerm, values: Mapping[str, str], node_name: str) -> bool:
    """Whether a node selector term holds for a node. A term with nothing in it never holds, as in Kubernetes."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node_name}
    return all(expression_holds(expression, values) for expression in term.match_expressions) and all(
        expression_holds(expression, fields) for expression in term.match_fields
    )


def expression_holds(expression: NodeSelectorRequirement, values: Mapping[str, str]) -> bool:
    """Whether one expression holds for a set of labels; an unreadable expression never holds."""
    value = values.get(expression.key)
    if value is None:
        return expression.operator in {"NotIn", "DoesNotExist"}
    try:
        return from_spec(expression).has(value) and expression.operator != "DoesNotExist"
    except RequirementError:
        return False
