"""Claims made ready for the search: requests with their class looked up, selectors found, constraints read.

Claims with equal specs share one prepared spec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from karpenter_linode.dra.constraints import Constraint
from karpenter_linode.dra.errors import AllocationError
from karpenter_linode.dra.limits import Limit, config_limits, request_limits
from karpenter_linode.dra.selector import Selector, Selectors
from karpenter_linode.model import codec
from karpenter_linode.model.resource import ALL, EXACT_COUNT, DeviceConfiguration, DeviceToleration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from karpenter_linode.dra.features import Features
    from karpenter_linode.model.resource import (
        DeviceClass,
        DeviceConstraint,
        DeviceRequest,
        DeviceSelector,
        DeviceSubRequest,
        ExactDeviceRequest,
        ResourceClaim,
        ResourceClaimSpec,
    )


class PlacedSelector(Struct, frozen=True):
    """A selector and where it stands.

    Args:
        owner: ``class gpu`` or ``request gpu``.
        number: counted from 1 among the selectors of its owner.
        count: how many selectors the owner has.
        selector: the expression.
    """

    owner: str
    number: int
    count: int
    selector: Selector

    @property
    def place(self) -> str:
        """Where, for messages: ``request gpu, selector 1 of 2``."""
        return _selector_place(self.owner, self.number, self.count)


def _selector_place(owner: str, number: int, count: int) -> str:
    return f"{owner}, selector {number}" + (f" of {count}" if count > 1 else "")


class Alternative(Struct, frozen=True):
    """One way to serve a request: the request itself, or one entry of ``firstAvailable``.

    Args:
        number: identity among all alternatives of one ``Preparer``.
        label: ``request`` or ``request/subrequest``.
        request: the bare name of the request.
        path: field path, for messages.
        device_class: name of the class.
        selectors: of the class, then of the request; all must hold.
        everything: mode ``All``.
        count: devices, with mode ``ExactCount``.
        admin: administrative access.
        tolerations: of device taints.
        capacity: nano-units asked of each device.
        scope: positions of the claim's constraints that apply.
        limits: what it relies on that no predicted device can promise; with any, only published devices serve it.
    """

    number: int
    label: str
    request: str
    path: str
    device_class: str
    selectors: tuple[PlacedSelector, ...]
    everything: bool
    count: int
    admin: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: dict[str, int]
    scope: tuple[int, ...]
    limits: tuple[Limit, ...]


class _Place(Struct, frozen=True):
    """Where an alternative stands in its claim, and what of the claim concerns it."""

    path: str
    request: str
    label: str
    constraints: tuple[Constraint, ...]
    configs: tuple[DeviceConfiguration, ...]


class PreparedRequest(Struct, frozen=True):
    """A request and the ways to serve it, in order of preference."""

    name: str
    path: str
    alternatives: tuple[Alternative, ...]


class PreparedSpec(Struct, frozen=True):
    """What a claim asks for. ``number`` identifies the spec among those of one ``Preparer``."""

    number: int
    requests: tuple[PreparedRequest, ...]
    constraints: tuple[Constraint, ...]


class PreparedClaim(Struct, frozen=True):
    """A claim to allocate."""

    key: str
    spec: PreparedSpec


class Preparer:
    """Prepares claims against a set of device classes.

    Args:
        classes: all classes of the cluster.
        features: what the cluster has switched on.
        selectors: where expressions are found.
        strict: refuse an empty allocation mode as kube-scheduler does. Otherwise an object that the API server has not
            defaulted yet reads as the API server would default it (trap T14).
    """

    def __init__(
        self, classes: Iterable[DeviceClass], features: Features, selectors: Selectors, *, strict: bool = False
    ) -> None:
        self._classes: Mapping[str, DeviceClass] = {item.name: item for item in classes}
        self._features = features
        self._selectors = selectors
        self._strict = strict
        self._specs: dict[bytes, PreparedSpec | AllocationError] = {}
        self._alternatives = 0

    def claim(self, claim: ResourceClaim) -> PreparedClaim:
        """A claim made ready.

        Raises:
            AllocationError: unknown class, mode or constraint kind, or a selector that is not CEL. The message names
                claim and request.
        """
        found = self.spec(claim.spec)
        if isinstance(found, AllocationError):
            raise found.of_claim(claim.key)
        return PreparedClaim(claim.key, found)

    def spec(self, spec: ResourceClaimSpec) -> PreparedSpec | AllocationError:
        """The prepared spec, or what is wrong with it, without the claim's name in it."""
        text = codec.encode(spec)
        found = self._specs.get(text)
        if found is None:
            try:
                found = self._prepare(spec)
            except AllocationError as error:
                found = error.with_traceback(None)
            self._specs[text] = found
        return found

    def _prepare(self, spec: ResourceClaimSpec) -> PreparedSpec:
        devices = spec.devices
        constraints = tuple(self._constraint(index, constraint) for index, constraint in enumerate(devices.constraints))
        requests = tuple(
            self._request(f"spec.devices.requests[{index}]", request, constraints, devices.config)
            for index, request in enumerate(devices.requests)
        )
        return PreparedSpec(len(self._specs), requests, constraints)

    def _constraint(self, index: int, constraint: DeviceConstraint) -> Constraint:
        scope = frozenset(constraint.requests)
        if constraint.match_attribute is not None:
            return Constraint("match", constraint.match_attribute, scope)
        if constraint.distinct_attribute is not None and self._features.consumable:
            return Constraint("distinct", constraint.distinct_attribute, scope)
        raise AllocationError(
            "dra-unsupported-constraint",
            f"constraint #{index}: unsupported constraint: neither matchAttribute nor an enabled distinctAttribute",
        )

    def _request(
        self,
        path: str,
        request: DeviceRequest,
        constraints: tuple[Constraint, ...],
        configs: tuple[DeviceConfiguration, ...],
    ) -> PreparedRequest:
        if request.exactly is not None:
            place = _Place(f"{path}.exactly", request.name, request.name, constraints, configs)
            return PreparedRequest(request.name, path, (self._alternative(place, request.exactly),))
        if not request.first_available:
            raise AllocationError(
                "dra-unsupported-request", f"request {request.name}: neither exactly nor firstAvailable is set"
            )
        alternatives = tuple(
            self._alternative(
                _Place(
                    f"{path}.firstAvailable[{index}]", request.name, f"{request.name}/{item.name}", constraints, configs
                ),
                item,
            )
            for index, item in enumerate(request.first_available)
        )
        return PreparedRequest(request.name, path, alternatives)

    def _alternative(self, place: _Place, item: ExactDeviceRequest | DeviceSubRequest) -> Alternative:
        mode, count = self._mode(place.label, item)
        self._alternatives += 1
        capacity = item.capacity.requests if item.capacity is not None and self._features.consumable else {}
        selectors = self._placed_selectors(place.label, item)
        return Alternative(
            number=self._alternatives,
            label=place.label,
            request=place.request,
            path=place.path,
            device_class=item.device_class_name,
            selectors=selectors,
            everything=mode == ALL,
            count=count,
            admin=bool(getattr(item, "admin_access", None)),
            tolerations=item.tolerations,
            capacity={name: quantity.nano for name, quantity in capacity.items()},
            scope=tuple(
                index
                for index, constraint in enumerate(place.constraints)
                if constraint.covers(place.request, place.label)
            ),
            limits=tuple(self._limits(place, item)),
        )

    def _limits(self, place: _Place, item: ExactDeviceRequest | DeviceSubRequest) -> Iterator[Limit]:
        yield from request_limits(place.path, item)
        yield from config_limits("spec.devices.config", place.configs, place.request, place.label)
        of_class = self._classes[item.device_class_name].spec.config
        yield from config_limits(f"DeviceClass {item.device_class_name} spec.config", of_class, "", "")

    def _mode(self, label: str, item: ExactDeviceRequest | DeviceSubRequest) -> tuple[str, int]:
        mode, count = item.allocation_mode, item.count
        if not mode and not self._strict:
            mode = EXACT_COUNT
        if mode not in {EXACT_COUNT, ALL}:
            raise AllocationError(
                "dra-unsupported-mode",
                f"request {label}: unsupported allocation mode {mode!r}, expected {EXACT_COUNT} or {ALL}",
                (("allocationMode", mode),),
            )
        if mode == EXACT_COUNT and count == 0 and not self._strict:
            count = 1
        return mode, count

    def _placed_selectors(self, label: str, item: ExactDeviceRequest | DeviceSubRequest) -> tuple[PlacedSelector, ...]:
        found = self._classes.get(item.device_class_name)
        if found is None:
            raise AllocationError(
                "dra-class-missing",
                f"request {label}: DeviceClass {item.device_class_name!r} not found",
                (("deviceClassName", item.device_class_name),),
            )
        of_class = self._owned(f"class {found.name}", found.spec.selectors)
        return (*of_class, *self._owned(f"request {label}", item.selectors))

    def _owned(self, owner: str, selectors: tuple[DeviceSelector, ...]) -> tuple[PlacedSelector, ...]:
        placed = []
        for number, selector in enumerate(selectors, 1):
            if selector.cel is None:
                place = _selector_place(owner, number, len(selectors))
                raise AllocationError(
                    "dra-unsupported-selector", f"{place}: unsupported selector type (only CEL is supported)"
                )
            placed.append(PlacedSelector(owner, number, len(selectors), self._selectors.of(selector.cel.expression)))
        return tuple(placed)
