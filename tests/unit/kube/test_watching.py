from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from karpenter_linode.model.core import Node, Pod, StorageClass
from karpenter_linode.ports import ForbiddenError, GoneError, WatchEvent


def line(kind: str, version: str, name: str = "a", **more: Any) -> bytes:
    obj = {"kind": "Node", "metadata": {"name": name, "resourceVersion": version}, **more}
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def error_line(code: int) -> bytes:
    status = {"kind": "Status", "status": "Failure", "message": "too old", "reason": "Expired", "code": code}
    return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"


def follow(kube: Any, kind: Any = Node, version: str = "1", count: int = 100) -> tuple[list[WatchEvent[Any]], Any]:
    """The first events of a watch, and the error that ended it."""

    async def read() -> tuple[list[WatchEvent[Any]], Any]:
        found: list[WatchEvent[Any]] = []
        try:
            async for event in kube.watch(kind, version):
                found.append(event)
                if len(found) == count:
                    return found, None
        except Exception as error:  # noqa: BLE001 - handed to the test
            return found, error
        return found, None

    return asyncio.run(read())


def versions_asked(server: Any) -> list[str]:
    return [request.url.params["resourceVersion"] for request in server.requests]


def test_events_are_told_in_order_with_bookmarks(api: Any, stream: Any) -> None:
    kube, server = api(stream(line("ADDED", "2") + line("MODIFIED", "3"), line("BOOKMARK", "8"), line("DELETED", "9")))
    events, _ = follow(kube, count=4)
    assert [(event.type, event.resource_version) for event in events] == [
        ("ADDED", "2"),
        ("MODIFIED", "3"),
        ("BOOKMARK", "8"),
        ("DELETED", "9"),
    ]
    assert events[2].object is None
    assert server.requests[0].url.params["allowWatchBookmarks"] == "true"


def test_a_line_may_come_in_pieces(api: Any, stream: Any) -> None:
    whole = line("ADDED", "2") + line("ADDED", "3", "b")
    kube, _ = api(stream(*(whole[place : place + 7] for place in range(0, len(whole), 7))))
    events, _ = follow(kube, count=2)
    assert [event.object.name for event in events] == ["a", "b"]


def test_a_stream_that_ends_is_opened_again_where_it_stopped(api: Any, stream: Any, clock: Any) -> None:
    kube, server = api(stream(line("ADDED", "2")), stream(line("BOOKMARK", "5")), stream(line("ADDED", "6", "b")))
    events, _ = follow(kube, count=3)
    assert [event.resource_version for event in events] == ["2", "5", "6"]
    assert versions_asked(server) == ["1", "2", "5"]
    assert all(0 < seconds <= 30 for seconds in clock.slept)


def test_a_stream_that_breaks_is_opened_again_and_nothing_is_told_twice(api: Any, stream: Any) -> None:
    broken = stream(line("ADDED", "2"), line("ADDED", "3", "b")[:20], httpx2.ReadError("reset"))
    kube, server = api(broken, stream(line("ADDED", "3", "b")))
    events, _ = follow(kube, count=2)
    assert [event.object.name for event in events] == ["a", "b"]
    assert versions_asked(server) == ["1", "2"]


def test_an_event_that_was_cut_off_is_asked_for_again(api: Any, stream: Any) -> None:
    kube, server = api(stream(line("ADDED", "2"), line("ADDED", "3", "b")[:20]), stream(line("ADDED", "3", "b")))
    events, _ = follow(kube, count=2)
    assert [event.object.name for event in events] == ["a", "b"]
    assert versions_asked(server) == ["1", "2"]


def test_a_silent_stream_is_opened_again(api: Any, stream: Any) -> None:
    kube, server = api(stream(line("ADDED", "2"), httpx2.ReadTimeout("silence")), stream(line("ADDED", "3")))
    follow(kube, count=2)
    assert versions_asked(server) == ["1", "2"]
    assert kube.watching.reconnects == 1


def test_pauses_grow_while_no_server_answers(api: Any, stream: Any, clock: Any) -> None:
    refused = [httpx2.ConnectError("refused")] * 8
    kube, _ = api(*refused, stream(line("ADDED", "2")))
    follow(kube, count=1)
    assert len(clock.slept) == 8
    limits = [min(30.0, 0.8 * 2**failures) for failures in range(8)]
    assert all(limit / 2 <= slept <= limit for slept, limit in zip(clock.slept, limits, strict=True))


@pytest.mark.parametrize("kind", [Node, Pod, StorageClass])
def test_a_version_that_is_too_old_within_the_stream_asks_for_a_new_list(api: Any, stream: Any, kind: Any) -> None:
    kube, _ = api(stream(error_line(410)))
    _, error = follow(kube, kind)
    assert isinstance(error, GoneError)


def test_a_version_that_is_too_old_at_once_asks_for_a_new_list(api: Any, refusal: Any) -> None:
    kube, _ = api(refusal(410, "Expired"))
    assert isinstance(follow(kube)[1], GoneError)


def test_a_refusal_is_raised_and_server_errors_are_waited_out(api: Any, refusal: Any, stream: Any) -> None:
    kube, server = api(refusal(500), refusal(504, "Timeout"), stream(line("ADDED", "2")), refusal(403, "Forbidden"))
    events, error = follow(kube)
    assert [event.resource_version for event in events] == ["2"]
    assert isinstance(error, ForbiddenError)
    assert len(server.requests) == 4


def test_an_object_that_cannot_be_read_leaves_its_version_behind(api: Any, stream: Any, logger: Any) -> None:
    bad = line("MODIFIED", "2", "odd", spec={"priority": "high"})
    kube, server = api(stream(bad), stream(line("MODIFIED", "3")))
    events, _ = follow(kube, Pod, count=2)
    assert [(event.type, event.object is None) for event in events] == [("BOOKMARK", True), ("MODIFIED", False)]
    assert versions_asked(server) == ["1", "2"]
    assert [fields["name"] for level, _, fields in logger.lines if level == "error"] == ["odd"]


def test_an_open_watch_tells_how_long_it_has_heard_nothing(api: Any, stream: Any) -> None:
    kube, _ = api(stream(line("ADDED", "2")))

    async def read() -> dict[str, float]:
        watch = kube.watch(Node, "1")
        await anext(watch)
        staleness: dict[str, float] = kube.watching.staleness()
        await watch.aclose()
        return staleness

    assert set(asyncio.run(read())) == {"nodes"}


def test_a_watch_that_comes_to_nothing_again_and_again_is_told_of(api: Any, stream: Any, logger: Any) -> None:
    kube, _ = api(*(stream(b"no event\n") for _ in range(6)), stream(line("ADDED", "2")))
    events, _ = follow(kube, count=1)
    assert [event.resource_version for event in events] == ["2"]
    levels = [level for level, text, _ in logger.lines if text == "opening a watch again"]
    assert levels == ["debug"] * 4 + ["warning"] * 2
