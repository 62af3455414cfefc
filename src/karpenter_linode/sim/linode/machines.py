"""Linodes: from ``provisioning`` to their end, with a charge for every started hour (spec/linode-provider.md 7.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.model.instance_type import NANO_DOLLARS
from karpenter_linode.sim.linode.billing import Charge
from karpenter_linode.sim.linode.events import NodeGone
from karpenter_linode.sim.linode.records import ApiFaultError, Machine, not_found

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.model.linode import LinodeType
    from karpenter_linode.sim.linode.stage import Stage

ACCOUNT_LIMIT = "Account Limit reached. Please open a support ticket."


class Machines:
    """All Linodes of the account.

    Args:
        stage: time, chance, faults.
        is_listed_unavailable: whether the availability list rules a plan out in a region.
    """

    def __init__(self, stage: Stage, is_listed_unavailable: Callable[[str, str], bool]) -> None:
        self._stage, self._is_listed_unavailable = stage, is_listed_unavailable
        self._by_id: dict[int, Machine] = {}

    def all(self) -> tuple[Machine, ...]:
        """Every Linode that exists, by id."""
        return tuple(self._by_id[key] for key in sorted(self._by_id))

    def get(self, number: int) -> Machine:
        """A Linode, or the API's 404."""
        machine = self._by_id.get(number)
        if machine is None:
            raise not_found()
        return machine

    def exists(self, machine: Machine) -> bool:
        """Whether it exists and isn't on its way out."""
        return self._by_id.get(machine.id) is machine and machine.status != "deleting"

    def admit(self, plan: LinodeType, region: str, count: int, expected: int = 0) -> None:
        """Refuse what the account or the region can't take.

        Args:
            plan: the plan.
            region: the region.
            count: machines that are asked for.
            expected: machines that pools have been promised and don't exist yet.
        """
        limit = self._stage.faults.account_limit
        if limit is not None and len(self._by_id) + expected + count > limit:
            raise ApiFaultError(400, ACCOUNT_LIMIT)
        if (plan.id, region) in self._stage.faults.sold_out or self._is_listed_unavailable(plan.id, region):
            raise ApiFaultError(400, f"Insufficient capacity for instance type {plan.id} in region {region}")

    def build(self, machine: Machine) -> Machine:
        """A Linode begins, and so does its bill."""
        self._by_id[machine.id] = machine
        price = _nano_dollars(machine.plan, machine.region)
        charge = Charge(machine.id, machine.label, machine.plan.id, machine.region, price, machine.created)
        self._stage.billing.open(charge)
        return machine

    async def boot(self, machine: Machine) -> None:
        """Let it start up."""
        for span, status in ((self._stage.delays.provisioning, "booting"), (self._stage.delays.booting, "running")):
            await self._stage.pause(span)
            if not self.exists(machine):
                return
            machine.status, machine.updated = status, self._stage.clock.now()

    def delete(self, machine: Machine) -> None:
        """Begin its end; it stays readable as ``deleting`` for a while."""
        if self.exists(machine):
            machine.status, machine.updated = "deleting", self._stage.clock.now()
            self._stage.spawn(self._end(machine))

    async def _end(self, machine: Machine) -> None:
        await self._stage.pause(self._stage.delays.deletion)
        if self._stage.faults.slow_deletion_seconds > 0:
            await self._stage.clock.sleep(self._stage.faults.slow_deletion_seconds)
        del self._by_id[machine.id]
        self._stage.billing.close(machine.id, self._stage.clock.now())
        self._stage.publish(NodeGone(machine.label, f"linode://{machine.id}"))


def _nano_dollars(plan: LinodeType, region: str) -> int:
    regional = next((entry for entry in plan.region_prices if entry.id == region), None)
    hourly = plan.price.hourly if regional is None else regional.hourly
    return 0 if hourly is None else int(hourly * NANO_DOLLARS)
