"""What the grammar takes, what it refuses, and where it points to."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.cel import DYN, CompileError, Environment
from karpenter_linode.cel.checker import MAX_HEIGHT
from karpenter_linode.cel.lexer import MAX_CODE_POINTS
from karpenter_linode.cel.parser import MAX_DEPTH

EMPTY = Environment({})


def complaint(text: str) -> CompileError:
    with pytest.raises(CompileError) as caught:
        EMPTY.compile(text, result=None)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3 - 4 / 2", 5),
        ("2 - 3 - 4", -5),
        ("1 < 2 == true", True),
        ("true || false && false", True),
        ("false ? 1 : true ? 2 : 3", 2),
        ("(true ? false : true) ? 1 : 2", 2),
        ("-3.max", "CE"),
        ("- 3", -3),
        ("--3", 3),
        ("!!true", True),
        ("-(-3)", 3),
        ("[1, 2,]", [1, 2]),
        ("[,]", []),
        ("{,}", {}),
        ("0x1F", 31),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1 // the rest is no code", 1),
        ("'a' + \"b\" + '''c''' + r'\\d'", "abc\\d"),
        ("'''a\r\nb'''", "a\nb"),
        (r"'\a\b\f\n\r\t\v\\\?\'\"\`'", "\a\b\f\n\r\t\v\\?'\"`"),
        (r"'\x41\101\u0041\U00000041'", "AAAA"),
        (r"b'\xff\377a'", b"\xff\xffa"),
        ("b'é'", b"\xc3\xa9"),
        ("[[1], [2]][1][0]", 2),
        ("{'a': {'b': 3}}.a.b", 3),
        ("{'for': 1}.for", 1),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_reads(text: str, expected: Any) -> None:
    if expected == "CE":
        complaint(text)
        return
    found = EMPTY.compile(text, result=None).evaluate({})
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ("1 +", 1, 4, "expected an operand, found end of the expression"),
        ("", 1, 1, "expected an operand"),
        ("(1", 1, 3, "expected ')'"),
        ("1 +\n  * 2", 2, 3, "found '*'"),
        ("a & b", 1, 3, "the logical one is '&&'"),
        ("1 = 1", 1, 3, "equality is '=='"),
        ("'ab", 1, 1, "string without its end"),
        (r"'\d'", 1, 1, "unknown escape"),
        (r"'\uD800'", 1, 1, "invalid unicode code point"),
        ("9223372036854775808", 1, 1, "invalid int literal"),
        ("0x8000000000000000", 1, 1, "invalid int literal"),
        ("18446744073709551616u", 1, 1, "invalid uint literal"),
        ("1" * 5000, 1, 1, "invalid int literal"),
        ("1e999", 1, 1, "invalid double literal"),
        ("true ? true ? 1 : 2 : 3", 1, 13, "expected ':'"),
        ("-!true", 1, 2, "without brackets"),
        ("1.foo", 1, 2, "does not support field selection"),
        ("x.`y`", 1, 3, "unsupported syntax"),
        ("loop", 1, 1, "reserved identifier: loop"),
        ("[1,,2]", 1, 4, "expected ']'"),
        ("size([1],)", 1, 10, "expected an operand"),
        ("has(1)", 1, 5, "invalid argument to has() macro"),
        ("[1].all('x', true)", 1, 9, "argument must be a simple name"),
        ("[1].all(i, i, true)", 1, 12, "duplicate variable name: i"),
        ("cel.bind(1, 2, true)", 1, 10, "must be simple identifiers"),
        ("\u00a0true", 1, 1, "unexpected character"),
    ],
)
def test_points_to_the_place(text: str, line: int, column: int, part: str) -> None:
    error = complaint(text)
    assert (error.line, error.column) == (line, column)
    assert part in error.message


def test_an_error_renders_its_line_with_a_caret() -> None:
    error = complaint("true &&\n\tmissing == 1")
    assert error.render() == "2:2: undeclared reference to 'missing' (in container '')\n | \tmissing == 1\n | \t^"
    assert error.offset == 9


def test_brackets_nest_up_to_a_limit() -> None:
    assert EMPTY.compile("(" * (MAX_DEPTH - 1) + "true" + ")" * (MAX_DEPTH - 1)).evaluate({}) is True
    assert "recursion limit" in complaint("(" * MAX_DEPTH + "true" + ")" * MAX_DEPTH).message


@pytest.mark.parametrize("opening", ["[", "size(", "[1].map(x, ", "{1: ", "[0][", "!(", "1 in [2, "])
def test_nothing_nests_so_deep_that_the_stack_ends(opening: str) -> None:
    closing = {"[": "]", "(": ")", "{": "}"}
    ends = "".join(closing[char] for char in reversed(opening) if char in closing and opening.count(closing[char]) == 0)
    ends = ends if opening != "[1].map(x, " else ")"
    ends = ends if opening != "[0][" else "]"
    for count in (100, MAX_DEPTH - 1, MAX_DEPTH, 2000):
        try:
            EMPTY.compile(opening * count + "1" + ends * count, result=None).evaluate({})
        except Exception as error:  # noqa: BLE001 - any kind of error is looked at
            assert type(error).__name__ in ("CompileError", "EvaluationError")  # noqa: PT017 - others would be a crash


def test_chains_of_logic_have_no_depth() -> None:
    assert EMPTY.compile(" && ".join(["true"] * 3000)).evaluate({}) is True
    assert EMPTY.compile(" || ".join(["false"] * 3000)).evaluate({}) is False


def test_chains_of_operators_are_bounded() -> None:
    assert EMPTY.compile("1" + " + 1" * (MAX_HEIGHT - 1), result=None).evaluate({}) == MAX_HEIGHT
    assert "nested too deeply" in complaint("1" + " + 1" * MAX_HEIGHT).message


def test_the_text_is_bounded() -> None:
    assert "at most 100000" in complaint("'" + "x" * MAX_CODE_POINTS + "'").message


@pytest.mark.timeout(20)
def test_many_deep_literals_do_not_multiply_their_depths() -> None:
    nest = "[" * 200 + "]" * 200
    EMPTY.compile("[" + ", ".join([nest] * 25) + "]", result=None)


def test_of_a_long_line_what_is_near_the_mistake_is_shown() -> None:
    text = "device.driver == 'a' && " * 400 + "device.driver == + 'b'" + " && true" * 100
    with pytest.raises(CompileError) as caught:
        Environment({"device": DYN}).compile(text)
    _, shown, caret = caught.value.render().split("\n")
    assert len(shown) < 140
    assert shown.startswith(" | ...")
    assert shown.endswith("...")
    assert shown[caret.index("^") :].startswith("+ 'b'")
