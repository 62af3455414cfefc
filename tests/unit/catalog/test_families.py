"""Which plans belong to which family; near misses keep count and type only."""

from __future__ import annotations

import re

import pytest

from karpenter_linode.catalog import families, family_of, predict
from karpenter_linode.model.semver import SemVer

ADA = [
    "g2-gpu-rtx4000a1-s",
    "g2-gpu-rtx4000a1-m",
    "g2-gpu-rtx4000a1-l",
    "g2-gpu-rtx4000a1-xl",
    "g2-gpu-rtx4000a2-hs",
    "g2-gpu-rtx4000a4-m",
    "g2-gpu-rtx4000a8-xxl",
    "g2-gpu-rtx4000a16-s",
]
BLACKWELL = [f"g3-gpu-rtxpro6000-blackwell-{count}" for count in (1, 2, 4, 8, 10)]
NEAR_MISSES = [
    "g2-gpu-rtx4000a0-s",
    "g2-gpu-rtx4000a01-s",
    "g2-gpu-rtx4000a-1",
    "g2-gpu-rtx4000a1",
    "g2-gpu-rtx4000a1-",
    "g2-gpu-rtx4000a1-s1",
    "g2-gpu-rtx4000a1-S",
    "G2-gpu-rtx4000a1-s",
    "g2-gpu-rtx4000a1-s ",
    " g2-gpu-rtx4000a1-s",
    "g2-gpu-rtx4000a1-s\n",
    "g2-gpu-rtx4000a1-s\nx",
    "g2-gpu-rtx4000a1-s-x",
    "g2-gpu-rtx4000a\u0661-s",
    "g2-gpu-rtx4000a1\u0663-s",
    "g2-gpu-rtx4000a1-\u017f",
    "g2-gpu-rtx4000ada1-s",
    "g2-gpu-rtx6000a1-s",
    "g3-gpu-rtx4000a1-s",
    "xg2-gpu-rtx4000a1-s",
    "g3-gpu-rtxpro6000-blackwell-0",
    "g3-gpu-rtxpro6000-blackwell-01",
    "g3-gpu-rtxpro6000-blackwell-1\n",
    "g3-gpu-rtxpro6000-blackwell-1-s",
    "g3-gpu-rtxpro6000-blackwell-\u0661",
    "g3-gpu-rtxpro6000-blackwell-",
    "g3-gpu-rtxpro6000-Blackwell-1",
    "g4-gpu-rtxpro6000-blackwell-1",
    "g1-gpu-rtx6000-1",
    "g1-gpu-rtx6000-4",
    "g1-accelerated-netint-vpu-t1u1-s",
    "g6-standard-2",
    "",
]


def attributes(plan: str) -> dict[str, str | None]:
    [template] = predict(plan, 1).slice_templates
    return {name: value.string or value.version for name, value in template.devices[0].attributes.items()}


@pytest.mark.parametrize("plan", ADA)
def test_ada(plan: str) -> None:
    assert attributes(plan) == {
        "type": "gpu",
        "productName": "NVIDIA RTX 4000 Ada Generation",
        "brand": "NvidiaRTX",
        "architecture": "Ada Lovelace",
        "cudaComputeCapability": "8.9.0",
    }
    [template] = predict(plan, 1).slice_templates
    assert {name: str(item.value) for name, item in template.devices[0].capacity.items()} == {"memory": "20475Mi"}


@pytest.mark.parametrize("plan", BLACKWELL)
def test_blackwell(plan: str) -> None:
    assert attributes(plan) == {
        "type": "gpu",
        "productName": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        "brand": "Nvidia",
        "architecture": "Blackwell",
        "cudaComputeCapability": "12.0.0",
    }
    [template] = predict(plan, 1).slice_templates
    assert {name: str(item.value) for name, item in template.devices[0].capacity.items()} == {"memory": "97887Mi"}


@pytest.mark.parametrize("plan", NEAR_MISSES)
def test_near_misses_keep_count_and_type_only(plan: str) -> None:
    assert family_of(plan) is None
    [template] = predict(plan, 3).slice_templates
    assert [set(device.attributes) for device in template.devices] == [{"type"}] * 3
    assert all(device.capacity == {} for device in template.devices)


@pytest.mark.parametrize("plan", [*ADA, *BLACKWELL, *NEAR_MISSES])
def test_the_whole_id_must_match_the_anchored_pattern(plan: str) -> None:
    for family in families():
        assert family.pattern.startswith("^")
        assert family.pattern.endswith("$")
        anchored = re.compile(family.pattern[:-1] + r"\Z", re.ASCII)
        assert family.matches(plan) is (anchored.match(plan) is not None)


def test_every_value_has_a_source_and_a_kind() -> None:
    for family in families():
        for value in (*family.attributes.values(), *family.capacity.values()):
            assert value.kind in {"captured", "estimate"}
            assert len(value.source) > 20
        assert set(family.attributes) == {"productName", "brand", "architecture", "cudaComputeCapability"}
        assert set(family.capacity) == {"memory"}


def test_kinds_follow_the_evidence() -> None:
    ada, blackwell = families()
    assert ada.attributes["productName"].kind == ada.capacity["memory"].kind == "captured"
    assert ada.attributes["brand"].kind == "estimate"
    assert all(value.kind == "captured" for value in blackwell.attributes.values())


def test_families_exclude_one_another() -> None:
    assert all(sum(family.matches(plan) for family in families()) == 1 for plan in (*ADA, *BLACKWELL))


def test_versions_are_strict_semantic_versions() -> None:
    for family in families():
        for value in family.attributes.values():
            if value.value.version is not None:
                SemVer.parse(value.value.version)
