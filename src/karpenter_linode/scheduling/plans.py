"""The plans of a pool as bit positions: what meets a requirement, holds a request or can be bought is an integer.

Narrowing is ``&``. Every mask is computed once per distinct requirement; thresholds of resources are found by bisection
(spec/karpenter-scheduling.md 2.9, 5.2 to 5.4).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property
from itertools import accumulate
from operator import or_
from typing import TYPE_CHECKING, Final

from karpenter_linode.model import labels
from karpenter_linode.model.requirements import Requirements, meet
from karpenter_linode.scheduling import resources as res

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from karpenter_linode.model.instance_type import InstanceType, Offering
    from karpenter_linode.model.requirement import Requirement
    from karpenter_linode.scheduling.resources import Resources

NO_PRICE: Final = 1 << 62  # dearer than anything: no offering can be bought


class PlanOffering:
    """An offering with its requirements read."""

    __slots__ = ("available", "price", "requirements", "reservation_capacity")

    def __init__(self, source: Offering) -> None:
        self.requirements = Requirements.from_specs(source.requirements)
        self.price = source.price
        self.available = source.available
        self.reservation_capacity = source.reservation_capacity

    @property
    def capacity_type(self) -> str:
        """``on-demand``, ``spot`` or ``reserved``; "" where it is not said."""
        return capacity_type(self.requirements)


class Plan:
    """An instance type with everything read once, and those of its offerings that leave the same for pods.

    Args:
        source: the instance type.
        offerings: its offerings, or some of them.
        allocatable: what a node bought so leaves for pods.
    """

    __slots__ = ("allocatable", "capacity", "name", "offerings", "requirements", "source")

    def __init__(self, source: InstanceType, offerings: Iterable[Offering], allocatable: Resources) -> None:
        self.source = source
        self.name = source.name
        self.requirements = Requirements.from_specs(source.requirements)
        self.capacity = res.from_resource_list(source.capacity)
        self.allocatable = allocatable
        self.offerings = tuple(map(PlanOffering, offerings))


def read_plans(sources: Iterable[InstanceType]) -> Iterator[Plan]:
    """Instance types as plans, in order: one that leaves different amounts by how it is bought is several."""
    for source in sources:
        plain = [item for item in source.offerings if not (item.available and _overrides(item))]
        yield Plan(source, plain, res.allocatable(source))
        if len(plain) < len(source.offerings):
            by_room: dict[tuple[tuple[str, int], ...], list[Offering]] = {}
            for item in source.offerings:
                if item.available and _overrides(item):
                    by_room.setdefault(tuple(sorted(res.allocatable(source, item).items())), []).append(item)
            yield from (Plan(source, offerings, dict(room)) for room, offerings in by_room.items())


def _overrides(offering: Offering) -> bool:
    return bool(offering.capacity_override) or offering.overhead_override is not None


class Market:
    """What can be bought under one set of requirements.

    Args:
        mask: plans with an available offering that meets them.
        prices: nano-dollars of the cheapest such offering, by position; ``NO_PRICE`` where there is none.
        capacity_types: plans by the capacity type of such offerings.
    """

    __slots__ = ("_plans", "capacity_types", "mask", "prices")

    def __init__(self, plans: PlanSet, mask: int, prices: list[int], capacity_types: dict[str, int]) -> None:
        self._plans = plans
        self.mask = mask
        self.prices = prices
        self.capacity_types = capacity_types

    def order(self, mask: int) -> list[int]:
        """Positions in ``mask``, cheapest first, ties by name."""
        prices, names = self.prices, self._plans.names
        return sorted(bits(mask), key=lambda position: (prices[position], names[position]))

    def names(self, mask: int) -> list[str]:
        """Names of the instance types in ``mask``, cheapest first, each once."""
        names = self._plans.names
        return list(dict.fromkeys(names[position] for position in self.order(mask)))

    def cheapest(self, mask: int) -> int:
        """The lowest price in ``mask``."""
        prices = self.prices
        return min((prices[position] for position in bits(mask)), default=NO_PRICE)


class Thresholds(dict[str, tuple[list[int], list[int]]]):
    """By resource: its amounts in ascending order, and for each the plans that have at least that much, then none."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        super().__init__()
        self._plans = plans

    def __missing__(self, name: str) -> tuple[list[int], list[int]]:
        """Worked out when a resource is first asked for."""
        by_amount = _by_amount(plan.allocatable.get(name, 0) for plan in self._plans)
        amounts = sorted(by_amount)
        masks = list(accumulate((by_amount[amount] for amount in reversed(amounts)), or_))[::-1]
        masks.append(0)
        found = self[name] = (amounts, masks)
        return found


class PlanSet:
    """An ordered set of plans; position ``i`` of the sequence is bit ``1 << i`` of every mask.

    Args:
        plans: the plans, in the provider's order; those of one instance type stand together.
        well_known: label keys that requirements may leave undefined.
    """

    def __init__(self, plans: Sequence[Plan], well_known: frozenset[str]) -> None:
        self.plans = tuple(plans)
        self.names = tuple(plan.name for plan in plans)
        self.well_known = well_known
        self.everything = (1 << len(self.plans)) - 1
        self.thresholds = Thresholds(self.plans)
        self._by_requirement: dict[Requirement, int] = {}
        self._markets: dict[Requirements, Market] = {}
        self._sources: dict[int, tuple[InstanceType, ...]] = {}
        self._subsets: dict[int, PlanSet] = {}

    def __len__(self) -> int:
        return len(self.plans)

    def subset(self, mask: int) -> PlanSet:
        """The plans of a mask as a set of their own; the same object each time."""
        if mask == self.everything:
            return self
        found = self._subsets.get(mask)
        if found is None:
            plans = [self.plans[position] for position in bits(mask)]
            found = self._subsets[mask] = PlanSet(plans, self.well_known)
        return found

    @property
    def findings(self) -> int:
        """How many answers are remembered, those of subsets included."""
        own = len(self._by_requirement) + len(self._markets) + len(self._sources) + len(self._subsets)
        return own + sum(part.findings for part in self._subsets.values())

    def sources(self, mask: int) -> tuple[InstanceType, ...]:
        """The instance types of a mask, in order."""
        found = self._sources.get(mask)
        if found is None:
            by_name = {self.names[position]: self.plans[position].source for position in bits(mask)}
            found = self._sources[mask] = tuple(by_name.values())
        return found

    def named(self, names: Iterable[str]) -> int:
        """The mask of plans with these names."""
        mask = 0
        for name in names:
            mask |= self.by_name[name]
        return mask

    def names_of(self, mask: int) -> set[str]:
        """The names of the plans of a mask."""
        return {self.names[position] for position in bits(mask)}

    def whole(self, mask: int) -> int:
        """A mask with every other way to buy the instance types in it."""
        return mask if len(self.by_name) == len(self.names) else self.named(self.names_of(mask))

    @cached_property
    def by_name(self) -> dict[str, int]:
        """Masks by name: more than one bit where an instance type leaves different amounts by how it is bought."""
        found: dict[str, int] = {}
        for position, name in enumerate(self.names):
            found[name] = found.get(name, 0) | 1 << position
        return found

    @cached_property
    def usable(self) -> int:
        """Plans whose own overhead does not overdraw them."""
        return mask_of(all(amount >= 0 for amount in plan.allocatable.values()) for plan in self.plans)

    def meeting(self, requirements: Requirements) -> int:
        """Plans whose own requirements can hold together with these."""
        mask = self.everything
        for item in requirements:
            found = self._by_requirement.get(item)
            if found is None:
                found = self._by_requirement[item] = self._meeting_one(item)
            mask &= found
        return mask

    def able(self, requirements: Requirements) -> int:
        """Plans that meet these requirements, can be bought under them and are not overdrawn."""
        return self.meeting(requirements) & self.market(requirements).mask & self.usable

    def market(self, requirements: Requirements) -> Market:
        """What can be bought under these requirements."""
        found = self._markets.get(requirements)
        if found is None:
            found = self._markets[requirements] = self._build_market(requirements)
        return found

    def at_least(self, name: str, amount: int) -> int:
        """Plans that have this much of a resource for pods, in nano-units."""
        if amount <= 0:
            return self.everything
        amounts, masks = self.thresholds[name]
        return masks[bisect_left(amounts, amount)]

    def holding(self, need: Resources) -> int:
        """Plans that a request fits into."""
        mask = self.usable
        for name, amount in need.items():
            if amount > 0:
                mask &= self.at_least(name, amount)
        return mask

    def of_capacity_up_to(self, name: str, amount: int) -> int:
        """Plans whose whole capacity of a resource is at most this."""
        amounts, masks = self._capacities(name)
        position = bisect_right(amounts, amount)
        return masks[position - 1] if position else 0

    def greatest_capacity(self, mask: int, name: str) -> int:
        """The greatest capacity of a resource over the plans of a mask."""
        amounts, masks = self._capacities(name)
        for position in range(len(amounts) - 1, 0, -1):
            if mask & ~masks[position - 1]:  # some plan has more than the next smaller amount
                return amounts[position]
        return amounts[0] if amounts else 0

    def values(self, key: str) -> dict[Requirement, int]:
        """The distinct requirements that plans put on a label key, with the plans of each."""
        return self._values_by_key.get(key, {})

    @cached_property
    def _values_by_key(self) -> dict[str, dict[Requirement, int]]:
        index: dict[str, dict[Requirement, int]] = {}
        for position, plan in enumerate(self.plans):
            for item in plan.requirements:
                masks = index.setdefault(item.key, {})
                masks[item] = masks.get(item, 0) | 1 << position
        return index

    def _meeting_one(self, item: Requirement) -> int:
        mask = self.everything
        for other, positions in self.values(item.key).items():
            if not meet(item, other):
                mask &= ~positions
        return mask

    @cached_property
    def _offerings(self) -> dict[Requirements, list[tuple[int, int]]]:
        """Available offerings by their requirements: position and price."""
        index: dict[Requirements, list[tuple[int, int]]] = {}
        for position, plan in enumerate(self.plans):
            for offering in plan.offerings:
                if offering.available:
                    index.setdefault(offering.requirements, []).append((position, offering.price))
        return index

    def _build_market(self, requirements: Requirements) -> Market:
        prices = [NO_PRICE] * len(self.plans)
        everything = 0
        capacity_types: dict[str, int] = {}
        for wanted, offerings in self._offerings.items():
            if requirements.compatible(wanted, self.well_known):
                mask = 0
                for position, price in offerings:
                    mask |= 1 << position
                    prices[position] = min(prices[position], price)
                kind = capacity_type(wanted)
                capacity_types[kind] = capacity_types.get(kind, 0) | mask
                everything |= mask
        return Market(self, everything, prices, capacity_types)

    @cached_property
    def _capacity_index(self) -> dict[str, tuple[list[int], list[int]]]:
        return {}

    def _capacities(self, name: str) -> tuple[list[int], list[int]]:
        found = self._capacity_index.get(name)
        if found is None:
            by_amount = _by_amount(plan.capacity.get(name, 0) for plan in self.plans)
            amounts = sorted(by_amount)
            masks = list(accumulate((by_amount[amount] for amount in amounts), or_))
            found = self._capacity_index[name] = (amounts, masks)
        return found


def capacity_type(offering: Requirements) -> str:
    """The capacity type that an offering's requirements name, or ""."""
    item = offering.find(labels.CAPACITY_TYPE)
    return min(item.values) if item is not None and item.values and not item.complement else ""


def bits(mask: int) -> Iterator[int]:
    """The positions of set bits, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _by_amount(amounts: Iterable[int]) -> dict[int, int]:
    masks: dict[int, int] = {}
    for position, amount in enumerate(amounts):
        masks[amount] = masks.get(amount, 0) | 1 << position
    return masks


def mask_of(flags: Iterator[bool]) -> int:
    """The mask whose bit ``i`` is the ``i``-th flag."""
    mask = 0
    for position, flag in enumerate(flags):
        if flag:
            mask |= 1 << position
    return mask
