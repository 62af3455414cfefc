"""Evaluates expressions: closed ones, and ones about the device of the specification's examples."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.cel import (
    BOOL,
    DYN,
    QUANTITY,
    STRING,
    DefaultMap,
    Environment,
    map_of,
    object_type,
)
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.semver import SemVer

DEVICE_TYPE = object_type(
    "kubernetes.DRADevice",
    {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, DYN)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
        "allowMultipleAllocations": BOOL,
    },
)
DEVICE = {
    "driver": "gpu.acme.io",
    "attributes": DefaultMap(
        {
            "gpu.acme.io": {
                "model": "X200",
                "sms": 108,
                "ecc": True,
                "fw": SemVer.parse("3.10.2"),
                "drv": SemVer.parse("2.0.0-rc.1"),
            },
            "resource.kubernetes.io": {"pcieRoot": "pci0000:40"},
        },
        {},
    ),
    "capacity": DefaultMap({"gpu.acme.io": {"memory": Quantity.parse("80Gi"), "lanes": Quantity.parse("16")}}, {}),
    "allowMultipleAllocations": False,
}


def _sizes(path: tuple[str, ...]) -> tuple[int, int] | None:
    """What Kubernetes assumes about the parts of a device."""
    match path:
        case ("device", "driver") | ("device", _, "@keys"):
            return (0, 63)
        case ("device", _) | ("device", _, _) | ("device", _, _, "@keys"):
            return (0, 32)
        case ("device", "attributes", _, _):
            return (0, 64)
    return None


@pytest.fixture(scope="session")
def device_environment() -> Environment:
    return Environment({"device": DEVICE_TYPE}, sizes=_sizes)


@pytest.fixture(scope="session")
def device_variables() -> dict[str, Any]:
    return {"device": DEVICE}


@pytest.fixture(scope="session")
def value() -> Any:
    """``value(text, **variables)``: what an expression comes to; the variables are dyn."""

    def evaluate(text: str, **variables: Any) -> Any:
        environment = Environment(dict.fromkeys(variables, DYN))
        return environment.compile(text, result=None).evaluate(variables)

    return evaluate
