"""The selectors people write for GPUs (spec/nvidia-dra.md 4.2), on a whole RTX 4000 Ada and where they go wrong."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.cel import CompileError, DefaultMap, EvaluationError
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.semver import SemVer

A, C = 'device.attributes["gpu.nvidia.com"]', 'device.capacity["gpu.nvidia.com"]'
ATTRIBUTES = {
    "type": "gpu",
    "productName": "NVIDIA RTX 4000 Ada Generation",
    "brand": "NvidiaRTX",
    "architecture": "Ada Lovelace",
    "cudaComputeCapability": SemVer(8, 9, 0),
    "driverVersion": SemVer(580, 95, 5),
    "uuid": "GPU-18db0e85-99e9-c746-8531-ffeb86328b39",
}
GPU = {
    "device": {
        "driver": "gpu.nvidia.com",
        "attributes": DefaultMap(
            {"gpu.nvidia.com": ATTRIBUTES, "resource.kubernetes.io": {"pciBusID": "0000:00:02.0"}}, {}
        ),
        "capacity": DefaultMap({"gpu.nvidia.com": {"memory": Quantity.parse("20475Mi")}}, {}),
        "allowMultipleAllocations": False,
    },
}
ADA = """
device.driver == 'gpu.nvidia.com' &&
device.attributes['gpu.nvidia.com'].type == 'gpu' &&
'productName' in device.attributes['gpu.nvidia.com'] &&
device.attributes['gpu.nvidia.com'].productName == 'NVIDIA RTX 4000 Ada Generation' &&
'cudaComputeCapability' in device.attributes['gpu.nvidia.com'] &&
device.attributes['gpu.nvidia.com'].cudaComputeCapability.compareTo(semver('8.9.0')) >= 0 &&
'memory' in device.capacity['gpu.nvidia.com'] &&
device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('16Gi')) >= 0
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'{A}.productName in ["NVIDIA L4", "NVIDIA RTX 4000 Ada Generation"]', True),
        (f'{A}.productName.lowerAscii().matches("^.*rtx 4000.*$")', True),
        (f'{A}.productName.startsWith("RTX 4000")', False),
        (f'{A}.productName == "NVIDIA-RTX-4000-Ada-Generation"', False),
        (f'{A}.architecture == "Ada Lovelace" && {C}.memory.isGreaterThan(quantity("19Gi"))', True),
        (f'{C}.memory.compareTo(quantity("20Gi")) >= 0', False),
        (f'{C}.memory >= quantity("20Gi")', "CE found no matching overload"),
        (f'{C}.memory == "20475Mi"', "CE found no matching overload"),
        (f"{A}.memory >= 21474836480", "E no such key: memory"),
        (f'{A}.cudaComputeCapability.isGreaterThan(semver("8.6.0"))', True),
        (f'{A}.cudaComputeCapability == "8.9.0"', "E no such overload"),
        (f"{A}.cudaComputeCapability >= 8.9", "E no such overload"),
        (f'{A}.cudaComputeCapability.compareTo(semver("8.9")) >= 0', "E No Major.Minor.Patch elements found"),
        (f"{A}.cudaComputeCapabilityMajor >= 9", "E no such key: cudaComputeCapabilityMajor"),
        (f'{A}.driverVersion.compareTo(semver("580.0.0")) >= 0', True),
        (f'{C}.multiprocessors.isGreaterThan(quantity("40"))', "E no such key: multiprocessors"),
        (f'"gpu.nvidia.com" in device.attributes && "productName" in {A}', True),
        ('device.attributes["resource.kubernetes.io"].pciBusID == "0000:00:02.0"', True),
        (f"{A}.index == 0", "E no such key: index"),
        (f'cel.bind(g, {A}, g.type == "gpu" && g.brand == "NvidiaRTX")', True),
        (f'{A}.?addressingMode.orValue("") == "HMM"', False),
        ("device.allowMultipleAllocations == true", False),
        (f'quantity("20GB") == {C}.memory', "E quantities must match the regular expression"),
    ],
)
def test_selector(text: str, expected: Any, device_environment: Any) -> None:
    found: Any
    try:
        found = device_environment.compile(text).evaluate(GPU)
    except CompileError as error:
        found = f"CE {error.message}"
    except EvaluationError as error:
        found = f"E {error.message}"
    assert found is expected if isinstance(expected, bool) else str(found).startswith(expected)


def test_the_ada_claim_selects_the_card(device_environment: Any) -> None:
    program = device_environment.compile(ADA)
    assert program.evaluate(GPU) is True
    assert {clause.outcome for clause in program.explain(GPU)} == {"true"}


def test_asking_for_24_gi_names_the_clause_and_the_20475_mi_seen(device_environment: Any) -> None:
    program = device_environment.compile(ADA.replace("16Gi", "24Gi"))
    assert program.evaluate(GPU) is False
    (missed,) = [clause for clause in program.explain(GPU) if clause.outcome != "true"]
    assert missed.text == "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('24Gi')) >= 0"
    assert missed.observed == (("device.capacity['gpu.nvidia.com'].memory", "20475Mi"),)


def test_guards_make_a_device_without_metadata_no_match_and_no_error(device_environment: Any) -> None:
    bare = {"device": {**GPU["device"], "attributes": DefaultMap({"gpu.nvidia.com": {"type": "gpu"}}, {})}}
    assert device_environment.compile(ADA).evaluate(bare) is False
    with pytest.raises(EvaluationError, match="no such key: productName"):
        device_environment.compile(f'{A}.productName == "NVIDIA L4"').evaluate(bare)
