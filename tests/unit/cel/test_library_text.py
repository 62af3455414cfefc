"""Strings: methods, patterns, formatting."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.cel import CompileError, Environment, EvaluationError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'hello'.contains('ell')", True),
        ("'hello'.startsWith('he') && 'hello'.endsWith('lo')", True),
        ("'h\u00e9llo'.size()", 5),
        ("size('\U0001f600b')", 2),
        ("'abc'.charAt(1)", "b"),
        ("'abc'.charAt(3)", ""),
        ("'tacocat'.indexOf('ac')", 1),
        ("'tacocat'.indexOf('a', 3)", 5),
        ("'tacocat'.indexOf('x')", -1),
        ("'tacocat'.indexOf('a', 30)", -1),
        ("'tacocat'.indexOf('', 3)", 3),
        ("'tacocat'.lastIndexOf('at')", 5),
        ("'tacocat'.lastIndexOf('a', 4)", 1),
        ("'abc'.substring(1)", "bc"),
        ("'abc'.substring(1, 2)", "b"),
        ("'a,b,c'.split(',')", ["a", "b", "c"]),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'a,b,c'.split(',', 0)", []),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("'abc'.split('', 2)", ["a", "bc"]),
        ("['a', 'b'].join('-')", "a-b"),
        ("['a', 'b'].join()", "ab"),
        ("'aaa'.replace('a', 'b')", "bbb"),
        ("'aaa'.replace('a', 'b', 2)", "bba"),
        ("'aaa'.replace('a', 'b', -1)", "bbb"),
        ("'ab'.replace('', '-')", "-a-b-"),
        ("'\u00c4B'.lowerAscii() + '\u00e4b'.upperAscii()", "\u00c4b\u00e4B"),
        ("'\u2003 x \\t\\n'.trim()", "x"),
        ("'\u200bx'.trim()", "\u200bx"),
        ("strings.quote('a\"b\\n')", '"a\\"b\\n"'),
        ("'X200'.matches('[0-9]+')", True),
        ("matches('X200', '^[0-9]+$')", False),
        ("'a1b22'.find('[0-9]+')", "1"),
        ("'ab'.find('[0-9]+')", ""),
        ("'a1b22'.findAll('[0-9]+')", ["1", "22"]),
        ("'a1b22'.findAll('[0-9]+', 1)", ["1"]),
        (r"'x\u00e9'.matches(r'\pL+$')", True),
    ],
)
def test_comes_to(text: str, expected: Any, value: Any) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'abc'.charAt(4)", "index out of range: 4"),
        ("'abc'.substring(4)", "index out of range: 4"),
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("'abc'.indexOf('a', -1)", "index out of range: -1"),
        ("[dyn('a'), dyn(1)].join()", "join: invalid input: 1"),
        ("'a'.matches('(' + 'x')", "Illegal regex"),
        ("dyn(1).startsWith('a')", "no such overload"),
    ],
)
def test_fails(text: str, message: str, value: Any) -> None:
    with pytest.raises(EvaluationError, match=message):
        value(text)


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\\1", "(?<!a)b", "a**", "[", "(?P<x", "x{1001}"])
def test_patterns_are_those_of_re2(pattern: str) -> None:
    with pytest.raises(CompileError, match="invalid matches argument"):
        Environment({}).compile(f"'a'.matches('{pattern}')")


@pytest.mark.timeout(10)
def test_hostile_patterns_take_linear_time_and_bounded_memory(value: Any) -> None:
    assert value("s.matches('(a+)+$')", s="a" * 50_000 + "b") is False
    with pytest.raises(CompileError, match="invalid matches argument"):
        Environment({}).compile("'a'.matches('" + "(" * 20 + "(x{100}){100}" + "){50}" * 20 + "')")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'%s is %d'.format(['a', 5])", "a is 5"),
        ("'%%%s%%'.format(['x'])", "%x%"),
        ("'%x %X %o %b'.format([255, b'hi', 8, true])", "ff 6869 10 1"),
        ("'%b'.format([-5])", "-101"),
        ("'%.2f'.format([1234567.891])", "1,234,567.89"),
        ("'%f %f'.format([double('NaN'), double('-Infinity')])", "NaN -\u221e"),
        ("'%.3e'.format([1234.5])", "1.234500\u00d710\u2070\u00b3"),
        ("'%e'.format([0.00012])", "1.200000\u00d710\u207b\u2070\u2074"),
        ("'%s %s'.format([null, type(1)])", "null int"),
        ("'%s'.format([['a', 'b']])", '["a", "b"]'),
        ("'%s'.format([{'b': 1, 'a': 2}])", '{"a":2, "b":1}'),
        ("'%s'.format([[duration('90s'), timestamp(0)].map(x, dyn(x))])".replace("timestamp(0)", "duration('1s')"),
         '[duration("90s"), duration("1s")]'),
        ("'%s'.format([timestamp('2024-01-01T00:00:00+02:00')])", "2024-01-01T00:00:00+02:00"),
    ],
)  # fmt: skip
def test_formats(text: str, expected: str, value: Any) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'%d'.format(['x'])", "decimal clause can only be used on integers, was given string"),
        ("'%f'.format([1])", "fixed-point clause can only be used on doubles, was given int"),
        ("'%s'.format([])", "index 0 out of range"),
        ("'x'.format(['a'])", "too many arguments supplied to string.format .expected 0, got 1"),
        ("'%q'.format(['a'])", 'unrecognized formatting clause "q"'),
        ("'%'.format(['a'])", "unexpected end of format string"),
    ],
)
def test_literal_formats_are_checked_when_compiled(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        Environment({}).compile(text, result=None)


def test_computed_formats_are_checked_when_evaluated(value: Any) -> None:
    with pytest.raises(EvaluationError, match="index 1 out of range"):
        value("f.format([1])", f="%d %d")
    with pytest.raises(EvaluationError, match="precision must be a number up to 1000"):
        value("f.format([1.0])", f="%.99999f")
