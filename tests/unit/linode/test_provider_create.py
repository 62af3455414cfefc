"""Creation of nodes on LKE: spec/linode-provider.md 4 and the checklist of 8.2."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from karpenter_linode.linode import tags
from karpenter_linode.model import labels
from karpenter_linode.model.linode import LKETaint
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
from karpenter_linode.ports import (
    CreateError,
    InsufficientCapacityError,
    NodeClassNotReadyError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

TIERS = pytest.mark.parametrize("tier", ["standard", "enterprise"])


@TIERS
def test_create_returns_a_provider_id_quickly(linode_story: Callable[..., Any], tier: str) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        before = lab.clock.now()
        launched = await provider.create(lab.claim("pool-abcde"))
        (machine,) = lab.machines()
        assert launched.provider_id == f"linode://{machine.id}"
        assert launched.instance_type == "g6-standard-2"
        return (lab.clock.now() - before).total_seconds()

    assert linode_story(story, tier=tier) < 15


def test_launched_carries_labels_capacity_and_exactly_the_hash_annotations(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        hashes = {labels.LINODE_NODE_CLASS_HASH: "12", labels.LINODE_NODE_CLASS_HASH_VERSION: "v1"}
        lab.add_node_class(annotations={**hashes, "other": "x"})
        provider = await lab.provider()
        return await provider.create(lab.claim("pool-abcde"))

    launched = linode_story(story)
    assert launched.annotations == {labels.LINODE_NODE_CLASS_HASH: "12", labels.LINODE_NODE_CLASS_HASH_VERSION: "v1"}
    assert launched.labels[labels.ZONE] == launched.labels[labels.REGION] == "us-ord"
    assert launched.labels[labels.CAPACITY_TYPE] == "on-demand"
    assert launched.labels[labels.INSTANCE_TYPE] == "g6-standard-2"
    assert str(launched.capacity["memory"]) == "3788Mi"
    assert str(launched.allocatable["memory"]) == "2223Mi"
    assert launched.image_id == ""


@TIERS
def test_the_pool_is_tagged_and_the_claim_stands_on_the_instance(linode_story: Callable[..., Any], tier: str) -> None:
    async def story(lab: Any) -> Any:
        lab.add_node_class(tags=("team=ml", "env:prod"))
        provider = await lab.provider()
        await provider.create(lab.claim("pool-abcde"))
        (pool,), (machine,) = lab.pools, lab.machines()
        managed = {
            "kubernetes.io/cluster/lab=owned",
            "karpenter.sh/nodepool=pool",
            "lke-cluster-name=lab",
            "karpenter.k8s.linode/linodenodeclass=default",
            "karpenter.k8s.linode/lke-managed=true",
        }
        assert managed < set(pool.tags)
        assert not {"team=ml", "env:prod"} & set(pool.tags), "tags of the NodeClass belong to the instances"
        assert managed | {"team=ml", "env:prod", "karpenter.sh/nodeclaim=pool-abcde"} < set(machine.tags)

    linode_story(story, tier=tier)


def test_labels_and_taints_go_to_the_pool_as_far_as_lke_takes_them(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        claim = lab.claim(
            "pool-abcde",
            extra_labels={"team": "ml", "node-role.kubernetes.io/x": "y", "topology.linode.com/z": "1", "empty": ""},
            taints=[("nvidia.com/gpu", "true", "NoSchedule"), ("x.kubernetes.io/y", "", "NoSchedule")],
        )
        await provider.create(claim)
        (pool,) = lab.pools
        assert pool.labels == {"team": "ml", labels.NODEPOOL: "pool", labels.LINODE_NODE_CLASS: "default"}
        assert pool.taints == (
            LKETaint(labels.UNREGISTERED_TAINT, "", "NoExecute"),
            LKETaint("nvidia.com/gpu", "true", "NoSchedule"),
        )

    linode_story(story)


def test_long_names_are_shortened_to_tags_the_api_accepts(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        lab.add_node_class("a-node-class-with-a-long-name")
        name = "n" * 50
        claim = lab.claim("c" * 60, node_pool=name, node_class="a-node-class-with-a-long-name")
        await provider.create(claim)
        (pool,), (machine,) = lab.pools, lab.machines()
        assert all(len(tag) <= 50 for tag in (*pool.tags, *machine.tags))
        assert pool.labels[labels.NODEPOOL] == name
        (listed,) = await provider.list()
        assert listed.node_pool == name

    linode_story(story, cluster_name="a-cluster-with-a-name-of-32-char")


def test_the_cheapest_allowed_plan_is_bought(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        plans = ("g6-standard-8", "g6-standard-4", "g6-dedicated-4")
        return (await provider.create(lab.claim("a", plans))).instance_type

    assert linode_story(story) == "g6-standard-4"


def test_requirements_on_capacity_type_are_met_by_on_demand_only(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        wanted = NodeSelectorRequirement(labels.CAPACITY_TYPE, "In", ("on-demand",))
        await provider.create(lab.claim("a", requirements=(wanted,)))
        spot = NodeSelectorRequirement(labels.CAPACITY_TYPE, "In", ("spot",))
        with pytest.raises(InsufficientCapacityError, match="all requested instance types were unavailable"):
            await provider.create(lab.claim("b", requirements=(spot,)))

    linode_story(story)


def test_a_pod_that_asks_for_a_label_no_plan_has_finds_no_plan(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        gpu = NodeSelectorRequirement(labels.LINODE_INSTANCE_GPU_NAME, "Exists")
        with pytest.raises(InsufficientCapacityError):
            await provider.create(lab.claim("a", requirements=(gpu,)))
        assert not lab.machines()

    linode_story(story)


def test_nothing_that_fits_is_insufficient_capacity_and_buys_nothing(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        with pytest.raises(InsufficientCapacityError):
            await provider.create(lab.claim("a", requests={"cpu": "2"}))
        assert not lab.pools

    linode_story(story)


@TIERS
def test_called_again_it_returns_the_same_instance_and_writes_nothing(
    linode_story: Callable[..., Any], tier: str
) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        first = await provider.create(lab.claim("a"))
        other = await lab.provider()
        before = lab.writes(other._tools.client)
        assert (await other.create(lab.claim("a"))).provider_id == first.provider_id
        assert lab.writes(other._tools.client) == before

    linode_story(story, tier=tier)


@TIERS
def test_two_concurrent_calls_for_one_node_claim_buy_one_instance(linode_story: Callable[..., Any], tier: str) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        both = await asyncio.gather(provider.create(lab.claim("a")), provider.create(lab.claim("a")))
        assert both[0].provider_id == both[1].provider_id
        assert len(lab.machines()) == 1

    linode_story(story, tier=tier)


@TIERS
def test_twenty_concurrent_node_claims_get_exactly_twenty_instances_in_one_pool(
    linode_story: Callable[..., Any], tier: str
) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        launched = await asyncio.gather(*(provider.create(lab.claim(f"a-{i}")) for i in range(20)))
        await lab.clock.sleep(600)
        assert len({item.provider_id for item in launched}) == 20
        assert len(lab.machines()) == 20
        assert len(lab.pools) == 1
        calls = provider._tools.client.calls
        grown = sum(
            count
            for (route, _), count in calls.items()
            if route in {"POST /lke/clusters/{cluster}/pools", "PUT /lke/clusters/{cluster}/pools/{pool}"}
        )
        assert grown <= 2, "twenty NodeClaims are bought together"
        return sum(count for (route, _), count in calls.items() if route.startswith("GET /linode/instances"))

    linode_story(story, tier=tier)


def test_the_same_node_pool_and_plan_reuse_a_pool_and_grow_it_by_one(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        await provider.create(lab.claim("a"))
        await provider.create(lab.claim("b"))
        (pool,) = lab.pools
        assert len(pool.members) == 2

    linode_story(story)


@pytest.mark.parametrize(
    "changed",
    [
        {"extra_labels": {"version": "2"}},
        {"taints": [("x", "y", "NoSchedule")]},
        {"node_pool": "other"},
        {"plans": ("g6-standard-4",)},
        {"node_class": "other"},
    ],
)
def test_another_template_gets_another_pool(linode_story: Callable[..., Any], changed: dict[str, Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        lab.add_node_class("other")
        await provider.create(lab.claim("a"))
        await provider.create(lab.claim("b", **changed))
        assert len(lab.pools) == 2
        assert [len(pool.members) for pool in lab.pools] == [1, 1]

    linode_story(story)


def test_an_unclaimed_member_is_claimed_before_anything_is_bought(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        await provider.create(lab.claim("a"))
        (pool,) = lab.pools
        client = lab.client()
        await client.update_pool(lab.cluster_id, pool.id, {"count": 2})
        await lab.clock.sleep(30)
        await provider.create(lab.claim("b"))
        assert len(lab.machines()) == 2

    linode_story(story)


def test_tags_of_others_on_an_instance_survive(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        await provider.create(lab.claim("a"))
        (pool,) = lab.pools
        client = lab.client()
        await client.update_pool(lab.cluster_id, pool.id, {"count": 2})
        await lab.clock.sleep(30)
        spare = next(item for item in lab.machines() if not item.tags)
        await client.set_instance_tags(spare.id, ("cost=42", "plain", "=xy"))
        await provider.create(lab.claim("b"))
        assert {"cost=42", "plain", "=xy"} < set(spare.tags)

    linode_story(story)


def test_a_member_that_serves_somebody_else_is_never_taken(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        await provider.create(lab.claim("a"))
        (pool,) = lab.pools
        client = lab.client()
        await client.update_pool(lab.cluster_id, pool.id, {"count": 2})
        await lab.clock.sleep(30)
        spare = next(item for item in lab.machines() if not item.tags)
        await client.set_instance_tags(spare.id, ("karpenter.sh/nodeclaim=foreign",))
        launched = await provider.create(lab.claim("b"))
        assert launched.provider_id != f"linode://{spare.id}"
        assert len(lab.machines()) == 3

    linode_story(story)


def test_a_full_pool_spills_into_a_second_one(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        lab.options = replace(lab.options, standard_pool_cap=2)
        provider = await lab.provider()
        await asyncio.gather(*(provider.create(lab.claim(f"a-{i}")) for i in range(5)))
        assert sorted(len(pool.members) for pool in lab.pools) == [1, 2, 2]

    linode_story(story)


def test_a_firewall_is_attached_on_the_standard_tier_where_pools_ignore_it(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        lab.add_node_class(firewall_id=4711)
        provider = await lab.provider()
        await provider.create(lab.claim("a"))
        (machine,) = lab.machines()
        assert machine.firewalls == (4711,)

    linode_story(story)


def test_an_enterprise_pool_carries_version_strategy_and_firewall(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        lab.add_node_class(firewall_id=4711, lke_k8s_version="v1.34.6+lke2")
        provider = await lab.provider()
        await provider.create(lab.claim("a"))
        (pool,), (machine,) = lab.pools, lab.machines()
        assert (pool.k8s_version, pool.update_strategy, pool.firewall_id) == ("v1.34.6+lke2", "on_recycle", 4711)
        assert machine.firewalls == (4711,)

    linode_story(story, tier="enterprise")


def test_an_enterprise_pool_of_an_old_version_is_brought_up_before_reuse(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        lab.add_node_class(lke_k8s_version="v1.31.8+lke1")
        provider = await lab.provider()
        await provider.create(lab.claim("a"))
        lab.add_node_class(lke_k8s_version="v1.34.6+lke2")
        await provider.create(lab.claim("b"))
        (pool,) = lab.pools
        assert pool.k8s_version == "v1.34.6+lke2"

    linode_story(story, tier="enterprise")


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"ready": "False"}, NodeClassNotReadyError, "is not ready"),
        ({"observed": 0}, NodeClassNotReadyError, "has not been reconciled against the latest spec"),
        ({"ready": "Unknown"}, CreateError, "NodeClass is in Ready=Unknown"),
        ({"deleting": True}, InsufficientCapacityError, "is terminating, treating as not found"),
        ({"tags": ("x" * 51,)}, CreateError, "must have 3 to 50 characters"),
        ({"kubelet": None, "tags": ("ab",)}, CreateError, "must have 3 to 50 characters"),
    ],
)
def test_a_node_class_that_cannot_be_used_buys_nothing(
    linode_story: Callable[..., Any], settings: dict[str, Any], error: type[Exception], text: str
) -> None:
    async def story(lab: Any) -> Any:
        lab.add_node_class(**settings)
        provider = await lab.provider()
        with pytest.raises(error, match=text):
            await provider.create(lab.claim("a"))
        assert not lab.pools

    linode_story(story)


def test_a_missing_node_class_is_insufficient_capacity_with_an_event(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        with pytest.raises(InsufficientCapacityError, match="resolving nodeclass"):
            await provider.create(lab.claim("a", node_class="absent"))
        assert lab.notebook.events == [("a", "Warning", "FailedResolvingNodeClass", "Failed resolving NodeClass")]

    linode_story(story)


def test_readiness_unknown_has_its_reason(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        lab.add_node_class(ready="Unknown")
        provider = await lab.provider()
        with pytest.raises(CreateError) as caught:
            await provider.create(lab.claim("a"))
        return caught.value.reason

    assert linode_story(story) == "NodeClassReadinessUnknown"


def test_the_pool_tag_of_the_operator_lets_other_tools_leave_it_alone(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        lab.options = replace(lab.options, pool_tags=("external",))
        provider = await lab.provider()
        await provider.create(lab.claim("a"))
        assert "external" in lab.pools[0].tags

    linode_story(story)


def test_claim_values_are_shortened_by_hash() -> None:
    short, long = tags.claim_tag("pool-abcde"), tags.claim_tag("n" * 40)
    assert short == "karpenter.sh/nodeclaim=pool-abcde"
    assert len(long) == 50
    assert long != tags.claim_tag("n" * 41)
    assert long == tags.claim_tag("n" * 40)
    assert tags.fnv1a("") == "811c9dc5"
    assert tags.fnv1a("foobar") == "bf9cf968"
