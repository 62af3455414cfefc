"""Reason trees in text and as data."""

from __future__ import annotations

from karpenter_linode.explain.reasons import headline, reason_data, reason_lines
from karpenter_linode.model.reason import Reason

LEAF = Reason(
    "dra-too-few", "predicts 1 device, 2 asked", subject="plan a1-s", facts=(("predicted", "1"), ("asked", "2"))
)


def text(reason: Reason) -> str:
    return "\n".join(line.text for line in reason_lines(reason))


def test_a_leaf_is_one_line_and_facts_that_the_message_says_are_not_repeated() -> None:
    assert text(LEAF) == "plan a1-s: predicts 1 device, 2 asked"


def test_facts_that_the_message_does_not_say_follow_in_parentheses() -> None:
    assert (
        headline(Reason("limits", "limit reached", facts=(("limit", "16"), ("used", "")))) == "limit reached (limit 16)"
    )


def test_a_subject_that_begins_the_message_is_not_repeated() -> None:
    assert headline(Reason("x", "plan a is sold out", subject="plan a")) == "plan a is sold out"


def test_children_hang_on_branches() -> None:
    deep = Reason(
        "a", "top", children=(Reason("b", "first", children=(LEAF,)), Reason("c", "second", children=(LEAF,)))
    )
    assert text(deep).splitlines() == [
        "top",
        "├─ first",
        "│  └─ plan a1-s: predicts 1 device, 2 asked",
        "└─ second",
        "   └─ plan a1-s: predicts 1 device, 2 asked",
    ]


def test_brothers_that_say_the_same_are_told_once_with_their_names() -> None:
    brothers = [Reason("no-gpu", "has no GPU", subject=f"plan p{n}") for n in range(9)]
    tree = Reason("top", "top", children=(*brothers, LEAF))
    assert text(tree).splitlines() == [
        "top",
        "├─ 9 plans p0, p1, p2, p3, p4 and 4 others: has no GPU",
        "└─ plan a1-s: predicts 1 device, 2 asked",
    ]


def test_brothers_of_different_kinds_keep_their_whole_names() -> None:
    tree = Reason("t", "t", children=(Reason("x", "no", subject="plan a"), Reason("x", "no", subject="node b")))
    assert text(tree).splitlines() == ["t", "└─ plan a, node b: no"]


def test_data_leaves_out_what_is_empty() -> None:
    assert reason_data(Reason("a", "m", children=(LEAF,))) == {
        "code": "a",
        "message": "m",
        "children": [
            {
                "code": "dra-too-few",
                "message": "predicts 1 device, 2 asked",
                "subject": "plan a1-s",
                "facts": {"predicted": "1", "asked": "2"},
            }
        ],
    }


def test_a_child_that_repeats_its_parents_message_only_says_who_it_is_about() -> None:
    tree = Reason("t", "too small", children=(Reason("t", "too small", subject="NodePool a", children=(LEAF,)),))
    assert text(tree).splitlines() == [
        "too small",
        "└─ NodePool a",
        "   └─ plan a1-s: predicts 1 device, 2 asked",
    ]


def test_the_end_of_the_parents_message_counts_as_repeated_too() -> None:
    tree = Reason("t", "allocating, too small", children=(Reason("t", "too small", "NodePool a", children=(LEAF,)),))
    assert text(tree).splitlines()[1] == "└─ NodePool a"


def test_a_child_that_has_nothing_to_add_says_so() -> None:
    tree = Reason(
        "taints", "did not tolerate taint", children=(Reason("taints", "did not tolerate taint", "NodePool a"),)
    )
    assert text(tree).splitlines()[1] == "└─ NodePool a: this is the only reason"


def test_hints_stand_below_everything_else_and_are_all_in_the_data() -> None:
    hints = (("hint", "memory >= 20475Mi would match 9 plans: a"), ("hint", "without x the claims would fit"))
    tree = Reason("t", "top", facts=(*hints, ("asked", "1")), children=(LEAF,))
    assert text(tree).splitlines() == [
        "top (asked 1)",
        "├─ plan a1-s: predicts 1 device, 2 asked",
        "├─ hint: memory >= 20475Mi would match 9 plans: a",
        "└─ hint: without x the claims would fit",
    ]
    data = reason_data(tree)
    assert data["facts"] == {"asked": "1"}
    assert data["hints"] == [line for _, line in hints]


def test_the_place_of_a_selector_follows_without_a_name() -> None:
    reason = Reason("dra-selector", "memory is false", facts=(("selector", "request gpu, selector 1 of 2"),))
    assert headline(reason) == "memory is false (request gpu, selector 1 of 2)"


def test_a_node_claim_that_was_only_tried_is_not_named() -> None:
    assert (
        headline(Reason("x", "too small", subject="NodeClaim hostname-placeholder-0001"))
        == "a new NodeClaim: too small"
    )


def test_a_number_inside_another_number_does_not_count_as_said() -> None:
    assert headline(Reason("x", "16 asked", facts=(("left", "6"),))) == "16 asked (left 6)"


def test_a_new_node_claim_has_no_name_for_machines_either() -> None:
    assert reason_data(Reason("x", "y", subject="NodeClaim hostname-placeholder-0001"))["subject"] == "a new NodeClaim"


def test_requirements_and_resources_of_contract_texts_are_for_machines() -> None:
    text = 'no instance type has enough resources, requirements=a In [b], resources={"cpu":"1"}'
    reason = Reason("instance-types", text, subject="NodePool gpu")
    assert headline(reason) == "NodePool gpu: no instance type has enough resources"
    assert reason_data(reason)["message"] == text
