"""The emulated cloud as a whole: one account with clusters, pools and machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model.linode import LinodeType, LKECluster, Region, RegionAvailability
from karpenter_linode.sim.linode import rules
from karpenter_linode.sim.linode.delays import LinodeDelays
from karpenter_linode.sim.linode.faults import LinodeFaults
from karpenter_linode.sim.linode.machines import Machines
from karpenter_linode.sim.linode.pools import Pools
from karpenter_linode.sim.linode.records import ApiFaultError, Cluster, Machine, Pool, not_found
from karpenter_linode.sim.linode.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from karpenter_linode.ports import Clock, Random
    from karpenter_linode.sim.linode.billing import BillingLedger
    from karpenter_linode.sim.linode.events import CloudEvent

DEFAULT_CLUSTER: Final = LKECluster(
    id=561146,
    label="embedded",
    region="us-ord",
    k8s_version="1.35",
    tier="standard",
    status="ready",
)
DEFAULT_DELAYS: Final = LinodeDelays()


class LinodeWorld:
    """State and passing of time. Needs a running event loop as soon as a machine is asked for.

    Args:
        clock: all time comes from it.
        random: all chance comes from it.
        types: plans that the account sees.
        regions: regions.
        availability: rows of the availability list for plans of limited deployment, of all regions.
        cluster: the LKE cluster that exists from the start: id, label, region, tier, version, tags.
        delays: how long things take.
        faults: what goes wrong; may be changed while the world runs.

    Attributes:
        faults: the script of faults.
        delays: the delays.
        clock: the clock.
    """

    def __init__(
        self,
        clock: Clock,
        random: Random,
        *,
        types: Iterable[LinodeType],
        regions: Iterable[Region],
        availability: Iterable[RegionAvailability] = (),
        cluster: LKECluster = DEFAULT_CLUSTER,
        delays: LinodeDelays = DEFAULT_DELAYS,
        faults: LinodeFaults | None = None,
    ) -> None:
        self.clock, self.delays = clock, delays
        self.faults = LinodeFaults() if faults is None else faults
        self.types = {plan.id: plan for plan in types}
        self.regions = {region.id: region for region in regions}
        self._availability = tuple(availability)
        self._stage = Stage(clock, random, delays, self.faults)
        self.clusters: dict[int, Cluster] = {}
        self.machines = Machines(self._stage, self._is_listed_unavailable)
        self.pools = Pools(self._stage, self.machines, self.clusters)
        self.add_cluster(cluster)

    @property
    def billing(self) -> BillingLedger:
        """What was and is paid for."""
        return self._stage.billing

    def subscribe(self, listener: Callable[[CloudEvent], None]) -> None:
        """Be told, at once and in order, of machines that become nodes and of machines that are gone."""
        self._stage.listeners.append(listener)

    async def close(self) -> None:
        """Stop everything that goes on."""
        await self._stage.close()

    async def api_latency(self) -> None:
        """The time that a call takes."""
        await self._stage.pause(self.delays.api)

    def later(self, seconds: float, work: Callable[[], Any]) -> None:
        """Do something after a while."""

        async def wait() -> None:
            await self.clock.sleep(seconds)
            await work()

        self._stage.spawn(wait())

    def add_cluster(self, cluster: LKECluster) -> Cluster:
        """One more LKE cluster."""
        record = Cluster(
            id=cluster.id,
            label=cluster.label,
            region=cluster.region,
            tier=cluster.tier or "standard",
            k8s_version=cluster.k8s_version,
            created=self.clock.now(),
            tags=cluster.tags,
        )
        self.clusters[record.id] = record
        return record

    def cluster(self, number: int) -> Cluster:
        """A cluster, or the API's 404."""
        if number not in self.clusters:
            raise not_found()
        return self.clusters[number]

    def plan(self, body: Mapping[str, Any]) -> LinodeType:
        """The plan that a request names, or the API's 400."""
        plan = self.types.get(str(body.get("type")))
        if plan is None:
            raise ApiFaultError(400, "A valid plan type by that ID was not found", "type")
        return plan

    def availability(self, region: str | None = None) -> tuple[RegionAvailability, ...]:
        """The availability list, of one region or all, as the faults make it look."""
        rows = [row for row in self._availability if region in {None, row.region}]
        hidden = sorted(pair for pair in self.faults.unavailable if region in {None, pair[1]})
        rows = [row for row in rows if (row.plan, row.region) not in self.faults.unavailable]
        rows += [RegionAvailability(where, plan, available=False) for plan, where in hidden]
        return tuple(rows * 2 if self.faults.duplicate_availability_rows else rows)

    def _is_listed_unavailable(self, plan: str, region: str) -> bool:
        shown = {row.available for row in self.availability(region) if row.plan == plan}
        return shown == {False}

    def create_machine(self, body: Mapping[str, Any]) -> Machine:
        """Build a Linode outside LKE."""
        plan, region = self.plan(body), str(body.get("region"))
        if region not in self.regions:
            raise ApiFaultError(400, "region is not valid", "region")
        self.machines.admit(plan, region, 1, self.pools.promised())
        number = self._stage.next_machine_id()
        label = rules.instance_label(body.get("label") or f"linode{number}")
        if any(machine.label == label for machine in self.machines.all()):
            raise ApiFaultError(400, "Label must be unique among your linodes", "label")
        machine = Machine(
            id=number,
            label=label,
            plan=plan,
            region=region,
            created=self.clock.now(),
            host_uuid=self._stage.hexadecimal(40),
            image=body.get("image"),
            tags=rules.tags(body),
            firewalls=(body["firewall_id"],) if body.get("firewall_id") else (),
        )
        self.machines.build(machine)
        self._stage.spawn(self.machines.boot(machine))
        return machine

    def delete_machine(self, machine: Machine) -> None:
        """Delete a Linode; a member of a pool is built anew by LKE."""
        self.machines.delete(machine)
        if machine.pool is not None:
            self.pools.machine_deleted(machine)

    def pool(self, cluster: int, number: int) -> Pool:
        """A pool, or the API's 404."""
        self.cluster(cluster)
        return self.pools.get(cluster, number)
