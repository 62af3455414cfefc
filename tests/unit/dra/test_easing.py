"""Clauses eased to values that were seen."""

from __future__ import annotations

import pytest

from karpenter_linode.dra.easing import eased

M = "device.capacity['g'].memory"


@pytest.mark.parametrize(
    ("clause", "values", "expected"),
    [
        (f"{M}.compareTo(quantity('24Gi')) >= 0", ["16Gi", "20475Mi"], f"{M}.compareTo(quantity('20475Mi')) >= 0"),
        (f"{M}.compareTo(quantity('24Gi')) > 0", ["24Gi"], f"{M}.compareTo(quantity('24Gi')) >= 0"),
        (f"{M}.compareTo(quantity('8Gi')) <= 0", ["48Gi", "16Gi"], f"{M}.compareTo(quantity('16Gi')) <= 0"),
        (f'{M}.isGreaterThan(quantity("24Gi"))', ["20Gi"], f"{M}.compareTo(quantity('20Gi')) >= 0"),
        (f"{M}.isLessThan(quantity('8Gi'))", ["20Gi"], f"{M}.compareTo(quantity('20Gi')) <= 0"),
        ("a.v.compareTo(semver('9.0.0')) >= 0", ["8.9.0", "8.10.0"], "a.v.compareTo(semver('8.10.0')) >= 0"),
        ("a.sms >= 128", ["64", "108"], "a.sms >= 108"),
        ("a.sms == 128", ["64"], "a.sms == 64"),
        ("a.model == 'X'", ['"Y Z"'], 'a.model == "Y Z"'),
    ],
)
def test_the_nearest_value_comes_first(clause: str, values: list[str], expected: str) -> None:
    assert eased(clause, values)[0].clause == expected


@pytest.mark.parametrize(
    ("clause", "values"),
    [
        ("a.model.startsWith('X')", ['"Y"']),
        ("!a.ecc", ["true"]),
        (f"{M}.compareTo(quantity('24Gi')) >= 0", ["no such key: memory"]),
        ("a.model == 'X'", ["no such key: model"]),
        ("a.sms >= 128", []),
    ],
)
def test_other_clauses_and_values_are_left_alone(clause: str, values: list[str]) -> None:
    assert eased(clause, values) == []
