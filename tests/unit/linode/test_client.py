"""The API client: pages, filters, errors, retries, time-outs, secrecy (spec/linode-provider.md 7)."""

from __future__ import annotations

import asyncio
import gzip
import json
import traceback
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from karpenter_linode.linode.client import LinodeClient, NewPool
from karpenter_linode.linode.errors import (
    LinodeApiError,
    LinodeBusyError,
    LinodeInvalidError,
    LinodeNotFoundError,
    LinodeRateLimitedError,
    LinodeServerError,
    LinodeTransportError,
    LinodeUnauthorizedError,
)
from karpenter_linode.linode.governor import CallKind, Limit, Limits, RateGovernor
from karpenter_linode.linode.http import CallRecord, ClientOptions
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.loop import run_virtual
from karpenter_linode.sim.seeded import SeededRandom

TOKEN = "very-secret"  # noqa: S105 - no secret: the test looks for it where it must not be
START = datetime(2026, 10, 1, tzinfo=UTC)
Answer = Callable[[httpx2.Request], httpx2.Response]


def _page(data: list[Any], page: int = 1, pages: int = 1) -> httpx2.Response:
    return httpx2.Response(200, json={"data": data, "page": page, "pages": pages, "results": len(data)})


def _error(status: int, reason: str = "no", field: str = "", **headers: str) -> httpx2.Response:
    entry = {"reason": reason, **({"field": field} if field else {})}
    return httpx2.Response(status, json={"errors": [entry]}, headers=headers)


def _run(answer: Answer, use: Callable[[LinodeClient], Any], **options: Any) -> tuple[Any, list[CallRecord], float]:
    """What came of a use of the client, every HTTP request that was sent, and the seconds it took."""

    async def main() -> tuple[Any, list[CallRecord], float]:
        clock, records = VirtualClock(asyncio.get_running_loop(), START), list[CallRecord]()

        async def handler(request: httpx2.Request) -> httpx2.Response:
            result = answer(request)
            return await result if asyncio.iscoroutine(result) else result

        client = LinodeClient(
            "https://api.example.com/",
            TOKEN,
            clock=clock,
            random=SeededRandom(1),
            transport=httpx2.MockTransport(handler),
            options=ClientOptions(**options),
            on_call=records.append,
        )
        try:
            result = await use(client)
        except LinodeApiError as error:
            result = error
        await client.close()
        return result, records, (clock.now() - START).total_seconds()

    return run_virtual(main())


def _in_turn(*answers: httpx2.Response) -> Answer:
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def test_all_pages_are_read() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        page = int(request.url.params["page"])
        assert request.url.params["page_size"] == "500"
        assert request.url.path == "/v4beta/linode/types"
        return _page([{"id": f"t{page}"}], page, 3)

    types, records, _ = _run(answer, lambda client: client.list_types())
    assert [item.id for item in types] == ["t1", "t2", "t3"]
    assert len(records) == 3


def test_an_error_on_a_later_page_is_an_error_of_the_list() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return _page([{"id": "t1"}], 1, 2) if request.url.params["page"] == "1" else _error(404)

    result, _, _ = _run(answer, lambda client: client.list_types())
    assert isinstance(result, LinodeNotFoundError)


def test_filter_user_agent_and_token_are_sent() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return _page([])

    query = {"+and": [{"tags": {"+contains": "a"}}, {"tags": {"+contains": "b"}}]}
    _run(answer, lambda client: client.list_instances(query), program_version="1.2.3")
    assert json.loads(seen[0].headers["X-Filter"]) == query
    assert seen[0].headers["User-Agent"] == "KARPL/1.2.3"
    assert seen[0].headers["Authorization"] == f"Bearer {TOKEN}"


def test_fields_that_are_not_set_are_not_sent() -> None:
    bodies: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        return httpx2.Response(200, json={"id": 7, "type": "t", "count": 2, "nodes": []})

    pool, _, _ = _run(answer, lambda client: client.create_pool(1, NewPool("t", 2, ("a",))))
    assert pool.id == 7
    assert bodies == [{"type": "t", "count": 2, "tags": ["a"]}]


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (_error(404, "Not found"), LinodeNotFoundError),
        (_error(401, "Invalid Token"), LinodeUnauthorizedError),
        (_error(403, "Unauthorized"), LinodeUnauthorizedError),
        (_error(429, "Too many requests"), LinodeRateLimitedError),
        (_error(400, "Linode busy."), LinodeBusyError),
        (_error(400, "Must be unique", "label"), LinodeInvalidError),
        (_error(408, "Please try again"), LinodeServerError),
        (_error(503, "later"), LinodeServerError),
        (httpx2.Response(502, text="<html>bad gateway</html>"), LinodeServerError),
        (httpx2.Response(400, json={"errors": []}), LinodeInvalidError),
        (httpx2.Response(200, text="<html>"), LinodeTransportError),
        (httpx2.Response(200, json={"id": "seven"}), LinodeTransportError),
    ],
)
def test_errors_are_typed_and_name_the_route(response: httpx2.Response, kind: type[LinodeApiError]) -> None:
    result, _, _ = _run(lambda _: response, lambda client: client.create_pool(1, NewPool("t", 1)))
    assert type(result) is kind
    assert str(result).startswith("POST /lke/clusters/{cluster}/pools: ")


def test_an_error_keeps_fields_and_reasons() -> None:
    result, _, _ = _run(lambda _: _error(400, "Must be unique", "label"), lambda client: client.get_instance(3))
    assert [(entry.field, entry.reason) for entry in result.errors] == [("label", "Must be unique")]
    assert str(result) == "GET /linode/instances/{instance}: 400: label: Must be unique"


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_post_is_never_repeated(status: int) -> None:
    result, records, _ = _run(lambda _: _error(status), lambda client: client.create_pool(1, NewPool("t", 1)))
    assert len(records) == 1
    assert result.status == status
    assert result.outcome_unknown is (status != 429)


@pytest.mark.parametrize(
    ("error", "unknown"),
    [(httpx2.ReadError("x"), True), (httpx2.ConnectError("x"), False), (httpx2.RemoteProtocolError("x"), True)],
)
def test_only_a_connection_that_was_never_made_surely_did_nothing(error: Exception, *, unknown: bool) -> None:
    def answer(_: httpx2.Request) -> httpx2.Response:
        raise error

    result, records, _ = _run(answer, lambda client: client.create_pool(1, NewPool("t", 1)))
    assert isinstance(result, LinodeTransportError)
    assert result.outcome_unknown is unknown
    assert str(result).endswith(f"no answer: api.example.com: {type(error).__name__}: x")
    assert [record.status for record in records] == [0]


@pytest.mark.parametrize(
    "use",
    [
        lambda client: client.get_cluster(1),
        lambda client: client.update_pool(1, 2, {"count": 3}),
        lambda client: client.delete_pool(1, 2),
    ],
)
def test_what_may_be_repeated_is_repeated_within_bounds(use: Callable[[LinodeClient], Any]) -> None:
    good = httpx2.Response(200, json={"id": 1})
    result, records, _ = _run(_in_turn(_error(500), _error(503), good), use)
    assert not isinstance(result, LinodeApiError)
    assert [record.status for record in records] == [500, 503, 200]
    result, records, seconds = _run(lambda _: _error(500), use)
    assert isinstance(result, LinodeServerError)
    assert len(records) == 4
    assert seconds < 10


def test_retry_after_is_honoured() -> None:
    good = httpx2.Response(200, json={"id": 1})
    limited = _error(429, **{"Retry-After": "7"})
    _, records, seconds = _run(_in_turn(limited, good), lambda client: client.get_cluster(1))
    assert [record.status for record in records] == [429, 200]
    assert 7 <= seconds < 8


@pytest.mark.parametrize("text", ["-3", "0", "soon", ""])
def test_a_strange_retry_after_counts_as_one_second(text: str) -> None:
    good = httpx2.Response(200, json={"id": 1})
    limited = _error(429, **{"Retry-After": text})
    _, _, seconds = _run(_in_turn(limited, good), lambda client: client.get_cluster(1))
    assert 1 <= seconds < 2


def test_a_retry_after_beyond_the_budget_ends_the_call_with_what_to_wait() -> None:
    limited = _error(429, **{"Retry-After": "3600"})
    result, records, seconds = _run(lambda _: limited, lambda client: client.get_cluster(1))
    assert (len(records), result.retry_after, seconds) == (1, 3600, 0)


def test_maintenance_is_not_hammered() -> None:
    answer = _error(503, "maintenance", **{"X-Maintenance-Mode": "Mon"})
    _, records, _ = _run(lambda _: answer, lambda client: client.get_cluster(1))
    assert len(records) == 1


def test_a_request_that_hangs_ends_after_its_time() -> None:
    def answer(_: httpx2.Request) -> Any:
        async def hang() -> httpx2.Response:
            await asyncio.sleep(3600)
            return httpx2.Response(200)

        return hang()

    result, _, seconds = _run(answer, lambda client: client.create_pool(1, NewPool("t", 1)), timeout_seconds=10)
    assert isinstance(result, LinodeTransportError)
    assert str(result).endswith("api.example.com: no answer within 10 s")
    assert seconds == 10


class Endless(httpx2.AsyncByteStream):
    """An answer that has no end, and knows how much of it was taken and that it was let go."""

    def __init__(self) -> None:
        self.given, self.closed = 0, False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.given += 1 << 20
            yield b" " * (1 << 20)

    async def aclose(self) -> None:
        self.closed = True


def test_an_answer_without_end_is_given_up_at_16_mebibytes() -> None:
    answers: list[Endless] = []

    def answer(_: httpx2.Request) -> httpx2.Response:
        answers.append(Endless())
        return httpx2.Response(200, stream=answers[-1])

    error, records, _ = _run(answer, lambda client: client.create_pool(1, NewPool("g6-standard-1", 1)))
    assert isinstance(error, LinodeTransportError)
    assert error.outcome_unknown, "what was asked for may have been done"
    assert "POST /lke/clusters/{cluster}/pools" in str(error)
    assert "longer than 16 MiB" in str(error)
    assert [(item.given >> 20, item.closed) for item in answers] == [(17, True)]
    assert [record.status for record in records] == [200]


@pytest.mark.parametrize(("status", "kind"), [(401, LinodeUnauthorizedError), (404, LinodeNotFoundError)])
def test_an_error_page_without_end_still_tells_its_status(status: int, kind: type[LinodeApiError]) -> None:
    error, _, _ = _run(lambda _: httpx2.Response(status, stream=Endless()), lambda client: client.get_instance(1))
    assert type(error) is kind
    assert error.errors == ()


def test_a_small_packed_answer_that_unpacks_without_end_is_given_up() -> None:
    packed = gzip.compress(b" " * (20 << 20))
    assert len(packed) < 1 << 20
    answer = httpx2.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx2.ByteStream(packed))
    error, _, _ = _run(lambda _: answer, lambda client: client.create_pool(1, NewPool("g6-standard-1", 1)))
    assert isinstance(error, LinodeTransportError)
    assert "longer than 16 MiB" in str(error)


def test_calls_are_counted_by_route_and_status() -> None:
    async def use(client: LinodeClient) -> Any:
        await client.get_instance(1)
        await client.get_instance(2)
        return client.calls

    calls, records, _ = _run(
        lambda _: httpx2.Response(200, json={"id": 1}, headers={"X-RateLimit-Remaining": "9"}), use
    )
    assert calls == {("GET /linode/instances/{instance}", 200): 2}
    assert records[0].rate_limit_remaining == 9


def test_the_token_is_in_no_text() -> None:
    def answer(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadError("broken")

    async def use(client: LinodeClient) -> str:
        try:
            await client.create_pool(1, NewPool("t", 1))
        except LinodeApiError as error:
            return repr(client) + str(client) + repr(error) + "".join(traceback.format_exception(error))
        return ""

    text, records, _ = _run(answer, use)
    assert "LinodeClient" in text
    assert TOKEN not in text + repr(records)


def test_an_empty_token_is_refused() -> None:
    with pytest.raises(ValueError, match="LINODE_TOKEN environment variable is not set"):
        LinodeClient("https://x", "", clock=None, random=None)  # type: ignore[arg-type]


def test_the_governor_holds_calls_below_the_limit_and_kinds_apart() -> None:
    async def main() -> list[float]:
        clock = VirtualClock(asyncio.get_running_loop(), START)
        governor = RateGovernor(clock, Limits(create=Limit(5, 15)))
        times: list[float] = []

        async def one(kind: CallKind) -> None:
            await governor.admit(kind)
            times.append((clock.now() - START).total_seconds())

        await asyncio.gather(*(one(CallKind.CREATE) for _ in range(11)), one(CallKind.OTHER))
        return sorted(times)

    times = run_virtual(main())
    assert times == [0] * 6 + [16] * 5 + [32]


def test_a_pause_is_shared_by_all_calls_of_a_kind() -> None:
    async def main() -> tuple[float, float]:
        clock = VirtualClock(asyncio.get_running_loop(), START)
        governor = RateGovernor(clock)
        governor.pause(CallKind.LIST, 20)
        governor.pause(CallKind.LIST, 5)
        await governor.admit(CallKind.OTHER)
        other = clock.now()
        await governor.admit(CallKind.LIST)
        return (other - START).total_seconds(), (clock.now() - START).total_seconds()

    assert run_virtual(main()) == (0, 20)
