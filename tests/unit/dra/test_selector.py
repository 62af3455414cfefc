"""Devices as selectors see them (spec/cel-for-dra.md 1)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.cel import CompileError, EvaluationError
from karpenter_linode.dra.selector import Selectors, Shapes
from karpenter_linode.model import codec
from karpenter_linode.model.resource import Device

ATTRIBUTES = {
    "model": {"string": "X200"},
    "sms": {"int": 108},
    "ecc": {"bool": True},
    "fw": {"version": "3.10.2"},
    "gpu.acme.io/qualified": {"string": "q"},
    "resource.kubernetes.io/pcieRoot": {"string": "pci0000:40"},
}
PLAIN = {"name": "d", "attributes": ATTRIBUTES, "capacity": {"memory": {"value": "80Gi"}, "lanes": {"value": "16"}}}
A, C = "device.attributes['gpu.acme.io']", "device.capacity['gpu.acme.io']"


def holds(expression: str, plain: dict[str, Any] | None = None) -> bool:
    shape = Shapes().of("gpu.acme.io", codec.convert(plain or PLAIN, Device))
    return Selectors().of(expression).holds(shape)


@pytest.mark.parametrize(
    "expression",
    [
        "device.driver == 'gpu.acme.io'",
        f"{A}.model == 'X200'",
        f"{A}.qualified == 'q'",
        f"{A}.sms >= 100",
        f"{A}.ecc",
        f"{A}.fw.isGreaterThan(semver('3.9.9'))",
        "device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0000:40'",
        f"{C}.memory.compareTo(quantity('80Gi')) == 0",
        f"{C}.lanes.asInteger() == 16",
        "!device.allowMultipleAllocations",
        "device.attributes.size() == 2",
        "!('other.io' in device.attributes)",
        "!('x' in device.attributes['other.io'])",
        f"{A}.?absent.orValue(0) == 0",
        "!(has(device.attributes['gpu.acme.io'].absent))",
    ],
)
def test_what_a_selector_sees(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (f"{A}.absent == 0", "no such key: absent"),
        ("device.attributes['other.io'].x == 1", "no such key: x"),
        (f"{C}.absent.isGreaterThan(quantity('0'))", "no such key: absent"),
        (f"{A}.model", "could not be converted to bool"),
    ],
)
def test_what_fails_on_a_device(expression: str, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        holds(expression)


@pytest.mark.parametrize("expression", ["device.pool == 'p'", "device.name == 'd'", "node == 'n'", "'yes'", "7"])
def test_what_is_no_selector(expression: str) -> None:
    with pytest.raises(CompileError):
        holds(expression)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"version": "3.10"}, "attribute bad: parse semantic version"),
        ({}, "attribute bad: unsupported attribute value"),
    ],
)
def test_a_device_with_a_bad_attribute_fails_every_selector(value: dict[str, str], message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        holds("true", {**PLAIN, "attributes": {**ATTRIBUTES, "bad": value}})


def test_list_attributes_are_lists() -> None:
    plain = {**PLAIN, "attributes": {"numa": {"ints": [0, 1]}, "fws": {"versions": ["1.0.0"]}}}
    assert holds(f"1 in {A}.numa && {A}.fws.size() == 1", plain)


def test_equal_devices_share_a_shape_and_are_evaluated_once() -> None:
    shapes = Shapes()
    first = shapes.of("d", codec.convert(PLAIN, Device))
    assert shapes.of("d", codec.convert({**PLAIN, "name": "other"}, Device)) is first
    assert shapes.of("e", codec.convert(PLAIN, Device)) is not first
    assert shapes.of("d", codec.convert({**PLAIN, "allowMultipleAllocations": True}, Device)) is not first


@pytest.mark.parametrize(
    ("expression", "most"),
    [
        ("device.attributes.exists_one(x, x == 'gpu.acme.io')", 164),
        (f"{A}.exists_one(x, x == 'services')", 133),
        (f"{A}.services.matches('[^a]?sym')", 18),
    ],
)
def test_estimates_know_how_large_a_device_can_be(expression: str, most: int) -> None:
    assert Selectors().of(expression).program.estimate[1] == most
