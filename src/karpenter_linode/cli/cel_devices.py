"""Devices for ``cel`` to look at: those predicted for plans, and those of ResourceSlices."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal

import click

from karpenter_linode.catalog import family_of, predict
from karpenter_linode.cli.errors import Place, input_error
from karpenter_linode.cli.manifests import load
from karpenter_linode.dra.features import ALL_FEATURES
from karpenter_linode.dra.limits import unknown_attributes
from karpenter_linode.dra.pools import gather
from karpenter_linode.dra.selector import Shapes
from karpenter_linode.explain.text import counted, names
from karpenter_linode.model.resource import ResourceSlice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from karpenter_linode.dra.selector import Shape
    from karpenter_linode.model.core import NodeSelector
    from karpenter_linode.model.linode import LinodeType
    from karpenter_linode.model.resource import Device

SourceKind = Literal["plan", "slice"]


@dataclass(frozen=True, slots=True)
class Source:
    """A plan or a ResourceSlice with its devices.

    Args:
        kind: which of the two.
        name: plan id or name of the slice.
        driver: of the devices.
        devices: name of each device, and what a selector sees of it.
    """

    kind: SourceKind
    name: str
    driver: str
    devices: tuple[tuple[str, Shape], ...]


@dataclass(slots=True)
class Sources:
    """Everything a selector is tried on.

    Args:
        found: plans and slices.
        notes: what is worth knowing about them.
    """

    found: list[Source] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _shapes: Shapes = field(default_factory=Shapes)

    def add_plan(self, plan: LinodeType) -> None:
        """The devices predicted for a plan."""
        for template in predict(plan.id, plan.gpus).slice_templates:
            unknown = unknown_attributes(template.driver)
            devices = tuple(
                (device.name, self._shapes.of(template.driver, device, unknown)) for device in template.devices
            )
            self.found.append(Source("plan", plan.id, template.driver, devices))

    def add_slice(self, item: ResourceSlice) -> None:
        """The devices of a slice."""
        spec = item.spec
        devices = tuple((device.name, self._shapes.of(spec.driver, device)) for device in spec.devices)
        self.found.append(Source("slice", item.name, spec.driver, devices))


def of_plans(types: Sequence[LinodeType], wanted: Sequence[str]) -> Sources:
    """The devices of some plans, or of all plans that have any.

    Args:
        types: the plans there are.
        wanted: ids of plans; empty for all.

    Raises:
        UsageError: no such plan, or one without devices.
    """
    known = {plan.id: plan for plan in types}
    sources = Sources()
    for name in dict.fromkeys(wanted):
        plan = known.get(name)
        if plan is None:
            near = get_close_matches(name, known, n=1)
            hint = f"; is {near[0]} meant?" if near else ""
            raise click.BadParameter(f"no plan {name!r}{hint}", param_hint="--plan")
        if plan.gpus == 0:
            message = f"plan {name} has no GPU, so no devices are predicted for it"
            raise click.BadParameter(message, param_hint="--plan")
        sources.add_plan(plan)
    if not wanted:
        for plan in types:
            sources.add_plan(plan)
    strangers = [source.name for source in sources.found if family_of(source.name) is None]
    if strangers:
        message = f"the GPU model of {names(strangers)} is not in the catalog: only type is predicted for it"
        sources.notes.append(message)
    if not wanted:
        without = sum(plan.gpus == 0 for plan in types)
        if without:
            sources.notes.append(f"{counted(without, 'plan')} without GPUs left out: no devices are predicted for them")
    return sources


def of_files(paths: Sequence[str]) -> Sources:
    """The devices of the ResourceSlices in files.

    Raises:
        InputError: something cannot be read, is no valid slice, or there is none.
    """
    manifests = load(paths)
    slices = [obj for obj, _ in manifests.of(ResourceSlice)]
    if not slices:
        raise input_error(Place(", ".join(paths)), "no ResourceSlice in it")
    sources = of_slices(slices, slices)
    notes = [str(warning) for warning in manifests.warnings]
    others = len(manifests.objects) - len(slices) + sum(manifests.ignored.values())
    if others:
        notes.append(f"{counted(others, 'object')} other than ResourceSlices ignored")
    sources.notes[:0] = notes
    return sources


def of_slices(slices: Sequence[ResourceSlice], known: Sequence[ResourceSlice]) -> Sources:
    """The devices of slices.

    Args:
        slices: those to try.
        known: every slice there is; whether a pool is complete and at which generation is told by all of its slices.
    """
    sources = Sources()
    for item in slices:
        sources.add_slice(item)
    pools = {(item.spec.driver, item.spec.pool.name) for item in slices}
    sources.notes += _pool_notes([item for item in known if (item.spec.driver, item.spec.pool.name) in pools])
    return sources


class _Anywhere:
    """The reach of a place that gets at every device."""

    def node(self, name: str) -> bool:  # noqa: ARG002 - part of the protocol
        return True

    def selector(self, selector: NodeSelector) -> bool:  # noqa: ARG002 - part of the protocol
        return True


def _pool_notes(slices: Sequence[ResourceSlice]) -> Iterator[str]:
    """Pools whose devices no claim would be given, whatever its selector says."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for item in slices:
        pools.setdefault((item.spec.driver, item.spec.pool.name), []).append(item)
    for (driver, name), members in pools.items():
        newest = max(item.spec.pool.generation for item in members)
        old = [item.name for item in members if item.spec.pool.generation < newest]
        if old:
            yield (
                f"pool {driver}/{name} is at generation {newest}: the devices of {counted(len(old), 'older slice')} "
                f"({', '.join(old)}) are no longer given to claims"
            )
        pool = gather(members, _Anywhere(), ALL_FEATURES, Shapes())
        if pool is not None and pool.state:
            yield f"pool {driver}/{name} is {pool.state}: {pool.detail}; its devices are given to no claim"


def facts_of(device: Device) -> Iterator[tuple[str, str]]:
    """Attributes and capacities of a device as text, by name as published."""
    for name, attribute in device.attributes.items():
        members = (getattr(attribute, member) for member in attribute.__struct_fields__)
        value = next((member for member in members if member is not None), None)
        yield name, ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    for name, amount in device.capacity.items():
        yield name, str(amount.value)
