from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from karpenter_linode.kube.errors import UnreachableError, UnreadableError
from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.model.meta import ObjectMeta
from karpenter_linode.ports import (
    AlreadyExistsError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    KubeError,
    NotFoundError,
    TooManyRequestsError,
)

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "resourceVersion": "7"}}


def page(*names: str, version: str = "9", following: str = "") -> httpx2.Response:
    items = [{"metadata": {"name": name}} for name in names]
    return httpx2.Response(200, json={"metadata": {"resourceVersion": version, "continue": following}, "items": items})


def body_of(request: httpx2.Request) -> Any:
    return json.loads(request.content)


def test_an_object_is_found_by_its_path(api: Any) -> None:
    kube, server = api(httpx2.Response(200, json=NODE))
    assert asyncio.run(kube.get(Node, "a")).metadata.resource_version == "7"
    assert server.requests[0].url.path == "/api/v1/nodes/a"


def test_a_list_is_read_page_by_page(api: Any) -> None:
    kube, server = api(page("a", "b", following="next"), page("c"))
    listing = asyncio.run(kube.list(Node))
    assert [node.name for node in listing.items] == ["a", "b", "c"]
    assert listing.resource_version == "9"
    assert [dict(request.url.params) for request in server.requests] == [
        {"limit": "500"},
        {"limit": "500", "continue": "next"},
    ]


def test_a_list_that_expires_between_pages_is_taken_again_in_one_piece(api: Any, refusal: Any) -> None:
    kube, server = api(page("a", following="next"), refusal(410, "Expired"), page("a", "b"))
    listing = asyncio.run(kube.list(Node, label_selector="x=y"))
    assert [node.name for node in listing.items] == ["a", "b"]
    assert dict(server.requests[-1].url.params) == {"labelSelector": "x=y"}


def test_an_object_that_cannot_be_read_does_not_hide_the_others(api: Any, logger: Any) -> None:
    items = [
        {"metadata": {"name": "good"}},
        {"metadata": {"name": "bad", "namespace": "ns"}, "spec": {"priority": "high"}},
    ]
    kube, _ = api(httpx2.Response(200, json={"metadata": {"resourceVersion": "1"}, "items": items}))
    assert [pod.name for pod in asyncio.run(kube.list(Pod)).items] == ["good"]
    (line,) = logger.lines
    assert line[2]["name"] == "ns/bad"
    assert "spec.priority" in line[2]["error"]


def test_members_that_are_null_count_as_absent(api: Any) -> None:
    pod = {"metadata": {"name": "p", "labels": None}, "spec": {"containers": None, "nodeSelector": None}}
    kube, _ = api(httpx2.Response(200, json=pod))
    assert asyncio.run(kube.get(Pod, "p", "ns")).spec.containers == ()


def test_an_empty_list_may_be_null(api: Any) -> None:
    kube, _ = api(httpx2.Response(200, json={"metadata": {"resourceVersion": "1"}, "items": None}))
    assert asyncio.run(kube.list(Pod)).items == ()


def test_what_is_no_object_is_said_to_be_none(api: Any) -> None:
    kube, _ = api(httpx2.Response(200, text="<html>"))
    with pytest.raises(UnreadableError, match="get nodes a: Node: "):
        asyncio.run(kube.get(Node, "a"))


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (403, "Forbidden", ForbiddenError),
        (404, "NotFound", NotFoundError),
        (409, "Conflict", ConflictError),
        (409, "AlreadyExists", AlreadyExistsError),
        (410, "Gone", GoneError),
        (422, "Invalid", InvalidError),
        (429, "TooManyRequests", TooManyRequestsError),
        (500, "InternalError", KubeError),
    ],
)
def test_each_refusal_has_its_error(api: Any, refusal: Any, code: int, reason: str, error: type[KubeError]) -> None:
    kube, _ = api(refusal(code, reason, "the server's words"))
    with pytest.raises(error, match=r"get pods ns/p: the server's words \(HTTP \d+\)") as found:
        asyncio.run(kube.get(Pod, "p", "ns"))
    assert type(found.value) is error
    assert found.value.status == code


def test_silence_is_not_taken_for_a_refusal(api: Any) -> None:
    kube, _ = api(httpx2.ConnectError("refused"))
    with pytest.raises(UnreachableError, match="create nodes: ConnectError: refused"):
        asyncio.run(kube.create(Node(ObjectMeta(name="a"))))


def test_a_busy_server_is_waited_for_as_it_asks(api: Any, refusal: Any, clock: Any) -> None:
    kube, server = api(refusal(429, "TooManyRequests", **{"Retry-After": "2"}), httpx2.Response(200, json=NODE))
    assert asyncio.run(kube.get(Node, "a")).name == "a"
    assert clock.slept == [2.0]
    assert len(server.requests) == 2


def test_a_server_that_stays_busy_is_given_up(api: Any, refusal: Any, clock: Any) -> None:
    kube, server = api(refusal(503, **{"Retry-After": "1"}))
    with pytest.raises(KubeError):
        asyncio.run(kube.get(Node, "a"))
    assert len(server.requests) == 4


def test_an_eviction_that_a_budget_forbids_is_not_tried_again_here(api: Any, refusal: Any) -> None:
    kube, server = api(refusal(429, "TooManyRequests", **{"Retry-After": "10"}))
    with pytest.raises(TooManyRequestsError):
        asyncio.run(kube.evict("p", "ns", uid="u", grace_period_seconds=5))
    (request,) = server.requests
    assert request.url.path == "/api/v1/namespaces/ns/pods/p/eviction"
    assert body_of(request)["deleteOptions"] == {"preconditions": {"uid": "u"}, "gracePeriodSeconds": 5}


@pytest.mark.parametrize(
    ("kind", "content_type"),
    [
        ("merge", "application/merge-patch+json"),
        ("strategic", "application/strategic-merge-patch+json"),
        ("json", "application/json-patch+json"),
    ],
)
def test_each_kind_of_patch_is_named(api: Any, kind: Any, content_type: str) -> None:
    kube, server = api(httpx2.Response(200, json=NODE))
    asyncio.run(kube.patch(Node, "a", {"spec": {}}, subresource="status", patch_kind=kind))
    (request,) = server.requests
    assert (request.method, request.url.path) == ("PATCH", "/api/v1/nodes/a/status")
    assert request.headers["Content-Type"] == content_type


def test_server_side_apply_names_its_manager(api: Any) -> None:
    kube, server = api(httpx2.Response(200, json=NODE))
    asyncio.run(kube.apply(Node, "a", NODE, field_manager="karpenter", force=True))
    (request,) = server.requests
    assert dict(request.url.params) == {"fieldManager": "karpenter", "force": "true"}
    assert request.headers["Content-Type"] == "application/apply-patch+yaml"


def test_deletion_may_name_the_one_that_is_meant(api: Any) -> None:
    kube, server = api(httpx2.Response(200, json={"kind": "Status"}))
    asyncio.run(kube.delete(NodeClaim, "c", uid="u"))
    (request,) = server.requests
    assert (request.method, request.url.path) == ("DELETE", "/apis/karpenter.sh/v1/nodeclaims/c")
    assert body_of(request)["preconditions"] == {"uid": "u"}


def test_nothing_is_ever_put(api: Any) -> None:
    kube, server = api(httpx2.Response(200, json=NODE))

    async def all_writes() -> None:
        await kube.create(Node(ObjectMeta(name="a")))
        await kube.patch(Node, "a", {})
        await kube.apply(Node, "a", NODE, field_manager="k")
        await kube.delete(Node, "a")
        await kube.evict("p", "ns")

    asyncio.run(all_writes())
    assert {request.method for request in server.requests} == {"POST", "PATCH", "DELETE"}


def test_calls_beyond_the_limit_wait(http: Any, clock: Any) -> None:
    connection, _ = http(httpx2.Response(200, text="{}"), qps=10, burst=2)

    async def four() -> None:
        for _ in range(4):
            await connection.read("/version")

    asyncio.run(four())
    assert len(clock.slept) == 2
    assert 0.05 < clock.slept[0] <= 0.1 < clock.slept[1] <= 0.2
