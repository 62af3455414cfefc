"""What evaluations cost, what they may cost, and what Kubernetes estimates them at."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.cel import DYN, CostLimitExceededError, Environment, EvaluationError
from karpenter_linode.cel.declarations import UNBOUNDED

A, C = 'device.attributes["dra.example.com"]', 'device.capacity["dra.example.com"]'
TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
DEEP = "int('1'.find('[0-9]*')) < 100"
for name in "abcdefg":
    DEEP = f"{TEN}.all({name}, {DEEP})"


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("true", 0),
        ('"dra.example.com" in device.attributes', 3),
        ('device.driver == ""', 2),
        ('device.driver == "dra.example.com"', 4),
        ("device.allowMultipleAllocations == true", 3),
        (f"{A}.name", 4),
        (f'{A}["name"]', 4),
        (f"{A}.name > 0", 5),
        (f'{A}.name == "fish"', 5),
        (f'{A}.name.isGreaterThan(semver("0.0.1"))', 6),
        (f'{A}.name.isGreaterThan(semver("v0.0.1", true)) && isSemver("v1.0.0", true)', 7),
        (f'{C}.name.isGreaterThan(quantity("1Ki"))', 6),
        (f'"name" in {C} && {C}.name.isGreaterThan(quantity("1Ki"))', 10),
        (f'!("name" in {C}) || {C}.name.isGreaterThan(quantity("1Ki"))', 11),
        (f"{A}.a && {A}.b && {A}.c", 12),
        (f"cel.bind(dra, {A}, dra.name)", 15),
        ('device.attributes.exists_one(x, x == "dra.example.com")', 164),
        (f'{A}.exists_one(x, x == "services")', 133),
        (f'{A}.services.split("example").size() >= 2', 19),
        (f'{A}.services.matches("[^a]?sym")', 18),
        (f"{A}.names.size() == 2", 6),
        (f"{A}.name.exists(x, x > 0)", 5 + 6 * 64),
        (f'{A}.names.all(x, x != "")', 5 + 4 * 64),
        (f"1 in {A}.names", 4 + 64),
        (DEEP, 85_555_551),
    ],
    ids=lambda each: str(each)[:50],
)
def test_estimates_are_those_of_kubernetes(text: str, most: int, device_environment: Any) -> None:
    assert device_environment.compile(text).estimate[1] == most


def test_what_is_not_known_to_be_bounded_has_no_bound() -> None:
    assert Environment({"x": DYN}).compile("x.all(y, y)").estimate == (2, UNBOUNDED)


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("true", 0),
        ("device.driver == 'gpu.acme.io'", 4),
        ("device.driver == 'x'", 3),
        ("device.attributes['gpu.acme.io'].ecc", 4),
        ("device.attributes['gpu.acme.io'].sms >= 100", 5),
        ("'gpu.acme.io' in device.attributes", 3),
        ("has(device.attributes['gpu.acme.io'].ecc)", 3),
        ("device.capacity['gpu.acme.io'].memory.isGreaterThan(quantity('1Ki'))", 6),
        ("device.attributes['gpu.acme.io'].fw.isGreaterThan(semver('0.0.1'))", 6),
        ("'xx'.matches('x+')", 1),
        ("[1, 2, 3].exists(x, x == 3)", 1 + 3 * (4 + 2)),
        ("cel.bind(d, device.driver, d == d)", 2 + 2 + 2),
        ("false && device.driver == 'x'", 0),
        ("device.driver in ['a', 'b', 'c']", 2),
    ],
)
def test_evaluations_are_charged(text: str, cost: int, device_environment: Any, device_variables: Any) -> None:
    assert device_environment.compile(text).evaluate_counted(device_variables)[1] == cost


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        (f"{A}.none == 1 || true", 5),  # the comparison is charged although its operand failed
        (f"{A}.none.substring(1, 2) == '' || true", 4),  # the call is not: what is behind the failure is left out
        (f"{A}.none.matches('x') || true", 4),
        (f"{A}.none.contains('x') || true", 5),
        ("[1, 0, 2].map(x, 2 / x) == [] || true", 43),  # loops go on behind an error
        ("[1, 0, 2].transformMap(i, x, 2 / x) == {} || true", 12),
        ("[1, 0, 2].exists_one(x, 2 / x == 1) || true", 13),
        ("cel.bind(x, 1 / 0, true)", 0),  # never read, never computed
        ("optional.of(1).orValue(1 / 0) == 1", 2),
        ("device.attributes[device.driver].ecc || true", 5),  # a key costs its steps, not its reading
        ("(true ? device.driver : '') == ''", 1),  # and so does a branch
        ("[[1], [2]].flatten() == [1, 2]", 14),
        ("['b', 'a'].sort() == ['a', 'b']", 20),
        ("dyn('b') < dyn('a' + 'aaaaaaaaaaaaaaaaaaaa')", 5),  # no sizes where the overload is unknown
    ],
)
def test_what_fails_or_is_left_out_is_charged_as_in_kubernetes(
    text: str, cost: int, device_environment: Any, device_variables: Any
) -> None:
    text = text.replace("dra.example.com", "gpu.acme.io")
    assert device_environment.compile(text).evaluate_counted(device_variables)[1] == cost


@pytest.mark.parametrize(
    "text", ["device.attributes['gpu.acme.io'].sms.distinct() == [] || true", "[1].sortBy(x, x / 0) == [] || true"]
)
def test_what_kube_scheduler_gives_up_on_is_not_absorbed(
    text: str, device_environment: Any, device_variables: Any
) -> None:
    with pytest.raises(EvaluationError, match="internal error"):
        device_environment.compile(text).evaluate(device_variables)


def test_folding_makes_nothing_cheaper(device_environment: Any, device_variables: Any) -> None:
    text = "device.capacity['gpu.acme.io'].memory.isGreaterThan(quantity({}))"
    costs = [
        device_environment.compile(text.format(amount)).evaluate_counted(device_variables)[1]
        for amount in ("'1000000000000000'", "'10000000' + '00000000'")
    ]
    assert costs == [7, 9]  # the second is charged for its concatenation too


def test_the_limit_is_exact(device_environment: Any, device_variables: Any) -> None:
    program = device_environment.compile("device.driver == 'gpu.acme.io' && [1, 2, 3].all(x, x > 0)")
    _, cost = program.evaluate_counted(device_variables)
    assert program.evaluate(device_variables, cost_limit=cost) is True
    with pytest.raises(CostLimitExceededError):
        program.evaluate(device_variables, cost_limit=cost - 1)


def test_an_error_behind_the_limit_is_the_limit() -> None:
    program = Environment({}).compile("[1, 2].map(x, x)[5] == 1")
    with pytest.raises(EvaluationError, match="index out of bounds"):
        program.evaluate({})
    with pytest.raises(CostLimitExceededError):
        program.evaluate({}, cost_limit=20)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "lists.range(10000000000).size() > 0",
        "lists.range(2000).map(a, lists.range(2000)).size() > 0",
        "lists.range(30000).distinct().size() > 0",
        "sets.contains(lists.range(5000), lists.range(5000))",
        "lists.range(900000).map(x, 'xxxxxxxxxxxxxxxx').join('y').size() > 0",
        "lists.range(100000).map(x, [x]).flatten().flatten(3).size() > 0",
        "S.replace('x', S) == ''",
        "S.matches(S)",
        "(S + S).contains(S + S)",
        "S.split('').join(S) == ''",
    ],
)
def test_work_is_charged_before_it_is_done(text: str) -> None:
    program = Environment({"S": DYN}).compile(text)
    with pytest.raises(EvaluationError) as caught:
        program.evaluate({"S": "x" * 1_000_000}, cost_limit=1_000_000)
    assert isinstance(caught.value, CostLimitExceededError)


@pytest.mark.timeout(20)
def test_doubling_texts_and_lists_end_at_the_limit() -> None:
    for start in ("'xy'", "[1, 2]"):
        text = start
        for index in range(60):
            text = f"cel.bind(v{index}, {text}, v{index} + v{index})"
        with pytest.raises(CostLimitExceededError):
            Environment({}).compile(f"{text}.size() > 0").evaluate({})


def test_a_missing_variable_is_an_error_only_where_it_is_read() -> None:
    environment = Environment({"x": DYN, "y": DYN})
    assert environment.compile("x == 1").evaluate({"x": 1}) is True
    with pytest.raises(EvaluationError, match="no value given for the variable 'y'"):
        environment.compile("y == 1").evaluate({"x": 1})
