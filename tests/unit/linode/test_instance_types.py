"""Plans as instance types: spec/linode-provider.md 3.2, 3.3 and 3.6."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from karpenter_linode.linode.instance_types import InstanceTypeOptions, build_instance_types, refused_plans
from karpenter_linode.linode.plan_filter import PlanFilter, dollars
from karpenter_linode.linode.tables import bundled_availability, bundled_tables, bundled_types
from karpenter_linode.model import labels
from karpenter_linode.model.linode import LinodeType, Price, RegionAvailability, RegionPrice
from karpenter_linode.model.requirements import Requirements

if TYPE_CHECKING:
    from karpenter_linode.model.instance_type import InstanceType

US = "us-ord"
TYPES = bundled_types()


def _built(region: str = US, **options: object) -> dict[str, InstanceType]:
    built = build_instance_types(TYPES, (), region, options=InstanceTypeOptions(**options))  # type: ignore[arg-type]
    return {item.name: item for item in built}


def _values(item: InstanceType) -> dict[str, str]:
    return {spec.key: spec.values[0] for spec in item.requirements if spec.operator == "In"}


def test_the_labels_of_a_plan() -> None:
    assert _values(_built()["g2-gpu-rtx4000a2-s"]) == {
        "node.kubernetes.io/instance-type": "g2-gpu-rtx4000a2-s",
        "topology.kubernetes.io/region": US,
        "topology.kubernetes.io/zone": US,
        "topology.linode.com/region": US,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.k8s.linode/instance-cpu": "8",
        "karpenter.k8s.linode/instance-memory": "32768",
        "karpenter.k8s.linode/instance-disk": "1024000",
        "karpenter.k8s.linode/instance-transfer": "0",
        "karpenter.k8s.linode/instance-network-out": "0",
        "karpenter.k8s.linode/instance-class": "gpu",
        "karpenter.k8s.linode/instance-gpu-count": "2",
        "karpenter.k8s.linode/instance-accelerated-devices-count": "0",
        "karpenter.k8s.linode/instance-generation": "2",
        "karpenter.k8s.linode/instance-gpu-name": "rtx4000a2",
        "karpenter.k8s.linode/instance-gpu-model": "rtx4000-ada",
    }


@pytest.mark.parametrize(
    ("plan", "name", "model"),
    [
        ("g1-gpu-rtx6000-1", "rtx6000", "rtx6000"),
        ("g3-gpu-rtxpro6000-blackwell-1", "rtxpro6000", "rtxpro6000-blackwell"),
        ("g2-gpu-rtx4000a1-hs", "rtx4000a1", "rtx4000-ada"),
        ("g9-gpu-new-1", "new", "new"),
    ],
)
def test_gpu_names_and_models(plan: str, name: str, model: str) -> None:
    item = LinodeType(plan, class_="gpu", vcpus=1, memory=1024, gpus=1, price=Price(Decimal(1)))
    options = InstanceTypeOptions(plans=PlanFilter(allow=frozenset({plan})))
    (built,) = build_instance_types([item], (), US, options=options)
    assert _values(built)[labels.LINODE_INSTANCE_GPU_NAME] == name
    assert _values(built)[labels.LINODE_INSTANCE_GPU_MODEL] == model


def test_every_well_known_label_is_decided_by_every_plan() -> None:
    for item in _built().values():
        assert {spec.key for spec in item.requirements} == labels.WELL_KNOWN - {labels.NODEPOOL}


@pytest.mark.parametrize("key", sorted(labels.WELL_KNOWN - {labels.NODEPOOL, labels.WINDOWS_BUILD}))
def test_every_well_known_label_can_be_asked_for_alone(key: str) -> None:
    value = next(values[key] for item in _built().values() if key in (values := _values(item)))
    asked = Requirements.from_labels({key: value})
    assert any(Requirements.from_specs(item.requirements).compatible(asked) for item in _built().values())


def test_a_pod_that_asks_for_a_gpu_name_fits_gpu_plans_only() -> None:
    asked = Requirements.from_labels({labels.LINODE_INSTANCE_GPU_MODEL: "rtx4000-ada"})
    fitting = [name for name, item in _built().items() if Requirements.from_specs(item.requirements).intersects(asked)]
    assert fitting
    assert all(name.startswith("g2-gpu-rtx4000") for name in fitting)


def test_one_offering_in_the_region_on_demand() -> None:
    (offering,) = _built()["g6-standard-2"].offerings
    assert {spec.key: spec.values for spec in offering.requirements} == {
        labels.REGION: (US,),
        labels.ZONE: (US,),
        labels.CAPACITY_TYPE: ("on-demand",),
    }
    assert offering.price == 36_000_000
    assert dollars(offering.price) == Decimal("0.036")


@pytest.mark.parametrize(("region", "price"), [(US, 520_000_000), ("id-cgk", 624_000_000), ("br-gru", 728_000_000)])
def test_regional_prices_win(region: str, price: int) -> None:
    assert _built(region)["g2-gpu-rtx4000a1-s"].offerings[0].price == price


def test_a_null_price_excludes_and_never_counts_as_free() -> None:
    plan = LinodeType("g8-x-1", class_="dedicated", vcpus=1, memory=4096, price=Price(None, Decimal(5)))
    nowhere = replace(plan, price=Price(Decimal(1)), region_prices=(RegionPrice(US, None),))
    assert build_instance_types([plan, nowhere], (), US) == ()
    assert [reason.code for reason in refused_plans([plan, nowhere], US)] == ["plan-price", "plan-price"]
    assert len(build_instance_types([nowhere], (), "de-fra-2")) == 1


def test_hourly_prices_are_exact() -> None:
    plan = LinodeType("g6-x-1", class_="standard", vcpus=1, memory=4096, price=Price(Decimal("0.0075")))
    assert build_instance_types([plan], (), US)[0].offerings[0].price == 7_500_000


def _availability(*rows: tuple[str, str, bool]) -> list[RegionAvailability]:
    return [RegionAvailability(region, plan, available) for region, plan, available in rows]


def test_a_plan_that_is_not_listed_is_available() -> None:
    rows = _availability((US, "g2-gpu-rtx4000a1-s", False))
    offered = {item.name: item.offerings[0].available for item in build_instance_types(TYPES, rows, US)}
    assert not offered.pop("g2-gpu-rtx4000a1-s")
    assert all(offered.values())


def test_any_row_that_says_available_wins_and_other_regions_do_not_count() -> None:
    plan = "g2-gpu-rtx4000a1-s"
    for rows in ([(US, plan, False), (US, plan, True)], [(US, plan, True), (US, plan, False)], [("x", plan, False)]):
        built = build_instance_types(TYPES, _availability(*rows), US)
        assert next(item for item in built if item.name == plan).offerings[0].available


def test_a_plan_that_was_sold_out_a_moment_ago_is_kept_but_not_offered() -> None:
    built = build_instance_types(TYPES, (), US, unavailable=frozenset({"g6-standard-2"}))
    assert [item.name for item in built if not item.offerings[0].available] == ["g6-standard-2"]


@pytest.mark.parametrize(
    ("plan", "plan_class", "code"),
    [
        ("g6-nanode-1", "nanode", "plan-class"),
        ("g1-gpu-rtx6000-2", "gpu", "plan-id"),
        ("g6-dedicated-edge-2", "dedicated", "plan-id"),
        ("g6-nanode-edge-1", "standard", "plan-id"),
        ("g1-metal-1", "metal", "plan-class"),
        ("g1-pro-1", "prodedicated", "plan-class"),
    ],
)
def test_plans_that_cannot_back_a_node_are_refused_with_a_reason(plan: str, plan_class: str, code: str) -> None:
    item = LinodeType(plan, class_=plan_class, vcpus=1, memory=1024, price=Price(Decimal(1)))
    (reason,) = refused_plans([item], US)
    assert (reason.code, reason.subject) == (code, f"plan {plan}")
    assert plan in reason.message
    assert build_instance_types([item], (), US) == ()
    allowed = InstanceTypeOptions(plans=PlanFilter(allow=frozenset({plan})))
    assert len(build_instance_types([item], (), US, options=allowed)) == 1


def test_gpu_plans_are_for_the_standard_tier_unless_enabled() -> None:
    assert "g2-gpu-rtx4000a1-s" in _built()
    assert "g2-gpu-rtx4000a1-s" not in _built(tier="enterprise")
    assert "g2-gpu-rtx4000a1-s" in _built(tier="enterprise", plans=PlanFilter(enterprise_gpu=True))
    assert "g6-standard-2" not in _built(plans=PlanFilter(deny=frozenset({"g6-standard-2"})))


def test_devices_are_predicted_with_dra_and_the_gpu_resource_disappears() -> None:
    (item,) = (
        item
        for item in build_instance_types(TYPES, (), US, ignore_dra_requests=False)
        if item.name == "g2-gpu-rtx4000a4-s"
    )
    (template,) = item.dynamic_resources.slice_templates
    assert (template.driver, len(template.devices)) == (labels.NVIDIA_DRIVER, 4)
    assert labels.GPU_RESOURCE not in item.capacity


@pytest.mark.parametrize("gpus", [-1, 129])
def test_a_plan_with_an_impossible_number_of_gpus_does_not_stop_the_others(gpus: int) -> None:
    odd = replace(TYPES[0], id="g9-odd", gpus=gpus)
    (reason,) = refused_plans([odd], US)
    assert (reason.code, reason.message) == ("plan-size", f"plan g9-odd reports {gpus} GPUs, expected 0 to 128")
    built = build_instance_types([odd, *TYPES], (), US, ignore_dra_requests=False)
    assert "g9-odd" not in {item.name for item in built}


def test_netint_has_no_devices_and_a_resource_only_on_request() -> None:
    name = "g1-accelerated-netint-vpu-t1u1-s"
    (plain,) = (i for i in build_instance_types(TYPES, (), US, ignore_dra_requests=False) if i.name == name)
    assert plain.dynamic_resources.slice_templates == ()
    assert set(plain.capacity) == {"cpu", "memory", "pods", "ephemeral-storage"}
    assert str(_built(accelerator_resource="netint.com/quadra")[name].capacity["netint.com/quadra"]) == "1"


def test_order_is_by_name_whatever_the_order_of_the_answer() -> None:
    built = build_instance_types(TYPES, (), US)
    assert built == build_instance_types(tuple(reversed(TYPES)), (), US)
    assert [item.name for item in built] == sorted(item.name for item in built)


def test_every_bundled_value_names_a_known_source() -> None:
    tables = bundled_tables()
    for plan in tables.types:
        assert plan.provenance, plan.type.id
        for source in plan.provenance.values():
            known = [name for name in tables.sources if name in source]
            assert known, f"{plan.type.id}: {source}"
        assert plan.type.price.hourly is not None
        assert min(plan.type.vcpus, plan.type.memory, plan.type.disk) > 0
    assert not set(tables.omitted) & {plan.type.id for plan in tables.types}


def test_bundled_availability_lists_limited_plans_only() -> None:
    rows = {row.plan: row.available for row in bundled_availability(US)}
    assert rows["g2-gpu-rtx4000a1-s"]
    assert not rows["g3-gpu-rtxpro6000-blackwell-1"]
    assert "g6-standard-2" not in rows


def test_instance_types_load_no_http_library() -> None:
    code = (
        "import sys; import karpenter_linode.linode.instance_types, karpenter_linode.linode.tables;"
        "print([m for m in sys.modules if m.split('.')[0] in {'httpx2', 'starlette', 'asyncio', 'ssl'}])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    assert done.stdout.strip() == "[]"
