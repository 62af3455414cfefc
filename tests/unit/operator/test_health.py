"""The servers of metrics and probes, where somebody holds connections that come to nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from karpenter_linode.operator import health
from karpenter_linode.operator.health import HttpServer, health_app, metrics_app

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.applications import Starlette

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def served(app: Starlette, work: Callable[[int], Awaitable[Any]]) -> Any:
    async def go() -> Any:
        server = HttpServer(app, 0)
        server.start()
        try:
            return await work(server.port)
        finally:
            await server.stop()

    return asyncio.run(go())


async def opened(port: int, count: int, said: bytes) -> list[Pair]:
    pairs = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    for _, writer in pairs:
        writer.write(said)
    return pairs


async def probe(port: int, path: str = "/healthz") -> int:
    async with httpx2.AsyncClient(trust_env=False) as client:
        return (await client.get(f"http://127.0.0.1:{port}{path}")).status_code


async def closed(pairs: list[Pair]) -> None:
    for reader, writer in pairs:
        try:
            await reader.read()  # until the server has ended it
        except ConnectionResetError:
            pass
        finally:
            writer.close()


def left(pairs: list[Pair]) -> None:
    for _, writer in pairs:
        writer.transport.abort()


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: "], ids=["silent", "half-a-head"])
def test_the_kubelet_comes_in_however_many_connections_say_nothing(said: bytes) -> None:
    async def work(port: int) -> int:
        pairs = await opened(port, 200, said)
        try:
            return await probe(port)
        finally:
            left(pairs)

    assert served(health_app({}), work) == 200


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: "], ids=["silent", "half-a-head"])
def test_a_connection_that_says_nothing_is_ended(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    monkeypatch.setattr(health, "_PATIENCE", 0.01)

    async def work(port: int) -> None:
        await closed(await opened(port, 3, said))

    served(health_app({}), work)


def test_an_answer_that_nobody_fetches_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_PATIENCE", 0.01)
    asked = asyncio.Event()

    async def scrape() -> bytes:
        asked.set()
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]  # never

    async def work(port: int) -> None:
        pairs = await opened(port, 1, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        await asked.wait()
        await closed(pairs)

    served(metrics_app(scrape), work)


def test_an_answer_under_way_is_not_ended_for_newcomers() -> None:
    begun, ready = asyncio.Semaphore(0), asyncio.Event()

    async def scrape() -> bytes:
        begun.release()
        await ready.wait()
        return b"up 1\n"

    async def work(port: int) -> list[int]:
        scrapes = []
        for _ in range(5):
            scrapes.append(asyncio.create_task(probe(port, "/metrics")))
            await begun.acquire()
        pairs = await opened(port, 100, b"")
        scrapes.append(asyncio.create_task(probe(port, "/metrics")))
        await begun.acquire()
        ready.set()
        try:
            return await asyncio.gather(*scrapes)
        finally:
            left(pairs)

    assert served(metrics_app(scrape), work) == [200] * 6
