"""The HTTP face of the emulator: spec/linode-provider.md 7."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from karpenter_linode.model.linode import LinodeType, Price, Region, RegionAvailability
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.linode.app import create_app
from karpenter_linode.sim.linode.delays import INSTANT
from karpenter_linode.sim.linode.limits import Bucket, RateLimits
from karpenter_linode.sim.linode.world import DEFAULT_CLUSTER, LinodeWorld
from karpenter_linode.sim.loop import run_virtual
from karpenter_linode.sim.seeded import SeededRandom

TYPES = (
    LinodeType("g6-standard-2", "Linode 4GB", "standard", 2, 4096, 81920, 4000, 4000, 0, 0, Price(Decimal("0.036"))),
    LinodeType("g2-gpu-rtx4000a1-s", "Ada", "gpu", 4, 16384, 512000, 0, 0, 1, 0, Price(Decimal("0.52"))),
    LinodeType("g3-gpu-rtxpro6000-blackwell-1", "Pro", "gpu", 16, 176128, 512000, 0, 0, 1, 0, Price(Decimal(3))),
)
POOLS = "/lke/clusters/561146/pools"
Story = Callable[[Any, LinodeWorld], Coroutine[Any, Any, Any]]


class Api:
    """Calls the app as a client with a token does."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        known = {"X-Filter" if key == "filter" else key: value for key, value in headers.items() if key != "token"}
        if headers.get("token", "t"):
            known["Authorization"] = f"Bearer {headers.get('token', 't')}"
        return await self._http.request(method, f"/v4beta{path}", json=body, headers=known)


def _tell(
    story: Story, *, tier: str = "standard", token: str = "", limits: RateLimits | None = None, **world: Any
) -> Any:
    async def main() -> Any:
        clock = VirtualClock(asyncio.get_running_loop(), datetime(2026, 10, 1, tzinfo=UTC))
        made = LinodeWorld(
            clock,
            SeededRandom(1),
            types=TYPES,
            regions=(Region("us-ord", "Chicago, US", "us"), Region("br-gru", "Sao Paulo, BR", "br")),
            cluster=replace(DEFAULT_CLUSTER, tier=tier),
            delays=world.pop("delays", INSTANT),
            **world,
        )
        transport = httpx2.ASGITransport(app=create_app(made, token=token, limits=limits))
        async with httpx2.AsyncClient(transport=transport, base_url="http://linode") as http:
            result = await story(Api(http), made)
        await made.close()
        return result

    return run_virtual(main())


def test_types_have_the_shape_of_the_api() -> None:
    async def story(api: Any, _: LinodeWorld) -> Any:
        return await api("GET", "/linode/types/g6-standard-2")

    assert json.loads(_tell(story).content) == {
        "id": "g6-standard-2",
        "label": "Linode 4GB",
        "class": "standard",
        "vcpus": 2,
        "memory": 4096,
        "disk": 81920,
        "transfer": 4000,
        "network_out": 4000,
        "gpus": 0,
        "accelerated_devices": 0,
        "price": {"hourly": 0.036, "monthly": None},
        "region_prices": [],
        "addons": {"backups": {"price": {"hourly": None, "monthly": None}, "region_prices": []}},
        "successor": None,
    }


def test_the_class_filter_lists_gpu_plans() -> None:
    async def story(api: Any, _: LinodeWorld) -> Any:
        return (await api("GET", "/linode/types?page=1&page_size=100", filter='{"class": "gpu"}')).json()

    page = _tell(story)
    assert [item["id"] for item in page["data"]] == ["g2-gpu-rtx4000a1-s", "g3-gpu-rtxpro6000-blackwell-1"]
    assert (page["page"], page["pages"], page["results"]) == (1, 1, 2)


def test_types_and_regions_are_public_but_gated_plans_are_not() -> None:
    async def story(api: Any, _: LinodeWorld) -> Any:
        nobody = {"token": ""}
        public = (await api("GET", "/linode/types", **nobody)).json()["data"]
        assert (await api("GET", "/regions", **nobody)).status_code == 200
        private = [await api("GET", path, **nobody) for path in ("/lke/clusters", "/linode/instances", "/profile")]
        return [item["id"] for item in public], [response.status_code for response in private], private[0]

    public, statuses, refused = _tell(story)
    assert public == ["g6-standard-2", "g2-gpu-rtx4000a1-s"]
    assert statuses == [401, 401, 401]
    assert refused.json() == {"errors": [{"reason": "Invalid Token"}]}
    assert refused.headers["Content-Type"] == "application/json"


def test_a_wrong_token_is_refused_everywhere() -> None:
    async def story(api: Any, _: LinodeWorld) -> Any:
        return [(await api("GET", "/linode/types", token=token)).status_code for token in ("t", "wrong")]

    only = {"token": "t"}
    assert _tell(story, **only) == [200, 401]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/linode/instances/1", 404),
        ("GET", "/linode/instances/x", 404),
        ("GET", "/lke/clusters/1/pools", 404),
        ("GET", f"{POOLS}/1", 404),
        ("DELETE", "/lke/clusters/561146/nodes/1-abc", 404),
        ("GET", "/regions/mars/availability", 404),
        ("GET", "/nothing", 404),
        ("PATCH", "/linode/instances/1", 405),
        ("GET", "/linode/types?page_size=10", 400),
        ("GET", "/linode/types?page=2", 404),
        ("GET", "/linode/types?page=x", 400),
        ("GET", f"/linode/types?page={'9' * 5000}", 400),
        ("GET", f"/linode/instances/{'9' * 5000}", 404),
    ],
)
def test_errors_have_the_shape_of_the_api(method: str, path: str, status: int) -> None:
    async def story(api: Any, _: LinodeWorld) -> Any:
        return await api(method, path)

    response = _tell(story)
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/json", "no charset: the Go client compares for equality"
    assert response.json()["errors"][0]["reason"]


def test_pages_are_cut_by_page_size() -> None:
    async def story(api: Any, world: LinodeWorld) -> Any:
        for number in range(30):
            world.create_machine({"type": "g6-standard-2", "region": "us-ord", "label": f"web-{number:02}"})
        first = (await api("GET", "/linode/instances?page=1&page_size=25")).json()
        second = (await api("GET", "/linode/instances?page=2&page_size=25")).json()
        return first, second

    first, second = _tell(story)
    assert (len(first["data"]), first["pages"], first["results"]) == (25, 2, 30)
    assert [item["label"] for item in second["data"]] == [f"web-{number}" for number in range(25, 30)]


def test_availability_is_a_bare_list_for_one_region_and_pages_for_all() -> None:
    rows = (
        RegionAvailability("us-ord", "g2-gpu-rtx4000a1-s", available=True),
        RegionAvailability("br-gru", "x", available=False),
    )

    async def story(api: Any, world: LinodeWorld) -> Any:
        one = (await api("GET", "/regions/us-ord/availability")).json()
        every = (await api("GET", "/regions/availability")).json()["data"]
        world.faults.duplicate_availability_rows = True
        world.faults.unavailable.add(("g2-gpu-rtx4000a1-s", "us-ord"))
        return one, every, (await api("GET", "/regions/us-ord/availability")).json()

    one, every, flapped = _tell(story, availability=rows)
    shown = {"region": "us-ord", "plan": "g2-gpu-rtx4000a1-s", "available": True}
    assert one == [shown]
    assert every == [shown, {"region": "br-gru", "plan": "x", "available": False}]
    assert flapped == [{**shown, "available": False}] * 2


def test_what_the_availability_list_rules_out_cannot_be_bought() -> None:
    rows = (RegionAvailability("us-ord", "g2-gpu-rtx4000a1-s", available=False),)

    async def story(api: Any, _: LinodeWorld) -> Any:
        return await api("POST", POOLS, {"type": "g2-gpu-rtx4000a1-s", "count": 1})

    response = _tell(story, availability=rows)
    assert response.status_code == 400
    assert "Insufficient capacity" in response.json()["errors"][0]["reason"]


def test_the_tier_shows_in_the_beta_only() -> None:
    async def story(api: Any, _: LinodeWorld) -> Any:
        beta = (await api("GET", "/lke/clusters")).json()["data"][0]
        stable = await api._http.get("/v4/lke/clusters", headers={"Authorization": "Bearer t"})
        wrong = await api._http.get("/v3/lke/clusters", headers={"Authorization": "Bearer t"})
        return beta, stable.json()["data"][0], wrong.status_code

    beta, stable, wrong = _tell(story)
    assert beta["tier"] == "standard"
    assert "tier" not in stable
    assert wrong == 404


def test_a_pool_and_its_members() -> None:
    async def story(api: Any, world: LinodeWorld) -> Any:
        body = {
            "type": "g6-standard-2",
            "count": 2,
            "tags": ["one"],
            "labels": {"team": "ml"},
            "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
            "firewall_id": 5,
        }
        made = (await api("POST", POOLS, body)).json()
        await world.clock.sleep(1)
        return made, (await api("GET", f"{POOLS}/{made['id']}")).json()

    made, later = _tell(story)
    assert (made["count"], made["labels"], made["tags"]) == (2, {"team": "ml"}, ["one"])
    assert made["taints"] == [{"key": "a", "value": "b", "effect": "NoSchedule"}]
    assert made["autoscaler"] == {"enabled": False, "min": 2, "max": 2}
    assert "firewall_id" not in made
    assert [(node["instance_id"], node["status"]) for node in made["nodes"]] == [(None, "not_ready")] * 2
    for node in later["nodes"]:
        pool, _, tail = node["id"].partition("-")
        assert (pool, len(tail), tail[-4:]) == (str(made["id"]), 12, "0000")
        assert isinstance(node["instance_id"], int)
        assert node["status"] == "ready"


def test_an_instance_of_a_pool() -> None:
    async def story(api: Any, world: LinodeWorld) -> Any:
        await api("POST", POOLS, {"type": "g6-standard-2", "count": 1, "tags": ["pool-tag"]})
        await world.clock.sleep(1)
        (pool,) = (await api("GET", POOLS)).json()["data"]
        (node,) = pool["nodes"]
        return node, (await api("GET", f"/linode/instances/{node['instance_id']}")).json()

    node, shown = _tell(story)
    assert shown["label"] == f"lke561146-{node['id']}"
    assert (shown["type"], shown["region"], shown["lke_cluster_id"]) == ("g6-standard-2", "us-ord", 561146)
    assert shown["tags"] == [], "the standard tier keeps a pool's tags to the pool"
    assert shown["created"] == "2026-10-01T00:00:00"
    assert shown["specs"]["gpus"] == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"type": "nope", "count": 1}, "type"),
        ({"type": "g6-standard-2", "count": 0}, "count"),
        ({"type": "g6-standard-2", "count": True}, "count"),
        ({"type": "g6-standard-2"}, "count"),
        ({"type": "g6-standard-2", "count": 101}, "count"),
        ({"type": "g6-standard-2", "count": 1, "tags": ["x" * 51]}, "tags"),
        ({"type": "g6-standard-2", "count": 1, "tags": ["ab"]}, "tags"),
        ({"type": "g6-standard-2", "count": 1, "labels": {"kubernetes.io/x": "y"}}, "labels"),
        ({"type": "g6-standard-2", "count": 1, "labels": {"a.linode.com/x": "y"}}, "labels"),
        ({"type": "g6-standard-2", "count": 1, "labels": {"x": ""}}, "labels"),
        ({"type": "g6-standard-2", "count": 1, "labels": {"x": "y" * 64}}, "labels"),
        ({"type": "g6-standard-2", "count": 1, "labels": {"x" * 64: "y"}}, "labels"),
        ({"type": "g6-standard-2", "count": 1, "labels": {"/x": "y"}}, "labels"),
        ({"type": "g6-standard-2", "count": 1, "taints": [{"key": "a", "effect": "Never"}]}, "taints"),
        (
            {"type": "g6-standard-2", "count": 1, "taints": [{"key": "kubernetes.io/a", "effect": "NoSchedule"}]},
            "taints",
        ),
        ({"type": "g6-standard-2", "count": 1, "taints": ["a"]}, "taints"),
    ],
)
def test_bad_pools_are_refused_with_the_field(body: dict[str, Any], field: str) -> None:
    async def story(api: Any, world: LinodeWorld) -> Any:
        response = await api("POST", POOLS, body)
        assert world.pools.of(561146) == ()
        return response

    response = _tell(story)
    assert response.status_code == 400
    assert response.json()["errors"][0]["field"] == field


def test_a_bad_update_changes_nothing() -> None:
    async def story(api: Any, world: LinodeWorld) -> Any:
        pool = (await api("POST", POOLS, {"type": "g6-standard-2", "count": 1, "tags": ["one"]})).json()["id"]
        response = await api("PUT", f"{POOLS}/{pool}", {"tags": ["two"], "count": 101})
        assert response.status_code == 400
        return world.pools.get(561146, pool)

    pool = _tell(story)
    assert (pool.tags, len(pool.members)) == (("one",), 1)


def test_a_standard_cluster_takes_250_nodes() -> None:
    async def story(api: Any, _: LinodeWorld) -> Any:
        return [
            (await api("POST", POOLS, {"type": "g6-standard-2", "count": count})).status_code
            for count in (100, 100, 51, 50)
        ]

    assert _tell(story) == [200, 200, 400, 200]


@pytest.mark.parametrize("content", [b"{", b"[]", b"7", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(content: bytes) -> None:
    async def story(api: Any, _: LinodeWorld) -> Any:
        return await api._http.post(f"/v4beta{POOLS}", content=content, headers={"Authorization": "Bearer t"})

    assert _tell(story).status_code == 400


def test_a_body_beyond_a_mebibyte_is_refused() -> None:
    async def story(api: Any, _: LinodeWorld) -> Any:
        return await api("POST", POOLS, {"label": "x" * (1 << 20)})

    assert _tell(story).status_code == 413


@pytest.mark.parametrize("query", ["[" * 20_000, '{"+order_by": ["id"]}'])
def test_a_hostile_filter_is_refused(query: str) -> None:
    async def story(api: Any, _: LinodeWorld) -> Any:
        return await api("GET", "/linode/instances", filter=query)

    assert _tell(story).status_code == 400


@pytest.mark.parametrize("linodes", ["1", [None], {}, ["1"]])
def test_a_tag_for_what_is_no_list_of_ids_is_refused(linodes: Any) -> None:
    async def story(api: Any, _: LinodeWorld) -> Any:
        return await api("POST", "/tags", {"label": "more", "linodes": linodes})

    assert _tell(story).status_code == 400


def test_rate_limits_answer_429_with_headers() -> None:
    async def story(api: Any, world: LinodeWorld) -> Any:
        answers = [await api("GET", "/lke/clusters") for _ in range(3)]
        await world.clock.sleep(10)
        return [*answers, await api("GET", "/lke/clusters"), await api("GET", "/lke/clusters/561146")]

    first, second, refused, again, other = _tell(story, limits=RateLimits(list=Bucket(2, 10)))
    assert [response.status_code for response in (first, second, refused, again, other)] == [200, 200, 429, 200, 200]
    assert (first.headers["X-RateLimit-Remaining"], second.headers["X-RateLimit-Remaining"]) == ("1", "0")
    assert refused.headers["Retry-After"] == "10"


def test_firewalls_are_set_and_attached() -> None:
    async def story(api: Any, world: LinodeWorld) -> Any:
        machine = world.create_machine({"type": "g6-standard-2", "region": "us-ord", "label": "web"})
        await api("PUT", f"/linode/instances/{machine.id}/firewalls", {"firewall_ids": [1]})
        await api("POST", "/networking/firewalls/2/devices", {"id": machine.id, "type": "linode"})
        shown = (await api("GET", f"/linode/instances/{machine.id}/firewalls")).json()["data"]
        return [item["id"] for item in shown]

    assert _tell(story) == [1, 2]


def test_tags_are_replaced_and_added() -> None:
    async def story(api: Any, world: LinodeWorld) -> Any:
        machine = world.create_machine({"type": "g6-standard-2", "region": "us-ord", "label": "web", "tags": ["old"]})
        await api("PUT", f"/linode/instances/{machine.id}", {"tags": ["new", "new"]})
        await api("POST", "/tags", {"label": "more", "linodes": [machine.id]})
        return machine.tags

    assert _tell(story) == ("new", "more")


def test_a_tag_write_may_take_some_reads_to_show() -> None:
    async def story(api: Any, world: LinodeWorld) -> Any:
        machine = world.create_machine({"type": "g6-standard-2", "region": "us-ord", "label": "web"})
        world.faults.tag_reads_until_visible = 2
        await api("PUT", f"/linode/instances/{machine.id}", {"tags": ["new"]})
        return [(await api("GET", f"/linode/instances/{machine.id}")).json()["tags"] for _ in range(3)]

    assert _tell(story) == [[], ["new"], ["new"]], "the answer to the write was the first read"


@pytest.mark.parametrize("effect", ["fail", "html", "refuse_connection", "lose_answer", "carry_out_late"])
def test_faults_of_single_calls(effect: str) -> None:
    async def story(api: Any, world: LinodeWorld) -> Any:
        match effect:
            case "fail":
                world.faults.fail("POST", POOLS, 503, "later", headers={"Retry-After": "3"})
            case "html":
                world.faults.fail("POST", POOLS, 502, "")
            case "carry_out_late":
                world.faults.carry_out_late("POST", POOLS, 30)
            case _:
                getattr(world.faults, effect)("POST", POOLS)
        try:
            response = await api("POST", POOLS, {"type": "g6-standard-2", "count": 1})
            outcome = f"{response.status_code} {response.headers['Content-Type'].split(';')[0]}"
        except httpx2.RequestError as error:
            outcome = type(error).__name__
        now = len(world.pools.of(561146))
        await world.clock.sleep(60)
        return outcome, now, len(world.pools.of(561146)), (await api("GET", POOLS)).status_code

    assert (
        _tell(story)
        == {
            "fail": ("503 application/json", 0, 0, 200),
            "html": ("502 text/html", 0, 0, 200),
            "refuse_connection": ("ConnectError", 0, 0, 200),
            "lose_answer": ("ReadError", 1, 1, 200),
            "carry_out_late": ("ReadError", 0, 1, 200),
        }[effect]
    )
