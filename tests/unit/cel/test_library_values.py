"""Lists, sets, maps, optionals, times and conversions."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.cel import CompileError, Environment, EvaluationError, UInt
from karpenter_linode.cel.values import Duration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1, 2, 2].isSorted() && !['b', 'a'].isSorted()", True),
        ("[1, 2, 3].sum()", 6),
        ("[1.5, 2.0].sum()", 3.5),
        ("[duration('1s'), duration('2s')].sum() == duration('3s')", True),
        ("[3, 1, 2].min() == 1 && ['a', 'c'].max() == 'c'", True),
        ("[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(5) == -1", True),
        ("[1, 2, 3, 4].slice(1, 3)", [2, 3]),
        ("[[1], [2, 3]].flatten()", [1, 2, 3]),
        ("[[[1]], [[2]]].flatten(2)", [1, 2]),
        ("[3, 1, 2].sort()", [1, 2, 3]),
        ("['ccc', 'a', 'bb'].sortBy(s, s.size())", ["a", "bb", "ccc"]),
        ("[1, 2, 1].distinct()", [1, 2]),
        ("[1, 2].reverse()", [2, 1]),
        ("lists.range(3)", [0, 1, 2]),
        ("[1] + [2]", [1, 2]),
        ("sets.contains([1, 2], [2, 2]) && sets.equivalent([1, 2, 2], [2, 1]) && !sets.intersects([1], [2])", True),
        ("sets.contains([dyn(1)], [dyn(1.0), dyn(1u)])", True),
        ("[1, 2, 3].map(x, x * 2)", [2, 4, 6]),
        ("[1, 2, 3].map(x, x > 1, x * 2)", [4, 6]),
        ("[1, 2, 3].filter(x, x != 2)", [1, 3]),
        ("{'a': 1, 'b': 2}.map(k, k)", ["a", "b"]),
        ("['x', 'y'].transformList(i, v, i)", [0, 1]),
        ("['x', 'y'].transformMap(i, v, i > 0, v)", {1: "y"}),
        ("{'a': 1}.transformMap(k, v, v + 1)", {"a": 2}),
        ("{'a': 'x'}.transformMapEntry(k, v, {v: k})", {"x": "a"}),
        ("{'a': 1}.all(k, v, k == 'a' && v == 1)", True),
        ("[5, 6].exists(i, v, i == 1 && v == 6)", True),
        ("[5, 6].existsOne(i, v, v > 5)", True),
        ("{null: 1}.size()", 1),
        ("[?optional.of(1), ?optional.none()]", [1]),
        ("{?'a': optional.of(1), ?'b': optional.none()}", {"a": 1}),
        ("{'a': 1}.?a.value() == 1 && !{'a': 1}.?b.hasValue()", True),
        ("{'a': {'b': 1}}.?a.b.orValue(0) == 1 && {'a': {'b': 1}}.?x.b.orValue(0) == 0", True),
        ("[1][?0].orValue(5) == 1 && [1][?3].orValue(5) == 5", True),
        ("optional.ofNonZeroValue('').or(optional.of('x')).value()", "x"),
        ("optional.of(2).optMap(x, x * 2).value()", 4),
        ("optional.none().optMap(x, 1).hasValue()", False),
        ("optional.of(2).optFlatMap(x, optional.of(x + 1)).value()", 3),
        ("[1, 2].first().value() + [1, 2].last().value()", 3),
        ("[optional.of(1), optional.none()].unwrapOpt()", [1]),
        ("has({'a': 1}.a) && !has({'a': 1}.b)", True),
        ("int('-5') + int(2.9) + int(3u)", 0),
        ("uint('7')", UInt(7)),
        ("double('1e3')", 1000.0),
        ("bool('T') && !bool('false')", True),
        ("[string(1.0), string(1e6), string(0.1), string(1.5e-7), string(5u), string(true)]",
         ["1", "1e+06", "0.1", "1.5e-07", "5", "true"]),
        ("string(b'abc') + string(bytes('d'))", "abcd"),
        ("duration('1h30m1.5s')", Duration(5_401_500_000_000)),
        ("string(duration('-90s'))", "-90s"),
        ("string(timestamp(0))", "1970-01-01T00:00:00Z"),
        ("timestamp('2024-02-29T12:00:00.5Z') - timestamp('2024-02-28T12:00:00Z') == duration('86400.5s')", True),
        ("timestamp('2024-02-29T23:34:56Z').getFullYear()", 2024),
        ("timestamp('2024-02-29T23:34:56Z').getDate('+02:00')", 1),
        ("timestamp('2024-02-29T23:34:56Z').getDayOfWeek()", 4),
        ("timestamp('2024-12-31T00:00:00Z').getDayOfYear()", 365),
        ("timestamp('2024-07-01T12:00:00Z').getHours('Europe/Berlin')", 14),
        ("duration('3661s').getHours() == 1 && duration('3661s').getMinutes() == 61", True),
        ("type(1) == int && type([]) == list && type(type(1)) == type", True),
        ("google.protobuf.Duration{seconds: 1} == duration('1s')", True),
    ],
)  # fmt: skip
def test_comes_to(text: str, expected: Any) -> None:
    found = Environment({}, homogeneous=False).compile(text, result=None).evaluate({})
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1].slice(0, 2)", "list is length 1"),
        ("[1].slice(-1, 1)", "negative indexes not supported"),
        ("[].min() == 1", "min called on empty list"),
        ("[[1]].flatten(-1)", "level must be non-negative"),
        ("[dyn(1), dyn('a')].sort()", "list elements must have the same type"),
        ("[1, 2].sortBy(x, x == 1 ? dyn(1) : dyn('a'))", "list elements must have the same type"),
        ("optional.none().value()", "optional.none.. dereference"),
        ("[?dyn(1)]", "not optional"),
        ("timestamp(dyn('2024-13-01T00:00:00Z') == 'x' ? 'a' : t)", "type conversion error"),
        ("timestamp(0).getHours('Mars/Olympus')", "unknown time zone"),
        ("int(x)", "no such overload"),
    ],
)
def test_fails(text: str, message: str, value: Any) -> None:
    with pytest.raises(EvaluationError, match=message):
        value(text, t="2024-02-30T00:00:00Z", x=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2.0]", "expected type 'int' but found 'double'"),
        ("[dyn(1), 2]", "expected type 'dyn' but found 'int'"),
        ("{'a': 1, 2: 3}", "expected type 'string' but found 'int'"),
        ("{'a': 1, 'b': 'c'}", "expected type 'int' but found 'string'"),
        ("[?1]", "expected type 'optional_type.int.' but found 'int'"),
        ("[1].all(x, x)", "expected type 'bool' but found 'int'"),
        ("[1].map(x, x + 'a')", "found no matching overload for '_[+]_' applied to '.int, string.'"),
        ("'abc'.all(c, true)", "cannot be range of a comprehension"),
        ("1 < 'a'", "found no matching overload for '_<_'"),
        ("1 == 'a'", "found no matching overload for '_==_'"),
        ("1 in {'a': 1}", "found no matching overload for '@in'"),
        ("'a'.foo()", "undeclared reference to 'foo'"),
        ("foo('a')", "undeclared reference to 'foo'"),
        ("true ? 1 : 'a'", "found no matching overload for '_._:_'"),
        ("1 && true", "expected type 'bool' but found 'int'"),
        ("Foo{a: 1}", "undeclared reference to 'Foo'"),
        ("optional.of(1).optMap(x, x.y)", "does not support field selection"),
        ("[1].sortBy(x, [x])", "keys of type 'list.int.'"),
    ],
)
def test_does_not_compile(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        Environment({}).compile(text, result=None)
