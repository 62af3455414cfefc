"""The requirement algebra (spec/karpenter-scheduling.md 3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpenter_linode.model import labels
from karpenter_linode.model.requirement import Requirement, RequirementError, one_of, requirement
from karpenter_linode.model.requirements import Requirements

KEY = "example.com/key"
ZONE = labels.ZONE


def requirements(*items: Requirement) -> Requirements:
    return Requirements(items)


UNCONSTRAINED: Requirement | None = None
EXISTS = requirement(ZONE, "Exists")
ABSENT = requirement(ZONE, "DoesNotExist")
IN_A = requirement(ZONE, "In", ("A",))
IN_B = requirement(ZONE, "In", ("B",))
IN_AB = requirement(ZONE, "In", ("A", "B"))
NOT_A = requirement(ZONE, "NotIn", ("A",))
IN_1 = requirement(ZONE, "In", ("1",))
IN_9 = requirement(ZONE, "In", ("9",))
GTE_5 = requirement(ZONE, "Gte", ("5",))
LT_5 = requirement(ZONE, "Lt", ("5",))
ALL = {
    "unconstrained": None,
    "Exists": EXISTS,
    "DoesNotExist": ABSENT,
    "In[A]": IN_A,
    "In[B]": IN_B,
    "In[AB]": IN_AB,
    "NotIn[A]": NOT_A,
    "In[1]": IN_1,
    "In[9]": IN_9,
    ">=5": GTE_5,
    "<5": LT_5,
}
# spec 3.4, truth facts: what each row refuses when a well-known key may be undefined
REFUSES = {
    "unconstrained": set(),
    "Exists": {"DoesNotExist"},
    "DoesNotExist": {"Exists", "In[A]", "In[B]", "In[AB]", "In[1]", "In[9]", ">=5", "<5"},
    "In[A]": {"DoesNotExist", "In[B]", "NotIn[A]", "In[1]", "In[9]", ">=5", "<5"},
    "NotIn[A]": {"In[A]"},
    ">=5": {"DoesNotExist", "In[A]", "In[B]", "In[AB]", "In[1]", "<5"},
    "<5": {"DoesNotExist", "In[A]", "In[B]", "In[AB]", "In[9]", ">=5"},
}


@pytest.mark.parametrize("row", REFUSES)
@pytest.mark.parametrize("column", ALL)
def test_compatibility_where_a_well_known_key_may_be_undefined(row: str, column: str) -> None:
    mine, theirs = ALL[row], ALL[column]
    left = requirements(mine) if mine else requirements()
    right = requirements(theirs) if theirs else requirements()
    refused = column in REFUSES[row]
    assert left.compatible(right, labels.WELL_KNOWN) is not refused
    assert (left.incompatibility(right, labels.WELL_KNOWN) is not None) is refused


@pytest.mark.parametrize("column", ALL)
def test_strictly_an_undefined_key_meets_only_negative_requirements(column: str) -> None:
    theirs = ALL[column]
    right = requirements(theirs) if theirs else requirements()
    expected = column in {"unconstrained", "DoesNotExist", "NotIn[A]"}
    assert requirements().compatible(right) is expected


def test_texts_are_the_contract() -> None:
    pool = requirements(one_of(labels.INSTANCE_TYPE, "a", "b"))
    pod = requirements(one_of(labels.INSTANCE_TYPE, "c"))
    assert pool.incompatibility(pod) == (
        "key node.kubernetes.io/instance-type, node.kubernetes.io/instance-type In [c]"
        " not in node.kubernetes.io/instance-type In [a b]"
    )
    assert requirements().incompatibility(requirements(one_of("zone", "a")), labels.WELL_KNOWN) == (
        'label "zone" does not have known values (typo of "topology.kubernetes.io/zone"?)'
    )


def test_rendering() -> None:
    many = requirement(KEY, "In", tuple("gfedcba"))
    assert str(many) == f"{KEY} In [a b c d e and 2 others]"
    assert str(requirement(KEY, "Gt", ("4",))) == f"{KEY} Exists >=5"
    assert str(requirement(KEY, "In", ("a",), 2)) == f"{KEY} In [a] minValues 2"
    hidden = requirements(one_of(labels.HOSTNAME, "h"), one_of("b", "1"), one_of("a", "1"))
    assert str(hidden) == "a In [1], b In [1]"


def test_bounds() -> None:
    both = requirement(KEY, "Gte", ("2",)).intersection(requirement(KEY, "Lte", ("4",)))
    assert [both.has(text) for text in ("1", "2", "4", "5", "x")] == [False, True, True, False, False]
    assert [(spec.operator, spec.values) for spec in both.specs()] == [("Gte", ("2",)), ("Lte", ("4",))]
    assert both.intersection(requirement(KEY, "Gt", ("4",))).operator == "DoesNotExist"
    assert both.intersection(one_of(KEY, "3", "9")) == one_of(KEY, "3")
    assert requirement(KEY, "Gt", (str(2**63 - 1),)).operator == "DoesNotExist"


def test_aliases_are_normalised() -> None:
    assert one_of("beta.kubernetes.io/arch", "amd64") == one_of(labels.ARCH, "amd64")


def test_an_empty_list_of_values_does_not_exist() -> None:
    assert requirement(KEY, "In", ()) == requirement(KEY, "DoesNotExist")


@pytest.mark.parametrize(
    ("operator", "values"), [("Gt", ()), ("Lt", ("a",)), ("Gte", ("1", "2")), ("Near", ("1",)), ("gt", ("1",))]
)
def test_what_cannot_be_read_names_key_and_operator(operator: str, values: tuple[str, ...]) -> None:
    with pytest.raises(RequirementError, match=f"{KEY}.*{operator}"):
        requirement(KEY, operator, values)


def test_min_values_take_the_greater() -> None:
    merged = requirements(requirement(KEY, "In", ("a", "b"), 1)).add(requirement(KEY, "In", ("a", "b"), 2))
    assert merged.get(KEY).min_values == 2


ITEM = st.one_of(
    st.builds(
        lambda values, complement: Requirement(KEY, frozenset(values), complement=complement),
        st.sets(st.sampled_from(["1", "2", "3", "7", "x"])),
        st.booleans(),
    ),
    st.builds(
        lambda gte, lte: Requirement(KEY, complement=True, gte=gte, lte=lte), st.integers(0, 8), st.integers(0, 8)
    ),
)
VALUES = ["0", "1", "2", "3", "5", "7", "9", "x", "y"]


@given(ITEM, ITEM)
def test_intersection_allows_exactly_what_both_allow(left: Requirement, right: Requirement) -> None:
    both = left.intersection(right)
    assert [both.has(value) for value in VALUES] == [left.has(value) and right.has(value) for value in VALUES]


@given(ITEM, ITEM, ITEM)
def test_intersection_is_commutative_associative_and_idempotent(a: Requirement, b: Requirement, c: Requirement) -> None:
    assert a.intersection(b) == b.intersection(a)
    assert a.intersection(a).intersection(a) == a.intersection(a)
    left, right = a.intersection(b).intersection(c), a.intersection(b.intersection(c))
    assert [left.has(value) for value in VALUES] == [right.has(value) for value in VALUES]


@given(ITEM, ITEM)
def test_the_cheap_test_never_denies_a_common_value(left: Requirement, right: Requirement) -> None:
    if any(left.has(value) and right.has(value) for value in VALUES):
        assert left.intersects(right)
    assert left.intersects(right) == right.intersects(left)


@given(ITEM)
def test_the_written_form_reads_back(item: Requirement) -> None:
    back = Requirements.from_specs(item.specs()).get(KEY)
    bounded = item.gte is not None or item.lte is not None
    if not bounded:
        assert back == item
    elif item.gte is not None and item.lte is not None and item.gte > item.lte:
        assert back.operator == "DoesNotExist"
    else:
        assert (back.gte, back.lte) == (item.gte, item.lte)


def test_endless_numbers_are_no_integers() -> None:
    endless = "9" * 5000
    with pytest.raises(RequirementError, match="single positive integer"):
        requirement(KEY, "Gt", (endless,))
    assert not requirement(KEY, "Gt", ("5",)).has(endless)
    assert not requirement(KEY, "Gt", ("5",)).has(str(2**63))
    assert requirement(KEY, "Gt", ("5",)).has(str(2**63 - 1))
