"""Predicted devices of instance types, ready for the search (spec/dra-allocation.md 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.dra.bindings import BoundDevices, bound_devices
from karpenter_linode.dra.devices import Candidate, CounterKey, PoolKey
from karpenter_linode.dra.limits import unknown_attributes
from karpenter_linode.model import codec
from karpenter_linode.model.resource import DeviceID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.dra.features import Features
    from karpenter_linode.dra.selector import Shapes
    from karpenter_linode.model.instance_type import DynamicResources
    from karpenter_linode.model.resource import ResourceSliceTemplate


class Prediction:
    """What a driver will publish on a node of an instance type. Equal predictions are one object.

    Args:
        number: identity among the predictions of one ``Predictions``.
        candidates: devices in template order.
        bindings: devices that will share a value nobody knows yet.
        budgets: declared counters by pool, in whole units.
    """

    __slots__ = ("bindings", "budgets", "candidates", "number")

    def __init__(
        self,
        number: int,
        candidates: tuple[Candidate, ...],
        bindings: BoundDevices,
        budgets: dict[PoolKey, dict[CounterKey, int]],
    ) -> None:
        self.number = number
        self.candidates = candidates
        self.bindings = bindings
        self.budgets = budgets


class Predictions:
    """Finds the prediction of an instance type."""

    def __init__(self, features: Features, shapes: Shapes) -> None:
        self._features = features
        self._shapes = shapes
        self._by_text: dict[bytes, Prediction] = {}
        self._by_object: dict[int, tuple[DynamicResources, Prediction]] = {}

    def of(self, resources: DynamicResources) -> Prediction:
        """The prediction of an instance type's dynamic resources."""
        known = self._by_object.get(id(resources))
        if known is not None:
            return known[1]
        text = codec.encode(resources)
        found = self._by_text.get(text)
        if found is None:
            found = self._by_text[text] = self._predict(resources)
        self._by_object[id(resources)] = (resources, found)
        return found

    def _predict(self, resources: DynamicResources) -> Prediction:
        budgets: dict[PoolKey, dict[CounterKey, int]] = {}
        for template in resources.slice_templates:
            for counter_set in template.shared_counters:
                pool = budgets.setdefault((template.driver, template.pool, True), {})
                for name, counter in counter_set.counters.items():
                    pool[counter_set.name, name] = counter.value.units
        candidates = tuple(
            candidate
            for template in resources.slice_templates
            for candidate in self._candidates(template, budgets.get((template.driver, template.pool, True), {}))
        )
        return Prediction(len(self._by_text), candidates, bound_devices(resources.attribute_bindings), budgets)

    def _candidates(self, template: ResourceSliceTemplate, budget: dict[CounterKey, int]) -> Iterator[Candidate]:
        for device in template.devices:
            if device.consumes_counters and not self._features.partitionable:
                continue
            candidate = Candidate(
                DeviceID(template.driver, template.pool, device.name, template=True),
                device,
                self._shapes.of(template.driver, device, unknown_attributes(template.driver)),
                local=True,
                shared=device.allow_multiple_allocations and self._features.consumable,
            )
            missing = next((counter for counter, _ in candidate.counters if counter not in budget), None)
            if missing is not None:
                candidate.unusable = f"it consumes counter {missing[1]} of set {missing[0]}, which no template declares"
            yield candidate
