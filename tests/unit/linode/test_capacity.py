"""What a node has and what is left for pods: spec/linode-provider.md 3.4 and 3.5."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from karpenter_linode.linode.capacity import capacity, overhead, pod_limit
from karpenter_linode.linode.tables import bundled_types
from karpenter_linode.model.instance_type import InstanceType
from karpenter_linode.model.karpenter import KubeletConfiguration
from karpenter_linode.model.quantity import QuantityError
from karpenter_linode.scheduling.resources import allocatable, to_resource_list

if TYPE_CHECKING:
    from karpenter_linode.model.linode import LinodeType

PLANS = {plan.id: plan for plan in bundled_types()}


def _left(plan: LinodeType, kubelet: KubeletConfiguration | None = None) -> dict[str, str]:
    kubelet = kubelet or KubeletConfiguration()
    has = capacity(plan, kubelet)
    item = InstanceType(plan.id, capacity=has, overhead=overhead(plan, has["memory"], kubelet))
    return {name: str(amount) for name, amount in to_resource_list(allocatable(item)).items()}


@pytest.mark.parametrize(
    ("plan", "cpu", "memory"),
    [
        ("g6-standard-1", "940m", "329Mi"),
        ("g6-standard-2", "1930m", "2223Mi"),
        ("g6-standard-4", "3920m", "6012Mi"),
        ("g6-standard-6", "5915m", "13590Mi"),
        ("g2-gpu-rtx4000a1-s", "3920m", "13590Mi"),
        ("g6-standard-32", "31850m", "180297Mi"),
    ],
)
def test_the_worked_values_of_the_specification(plan: str, cpu: str, memory: str) -> None:
    left = _left(PLANS[plan])
    assert (left["cpu"], left["memory"], left["pods"]) == (cpu, memory, "110")


def test_capacity_of_a_four_gigabyte_node_is_what_a_real_one_advertised() -> None:
    has = capacity(PLANS["g6-standard-2"])
    assert str(has["memory"]) == "3788Mi"
    assert str(has["ephemeral-storage"]) == "72Gi"
    assert set(has) == {"cpu", "memory", "pods", "ephemeral-storage"}


def test_a_nanode_has_less_than_nothing_left() -> None:
    assert _left(PLANS["g6-nanode-1"])["memory"].startswith("-")


@pytest.mark.parametrize(
    ("max_pods", "per_core", "expected"),
    [(None, None, 110), (0, None, 0), (30, None, 30), (None, 10, 20), (15, 10, 15), (None, 0, 110)],
)
def test_the_pod_limit_follows_the_kubelet(max_pods: int | None, per_core: int | None, expected: int) -> None:
    kubelet = KubeletConfiguration(max_pods=max_pods, pods_per_core=per_core)
    assert pod_limit(PLANS["g6-standard-2"], kubelet) == expected


def test_fewer_pods_reserve_less_memory() -> None:
    assert _left(PLANS["g6-standard-2"], KubeletConfiguration(max_pods=10))["memory"] == "3323Mi"


def test_gpus_are_counted_for_the_device_plugin_only() -> None:
    plan = PLANS["g2-gpu-rtx4000a4-s"]
    assert str(capacity(plan)["nvidia.com/gpu"]) == "4"
    assert "nvidia.com/gpu" not in capacity(plan, device_plugin_gpus=False)
    assert "nvidia.com/gpu" not in capacity(PLANS["g6-standard-2"])


def test_memory_overhead_is_exact_and_rounds_against_the_node() -> None:
    plan = PLANS["g6-standard-2"]
    assert str(capacity(plan, vm_memory_overhead=Fraction(0))["memory"]) == "4Gi"
    assert str(capacity(plan, vm_memory_overhead=Fraction(1, 4096 * 1024))["memory"]) == "4095Mi"


def test_a_reservation_replaces_one_key_and_leaves_the_others() -> None:
    kubelet = KubeletConfiguration(kube_reserved={"cpu": "500m"}, system_reserved={"memory": "100Mi"})
    left = _left(PLANS["g6-standard-2"], kubelet)
    assert (left["cpu"], left["memory"]) == ("1500m", "2123Mi")


@pytest.mark.parametrize(
    ("hard", "soft", "expected"),
    [
        ({}, {}, "100Mi"),
        ({"memory.available": "200Mi"}, {}, "200Mi"),
        ({"memory.available": "50Mi"}, {}, "50Mi"),
        ({"memory.available": "200Mi"}, {"memory.available": "300Mi"}, "300Mi"),
        ({"memory.available": "100%"}, {}, "0"),
        ({"memory.available": "25%"}, {}, "947Mi"),
        ({"nodefs.available": "10%"}, {}, "100Mi"),
    ],
)
def test_the_larger_eviction_threshold_counts(hard: dict[str, str], soft: dict[str, str], expected: str) -> None:
    plan = PLANS["g6-standard-2"]
    kubelet = KubeletConfiguration(eviction_hard=hard, eviction_soft=soft)
    parts = overhead(plan, capacity(plan)["memory"], kubelet)
    assert str(parts.eviction_threshold["memory"]) == expected


def test_a_reservation_that_is_no_quantity_is_an_error_that_quotes_it() -> None:
    kubelet = KubeletConfiguration(kube_reserved={"cpu": "lots"})
    plan = PLANS["g6-standard-2"]
    with pytest.raises(QuantityError, match="'lots'"):
        overhead(plan, capacity(plan)["memory"], kubelet)
