"""``catalog``: the plans the program knows, what a node of each offers, and where every value comes from."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from karpenter_linode.catalog import family_of
from karpenter_linode.cli import options
from karpenter_linode.cli.output import note, print_data, print_lines
from karpenter_linode.explain.text import Line, dollars, table
from karpenter_linode.linode.instance_types import build_instance_types, unavailable_plans
from karpenter_linode.linode.plan_filter import STANDARD, PlanFilter, hourly_price, refuse_plan
from karpenter_linode.linode.tables import bundled_availability, bundled_tables
from karpenter_linode.model import codec
from karpenter_linode.scheduling.resources import allocatable, to_resource_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.catalog import Family
    from karpenter_linode.linode.tables import BundledPlan
    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.model.resource import DeviceAttribute

_HEADER = ("PLAN", "CLASS", "VCPU", "MEMORY", "GPU", "GPU MODEL", "PRICE/H", "USABLE")
_PLAIN_GIB = 1024


@click.group("catalog", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Look at the plans that ship with the program.

    \b
    Examples:
      karpenter-linode catalog list --gpu
      karpenter-linode catalog show g2-gpu-rtx4000a1-s
    """  # noqa: D301 - \b is click's mark for "do not rewrap"


@command.command("list", short_help="List plans: size, GPUs, price, usable or not.")
@click.option("--gpu", is_flag=True, help="Only plans with GPUs.")
@options.region
@options.output
def list_plans(*, gpu: bool, region: str | None, output: str) -> None:
    """List plans: size, GPUs, price, and whether a node can be built from them."""
    where = options.known_region(region)
    rows = [_row(plan, where) for plan in bundled_tables().types if plan.type.gpus or not gpu]
    if output != "table":
        print_data({"region": where, "plans": rows}, output)
        return
    print_lines(table(_HEADER, [_cells(row) for row in rows]))
    note(f"prices of region {where}; a live controller asks the Linode API for plans, prices and availability instead")


@command.command("show", short_help="Show one PLAN, and where its values come from.")
@click.argument("plan")
@options.region
@options.output
def show_plan(plan: str, *, region: str | None, output: str) -> None:
    """Show one PLAN: what pods can use on a node of it, the GPUs predicted for it, and the source of every value."""
    where = options.known_region(region)
    found = next((item for item in bundled_tables().types if item.type.id == plan), None)
    if found is None:
        raise click.BadParameter(_unknown(plan), param_hint="PLAN")
    data = _details(found, where)
    if output == "table":
        print_lines(_detail_lines(data))
    else:
        print_data(data, output)


def _unknown(plan: str) -> str:
    near = get_close_matches(plan, [item.type.id for item in bundled_tables().types], n=1)
    family = family_of(plan)
    hint = f"; is {near[0]} meant?" if near else ""
    known = (
        f" Its id belongs to the family {family.title}: each of its GPUs would be predicted as such." if family else ""
    )
    return f"no plan {plan!r} ships with the program{hint}{known}"


def _row(plan: BundledPlan, region: str) -> dict[str, Any]:
    price = hourly_price(plan.type, region)
    family = family_of(plan.type.id) if plan.type.gpus else None
    return {
        "plan": plan.type.id,
        "class": plan.type.class_,
        "vcpus": plan.type.vcpus,
        "memoryMiB": plan.type.memory,
        "gpus": plan.type.gpus,
        "gpuModel": family.title if family else "",
        "pricePerHour": dollars(price) if price is not None else None,
        "usable": _unusable(plan, region) is None,
        **({"reason": _unusable(plan, region)} if _unusable(plan, region) else {}),
    }


def _unusable(plan: BundledPlan, region: str) -> str | None:
    refusal = refuse_plan(plan.type, region, STANDARD, PlanFilter())
    if refusal is not None:
        return refusal.message
    if plan.type.id in unavailable_plans(bundled_availability(region), region):
        return f"plan {plan.type.id} is not available in region {region}"
    return None


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    memory = row["memoryMiB"]
    price = row["pricePerHour"]
    return (
        row["plan"],
        row["class"],
        str(row["vcpus"]),
        f"{memory // _PLAIN_GIB}Gi" if memory % _PLAIN_GIB == 0 else f"{memory}Mi",
        str(row["gpus"]) if row["gpus"] else "-",
        row["gpuModel"] or ("not in the catalog" if row["gpus"] else "-"),
        f"${price}" if price is not None else "-",
        "yes" if row["usable"] else "no",
    )


def _details(plan: BundledPlan, region: str) -> dict[str, Any]:
    family = family_of(plan.type.id) if plan.type.gpus else None
    built = build_instance_types([plan.type], bundled_availability(region), region, ignore_dra_requests=False)
    sources = bundled_tables().sources
    return {
        **_row(plan, region),
        "region": region,
        **({"allocatable": _allocatable(built[0])} if built else {}),
        "labels": {spec.key: spec.values[0] for spec in built[0].requirements if spec.values} if built else {},
        **({"device": _device(family, plan.type.gpus)} if plan.type.gpus else {}),
        "provenance": {name: f"{source}{_gloss(source, sources)}" for name, source in plan.provenance.items()},
    }


def _gloss(source: str, sources: dict[str, str]) -> str:
    return f": {sources[source]}" if source in sources else ""


def _allocatable(kind: InstanceType) -> dict[str, str]:
    return {name: str(amount) for name, amount in sorted(to_resource_list(allocatable(kind)).items())}


def _device(family: Family | None, gpus: int) -> dict[str, Any]:
    known = {
        name: {"value": _text(item.value), "kind": item.kind, "source": item.source}
        for name, item in (family.attributes.items() if family else ())
    }
    amounts = {
        name: {"value": str(item.value), "kind": item.kind, "source": item.source}
        for name, item in (family.capacity.items() if family else ())
    }
    return {"count": gpus, "type": "gpu", "attributes": known, "capacity": amounts}


def _text(value: DeviceAttribute) -> str:
    return str(next(iter(codec.to_plain(value).values())))


def _detail_lines(data: dict[str, Any]) -> Iterator[Line]:
    yield Line(data["plan"], "title")
    price = data["pricePerHour"]
    yield Line(f"  class {data['class']}, {data['vcpus']} vCPU, {data['memoryMiB']} MiB, {data['gpus']} GPU")
    yield Line(f"  {'$' + price + ' per hour' if price is not None else 'not sold'} in region {data['region']}")
    yield Line("  usable", "good") if data["usable"] else Line(f"  not usable: {data['reason']}", "bad")
    if "allocatable" in data:
        yield Line("  for pods")
        yield from (Line(f"    {name:20} {amount}") for name, amount in data["allocatable"].items())
    if "device" in data:
        yield from _device_lines(data["device"])
    yield Line("  where this is known from")
    yield from (Line(f"    {name}: {source}", "dim") for name, source in data["provenance"].items())


def _device_lines(device: dict[str, Any]) -> Iterator[Line]:
    yield Line(f"  predicted devices: {device['count']} x driver gpu.nvidia.com, type gpu")
    if not device["attributes"]:
        yield Line("    model not in the catalog: selectors that read more than type do not match")
    for name, item in {**device["attributes"], **device["capacity"]}.items():
        yield Line(f"    {name:22} {item['value']}  ({item['kind']})")
        yield Line(f"      {item['source']}", "dim")
