"""Watches: what was there, what changes, what selectors see, and when a stream ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from karpenter_linode.sim.face import streams
from karpenter_linode.sim.face.requests import ApiRequest, parse_path

if TYPE_CHECKING:
    import pytest

Make = Callable[..., dict[str, Any]]
Talk = Callable[..., None]
MAPS = "/api/v1/namespaces/default/configmaps"


def named(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


def seen(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def test_a_watch_tells_what_is_there_and_what_changes_until_its_time_is_over(talk: Talk) -> None:
    async def story(client: Any) -> None:
        await client.create(MAPS, named("a"))
        watching = asyncio.ensure_future(client.events(MAPS, timeoutSeconds="30"))
        await client.cluster.clock.sleep(5)
        await client.create(MAPS, named("b"))
        await client.patch(f"{MAPS}/a", {"data": {"x": "y"}})
        await client.ask("DELETE", f"{MAPS}/b")
        assert seen(await watching) == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
        assert client.cluster.clock.now().second == 30

    talk(story)


def test_a_watch_from_a_version_tells_what_came_after_it(talk: Talk) -> None:
    async def story(client: Any) -> None:
        await client.create(MAPS, named("a"))
        version = (await client.get(MAPS))["metadata"]["resourceVersion"]
        await client.create(MAPS, named("b"))
        assert seen(await client.events(MAPS, timeoutSeconds="1", resourceVersion=version)) == [("ADDED", "b")]

    talk(story)


def test_objects_come_into_a_selectors_view_and_leave_it(talk: Talk) -> None:
    async def story(client: Any) -> None:
        version = client.cluster.store.resource_version
        await client.create(MAPS, named("a", on="no"))
        await client.patch(f"{MAPS}/a", named("a", on="yes"))
        await client.patch(f"{MAPS}/a", named("a", on="yes", more="x"))
        await client.patch(f"{MAPS}/a", named("a", on="no"))
        await client.ask("DELETE", f"{MAPS}/a")
        events = await client.events(MAPS, timeoutSeconds="1", resourceVersion=version, labelSelector="on=yes")
        assert seen(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
        one = await client.events(f"{MAPS}/b", timeoutSeconds="1", resourceVersion=version)
        assert one == [], "a watch of one object tells of no other"

    talk(story)


def test_a_streamed_list_ends_with_a_marked_bookmark(talk: Talk) -> None:
    async def story(client: Any) -> None:
        await client.create(MAPS, named("a"))
        streamed = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
        events = await client.events(MAPS, timeoutSeconds="70", **streamed)
        assert [event["type"] for event in events] == ["ADDED", "BOOKMARK", "BOOKMARK"], "the last is the minute's"
        first, later = (event["object"]["metadata"] for event in events[1:])
        assert first["annotations"] == {streams.INITIAL_END: "true"}
        assert first["resourceVersion"] == client.cluster.store.resource_version
        assert "annotations" not in later
        refused = await client.ask("GET", MAPS, watch="1", sendInitialEvents="true")
        assert refused.status_code == 400

    talk(story)


def test_a_version_that_is_forgotten_is_told_as_an_error_event(talk: Talk) -> None:
    async def story(client: Any) -> None:
        await client.create(MAPS, named("a"))
        version = client.cluster.store.resource_version
        await client.create(MAPS, named("b"))
        client.cluster.store.history(parse_path(MAPS.removesuffix("")).type).compact()
        (event,) = await client.events(MAPS, resourceVersion=version)
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")

    talk(story)


def test_rows_are_watched_as_tables(talk: Talk) -> None:
    async def story(client: Any) -> None:
        await client.create(MAPS, named("a"))
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        (event,) = await client.events(MAPS, accept=table, timeoutSeconds="1")
        assert event["object"]["kind"] == "Table"
        assert event["object"]["rows"][0]["cells"] == ["a", 0, "0s"]

    talk(story)


def request(**query: str) -> ApiRequest:
    return ApiRequest("GET", parse_path(MAPS), {"watch": "1", **query})


def test_no_more_watches_than_allowed_are_open_and_ended_ones_make_room(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_WATCHES", 2)

    async def story(client: Any) -> None:
        first = [client.face.streams.watch(request(timeoutSeconds="10")) for _ in range(2)]
        refused = await client.ask("GET", MAPS, watch="1", timeoutSeconds="1")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        await client.cluster.clock.sleep(11)
        assert await client.events(MAPS, timeoutSeconds="1") == []
        for _, lines in first:
            assert [line async for line in lines] == []

    talk(story)


def test_a_client_that_does_not_read_loses_its_stream(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_WAITING", 3)

    async def story(client: Any) -> None:
        _, slow = client.face.streams.watch(request())
        for number in range(5):
            await client.create(MAPS, named(f"c{number}"))
        assert [line async for line in slow] == []

    talk(story)


def test_closing_the_face_ends_every_stream(talk: Talk) -> None:
    async def story(client: Any) -> None:
        watching = asyncio.ensure_future(client.events(MAPS))
        await client.cluster.clock.sleep(1)
        client.face.streams.close()
        assert await watching == []

    talk(story)
