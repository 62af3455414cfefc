"""Lives of machines and pools in the emulated cloud: spec/linode-provider.md 7.7."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from karpenter_linode.model.linode import LinodeType, LKETaint, Price, Region, RegionPrice
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.linode.delays import LinodeDelays
from karpenter_linode.sim.linode.events import CloudEvent, NodeBooted, NodeGone
from karpenter_linode.sim.linode.records import ApiFaultError, Pool
from karpenter_linode.sim.linode.world import DEFAULT_CLUSTER, LinodeWorld
from karpenter_linode.sim.loop import run_virtual
from karpenter_linode.sim.seeded import SeededRandom

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

START = datetime(2026, 10, 1, tzinfo=UTC)
SMALL = LinodeType(
    "g6-standard-2",
    class_="standard",
    vcpus=2,
    memory=4096,
    price=Price(Decimal("0.036")),
    region_prices=(RegionPrice("br-gru", Decimal("0.0504")),),
)
GPU = LinodeType("g2-gpu-rtx4000a1-s", class_="gpu", vcpus=4, memory=16384, gpus=1, price=Price(Decimal("0.52")))


class Scene:
    """A world and what it told."""

    def __init__(self, *, tier: str = "standard", region: str = "us-ord", seed: int = 1, **world: Any) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop(), START)
        self.world = LinodeWorld(
            self.clock,
            SeededRandom(seed),
            types=(SMALL, GPU),
            regions=(Region("us-ord"), Region("br-gru")),
            cluster=replace(DEFAULT_CLUSTER, tier=tier, region=region),
            **world,
        )
        self.told: list[tuple[float, CloudEvent]] = []
        self.world.subscribe(lambda event: self.told.append((self.seconds(), event)))
        (self.cluster,) = self.world.clusters.values()

    def seconds(self) -> float:
        return (self.clock.now() - START).total_seconds()

    def pool(self, plan: LinodeType = SMALL, count: int = 1, **body: Any) -> Pool:
        return self.world.pools.create(self.cluster, plan, {"count": count, **body})

    def booted(self) -> list[NodeBooted]:
        return [event for _, event in self.told if isinstance(event, NodeBooted)]

    def gone(self) -> list[NodeGone]:
        return [event for _, event in self.told if isinstance(event, NodeGone)]


def _play(story: Callable[[Scene], Coroutine[Any, Any, Any]], **settings: Any) -> Any:
    async def main() -> Any:
        scene = Scene(**settings)
        result = await story(scene)
        await scene.world.close()
        return result

    return run_virtual(main())


@pytest.mark.parametrize(("plan", "earliest", "latest"), [(SMALL, 90, 125), (GPU, 110, 185)])
@pytest.mark.parametrize("seed", range(5))
def test_a_member_becomes_a_node_after_a_realistic_time(
    plan: LinodeType, earliest: int, latest: int, seed: int
) -> None:
    async def story(scene: Scene) -> None:
        scene.pool(plan, labels={"team": "ml"}, taints=[{"key": "a", "value": "b", "effect": "NoExecute"}])
        statuses = []
        for _ in range(300):
            await scene.clock.sleep(1)
            statuses += [machine.status for machine in scene.world.machines.all()]
        assert list(dict.fromkeys(statuses)) == ["provisioning", "booting", "running"]
        ((when, event),) = scene.told
        assert earliest <= when <= latest
        assert isinstance(event, NodeBooted)
        assert event.taints == (LKETaint("a", "b", "NoExecute"),)
        assert event.labels["team"] == "ml"
        assert event.labels["node.kubernetes.io/instance-type"] == plan.id
        assert event.labels["topology.kubernetes.io/region"] == event.labels["topology.linode.com/region"] == "us-ord"
        assert event.labels["lke.linode.com/pool-id"] == str(event.pool_id)
        assert event.labels["node.k8s.linode.com/host-uuid"] == event.host_uuid
        assert event.labels["kubernetes.io/hostname"] == event.node_name
        assert "topology.kubernetes.io/zone" not in event.labels, "the cloud controller manager knows no zones"

    _play(story, seed=seed)


def test_equal_seeds_tell_equal_stories_and_others_do_not() -> None:
    async def story(scene: Scene) -> Any:
        pool = scene.pool(count=4)
        await scene.clock.sleep(300)
        scene.world.pools.update(scene.cluster, pool, {"count": 2})
        await scene.clock.sleep(100)
        return scene.told

    assert _play(story) == _play(story)
    assert _play(story) != _play(story, seed=2)


def test_enterprise_members_are_listed_late_and_carry_the_tags_of_the_pool() -> None:
    async def story(scene: Scene) -> None:
        pool = scene.pool(count=2, tags=["mine"])
        assert len(pool.members) == 2
        await scene.clock.sleep(10)
        assert not any(member.listed for member in pool.members)
        machines = scene.world.machines.all()
        assert [machine.tags for machine in machines] == [("mine", f"nodepool={pool.id}", "lke561146")] * 2
        await scene.clock.sleep(60)
        assert all(member.listed for member in pool.members)

    _play(story, tier="enterprise")


def test_deleting_a_node_lowers_the_count_at_once_and_ends_the_bill_later() -> None:
    async def story(scene: Scene) -> None:
        pool = scene.pool(count=2)
        await scene.clock.sleep(300)
        victim = pool.members[0]
        scene.world.pools.delete_member(561146, victim.id)
        assert [member.id for member in pool.members] != [victim.id]
        assert len(pool.members) == 1
        assert victim.machine is not None
        assert scene.world.machines.get(victim.machine).status == "deleting"
        assert len(scene.world.billing.running()) == 2
        await scene.clock.sleep(20)
        with pytest.raises(ApiFaultError):
            scene.world.machines.get(victim.machine)
        assert len(scene.world.billing.running()) == 1
        assert [event.provider_id for event in scene.gone()] == [f"linode://{victim.machine}"]

    _play(story)


def test_a_machine_deleted_while_it_boots_never_becomes_a_node() -> None:
    async def story(scene: Scene) -> None:
        pool = scene.pool()
        await scene.clock.sleep(40)
        scene.world.pools.delete(pool)
        await scene.clock.sleep(400)
        assert scene.booted() == []
        assert len(scene.gone()) == 1
        assert scene.world.billing.running() == ()

    _play(story)


def test_a_pool_deleted_before_its_machines_exist_costs_nothing() -> None:
    async def story(scene: Scene) -> None:
        scene.world.pools.delete(scene.pool(count=3))
        await scene.clock.sleep(400)
        assert scene.told == []
        assert scene.world.billing.charges == ()

    _play(story)


def test_lowering_the_count_lets_linode_choose_the_victim() -> None:
    async def story(scene: Scene) -> Any:
        pool = scene.pool(count=5)
        await scene.clock.sleep(300)
        before = [member.id for member in pool.members]
        scene.world.pools.update(scene.cluster, pool, {"count": 4})
        (victim,) = set(before) - {member.id for member in pool.members}
        return before.index(victim)

    assert len({_play(story, seed=seed) for seed in range(12)}) > 1


def test_a_member_whose_machine_is_deleted_directly_is_built_anew() -> None:
    async def story(scene: Scene) -> None:
        pool = scene.pool()
        await scene.clock.sleep(300)
        (old,) = scene.world.machines.all()
        scene.world.delete_machine(old)
        await scene.clock.sleep(300)
        (new,) = scene.world.machines.all()
        assert new.id != old.id
        assert [member.machine for member in pool.members] == [new.id]
        assert len(scene.booted()) == 2

    _play(story)


def test_a_recycled_member_comes_back_with_the_labels_and_taints_of_the_pool() -> None:
    async def story(scene: Scene) -> None:
        taint = {"key": "a", "value": "b", "effect": "NoSchedule"}
        pool = scene.pool(labels={"team": "ml"}, taints=[taint])
        await scene.clock.sleep(300)
        scene.world.pools.recycle(scene.cluster, pool, pool.members[0])
        await scene.clock.sleep(300)
        first, second = scene.booted()
        assert first.node_name != second.node_name
        assert (second.labels["team"], second.taints) == ("ml", (LKETaint("a", "b", "NoSchedule"),))

    _play(story)


@pytest.mark.parametrize(
    ("region", "life", "hours", "price"),
    [
        ("us-ord", timedelta(minutes=10), 1, 36_000_000),
        ("us-ord", timedelta(minutes=70), 2, 36_000_000),
        ("br-gru", timedelta(hours=5), 6, 50_400_000),
    ],
)
def test_started_hours_are_paid_at_the_price_of_the_region(
    region: str, life: timedelta, hours: int, price: int
) -> None:
    async def story(scene: Scene) -> None:
        pool = scene.pool()
        await scene.clock.sleep(life.total_seconds())
        scene.world.pools.delete(pool)
        await scene.clock.sleep(60)
        (charge,) = scene.world.billing.charges
        now = scene.clock.now()
        assert (charge.plan, charge.region, charge.price) == ("g6-standard-2", region, price)
        assert charge.hours(now) == hours
        assert scene.world.billing.total(now) == hours * price
        assert scene.world.billing.total(now + timedelta(days=1)) == hours * price, "an ended machine costs no more"

    _play(story, region=region)


def test_the_account_limit_counts_promised_members_too() -> None:
    async def story(scene: Scene) -> None:
        scene.world.faults.account_limit = 3
        scene.pool(count=2)
        with pytest.raises(ApiFaultError, match="Account Limit reached"):
            scene.pool(count=2)
        scene.pool(count=1)

    _play(story)


def test_a_slow_deletion_keeps_the_machine_and_its_bill() -> None:
    async def story(scene: Scene) -> None:
        scene.world.faults.slow_deletion_seconds = 600
        pool = scene.pool()
        await scene.clock.sleep(300)
        scene.world.pools.delete(pool)
        await scene.clock.sleep(590)
        assert [machine.status for machine in scene.world.machines.all()] == ["deleting"]
        await scene.clock.sleep(60)
        assert scene.world.machines.all() == ()

    _play(story)


def test_instance_mode_machines_boot_and_need_unique_labels() -> None:
    async def story(scene: Scene) -> None:
        body = {"type": "g6-standard-2", "region": "us-ord", "label": "web"}
        machine = scene.world.create_machine(body)
        with pytest.raises(ApiFaultError, match="unique"):
            scene.world.create_machine(body)
        with pytest.raises(ApiFaultError, match="3-64"):
            scene.world.create_machine({**body, "label": "x" * 65})
        await scene.clock.sleep(120)
        assert machine.status == "running"
        assert scene.told == [], "nothing boots it into a cluster"

    _play(story)


def test_delays_are_a_setting() -> None:
    async def story(scene: Scene) -> None:
        scene.pool()
        await scene.clock.sleep(100)
        ((when, _),) = scene.told
        assert when == 12

    delays = LinodeDelays(instance_id=(2, 2), provisioning=(3, 3), booting=(3, 3), join=(10, 10))
    _play(story, delays=delays)
