"""Bad claims, each named by field, found and expected (spec/dra-allocation.md 1.3 and 1.6)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.dra.validate import selector_problem, validate_claim_spec
from karpenter_linode.model import codec
from karpenter_linode.model.resource import ResourceClaimSpec

OK = {"deviceClassName": "gpu"}
EXACTLY = "spec.devices.requests[0].exactly"


def problems(*requests: dict[str, Any], **devices: Any) -> list[str]:
    spec = codec.convert({"devices": {"requests": list(requests), **devices}}, ResourceClaimSpec)
    return [str(problem) for problem in validate_claim_spec(spec)]


def exactly(**fields: Any) -> dict[str, Any]:
    return {"name": "r", "exactly": {**OK, **fields}}


def test_a_valid_claim_has_no_problems() -> None:
    requests = [exactly(count=2), {"name": "fa", "firstAvailable": [{"name": "a", **OK}, {"name": "b", **OK}]}]
    constraints = [{"matchAttribute": "gpu.nvidia.com/productName", "requests": ["r", "fa", "fa/a"]}]
    assert problems(*requests, constraints=constraints, config=[{"requests": ["r"]}]) == []
    assert problems() == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"deviceClassName": ""}, f"{EXACTLY}.deviceClassName: required"),
        ({"count": -1}, f"{EXACTLY}.count: found -1: must be greater than zero"),
        (
            {"allocationMode": "All", "count": 2},
            f"{EXACTLY}.count: found 2: must not be specified when allocationMode is 'All'",
        ),
        (
            {"allocationMode": "Some"},
            f"{EXACTLY}.allocationMode: found 'Some', expected 'ExactCount' or 'All'",
        ),
        ({"selectors": [{}]}, f"{EXACTLY}.selectors[0].cel: required: only CEL selectors exist"),
        (
            {"selectors": [{"cel": {"expression": "true"}}] * 33},
            f"{EXACTLY}.selectors: found 33 items, expected at most 32",
        ),
        (
            {"tolerations": [{"operator": "Equal"}]},
            f"{EXACTLY}.tolerations[0].operator: must be 'Exists' when `key` is empty",
        ),
        (
            {"tolerations": [{"key": "k", "operator": "Near"}]},
            f"{EXACTLY}.tolerations[0].operator: found 'Near', expected 'Equal' or 'Exists'",
        ),
        (
            {"tolerations": [{"key": "k", "operator": "Exists", "value": "v"}]},
            f"{EXACTLY}.tolerations[0].value: must be empty when `operator` is 'Exists'",
        ),
        (
            {"tolerations": [{"key": "k", "effect": "Never"}]},
            (f"{EXACTLY}.tolerations[0].effect: found 'Never', expected 'NoSchedule', 'NoExecute' or 'None'"),
        ),
    ],
)
def test_fields_of_a_request(fields: dict[str, Any], expected: str) -> None:
    assert problems(exactly(**fields)) == [expected]


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([{"name": "r"}], "spec.devices.requests[0]: exactly one of `exactly` or `firstAvailable` is required"),
        (
            [{"name": "r", "exactly": OK, "firstAvailable": [{"name": "a", **OK}]}],
            "spec.devices.requests[0]: exactly one of `exactly` or `firstAvailable` is required",
        ),
        ([exactly(), exactly()], "spec.devices.requests[1].name: found 'r' a second time: names must be unique"),
        (
            [{"name": "R", "exactly": OK}],
            (
                "spec.devices.requests[0].name: found 'R', expected a DNS label (lower case letters, digits and '-', "
                "at most 63)"
            ),
        ),
        (
            [{"name": "r", "firstAvailable": [{"name": f"s{index}", **OK} for index in range(9)]}],
            "spec.devices.requests[0].firstAvailable: found 9 items, expected at most 8",
        ),
        (
            [{"name": f"r{index}", "exactly": OK} for index in range(33)],
            "spec.devices.requests: found 33 items, expected at most 32",
        ),
    ],
)
def test_lists_of_requests(requests: list[dict[str, Any]], expected: str) -> None:
    assert problems(*requests) == [expected]


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ({}, "spec.devices.constraints[0]: exactly one of `matchAttribute` or `distinctAttribute` is required"),
        (
            {"matchAttribute": "a.io/k", "distinctAttribute": "a.io/k"},
            "spec.devices.constraints[0]: exactly one of `matchAttribute` or `distinctAttribute` is required",
        ),
        (
            {"matchAttribute": "k"},
            (
                "spec.devices.constraints[0].matchAttribute: found 'k': a fully qualified name must be a domain and a "
                "name separated by a slash"
            ),
        ),
        (
            {"distinctAttribute": "a.io/k-k"},
            (
                "spec.devices.constraints[0].distinctAttribute: found 'a.io/k-k', expected a DNS subdomain, a slash "
                "and a C identifier of at most 32 characters"
            ),
        ),
        (
            {"matchAttribute": "a.io/k", "requests": ["x"]},
            "spec.devices.constraints[0].requests[0]: found 'x': must be the name of a request in the claim",
        ),
    ],
)
def test_constraints(constraint: dict[str, Any], expected: str) -> None:
    assert problems(exactly(), constraints=[constraint]) == [expected]


def test_selectors_that_do_not_compile_show_the_place() -> None:
    [found] = problems(exactly(selectors=[{"cel": {"expression": "device.capacity['a'].memory >= quantity('20Gi')"}}]))
    assert found.startswith(f"{EXACTLY}.selectors[0].cel.expression: compilation failed: 1:")
    assert "\n | device.capacity" in found
    assert found.endswith("^")


def test_length_and_cost_of_selectors() -> None:
    fits = "device.driver == '" + "x" * (10 * 1024 - 19) + "'"
    assert len(fits) == 10 * 1024
    assert selector_problem(fits) == ""
    assert selector_problem(fits + " ") == "too long: found 10241 bytes, expected at most 10240"
    nested = "true"
    for index in range(7):
        nested = f"lists.range(10).all(x{index}, {nested})"
    assert selector_problem(nested).startswith("too complex, exceeds cost limit: its cost may be ")
    endless = selector_problem("device.attributes['a'].x.all(y, y.z.all(w, w))")
    assert endless.startswith("too complex, exceeds cost limit: its cost has no bound known beforehand")
