"""The examples of the specification (spec/cel-for-dra.md section 6), with the message each must give."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.cel import CompileError, EvaluationError

LOOPS = "true"
for level in range(7):
    LOOPS = f"lists.range(10).all(v{level}, {LOOPS})"

MATCH, NO_MATCH = True, False
EXAMPLES: list[tuple[str, bool | str]] = [
    ("true", MATCH),
    ("false", NO_MATCH),
    ('"yes"', "CE must evaluate to bool or the unknown type, not string"),
    ("7", "CE must evaluate to bool or the unknown type, not int"),
    ("?x", "CE Syntax error"),
    ('device.driver == "gpu.acme.io"', MATCH),
    ('device.driver.endsWith(".acme.io")', MATCH),
    ('device.pool == "p"', "CE undefined field 'pool'"),
    ('node == "n"', "CE undeclared reference to 'node'"),
    ("A.ecc", MATCH),
    ("!A.ecc", NO_MATCH),
    ("A.model", "E CEL result of type string could not be converted to bool"),
    ('A.model == "X200"', MATCH),
    ('A["model"] == "X200"', MATCH),
    ('A.model.lowerAscii() == "x200"', MATCH),
    ('A.model in ["X100", "X200"]', MATCH),
    ('A.model.matches("^X[0-9]+$")', MATCH),
    ('A.model.matches("20")', MATCH),
    ('A.model.matches("X[")', "CE invalid matches argument"),
    ('A.model.find("[0-9]+") == "200"', MATCH),
    ('A.model.split("2").size() == 2', MATCH),
    ("A.sms >= 100", MATCH),
    ("A.sms > 107.5", MATCH),
    ('A.sms == "108"', NO_MATCH),
    ('A.sms > "100"', "E no such overload"),
    ("A.sms / 0 == 1", "E division by zero"),
    ("A.sms + 9223372036854775807 > 0", "E integer overflow"),
    ("A.sms + 1.0 > 5.0", "E no such overload"),
    ("A.sms / 10 == 10", MATCH),
    ("A.numa == 0", "E no such key: numa"),
    ('device.attributes["other.io"].x == 1', "E no such key: x"),
    ('"other.io" in device.attributes', NO_MATCH),
    ('"gpu.acme.io" in device.attributes', MATCH),
    ('"numa" in A && A.numa == 0', NO_MATCH),
    ('!("numa" in A) || A.numa == 0', MATCH),
    ("has(A.numa)", NO_MATCH),
    ('has(A["numa"])', "CE invalid argument to has() macro"),
    ("A.?numa.orValue(-1) == -1", MATCH),
    ('A.numa == 0 && A.model == "Z"', NO_MATCH),
    ("A.numa == 0 || A.ecc", MATCH),
    ("A.numa == 0 && A.ecc", "E no such key: numa"),
    ("A.numa == 0 ? true : true", "E no such key: numa"),
    ('device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:40"', MATCH),
    ('device.attributes.exists_one(d, d == "gpu.acme.io")', MATCH),
    ('A.exists(n, n.startsWith("e"))', MATCH),
    ('A.exists(k, v, k == "sms" && v == 108)', MATCH),
    ("A.sms.exists(x, x > 0)", "E got 'types.Int', expected iterable type"),
    ("cel.bind(a, A, a.ecc && a.sms > 64)", MATCH),
    ('A.fw.isGreaterThan(semver("3.9.9"))', MATCH),
    ('A.fw.isLessThan(semver("v4", true))', MATCH),
    ('A.fw == semver("3.10.2+build7")', MATCH),
    ('A.fw == "3.10.2"', "E no such overload"),
    ('"3.10.2" == A.fw', NO_MATCH),
    ('A.drv.isLessThan(semver("2.0.0"))', MATCH),
    ("A.fw.major() == 3 && A.fw.minor() >= 10", MATCH),
    ('semver("v3.1") == A.fw', "E No Major.Minor.Patch elements found"),
    ('isSemver("v3.1") || isSemver(" 3.1.0", true)', NO_MATCH),
    ('semver("03.010.2", true) == A.fw', MATCH),
    ('C.memory.compareTo(quantity("80Gi")) == 0', MATCH),
    ('C.memory.isGreaterThan(quantity("80G"))', MATCH),
    ('C.memory >= quantity("40Gi")', "CE found no matching overload for '_>=_'"),
    ('C.memory.sub(quantity("1Gi")).isLessThan(quantity("80Gi"))', MATCH),
    ('C.memory.sub(quantity("40Gi")) == quantity("40Gi")', MATCH),
    ("C.lanes.asInteger() == 16", MATCH),
    ('quantity("1500m").asInteger() == 1', "E cannot convert value to integer"),
    ("sign(C.lanes) == 1", MATCH),
    ('C.lanes.add("1") == quantity("17")', "CE found no matching overload for 'add'"),
    ('quantity("80Gb") == C.memory', "E quantities must match the regular expression"),
    ('isQuantity("80GiB")', NO_MATCH),
    ('C.absent.isGreaterThan(quantity("0"))', "E no such key: absent"),
    ('!("absent" in C) || C.absent.isGreaterThan(quantity("0"))', MATCH),
    ("device.allowMultipleAllocations", NO_MATCH),
    ('sets.contains(["X200", "X300"], [A.model])', MATCH),
    ("[A.sms, 64, 32].max() == 108", "CE expected type 'dyn' but found 'int'"),
    ("[3, 1, 2].sort() == [1, 2, 3]", MATCH),
    ('[1, "a"].size() == 2', "CE expected type 'int' but found 'string'"),
    ("math.greatest(1, 2) == 2", "CE undeclared reference to 'math'"),
    ('A.model.reverse() == "002X"', "CE found no matching overload for '_==_'"),
    ('A.model.includes("X200")', "CE undeclared reference to 'includes'"),
    (LOOPS, "E operation cancelled: actual cost limit exceeded"),
    (r"A.model == 'X\x32\u00300'", MATCH),
    (r"A.model.matches('X\d+')", "CE Syntax error"),
]


def expanded(text: str) -> str:
    for short, name in (("A", "attributes"), ("C", "capacity")):
        for before in ("", " ", "!", "(", "["):
            for after in (".", "[", ")", " &", ","):
                text = text.replace(f"{before}{short}{after}", f'{before}device.{name}["gpu.acme.io"]{after}')
    return text


@pytest.mark.parametrize(("text", "expected"), EXAMPLES, ids=lambda each: str(each)[:60])
def test_example(text: str, expected: Any, device_environment: Any, device_variables: Any) -> None:
    found: bool | str
    try:
        found = device_environment.compile(expanded(text)).evaluate(device_variables)
    except CompileError as error:
        found = f"CE {error.message}"
    except EvaluationError as error:
        found = f"E {error.message}"
    if isinstance(expected, str):
        assert isinstance(found, str)
        assert found.startswith(expected)
    else:
        assert found is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('device.attributes["absent.io"].size() == 0', True),
        ('device.capacity["absent.io"] == {}', True),
        ('"x" in device.attributes["absent.io"]', False),
        ("has(device.attributes.foo)", True),
        ('device.attributes[?"absent.io"].hasValue()', True),
        ("device.attributes.size() == 2", True),
        ('device.attributes.map(d, d) == ["gpu.acme.io", "resource.kubernetes.io"]', True),
        ('has(device.attributes["gpu.acme.io"].model.x)', False),
    ],
)
def test_unknown_domains_are_empty_maps(
    text: str, expected: Any, device_environment: Any, device_variables: Any
) -> None:
    assert device_environment.compile(text).evaluate(device_variables) is expected
