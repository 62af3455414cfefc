"""LKE node pools and their members, on both tiers (spec/linode-provider.md 7.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karpenter_linode.model import labels
from karpenter_linode.sim.linode import rules
from karpenter_linode.sim.linode.events import NodeBooted
from karpenter_linode.sim.linode.records import ApiFaultError, Cluster, Machine, Member, Pool, not_found

if TYPE_CHECKING:
    from collections.abc import Mapping

    from karpenter_linode.model.linode import LinodeType
    from karpenter_linode.sim.linode.machines import Machines
    from karpenter_linode.sim.linode.stage import Stage

_ENTERPRISE = "enterprise"


class Pools:
    """The pools of all clusters."""

    def __init__(self, stage: Stage, machines: Machines, clusters: Mapping[int, Cluster]) -> None:
        self._stage, self._machines, self._clusters = stage, machines, clusters
        self._by_id: dict[int, Pool] = {}

    def of(self, cluster: int) -> tuple[Pool, ...]:
        """The pools of a cluster, by id."""
        return tuple(self._by_id[key] for key in sorted(self._by_id) if self._by_id[key].cluster == cluster)

    def get(self, cluster: int, number: int) -> Pool:
        """A pool, or the API's 404."""
        pool = self._by_id.get(number)
        if pool is None or pool.cluster != cluster:
            raise not_found()
        return pool

    def create(self, cluster: Cluster, plan: LinodeType, body: Mapping[str, Any]) -> Pool:
        """Make a pool with ``count`` members."""
        count = rules.integer(body, "count")
        pool = Pool(
            id=0,
            cluster=cluster.id,
            plan=plan,
            label=body.get("label") or "",
            tags=rules.tags(body),
            labels=rules.labels(body),
            taints=rules.taints(body),
            autoscaler=body.get("autoscaler") or {"enabled": False, "min": count, "max": count},
        )
        self._check_growth(cluster, pool, count)
        if cluster.tier == _ENTERPRISE:
            pool.k8s_version = body.get("k8s_version") or cluster.k8s_version
            pool.update_strategy = body.get("update_strategy") or "on_recycle"
            pool.firewall_id = body.get("firewall_id")
        pool.id = self._stage.next_pool_id()
        self._by_id[pool.id] = pool
        self._add(cluster, pool, count)
        return pool

    def update(self, cluster: Cluster, pool: Pool, body: Mapping[str, Any]) -> None:
        """Change a pool; all of it or nothing."""
        fresh_tags = rules.tags(body) if "tags" in body else pool.tags
        fresh_labels = rules.labels(body) if "labels" in body else pool.labels
        fresh_taints = rules.taints(body) if "taints" in body else pool.taints
        count = rules.integer(body, "count") if "count" in body else len(pool.members)
        extra = count - len(pool.members)
        if extra > 0:
            self._check_growth(cluster, pool, extra)
        pool.tags, pool.labels, pool.taints = fresh_tags, fresh_labels, fresh_taints
        pool.label = body.get("label", pool.label)
        pool.autoscaler = body.get("autoscaler", pool.autoscaler)
        if cluster.tier == _ENTERPRISE:
            pool.k8s_version = body.get("k8s_version", pool.k8s_version)
            pool.update_strategy = body.get("update_strategy", pool.update_strategy)
            pool.firewall_id = body.get("firewall_id", pool.firewall_id)
        self._add(cluster, pool, extra)
        for _ in range(-extra):
            # Linode picks the victim, and it may be anybody.
            victim = min(len(pool.members) - 1, int(self._stage.random.uniform(0, len(pool.members))))
            self._remove(pool, pool.members[victim])

    def delete(self, pool: Pool) -> None:
        """Delete a pool with its members."""
        del self._by_id[pool.id]
        for member in tuple(pool.members):
            self._remove(pool, member)

    def find_member(self, cluster: int, node: str) -> tuple[Pool, Member]:
        """The member of that node id, or the API's 404."""
        for pool in self.of(cluster):
            for member in pool.members:
                if member.id == node:
                    return pool, member
        raise not_found()

    def delete_member(self, cluster: int, node: str) -> None:
        """Delete one member; the count falls at once."""
        self._remove(*self.find_member(cluster, node))

    def recycle(self, cluster: Cluster, pool: Pool, member: Member) -> None:
        """Replace a member by a new one with the pool's labels and taints."""
        self._remove(pool, member)
        self._add(cluster, pool, 1)

    def machine_deleted(self, machine: Machine) -> None:
        """Somebody deleted a member's Linode: LKE builds another."""
        pool = None if machine.pool is None else self._by_id.get(machine.pool)
        member = None if pool is None else next((item for item in pool.members if item.machine == machine.id), None)
        if pool is not None and member is not None:
            self.recycle(self._clusters[pool.cluster], pool, member)

    def promised(self) -> int:
        """Members that have no machine yet."""
        return sum(member.machine is None for pool in self._by_id.values() for member in pool.members)

    def _check_growth(self, cluster: Cluster, pool: Pool, extra: int) -> None:
        limit = rules.POOL_LIMITS[cluster.tier]
        if len(pool.members) + extra > limit:
            raise ApiFaultError(400, f"Must be 1-{limit}", "count")
        total = sum(len(item.members) for item in self.of(cluster.id))
        if cluster.tier != _ENTERPRISE and total + extra > rules.STANDARD_CLUSTER_LIMIT:
            text = f"A cluster may have at most {rules.STANDARD_CLUSTER_LIMIT} nodes"
            raise ApiFaultError(400, text, "count")
        self._machines.admit(pool.plan, cluster.region, extra, self.promised())

    def _add(self, cluster: Cluster, pool: Pool, count: int) -> None:
        for _ in range(count):
            node = f"{pool.id}-{self._stage.hexadecimal(8)}0000"
            member = Member(node, listed=cluster.tier != _ENTERPRISE)
            pool.members.append(member)
            if self._stage.faults.stuck_members > 0:
                self._stage.faults.stuck_members -= 1
            else:
                self._stage.spawn(self._raise(cluster, pool, member))
            if not member.listed:
                self._stage.spawn(self._list_later(member))

    def _remove(self, pool: Pool, member: Member) -> None:
        pool.members.remove(member)
        if member.machine is not None:
            self._machines.delete(self._machines.get(member.machine))

    async def _list_later(self, member: Member) -> None:
        await self._stage.pause(self._stage.delays.enterprise_listing)
        member.listed = True

    async def _raise(self, cluster: Cluster, pool: Pool, member: Member) -> None:
        """From a promise to a node that is ready."""
        delays, enterprise = self._stage.delays, cluster.tier == _ENTERPRISE
        await self._stage.pause(delays.enterprise_instance if enterprise else delays.instance_id)
        if member not in pool.members:
            return
        machine = self._machines.build(self._machine(cluster, pool, member))
        member.machine = machine.id
        join = self._stage.seconds(delays.join_gpu if pool.plan.gpus else delays.join)
        await self._machines.boot(machine)
        spent = (self._stage.clock.now() - machine.created).total_seconds()
        await self._stage.clock.sleep(max(0.0, join - spent))
        if not self._machines.exists(machine) or member not in pool.members:
            return
        machine.joined = True
        self._stage.publish(_booted(cluster, pool, machine))
        await self._stage.pause(delays.member_ready)
        member.ready = True

    def _machine(self, cluster: Cluster, pool: Pool, member: Member) -> Machine:
        enterprise = cluster.tier == _ENTERPRISE
        reach = self._stage.faults.pool_tags_reach_instances
        automatic = (f"nodepool={pool.id}", f"lke{cluster.id}") if enterprise else ()
        return Machine(
            id=self._stage.next_machine_id(),
            label=f"lke{cluster.id}-{member.id}",
            plan=pool.plan,
            region=cluster.region,
            created=self._stage.clock.now(),
            host_uuid=self._stage.hexadecimal(40),
            cluster=cluster.id,
            pool=pool.id,
            tags=(*(pool.tags if (enterprise if reach is None else reach) else ()), *automatic),
            firewalls=(pool.firewall_id,) if pool.firewall_id is not None else (),
        )


def _booted(cluster: Cluster, pool: Pool, machine: Machine) -> NodeBooted:
    of_lke = {
        "lke.linode.com/pool-id": str(pool.id),
        "node.k8s.linode.com/host-uuid": machine.host_uuid,
        labels.INSTANCE_TYPE: pool.plan.id,
        labels.REGION: cluster.region,
        labels.LINODE_TOPOLOGY_REGION: cluster.region,
        labels.ARCH: "amd64",
        labels.OS: "linux",
        labels.HOSTNAME: machine.label,
    }
    return NodeBooted(
        node_name=machine.label,
        provider_id=f"linode://{machine.id}",
        instance_type=pool.plan.id,
        region=cluster.region,
        cluster_id=cluster.id,
        pool_id=pool.id,
        labels={**pool.labels, **of_lke},
        taints=pool.taints,
        host_uuid=machine.host_uuid,
        created=machine.created,
    )
