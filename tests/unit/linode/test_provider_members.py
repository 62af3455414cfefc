"""Get, list, delete, instance types: spec/linode-provider.md 4.6, 5.4 and the checklist of 8.2."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from karpenter_linode.linode.client import NewPool
from karpenter_linode.linode.discovery import discover_cluster
from karpenter_linode.linode.http import ClientOptions
from karpenter_linode.model import labels
from karpenter_linode.model.karpenter import KubeletConfiguration
from karpenter_linode.ports import CloudError, InstanceNotFoundError
from karpenter_linode.sim.linode.world import DEFAULT_CLUSTER

if TYPE_CHECKING:
    from collections.abc import Callable

TIERS = pytest.mark.parametrize("tier", ["standard", "enterprise"])


async def _gone(lab: Any, provider: Any, provider_id: str) -> None:
    """Delete as the termination controller does: again and again, until the instance is gone."""
    for _ in range(60):
        try:
            await provider.delete(provider_id)
        except InstanceNotFoundError:
            return
        await lab.clock.sleep(5)
    raise AssertionError(f"{provider_id} is still there")


@TIERS
def test_get_round_trips_the_provider_id(linode_story: Callable[..., Any], tier: str) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        launched = await provider.create(lab.claim("pool-a"))
        found = await provider.get(launched.provider_id)
        assert (found.provider_id, found.instance_type) == (launched.provider_id, "g6-standard-2")
        assert (found.node_claim, found.node_pool, found.deleting) == ("pool-a", "pool", False)
        assert found.created is not None
        assert 0 <= (lab.clock.now() - found.created).total_seconds() < 60, "times without a zone are UTC"

    linode_story(story, tier=tier)


@pytest.mark.parametrize("text", ["", "linode://", "linode://abc", "aws:///x", "linode://12x", "12", "linode://-1"])
def test_ids_that_are_none_of_ours_are_not_found(linode_story: Callable[..., Any], text: str) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        with pytest.raises(InstanceNotFoundError, match="parsing instance ID"):
            await provider.get(text)
        with pytest.raises(InstanceNotFoundError, match="parsing instance ID"):
            await provider.delete(text)

    linode_story(story)


def test_an_unknown_instance_is_not_found(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        for call in (provider.get, provider.delete):
            with pytest.raises(InstanceNotFoundError, match="not found"):
                await call("linode://1")

    linode_story(story)


def test_an_instance_of_somebody_else_is_neither_ours_nor_deleted(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        machine = lab.world.create_machine({"type": "g6-nanode-1", "region": "us-ord", "label": "mine"})
        with pytest.raises(InstanceNotFoundError, match="no member of cluster lab"):
            await provider.get(f"linode://{machine.id}")
        with pytest.raises(CloudError, match="left alone") as caught:
            await provider.delete(f"linode://{machine.id}")
        assert not isinstance(caught.value, InstanceNotFoundError)
        assert await provider.list() == ()
        assert lab.machines() == [machine]

    linode_story(story)


@pytest.mark.parametrize(("status", "call"), [(503, "get"), (401, "get"), (503, "delete"), (401, "delete")])
def test_an_api_error_is_never_taken_for_not_found(linode_story: Callable[..., Any], status: int, call: str) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        launched = await provider.create(lab.claim("a"))
        lab.faults.fail("GET", "/linode/instances/.*", status, times=50)
        with pytest.raises(CloudError) as caught:
            await getattr(provider, call)(launched.provider_id)
        assert not isinstance(caught.value, InstanceNotFoundError)
        assert len(lab.machines()) == 1

    linode_story(story)


def test_a_list_failure_during_delete_is_not_not_found(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        launched = await provider.create(lab.claim("a"))
        lab.faults.fail("GET", "/lke/clusters/.*/pools", 503, times=50)
        with pytest.raises(CloudError) as caught:
            await provider.delete(launched.provider_id)
        assert not isinstance(caught.value, InstanceNotFoundError)
        assert len(lab.machines()) == 1

    linode_story(story)


@TIERS
def test_list_spans_pools_without_duplicates_in_order(linode_story: Callable[..., Any], tier: str) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        claims = [lab.claim(f"a-{i}", (plan,)) for i, plan in enumerate(("g6-standard-2", "g6-standard-4") * 2)]
        launched = await asyncio.gather(*map(provider.create, claims))
        listed = await provider.list()
        assert {item.provider_id for item in listed} == {item.provider_id for item in launched}
        ids = [int(item.provider_id.removeprefix("linode://")) for item in listed]
        assert ids == sorted(set(ids))

    linode_story(story, tier=tier)


def test_an_empty_list_is_no_error(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        return await (await lab.provider()).list()

    assert linode_story(story) == ()


@pytest.mark.parametrize("path", ["/lke/clusters/.*/pools", "/linode/instances"])
def test_a_list_is_never_partial(linode_story: Callable[..., Any], path: str) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        await provider.create(lab.claim("a"))
        lab.faults.fail("GET", path, 500, times=50)
        with pytest.raises(CloudError):
            await provider.list()

    linode_story(story)


def test_list_shows_members_that_nobody_claimed(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        await provider.create(lab.claim("a"))
        await lab.client().update_pool(lab.cluster_id, lab.pools[0].id, {"count": 3})
        await lab.clock.sleep(30)
        listed = await provider.list()
        assert [item.node_claim for item in listed] == ["a", "", ""]
        assert {item.node_pool for item in listed} == {"pool"}
        for item in listed[1:]:
            await provider.delete(item.provider_id)
        assert len(lab.machines()) == 1
        assert len(lab.pools[0].members) == 1

    linode_story(story)


def test_pools_that_are_not_ours_stay_invisible(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        client = lab.client()
        await client.create_pool(lab.cluster_id, NewPool("g6-standard-2", 2, tags=("mine",)))
        await lab.clock.sleep(200)
        assert await provider.list() == ()
        with pytest.raises(CloudError, match="left alone"):
            await provider.delete(f"linode://{lab.machines()[0].id}")
        await provider.create(lab.claim("a"))
        assert len(lab.pools) == 2

    linode_story(story)


def test_deleting_one_of_many_takes_exactly_that_node(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        launched = await asyncio.gather(*(provider.create(lab.claim(f"a-{i}")) for i in range(5)))
        await lab.clock.sleep(300)
        await _gone(lab, provider, launched[2].provider_id)
        left = {f"linode://{machine.id}" for machine in lab.machines()}
        assert left == {item.provider_id for item in launched} - {launched[2].provider_id}
        routes = {route for (route, _) in provider._tools.client.calls}
        assert "DELETE /lke/clusters/{cluster}/nodes/{node}" in routes
        assert "DELETE /lke/clusters/{cluster}/pools/{pool}" not in routes

    linode_story(story)


@TIERS
def test_the_last_node_takes_the_pool_and_nothing_is_left_billed(linode_story: Callable[..., Any], tier: str) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        launched = await provider.create(lab.claim("a"))
        await lab.clock.sleep(300)
        await _gone(lab, provider, launched.provider_id)
        assert lab.pools == ()
        assert lab.world.billing.running() == ()
        assert lab.world.billing.total(lab.clock.now()) == 36_000_000
        with pytest.raises(InstanceNotFoundError):
            await provider.get(launched.provider_id)

    linode_story(story, tier=tier)


def test_an_enterprise_node_that_its_pool_does_not_list_yet_can_be_deleted(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        launched = await asyncio.gather(provider.create(lab.claim("a")), provider.create(lab.claim("b")))
        assert not any(member.listed for member in lab.pools[0].members)
        await _gone(lab, provider, launched[0].provider_id)
        assert [f"linode://{machine.id}" for machine in lab.machines()] == [launched[1].provider_id]

    linode_story(story, tier="enterprise")


@pytest.mark.parametrize("head_start", [0, 0.1, 0.2, 0.3, 0.5, 0.8, 1.5, 3])
def test_the_deletion_of_the_last_node_and_a_growth_of_its_pool_do_not_meet(
    linode_story: Callable[..., Any],
    head_start: float,
) -> None:
    """However slow the deletion of the pool is, it never takes a node that was bought meanwhile."""

    async def story(lab: Any) -> None:
        provider = await lab.provider()
        first = await provider.create(lab.claim("a"))
        lab.faults.fail("DELETE", "/lke/.*", 503, times=3)
        creation = asyncio.ensure_future(provider.create(lab.claim("b")))
        await lab.clock.sleep(head_start)
        await provider.delete(first.provider_id)
        second = await creation
        await _gone(lab, provider, first.provider_id)
        await lab.clock.sleep(120)
        assert [f"linode://{machine.id}" for machine in lab.machines()] == [second.provider_id]

    linode_story(story)


@pytest.mark.parametrize("head_start", [0, 0.1, 0.2, 0.3, 0.5, 0.8, 1.5, 3])
def test_a_growth_that_comes_while_the_last_node_is_deleted_waits_for_it(
    linode_story: Callable[..., Any],
    head_start: float,
) -> None:
    async def story(lab: Any) -> None:
        provider = await lab.provider()
        first = await provider.create(lab.claim("a"))
        lab.faults.fail("DELETE", "/lke/.*", 503, times=3)
        deletion = asyncio.ensure_future(provider.delete(first.provider_id))
        await lab.clock.sleep(head_start)
        second = await provider.create(lab.claim("b"))
        await deletion
        await _gone(lab, provider, first.provider_id)
        await lab.clock.sleep(120)
        assert [f"linode://{machine.id}" for machine in lab.machines()] == [second.provider_id]

    linode_story(story)


def test_a_member_that_is_being_launched_is_not_deleted(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        await provider.create(lab.claim("a"))
        await lab.client().update_pool(lab.cluster_id, lab.pools[0].id, {"count": 2})
        await lab.clock.sleep(30)
        spare = next(item for item in lab.machines() if not item.tags)
        lab.faults.fail("PUT", "/linode/instances/.*", 503, times=6)
        creation = asyncio.ensure_future(provider.create(lab.claim("b")))
        await lab.clock.sleep(3)
        assert {item.node_claim for item in await provider.list()} == {"a", "b"}
        with pytest.raises(CloudError, match="set aside for NodeClaim b"):
            await provider.delete(f"linode://{spare.id}")
        assert (await creation).provider_id == f"linode://{spare.id}"

    linode_story(story)


def test_a_pool_that_disappears_is_bought_anew_for_whoever_waits(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        first = await provider.create(lab.claim("a"))
        await lab.client().delete_pool(lab.cluster_id, lab.pools[0].id)
        await lab.clock.sleep(60)
        with pytest.raises(InstanceNotFoundError):
            await provider.get(first.provider_id)
        await provider.create(lab.claim("b"))
        assert len(lab.machines()) == 1

    linode_story(story)


def test_a_renamed_cluster_or_two_of_a_name_end_the_start(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        client = lab.client()
        with pytest.raises(CloudError, match="could not determine LKE cluster with name: other"):
            await discover_cluster(client, "other")
        found = await discover_cluster(client, "lab")
        assert (found.id, found.region, found.tier) == (lab.cluster_id, "us-ord", "standard")
        lab.world.add_cluster(replace(DEFAULT_CLUSTER, id=1, label="lab"))
        with pytest.raises(CloudError, match="could not determine LKE cluster with name: lab"):
            await discover_cluster(client, "lab")

    linode_story(story)


def test_an_old_api_version_hides_the_tier_and_ends_the_start(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        lab.client_options = ClientOptions(api_version="v4")
        with pytest.raises(CloudError, match="LINODE_API_VERSION must be v4beta"):
            await lab.provider()

    linode_story(story)


def test_instance_types_hold_unavailable_plans_too_and_stay_the_same_object(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        before = await provider.instance_types(lab.node_pool())
        assert await provider.instance_types(lab.node_pool()) is before
        lab.faults.unavailable.add(("g6-standard-2", "us-ord"))
        await lab.clock.sleep(301)
        after = await provider.instance_types(lab.node_pool())
        assert [item.name for item in after] == [item.name for item in before]
        offered = {item.name: item.offerings[0].available for item in after}
        assert not offered["g6-standard-2"]
        assert offered["g6-standard-4"]

    linode_story(story)


def test_a_failing_availability_list_keeps_what_is_known(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        before = await provider.instance_types(lab.node_pool())
        lab.faults.fail("GET", "/regions/.*", 503, times=50)
        await lab.clock.sleep(301)
        assert await provider.instance_types(lab.node_pool()) is before
        fresh = await lab.provider()
        with pytest.raises(CloudError):
            await fresh.instance_types(lab.node_pool())

    linode_story(story)


def test_instance_types_of_a_missing_node_class_are_an_error_with_an_event(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        with pytest.raises(CloudError, match="not found"):
            await provider.instance_types(lab.node_pool("absent"))
        assert lab.notebook.events[0][:3] == ("pool", "Warning", "FailedResolvingNodeClass")

    linode_story(story)


def test_a_node_class_with_an_amount_that_is_none_is_an_error_of_that_class(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        lab.add_node_class("broken", kubelet=KubeletConfiguration(system_reserved={"cpu": "lots"}))
        provider = await lab.provider()
        with pytest.raises(CloudError, match=r"LinodeNodeClass broken: spec\.kubelet: 'lots' is not a quantity"):
            await provider.instance_types(lab.node_pool("broken"))
        assert await provider.instance_types(lab.node_pool())

    linode_story(story)


@pytest.mark.parametrize("ignore", [True, False])
def test_gpus_are_a_resource_or_devices_but_never_both(linode_story: Callable[..., Any], *, ignore: bool) -> None:
    async def story(lab: Any) -> Any:
        lab.options = replace(lab.options, ignore_dra_requests=ignore)
        provider = await lab.provider()
        types = {item.name: item for item in await provider.instance_types(lab.node_pool())}
        gpu = types["g2-gpu-rtx4000a2-s"]
        counted = labels.GPU_RESOURCE in gpu.capacity
        predicted = sum(len(template.devices) for template in gpu.dynamic_resources.slice_templates)
        assert (counted, predicted) == ((True, 0) if ignore else (False, 2))

    linode_story(story)
