"""From a plan and the API's GPU count to devices."""

from __future__ import annotations

import pytest

from karpenter_linode.catalog import POOL, family_of, predict


@pytest.mark.parametrize("plan", ["g6-standard-2", "g1-accelerated-netint-vpu-t1u1-s", "g2-gpu-rtx4000a1-s"])
def test_without_gpus_there_are_no_devices(plan: str) -> None:
    assert predict(plan, 0).slice_templates == ()


@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
def test_the_api_tells_the_count_not_the_id(gpus: int) -> None:
    for plan in ("g2-gpu-rtx4000a1-s", "g3-gpu-rtxpro6000-blackwell-2", "g1-gpu-rtx6000-1", "g9-future-gpu"):
        [template] = predict(plan, gpus).slice_templates
        assert (template.driver, template.pool) == ("gpu.nvidia.com", POOL)
        assert [device.name for device in template.devices] == [f"gpu-{index}" for index in range(gpus)]


def test_devices_are_exclusive_and_whole() -> None:
    for plan in ("g2-gpu-rtx4000a4-s", "g3-gpu-rtxpro6000-blackwell-4"):
        [template] = predict(plan, 4).slice_templates
        assert template.shared_counters == ()
        for device in template.devices:
            assert device.attributes["type"].string == "gpu"
            assert not device.allow_multiple_allocations
            assert device.consumes_counters == ()
            assert device.taints == ()
    assert predict("g2-gpu-rtx4000a4-s", 4).attribute_bindings == ()


def test_memory_is_that_of_one_gpu_whatever_the_count() -> None:
    family = family_of("g2-gpu-rtx4000a4-s")
    assert family is not None
    for gpus in (1, 4):
        [template] = predict("g2-gpu-rtx4000a4-s", gpus).slice_templates
        assert {str(device.capacity["memory"].value) for device in template.devices} == {"20475Mi"}


@pytest.mark.parametrize("gpus", [-1, 129])
def test_impossible_counts_are_refused(gpus: int) -> None:
    with pytest.raises(ValueError, match=f"plan 'x': GPU count {gpus} is not between 0 and 128"):
        predict("x", gpus)
