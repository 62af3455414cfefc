"""Whatever an expression is: it compiles and evaluates or says why not, and it stays within its cost."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from karpenter_linode.cel import DYN, INT, STRING, CompileError, Environment, EvaluationError, Type, list_of, map_of
from karpenter_linode.cel.values import INT_MAX, INT_MIN

ENVIRONMENT = Environment({"x": INT, "items": list_of(INT), "any": DYN})
VALUES = {"x": 3, "items": [1, 2, 0], "any": {"a": "text", "b": [1, 2.5]}}

PIECES = st.sampled_from(
    [
        *(
            "x",
            "items",
            "any",
            ".a",
            "[0]",
            "[?'a']",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            "?",
            "&&",
            "||",
            "!",
            "-",
        ),
        *(
            "==",
            "<",
            " in ",
            "1",
            "2u",
            "1.5",
            "'s'",
            "b'x'",
            "r'\\d'",
            "has(any.a)",
            ".all(i, i > 0)",
            ".map(k, v, k)",
        ),
        *("quantity('1Gi')", "semver('1.0.0')", ".matches('a+')", ".size()", "cel.bind(y, x, ", "optional.none()"),
        *("\n", "// c", "'", '"""', "`", "\\", "\u00e9", "\x00", ".format([", "timestamp('", "int(", "9" * 30, "e5"),
        *("null", "+", "[x].sortBy(k, k)", ".optMap(o, o)", "{?'a': any.?a}", "Foo{a: 1}", ".first()"),
    ],
)

INTS = st.one_of(st.just("x"), st.integers(-5, 5).map(str), st.sampled_from([str(INT_MAX), str(INT_MIN)]))


def grown_ints(inner: Any) -> Any:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "%"]), inner).map(lambda each: f"({' '.join(each)})"),
        st.tuples(inner, inner).map(lambda each: f"({each[0]} > {each[1]} ? {each[0]} : {each[1]})"),
        inner.map(lambda each: f"cel.bind(y, {each}, y)"),
        st.tuples(inner, inner).map(lambda each: f"[{each[0]}, {each[1]}].max()"),
        inner.map(lambda each: f"items.map(i, i + {each}).size()"),
    )


NUMBERS = st.recursive(INTS, grown_ints, max_leaves=5)
COMPARISONS = st.tuples(NUMBERS, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), NUMBERS).map(" ".join)


def grown_bools(inner: Any) -> Any:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(lambda each: f"({' '.join(each)})"),
        inner.map(lambda each: f"!({each})"),
        inner.map(lambda each: f"items.exists(i, {each} && i > 1)"),
        inner.map(lambda each: f"items.all(i, {each} || 6 / i > 1)"),
    )


ATOMS = st.one_of(COMPARISONS, st.sampled_from(["true", "false", "any.a == 'text'", "any.z == 1"]))
BOOLS = st.recursive(ATOMS, grown_bools, max_leaves=6)


def outcome(text: str) -> bool | str:
    try:
        return bool(ENVIRONMENT.compile(text).evaluate(VALUES))
    except EvaluationError:
        return "error"


def compiled(text: str) -> Any:
    try:
        return ENVIRONMENT.compile(text, result=None)
    except CompileError as error:
        return error


@given(st.lists(PIECES, max_size=25).map("".join))
@example("[" * 300)
@example("'\\ud800'")
@example("has(x.y.z")
def test_any_text_compiles_or_says_where_it_does_not(text: str) -> None:
    program = compiled(text)
    if isinstance(program, CompileError):
        assert 0 <= program.offset <= len(text)
        assert program.render().count("\n") == 2
        return
    with contextlib.suppress(EvaluationError):
        program.evaluate(VALUES, cost_limit=10_000)
    for clause in program.explain(VALUES, cost_limit=10_000):
        assert clause.text in text
        assert bool(clause.error) == (clause.outcome == "error")
    parts = program.parts(VALUES, cost_limit=10_000)
    assert parts[0].depth == 0
    assert all(part.text in text and bool(part.error) != bool(part.value) for part in parts)


@given(BOOLS)
def test_an_evaluation_costs_no_more_than_estimated_and_always_the_same(text: str) -> None:
    # a map, because the model charges selections from dyn when they are made but leaves them out of its estimate
    sizes = {("items",): (0, 3), ("any", "a"): (0, 64)}
    environment = Environment({"x": INT, "items": list_of(INT), "any": map_of(STRING, DYN)}, sizes=sizes.get)
    program = environment.compile(text)
    least, most = program.estimate
    assert least <= most
    try:
        costs = {program.evaluate_counted(VALUES)[1] for _ in range(2)}
    except EvaluationError:
        return
    assert len(costs) == 1
    assert max(costs) <= most


@given(BOOLS, BOOLS)
def test_and_and_or_do_not_depend_on_the_order(left: str, right: str) -> None:
    assert outcome(f"({left}) && ({right})") == outcome(f"({right}) && ({left})")
    assert outcome(f"({left}) || ({right})") == outcome(f"({right}) || ({left})")


@given(BOOLS, BOOLS)
def test_de_morgan_holds_errors_included(left: str, right: str) -> None:
    assert outcome(f"!(({left}) && ({right}))") == outcome(f"!({left}) || !({right})")


@given(BOOLS)
def test_the_clauses_decide_together_what_the_expression_decides(text: str) -> None:
    clauses = ENVIRONMENT.compile(text).explain(VALUES)
    outcomes = {clause.outcome for clause in clauses}
    combined = False if "false" in outcomes else "error" if "error" in outcomes else True
    assert combined == outcome(text)


@given(BOOLS)
def test_the_parts_of_the_first_depth_are_the_clauses(text: str) -> None:
    program = ENVIRONMENT.compile(text)
    parts = [part for part in program.parts(VALUES) if part.depth == 0]
    clauses = program.explain(VALUES)
    assert [(part.text, part.error or part.value) for part in parts] == [
        (clause.text, clause.error or clause.outcome) for clause in clauses
    ]


@given(NUMBERS)
def test_dynamic_types_change_no_result(text: str) -> None:
    def result(kind: Type) -> Any:
        environment = Environment({"x": kind, "items": list_of(kind)}, homogeneous=False)
        try:
            return environment.compile(text, result=None).evaluate(VALUES)
        except EvaluationError as error:
            return error.message

    assert result(INT) == result(DYN)


@given(st.text(max_size=30))
def test_strings_survive_quoting(text: str) -> None:
    quoted = Environment({"s": DYN}).compile("strings.quote(s)", result=None).evaluate({"s": text})
    if all(char.isprintable() for char in text):
        assert ENVIRONMENT.compile(quoted, result=None).evaluate(VALUES) == text
