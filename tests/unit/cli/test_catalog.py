"""``catalog``: plans, prices, predictions and their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[..., Any]


def test_list_shows_price_size_and_gpu_model(command: Command) -> None:
    rows = {row["plan"]: row for row in command("catalog", "list", "-o", "json").data["plans"]}
    assert rows["g2-gpu-rtx4000a1-s"] == {
        "plan": "g2-gpu-rtx4000a1-s",
        "class": "gpu",
        "vcpus": 4,
        "memoryMiB": 16384,
        "gpus": 1,
        "gpuModel": "RTX 4000 Ada",
        "pricePerHour": "0.52",
        "usable": True,
    }
    assert rows["g1-gpu-rtx6000-1"]["usable"] is False
    assert "can't be deployed in LKE" in rows["g1-gpu-rtx6000-1"]["reason"]


def test_only_gpu_plans(command: Command) -> None:
    result = command("catalog", "list", "--gpu")
    assert result.code == 0
    assert all("gpu" in line for line in result.out.splitlines()[1:])


def test_a_region_has_its_own_prices_and_availability(command: Command) -> None:
    def row(region: str) -> Any:
        plans = command("catalog", "list", "--region", region, "-o", "json").data["plans"]
        return next(plan for plan in plans if plan["plan"] == "g2-gpu-rtx4000a1-s")

    assert row("br-gru")["pricePerHour"] == "0.728"
    assert row("us-east")["usable"] is False
    assert "not available in region us-east" in row("us-east")["reason"]


def test_show_tells_what_pods_can_use_and_the_source_of_every_value(command: Command) -> None:
    data = command("catalog", "show", "g2-gpu-rtx4000a2-s", "-o", "json").data
    assert data["device"]["count"] == 2
    assert data["device"]["attributes"]["productName"]["value"] == "NVIDIA RTX 4000 Ada Generation"
    assert data["device"]["capacity"]["memory"]["value"] == "20475Mi"
    for value in (*data["device"]["attributes"].values(), *data["device"]["capacity"].values()):
        assert value["kind"] in {"captured", "estimate"}
        assert value["source"]
    assert data["allocatable"]["pods"] == "110"
    assert "nvidia.com/gpu" not in data["allocatable"]
    assert data["provenance"]


def test_show_as_text(command: Command) -> None:
    text = command("catalog", "show", "g2-gpu-rtx4000a1-s").out
    assert "$0.52 per hour in region us-ord" in text
    assert "predicted devices: 1 x driver gpu.nvidia.com, type gpu" in text
    assert "20475Mi  (captured)" in text


def test_a_gpu_plan_outside_the_catalog_is_count_and_type_only(command: Command) -> None:
    text = command("catalog", "show", "g1-gpu-rtx6000-2").out
    assert "predicted devices: 2 x driver gpu.nvidia.com, type gpu" in text
    assert "model not in the catalog" in text
    assert "not usable" in text


def test_a_plan_without_gpus_has_no_devices(command: Command) -> None:
    assert "device" not in command("catalog", "show", "g6-standard-4", "-o", "json").data


def test_a_plan_that_is_not_there(command: Command) -> None:
    result = command("catalog", "show", "g2-gpu-rtx4000a8-s")
    assert result.code == 2
    assert "is g2-gpu-rtx4000a" in result.err
    assert "belongs to the family RTX 4000 Ada" in result.err
