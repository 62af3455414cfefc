"""Errors inside logic and macros: what absorbs them, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.cel import CompileError, CostLimitExceededError, Environment, EvaluationError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 / 0 == 1 && false", False),
        ("false && 1 / 0 == 1", False),
        ("1 / 0 == 1 || true", True),
        ("true || 1 / 0 == 1", True),
        ("1 / 0 == 1 && true && false", False),
        ("dyn(1) || true", True),
        ("dyn('x') && false", False),
        ("[0, 2].exists(x, 2 / x == 1)", True),
        ("[0, 2].all(x, 2 / x > 1)", False),
        ("[2, 0].all(x, 2 / x > 1)", False),
        ("cel.bind(x, 1 / 0, true || x == 1)", True),
        ("[].all(x, 1 / 0 == 1)", True),
        ("[].exists(x, true)", False),
        ("[1, 2, 1].exists_one(x, x == 2)", True),
        ("true ? true : 1 / 0 == 1", True),
        ("!(1 / 0 == 1 && false)", True),
    ],
)
def test_comes_out(text: str, expected: Any, value: Any) -> None:
    assert value(text) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0 == 1 && true", "division by zero"),
        ("true && 1 / 0 == 1", "division by zero"),
        ("1 / 0 == 1 || 1 % 0 == 1", "division by zero"),
        ("1 / 0 == 1 ? true : true", "division by zero"),
        ("!(1 / 0 == 1)", "division by zero"),
        ("dyn(1) && true", "no such overload"),
        ("dyn(1) ? true : false", "no such overload"),
        ("[0, 1].all(x, 1 / x > 0)", "division by zero"),
        ("[0, 2].exists(x, 1 / x > 0)", "division by zero"),
        ("[0, 1].exists_one(x, 1 / x > 0)", "division by zero"),
        ("[0, 1].map(x, 1 / x) == [1]", "division by zero"),
        ("[0, 1].filter(x, 1 / x > 0) == [1]", "division by zero"),
        ("cel.bind(x, 1 / 0, x == 1)", "division by zero"),
        ("dyn('abc').exists(c, true)", "got 'types.String', expected iterable type"),
        ("dyn([1]).all(x, dyn(x))", "no such overload"),
    ],
)
def test_fails(text: str, message: str, value: Any) -> None:
    with pytest.raises(EvaluationError, match=message):
        value(text)


def test_running_out_of_cost_is_absorbed_by_nothing() -> None:
    endless = "lists.range(1000).all(x, lists.range(1000).all(y, lists.range(1000).all(z, true)))"
    for text in (f"{endless} || true", f"true && ({endless} || true)", f"[1].exists(x, {endless} || true)"):
        with pytest.raises(CostLimitExceededError, match="actual cost limit exceeded"):
            Environment({}).compile(text).evaluate({})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 == 1.0", "CE"),
        ("dyn(1) == 1.0", True),
        ("dyn(1) == 1u", True),
        ("dyn(1u) < 1.5", True),
        ("dyn(true) == 1", False),
        ("dyn(1) == true", False),
        ("dyn('1') == 1", False),
        ("true in [dyn(1), dyn(0)]", False),
        ("{1: 'a'}[dyn(1.0)] == 'a'", True),
        ("dyn(true) in {1: 'a'}", False),
        ("{true: 1, false: 2}[true] == 1", True),
        ("{dyn(true): 1, dyn(1): 2}.size() == 2", True),
        ("dyn([1, 2.0]) == [1, 2]", True),
        ("dyn({'a': 1}) == {'a': 1.0}", True),
        ("dyn(double('NaN')) == double('NaN')", False),
        ("dyn(null) == dyn(0)", False),
        ("dyn('x') != dyn(quantity('1'))", True),
        ("dyn(quantity('1')) != dyn('x')", True),
        ("optional.of(1) == optional.of(1)", True),
        ("optional.none() == optional.none()", True),
        ("optional.of(dyn(null)) == optional.none()", False),
    ],
)
def test_equality_across_kinds(text: str, expected: Any) -> None:
    environment = Environment({}, homogeneous=False)
    try:
        assert environment.compile(text).evaluate({}) is expected
    except CompileError:
        assert expected == "CE"


@pytest.mark.parametrize(
    "text",
    [
        "dyn(quantity('1')) == dyn('1')",
        "dyn(semver('1.0.0')) == dyn('1.0.0')",
        "dyn(ip('::1')) == dyn('::1')",
        "quantity('5') == quantity('2').add(3)",
    ],
)
def test_some_kinds_on_the_left_refuse_others(text: str, value: Any) -> None:
    with pytest.raises(EvaluationError, match="no such overload"):
        value(text)


def test_a_version_is_not_looked_up_among_constant_texts(value: Any) -> None:
    with pytest.raises(EvaluationError):
        value("dyn(semver('1.0.0')) in ['1.0.0']")
    assert value("dyn(semver('1.0.0')) in [semver('1.0.0+b')]") is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9223372036854775807 + 1", "integer overflow"),
        ("-9223372036854775808 - 1", "integer overflow"),
        ("9223372036854775807 * 2", "integer overflow"),
        ("-(-9223372036854775808)", "integer overflow"),
        ("-9223372036854775808 / -1", "integer overflow"),
        ("-9223372036854775808 % -1", "integer overflow"),
        ("1u - 2u", "unsigned integer overflow"),
        ("18446744073709551615u + 1u", "unsigned integer overflow"),
        ("1 % 0", "modulus by zero"),
        ("double('NaN') < 1.0", "NaN values cannot be ordered"),
        ("dyn('a') < dyn(1)", "no such overload"),
        ("[1][1]", "index out of bounds: 1"),
        ("{'a': 1}['b']", "no such key: b"),
        ("{'a': 1}.b", "no such key: b"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('2s')", "timestamp overflow"),
        ("[1, 2].transformMapEntry(i, v, {'k': v})", "insert failed: key k already exists"),
    ],
)
def test_arithmetic_and_access_are_checked(text: str, message: str, value: Any) -> None:
    with pytest.raises(EvaluationError, match=message):
        value(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("-7 / 2", -3), ("-7 % 2", -1), ("7 % -2", 1), ("7.0 / 0.0", float("inf")), ("-7.0 / 0.0", float("-inf"))],
)
def test_division_goes_towards_zero(text: str, expected: Any, value: Any) -> None:
    assert value(text) == expected


@pytest.mark.parametrize("key", ["[1]", "{1: 2}", "b'a'", "null", "int", "duration('1s')", "dyn([dyn(1)])", "type(1)"])
def test_a_constant_that_can_be_no_key_is_an_error_before_any_evaluation(key: str, value: Any) -> None:
    with pytest.raises(CompileError, match="invalid qualifier type"):
        value(f"dyn({{1: 2}})[{key}]")
    with pytest.raises(EvaluationError):
        value("dyn({1: 2})[k]", k=[1])


def test_alternatives_of_optionals_are_computed_only_where_they_are_needed(value: Any) -> None:
    assert value("optional.of(1).orValue(1 / 0)") == 1
    assert value("optional.of(1).or(optional.of(1 / 0)).value()") == 1
    with pytest.raises(EvaluationError, match="division by zero"):
        value("optional.none().orValue(1 / 0)")
    with pytest.raises(EvaluationError, match="no such overload"):
        value("x.orValue(1)", x=1)


def test_of_equal_keys_the_last_one_counts(value: Any) -> None:
    assert value("{'a': 1, 'a': 2}.a") == 2
