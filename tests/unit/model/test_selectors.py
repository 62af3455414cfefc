"""Label selectors and node selector terms."""

import pytest

from karpenter_linode.model.core import NodeSelectorTerm
from karpenter_linode.model.meta import LabelSelector
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
from karpenter_linode.model.selectors import expression_holds, selects, term_holds

LABELS = {"app": "web", "size": "5"}


def test_nil_selects_nothing_and_empty_selects_everything() -> None:
    assert not selects(None, LABELS)
    assert selects(LabelSelector(), LABELS)
    assert selects(LabelSelector(), {})


@pytest.mark.parametrize(
    ("operator", "values", "present", "absent"),
    [
        ("In", ("web",), True, False),
        ("In", ("db",), False, False),
        ("NotIn", ("web",), False, True),
        ("NotIn", ("db",), True, True),
        ("Exists", (), True, False),
        ("DoesNotExist", (), False, True),
        ("Bogus", ("web",), False, False),
    ],
)
def test_operators(operator: str, values: tuple[str, ...], present: bool, absent: bool) -> None:
    assert expression_holds(NodeSelectorRequirement("app", operator, values), LABELS) is present
    assert expression_holds(NodeSelectorRequirement("other", operator, values), LABELS) is absent


def test_numbers_compare_as_numbers() -> None:
    assert expression_holds(NodeSelectorRequirement("size", "Gt", ("4",)), LABELS)
    assert not expression_holds(NodeSelectorRequirement("size", "Lt", ("5",)), LABELS)
    assert not expression_holds(NodeSelectorRequirement("app", "Gt", ("4",)), LABELS)


def test_an_invalid_selector_selects_nothing() -> None:
    assert not selects(LabelSelector(match_expressions=(NodeSelectorRequirement("app", "Bogus"),)), LABELS)


def test_a_term_with_nothing_in_it_never_holds_and_fields_name_the_node() -> None:
    assert not term_holds(NodeSelectorTerm(), LABELS, "node-1")
    named = NodeSelectorTerm(match_fields=(NodeSelectorRequirement("metadata.name", "In", ("node-1",)),))
    assert term_holds(named, LABELS, "node-1")
    assert not term_holds(named, LABELS, "node-2")
