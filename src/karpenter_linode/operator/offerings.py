"""Controller ``cloudprovider.metrics``: what can be bought, for whom reads metrics (spec/linode-provider.md 5.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.cluster.view import is_supported
from karpenter_linode.controllers.reconciler import Loop
from karpenter_linode.model import labels
from karpenter_linode.model.instance_type import NANO_DOLLARS
from karpenter_linode.model.karpenter import NodePool
from karpenter_linode.ports import CloudError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from karpenter_linode.controllers.runtime import Runtime
    from karpenter_linode.model.instance_type import InstanceType, Offering
    from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
    from karpenter_linode.operator.metrics import Reading

_NAME: Final = "cloudprovider.metrics"
_PREFIX: Final = "karpenter_cloudprovider_instance_type_"
_EVERY: Final = 60.0
_MIB: Final = 1 << 20


class Plan(Struct, frozen=True):
    """A plan as the NodePools see it together.

    Args:
        cpus: its CPUs.
        memory: bytes, with what the machine itself takes.
        offerings: by capacity type and region: whether any NodePool can have it, and nano-dollars per hour.
    """

    cpus: int
    memory: int
    offerings: dict[tuple[str, str], tuple[bool, int]]


class Offerings(Loop):
    """Asks once a minute what each NodePool could have.

    A NodePool whose plans cannot be told now keeps those it had; the others are told all the same.
    """

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(_NAME, runtime, self.step)
        self._pools: dict[str, dict[str, Plan]] = {}

    async def step(self) -> float:
        """One pass."""
        state = self._runtime.state
        pools = {
            pool.name: pool for pool in state.all(NodePool) if is_supported(pool.spec.template.spec.node_class_ref)
        }
        self._pools = {name: plans for name, plans in self._pools.items() if name in pools}
        for name, pool in pools.items():
            try:
                found = await self._runtime.cloud.instance_types(pool)
            except CloudError as error:
                text = "unable to tell which plans a nodepool can have"
                self._runtime.logger.debug(text, controller=_NAME, NodePool=name, error=str(error))
                continue
            self._pools[name] = {item.name: _plan(item) for item in found}
        return _EVERY

    def readings(self) -> Iterator[Reading]:
        """Every plan that any NodePool sees."""
        for name, plan in sorted(_together(self._pools).items()):
            yield _PREFIX + "cpu_cores", (name,), plan.cpus
            yield _PREFIX + "memory_bytes", (name,), plan.memory
            for (capacity_type, region), (available, price) in sorted(plan.offerings.items()):
                series = (name, capacity_type, region)
                yield _PREFIX + "offering_available", series, int(available)
                yield _PREFIX + "offering_price_estimate", series, price / NANO_DOLLARS


def _together(pools: Mapping[str, Mapping[str, Plan]]) -> dict[str, Plan]:
    plans: dict[str, Plan] = {}
    for pool in pools.values():
        for name, plan in pool.items():
            known = plans.get(name)
            plans[name] = plan if known is None else Plan(plan.cpus, plan.memory, _either(known, plan))
    return plans


def _either(left: Plan, right: Plan) -> dict[tuple[str, str], tuple[bool, int]]:
    merged = dict(left.offerings)
    for where, (available, price) in right.offerings.items():
        merged[where] = (available or merged.get(where, (False, 0))[0], price)
    return merged


def _plan(item: InstanceType) -> Plan:
    cpus, memory = (int(_value(item.requirements, key) or 0) for key in _SIZES)
    offerings = {_where(offering): (offering.available, offering.price) for offering in item.offerings}
    return Plan(cpus, memory * _MIB, offerings)


_SIZES: Final = (labels.LINODE_INSTANCE_CPU, labels.LINODE_INSTANCE_MEMORY)


def _where(offering: Offering) -> tuple[str, str]:
    return _value(offering.requirements, labels.CAPACITY_TYPE), _value(offering.requirements, labels.REGION)


def _value(requirements: tuple[NodeSelectorRequirement, ...], key: str) -> str:
    return next((item.values[0] for item in requirements if item.key == key and item.values), "")
