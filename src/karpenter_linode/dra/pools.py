"""Pools of published devices as one place sees them: generations, completeness, validity (spec/dra-allocation.md 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from msgspec.structs import replace

from karpenter_linode.dra.devices import Candidate, CounterKey, PoolKey, consumed_counters
from karpenter_linode.model.requirement import RequirementError
from karpenter_linode.model.requirements import EMPTY, Requirements
from karpenter_linode.model.resource import DeviceID
from karpenter_linode.model.selectors import term_holds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from karpenter_linode.dra.features import Features
    from karpenter_linode.dra.selector import Shapes
    from karpenter_linode.model.core import NodeSelector
    from karpenter_linode.model.resource import Device, ResourceSlice

UPDATING: Final = "currently being updated"
INVALID: Final = "currently invalid"


class Reach(Protocol):
    """Which devices a place can use."""

    def node(self, name: str) -> bool:
        """Whether devices of this node are usable."""
        ...

    def selector(self, selector: NodeSelector) -> bool:
        """Whether devices for the selected nodes are usable."""
        ...


class NodeReach:
    """The reach of a node that exists."""

    def __init__(self, name: str, node_labels: Mapping[str, str]) -> None:
        self._name = name
        self._labels = node_labels

    def node(self, name: str) -> bool:
        """Its own devices."""
        return bool(name) and name == self._name

    def selector(self, selector: NodeSelector) -> bool:
        """Any term of it holds for the node's labels and name."""
        return any(term_holds(term, self._labels, self._name) for term in selector.node_selector_terms)


class ClaimReach:
    """The reach of a NodeClaim that is no node yet: what its requirements still allow."""

    def __init__(self, requirements: Requirements, well_known: frozenset[str]) -> None:
        self._requirements = requirements
        self._well_known = well_known

    def node(self, name: str) -> bool:  # noqa: ARG002 - part of the protocol
        """Devices of existing nodes are out of reach."""
        return False

    def selector(self, selector: NodeSelector) -> bool:
        """Any term of it can still hold; a term on the node's name cannot."""
        for term in selector.node_selector_terms:
            if term.match_fields or not term.match_expressions:
                continue
            try:
                wanted = Requirements.from_specs(term.match_expressions)
            except RequirementError:
                continue
            if self._requirements.compatible(wanted, self._well_known):
                return True
        return False


class Pool:
    """A pool as seen from one place.

    Args:
        key: driver, pool name, predicted or not.
        candidates: usable devices, in slice order, then device order.
        state: empty, ``UPDATING`` or ``INVALID``; devices of such a pool are never given away.
        detail: for a pool with a state: what is wrong, for people.
        budgets: declared value of each counter, in whole units.
        consumers: every counter consumption declared in the pool, in reach or not.
    """

    __slots__ = ("budgets", "candidates", "consumers", "detail", "key", "state")

    def __init__(
        self,
        key: PoolKey,
        candidates: tuple[Candidate, ...],
        state: str,
        detail: str,
        budgets: dict[CounterKey, int],
        consumers: dict[str, tuple[tuple[CounterKey, int], ...]],
    ) -> None:
        self.key = key
        self.candidates = candidates
        self.state = state
        self.detail = detail
        self.budgets = budgets
        self.consumers = consumers

    @property
    def binds(self) -> bool:
        """Whether some device waits for binding conditions; such pools are tried last."""
        return any(candidate.device.binding_conditions for candidate in self.candidates)


def gather(
    slices: Sequence[ResourceSlice], reach: Reach, features: Features, shapes: Shapes, *, newest_only: bool = False
) -> Pool | None:
    """One pool from all slices of its driver and name, or None when nothing of it is in reach.

    The newest generation among the slices in reach counts. It is complete when as many slices as it declares are in
    reach, or exist at all unless a newer generation has begun elsewhere. Slices that disagree on the number declared
    leave it incomplete in any order.

    Args:
        slices: all slices of one driver and pool name.
        reach: what the place can use.
        features: what the cluster has switched on.
        shapes: where device shapes are found.
        newest_only: a generation that has been superseded anywhere is gone (spec 4). kube-scheduler still gives devices
            of the old one away while its own slices are all there; a plan had better not count on them.
    """
    usable = [item for item in slices if _slice_in_reach(item, reach, features)]
    if not usable:
        return None
    generation = max(item.spec.pool.generation for item in usable)
    usable = [item for item in usable if item.spec.pool.generation == generation]
    current = [item for item in slices if item.spec.pool.generation == generation]
    spec = usable[0].spec
    key: PoolKey = (spec.driver, spec.pool.name, False)
    superseded = any(item.spec.pool.generation > generation for item in slices)
    if superseded and newest_only:
        return None
    problem = _incomplete(usable, current, superseded=superseded)
    budgets = _budgets(current)
    consumers = {
        device.name: consumed_counters(device)
        for item in current
        for device in item.spec.devices
        if device.consumes_counters
    }
    if problem:
        return Pool(key, (), UPDATING, problem, budgets, consumers)
    if all(item.spec.shared_counters for item in usable):
        return None
    problem = _invalid(usable, current, budgets) if features.partitionable else _duplicates(usable)
    if problem:
        return Pool(key, (), INVALID, problem, budgets, consumers)
    candidates = tuple(_candidates(usable, reach, features, shapes))
    return Pool(key, candidates, "", "", budgets, consumers)


def _slice_in_reach(item: ResourceSlice, reach: Reach, features: Features) -> bool:
    spec = item.spec
    if spec.shared_counters and not features.partitionable:
        return False
    if spec.all_nodes:
        return True
    if spec.node_name:
        return reach.node(spec.node_name)
    if spec.node_selector is not None:
        return reach.selector(spec.node_selector)
    if spec.per_device_node_selection and features.partitionable:
        return any(_device_in_reach(device, reach) for device in spec.devices)
    return False


def _device_in_reach(device: Device, reach: Reach) -> bool:
    if device.all_nodes:
        return True
    if device.node_name:
        return reach.node(device.node_name)
    return device.node_selector is not None and reach.selector(device.node_selector)


def _incomplete(usable: Sequence[ResourceSlice], current: Sequence[ResourceSlice], *, superseded: bool) -> str:
    declared = sorted({item.spec.pool.resource_slice_count for item in current})
    generation = usable[0].spec.pool.generation
    if len(declared) > 1:
        counts = " and ".join(str(count) for count in declared)
        return f"generation {generation} is declared with {counts} slices"
    if declared[0] > 0 and (len(usable) == declared[0] or (not superseded and len(current) == declared[0])):
        return ""
    newer = ", and a newer generation has begun" if superseded else ""
    return f"generation {generation} shows {len(current)} of {declared[0]} slices{newer}"


def _budgets(current: Iterable[ResourceSlice]) -> dict[CounterKey, int]:
    return {
        (counter_set.name, name): counter.value.units
        for item in current
        for counter_set in item.spec.shared_counters
        for name, counter in counter_set.counters.items()
    }


def _duplicates(usable: Iterable[ResourceSlice]) -> str:
    seen: set[str] = set()
    for item in usable:
        for device in item.spec.devices:
            if device.name in seen:
                return f"device {device.name} is listed twice"
            seen.add(device.name)
    return ""


def _invalid(
    usable: Sequence[ResourceSlice], current: Iterable[ResourceSlice], budgets: Mapping[CounterKey, int]
) -> str:
    duplicate = _duplicates(usable)
    if duplicate:
        return duplicate
    current = list(current)
    sets: set[str] = set()
    for item in current:
        for counter_set in item.spec.shared_counters:
            if counter_set.name in sets:
                return f"counter set {counter_set.name} is listed twice"
            sets.add(counter_set.name)
    for item in current:
        for device in item.spec.devices:
            for counter, _ in consumed_counters(device):
                if counter not in budgets:
                    return f"device {device.name} consumes counter {counter[1]} of set {counter[0]}, which is not there"
    return ""


def _candidates(
    usable: Iterable[ResourceSlice], reach: Reach, features: Features, shapes: Shapes
) -> Iterator[Candidate]:
    for item in usable:
        spec = item.spec
        for device in spec.devices:
            if spec.per_device_node_selection:
                if not _device_in_reach(device, reach):
                    continue
                node_name, selector = device.node_name, device.node_selector
            else:
                node_name, selector = spec.node_name, spec.node_selector
            shareable = device.allow_multiple_allocations and features.consumable
            seen = device if shareable else replace(device, allow_multiple_allocations=False)
            candidate = Candidate(
                DeviceID(spec.driver, spec.pool.name, device.name),
                device,
                shapes.of(spec.driver, seen),
                local=bool(node_name) or device.binds_to_node,
                selector=selector,
                requirements=selector_requirements(selector),
                shared=shareable,
            )
            if device.consumes_counters and not features.partitionable:
                candidate.unusable = "it consumes counters, and the cluster does not support partitionable devices"
            yield candidate


def selector_requirements(selector: NodeSelector | None) -> Requirements:
    """The expressions of a slice's node selector as requirements; the API allows one term."""
    if selector is None:
        return EMPTY
    try:
        return Requirements.from_specs(
            expression for term in selector.node_selector_terms for expression in term.match_expressions
        )
    except RequirementError:
        return EMPTY
