"""Quantities, versions, addresses, URLs and formats."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.cel import DYN, CompileError, Environment, EvaluationError
from karpenter_linode.cel.libraries import KUBERNETES, includes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("quantity('1Gi') == quantity('1024Mi')", True),
        ("quantity('1.5Gi').isGreaterThan(quantity('1536M'))", True),
        ("quantity('1').compareTo(quantity('1000m'))", 0),
        ("quantity('1e3').asInteger()", 1000),
        ("quantity('-5').asInteger()", -5),
        ("quantity('1.5').asApproximateFloat()", 1.5),
        ("quantity('1000m').isInteger()", False),
        ("quantity('1.0').isInteger()", False),
        ("quantity('9223372036854775807').isInteger()", False),
        ("quantity('100Ti').isInteger()", False),
        ("quantity('1Ti').isInteger()", True),
        ("sign(quantity('-1'))", -1),
        ("quantity('1Gi').add(quantity('1Gi')) == quantity('2Gi')", True),
        ("quantity('5').sub(2).asInteger()", 3),
        ("isQuantity('10Mm') || isQuantity('1K') || isQuantity('1mi') || isQuantity('') || isQuantity('1 Gi')", False),
        ("isQuantity('+1.5e-3') && isQuantity('.5') && isQuantity('5.')", True),
        ("semver('1.10.0').isGreaterThan(semver('1.9.0'))", True),
        ("semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))", True),
        ("semver('1.0.0-rc.10').isGreaterThan(semver('1.0.0-rc.9'))", True),
        ("semver('1.0.0-1').isLessThan(semver('1.0.0-a'))", True),
        ("semver('1.0.0+a') == semver('1.0.0+b')", True),
        ("semver('v01.2', true) == semver('1.2.0')", True),
        ("[semver('1.2.3').major(), semver('1.2.3').minor(), semver('1.2.3').patch()]", [1, 2, 3]),
        ("isSemver('1.2') || isSemver('01.2.3') || isSemver('1.2.3-01') || isSemver(' 1.2.3', true)", False),
        ("isSemver('1.2-rc', true)", False),
        ("ip('192.168.0.1').family()", 4),
        ("string(ip('2001:DB8::1'))", "2001:db8::1"),
        ("isIP('1.2.3.4') && isIP('::1')", True),
        ("isIP('01.2.3.4') || isIP('1.2.3') || isIP('::1%eth0') || isIP('::ffff:1.2.3.4')", False),
        ("ip.isCanonical('2001:DB8::1')", False),
        ("ip('127.0.0.1').isLoopback() && ip('::1').isLoopback()", True),
        ("ip('fe80::1').isLinkLocalUnicast() && ip('224.0.0.5').isLinkLocalMulticast()", True),
        ("ip('10.0.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()", True),
        ("ip('::').isUnspecified()", True),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.0'))", True),
        (
            "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
            True,
        ),
        ("string(cidr('10.1.2.3/8').masked())", "10.0.0.0/8"),
        ("cidr('10.1.2.3/8').ip() == ip('10.1.2.3') && cidr('10.1.2.3/8').prefixLength() == 8", True),
        ("isCIDR('10.0.0.0/33') || isCIDR('10.0.0.0/08') || isCIDR('10.0.0.0')", False),
        ("url('https://u:p@a.b:80/c%20d?k=v&k=w#f').getHost()", "a.b:80"),
        ("url('https://[::1]:80/').getHostname() + url('https://[::1]:80/').getPort()", "::180"),
        ("url('HTTPS://a/b c').getEscapedPath() + url('HTTPS://a').getScheme()", "/b%20chttps"),
        ("url('/p?k=a+b&k=%41&bad=%zz').getQuery()", {"k": ["a b", "A"]}),
        ("isURL('relative') || isURL('') || isURL('://x') || isURL('https://a b') || isURL('https://a:b')", False),
        ("isURL('/a') && isURL('http://') && isURL('mailto:x')", True),
        ("format.dns1123Label().validate('Abc').value()[0].contains('lowercase')", True),
        ("format.dns1123LabelPrefix().validate('abc-').hasValue()", False),
        ("format.dns1123Subdomain().validate('a..b').hasValue()", True),
        ("format.qualifiedName().validate('a.b/c').hasValue()", False),
        ("format.qualifiedName().validate('/c').hasValue()", True),
        ("format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()", False),
        ("format.date().validate('2023-02-29').hasValue()", True),
        ("format.datetime().validate('2024-02-29T01:02:03z').hasValue()", False),
        ("format.byte().validate('a').hasValue()", True),
        ("format.named('nope').hasValue()", False),
        ("format.named('uri').value() == format.uri()", True),
    ],
)
def test_comes_to(text: str, expected: Any, value: Any) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("quantity('1 Gi')", "quantities must match the regular expression"),
        ("quantity('1K')", "unable to parse quantity's suffix"),
        ("quantity('1500m').asInteger()", "cannot convert value to integer"),
        ("semver('1.2')", "No Major.Minor.Patch elements found"),
        ("semver('1.2-rc', true)", "short version cannot contain PreRelease/Build meta data"),
        ("ip('::1%eth0')", "with zone value is not allowed"),
        ("ip('::ffff:1.2.3.4')", "IPv4-mapped IPv6 address"),
        ("cidr('10.0.0.0/40')", "network address parse error"),
        ("url('relative')", "URL parse error during conversion from string"),
    ],
)
def test_fails(text: str, message: str, value: Any) -> None:
    with pytest.raises(EvaluationError, match=message):
        value(text)


@pytest.mark.parametrize("text", ["quantity('1K')", "semver('1')", "ip('x')"])
def test_errors_of_constants_belong_to_run_time(text: str) -> None:
    assert Environment({}).compile(f"true || {text} == {text}").evaluate({}) is True


@pytest.mark.parametrize("text", ["int('x')", "duration('x')", "timestamp('x')", "bool('no')", "double('abc')"])
def test_conversions_of_constants_fail_when_compiled(text: str) -> None:
    with pytest.raises(CompileError, match="program instantiation failed"):
        Environment({}).compile(f"true || {text} == {text}")


def test_receivers_are_left_alone(value: Any) -> None:
    assert value("cel.bind(q, quantity('2'), q.add(1).asInteger() == 3 && q.asInteger() == 2)") is True


def test_includes_is_no_function_of_1_34() -> None:
    with pytest.raises(CompileError, match="undeclared reference to 'includes'"):
        Environment({"x": DYN}).compile("x.includes(1)")


def test_includes_scans_a_list_up_to_48_values() -> None:
    environment = Environment({"x": DYN}, libraries=(*KUBERNETES, includes.LIBRARY))
    program = environment.compile("x.includes(7)")
    assert program.evaluate({"x": [1, 7]}) is True
    assert program.evaluate({"x": [1, 2]}) is False
    assert program.evaluate({"x": 7}) is True
    assert program.evaluate({"x": "7"}) is False
    assert program.evaluate({"x": [7] * 60}) is True
    with pytest.raises(EvaluationError, match="lists longer than 48 values"):
        program.evaluate({"x": [1] * 48 + [7]})
