from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from karpenter_linode.kube.events import KubeEvents
from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.meta import ObjectMeta

POD = Pod(ObjectMeta(name="p", namespace="ns", uid="u"))
CREATED = httpx2.Response(201, json={})


@pytest.fixture
def events(http: Any, logger: Any) -> Any:
    def build(*answers: Any) -> tuple[KubeEvents, Any, list[float]]:
        now = [0.0]
        connection, server = http(*(answers or (CREATED,)))
        return KubeEvents(connection, logger, monotonic=lambda: now[0]), server, now

    return build


def bodies(server: Any) -> list[dict[str, Any]]:
    return [json.loads(request.content) for request in server.requests]


def test_an_event_tells_who_about_what(events: Any) -> None:
    sink, server, _ = events()
    sink.publish(POD, "Warning", "FailedScheduling", "Failed to schedule pod, no", dedupe=("u",))
    asyncio.run(sink.drain())
    (body,) = bodies(server)
    assert server.requests[0].url.path == "/api/v1/namespaces/ns/events"
    assert body["involvedObject"]["name"] == "p"
    assert (body["type"], body["reason"], body["source"]) == ("Warning", "FailedScheduling", {"component": "karpenter"})
    assert body["count"] == 1


def test_events_about_objects_without_a_namespace_go_to_the_default_one(events: Any) -> None:
    sink, server, _ = events()
    sink.publish(Node(ObjectMeta(name="n")), "Normal", "Disrupted", "x")
    asyncio.run(sink.drain())
    assert server.requests[0].url.path == "/api/v1/namespaces/default/events"


def test_what_was_said_is_not_said_again_within_the_window(events: Any) -> None:
    sink, server, now = events()
    sink.publish(POD, "Normal", "Evicted", "first", dedupe=("p",))
    sink.publish(POD, "Normal", "evicted", "the message is no part of the key", dedupe=("p",))
    now[0] = 119.0
    sink.publish(POD, "Normal", "Evicted", "second", dedupe=("p",))
    now[0] = 121.0
    sink.publish(POD, "Normal", "Evicted", "third", dedupe=("p",))
    asyncio.run(sink.drain())
    assert [body["message"] for body in bodies(server)] == ["first", "third"]


def test_an_equal_event_later_raises_the_count(events: Any) -> None:
    sink, server, now = events()
    for minute in range(3):
        now[0] = minute * 180.0
        sink.publish(POD, "Normal", "Nominated", "Pod should schedule on: node/n", dedupe=("u",))
    asyncio.run(sink.drain())
    assert [request.method for request in server.requests] == ["POST", "PATCH", "PATCH"]
    assert [body["count"] for body in bodies(server)] == [1, 2, 3]


def test_an_event_that_has_expired_is_written_anew(events: Any) -> None:
    gone = httpx2.Response(404, json={"reason": "NotFound", "code": 404})
    sink, server, now = events(CREATED, gone, CREATED)
    for minute in range(2):
        now[0] = minute * 180.0
        sink.publish(POD, "Normal", "Nominated", "same", dedupe=("u",))
    asyncio.run(sink.drain())
    assert [request.method for request in server.requests] == ["POST", "PATCH", "POST"]


def test_nominations_are_limited_to_five_a_second_after_ten(events: Any) -> None:
    sink, server, now = events()
    for number in range(30):
        pod = Pod(ObjectMeta(name=f"p{number}", namespace="ns", uid=str(number)))
        sink.publish(pod, "Normal", "Nominated", "x", dedupe=(str(number),))
    now[0] = 1.0
    for number in range(30, 60):
        pod = Pod(ObjectMeta(name=f"p{number}", namespace="ns", uid=str(number)))
        sink.publish(pod, "Normal", "Nominated", "x", dedupe=(str(number),))
    asyncio.run(sink.drain())
    assert len(server.requests) == 15
    assert sink.dropped == 45


def test_one_object_cannot_flood_the_cluster(events: Any) -> None:
    sink, server, _ = events()
    for number in range(100):
        sink.publish(POD, "Warning", f"Reason{number}", "x")
    asyncio.run(sink.drain())
    assert len(server.requests) == 25


def test_a_refused_event_does_not_stop_the_next(events: Any, refusal: Any) -> None:
    sink, server, _ = events(refusal(403, "Forbidden"), CREATED)
    sink.publish(POD, "Normal", "A", "x")
    sink.publish(POD, "Normal", "B", "x")

    async def write() -> None:
        writer = asyncio.create_task(sink.run())
        await asyncio.sleep(0.05)
        writer.cancel()

    asyncio.run(write())
    assert [body["reason"] for body in bodies(server)] == ["A", "B"]
