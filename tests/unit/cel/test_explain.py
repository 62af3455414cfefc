"""Explanations: each clause of the top-level chain, how it came out, and what it saw."""

from __future__ import annotations

from typing import Any

from karpenter_linode.cel import DYN, Environment
from karpenter_linode.cel.render import render
from karpenter_linode.cel.values import NONE, Duration, Optional, Timestamp, UInt
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.semver import SemVer


def test_names_the_false_clause_and_the_value_seen(device_environment: Any, device_variables: Any) -> None:
    text = (
        "device.driver == 'gpu.acme.io' &&\n"
        "  'memory' in device.capacity['gpu.acme.io'] &&\n"
        "  device.capacity['gpu.acme.io'].memory.compareTo(quantity('96Gi')) >= 0 &&\n"
        "  device.attributes['gpu.acme.io'].numa == 0"
    )
    clauses = device_environment.compile(text).explain(device_variables)
    assert [clause.outcome for clause in clauses] == ["true", "true", "false", "error"]
    assert clauses[0].text == "device.driver == 'gpu.acme.io'"
    assert clauses[0].observed == (("device.driver", '"gpu.acme.io"'),)
    assert clauses[1].observed == (("device.capacity['gpu.acme.io']", '{"memory": 80Gi, "lanes": 16}'),)
    assert clauses[2].text == "device.capacity['gpu.acme.io'].memory.compareTo(quantity('96Gi')) >= 0"
    assert clauses[2].observed == (("device.capacity['gpu.acme.io'].memory", "80Gi"),)
    assert clauses[3].error == "no such key: numa"
    assert clauses[3].observed == (("device.attributes['gpu.acme.io'].numa", "no such key: numa"),)
    assert [text[clause.position :].startswith(clause.text) for clause in clauses] == [True] * 4


def test_an_or_stays_one_clause_and_brackets_are_seen_through() -> None:
    program = Environment({"x": DYN}).compile("(x.a == 1 && x.b == 2) && (x.c || x.a == 1)")
    clauses = program.explain({"x": {"a": 1, "b": 3, "c": False}})
    assert [(clause.text, clause.outcome) for clause in clauses] == [
        ("x.a == 1", "true"),
        ("x.b == 2", "false"),
        ("(x.c || x.a == 1)", "true"),
    ]
    assert clauses[2].observed == (("x.c", "false"), ("x.a", "1"))


def test_a_clause_that_is_no_bool_is_an_error_of_its_own() -> None:
    (clause,) = Environment({"x": DYN}).compile("x.a").explain({"x": {"a": "yes"}})
    assert (clause.outcome, clause.error) == ("error", "CEL result of type string could not be converted to bool")


def test_parts_that_stand_on_macro_variables_are_left_out() -> None:
    program = Environment({"x": DYN}).compile("x.items.exists(i, i.size > x.least)")
    (clause,) = program.explain({"x": {"items": [{"size": 3}], "least": 2}})
    assert clause.outcome == "true"
    assert clause.observed == (("x.items", '[{"size": 3}]'),)


def test_values_are_written_as_people_read_them() -> None:
    shown = {
        render(each)
        for each in (None, True, 5, UInt(5), 1.5, 'a"b', b"x", Quantity.parse("20475Mi"), SemVer.parse("1.2.3-rc.1"))
    }
    assert shown == {"null", "true", "5", "5u", "1.5", r'"a\"b"', "b'x'", "20475Mi", "1.2.3-rc.1"}
    assert render([Optional(1), NONE, Duration(1_500_000_000), Timestamp(0)]) == (
        "[optional(1), none, 1.5s, 1970-01-01T00:00:00Z]"
    )
    assert len(render(["x" * 50] * 50)) == 120


def test_parts_are_told_with_value_depth_and_cost(device_environment: Any, device_variables: Any) -> None:
    text = "device.driver == 'x' && device.capacity['gpu.acme.io'].memory.compareTo(quantity('96Gi')) >= 0"
    parts = device_environment.compile(text).parts(device_variables)
    assert [(part.depth, part.text, part.value, part.cost) for part in parts] == [
        (0, "device.driver == 'x'", "false", 3),
        (1, "device.driver", '"gpu.acme.io"', 2),
        (0, "device.capacity['gpu.acme.io'].memory.compareTo(quantity('96Gi')) >= 0", "false", 7),
        (1, "device.capacity['gpu.acme.io'].memory.compareTo(quantity('96Gi'))", "-1", 6),
        (2, "device.capacity['gpu.acme.io'].memory", "80Gi", 4),
    ]
    assert [text[part.position :].startswith(part.text) for part in parts] == [True] * 5


def test_a_part_that_fails_or_costs_too_much_says_so() -> None:
    program = Environment({"x": DYN}).compile("x.a == 1 || x.all(k, k != '')")
    whole, left, *_ = program.parts({"x": {"b": 1}})
    assert (whole.value, whole.error) == ("true", "")
    assert (left.value, left.error) == ("", "no such key: a")
    [over, *_] = program.parts({"x": {"b": 1}}, cost_limit=1)
    assert over.error == "operation cancelled: actual cost limit exceeded"


def test_a_constant_expression_is_its_own_part() -> None:
    assert [part.text for part in Environment({"x": DYN}).compile("true").parts({})] == ["true"]
