from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from karpenter_linode.kube.api import LightkubeApi
from karpenter_linode.kube.http import KubeHttp
from karpenter_linode.kube.watching import WatchOptions
from karpenter_linode.sim.seeded import SeededRandom

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class FakeClock:
    """Sleeps at once, and remembers how long."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> Any:
        raise AssertionError("the adapter measures with monotonic time")

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class FakeLogger:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def debug(self, event: str, **fields: Any) -> None:
        self.lines.append(("debug", event, fields))

    def info(self, event: str, **fields: Any) -> None:
        self.lines.append(("info", event, fields))

    def warning(self, event: str, **fields: Any) -> None:
        self.lines.append(("warning", event, fields))

    def error(self, event: str, **fields: Any) -> None:
        self.lines.append(("error", event, fields))


class Chunks(httpx2.AsyncByteStream):
    """A body in pieces; an exception among them breaks the connection."""

    def __init__(self, *parts: bytes | Exception) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            if isinstance(part, Exception):
                raise part
            yield part


class Server:
    """Answers from a script, one after another, and remembers the requests. The last answer is given again."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        given = answer(request) if callable(answer) else answer
        response: httpx2.Response = await given if inspect.isawaitable(given) else given
        return response


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def logger() -> FakeLogger:
    return FakeLogger()


@pytest.fixture
def http(clock: FakeClock) -> Callable[..., tuple[KubeHttp, Server]]:
    def build(*answers: Any, **options: Any) -> tuple[KubeHttp, Server]:
        server = answers[0] if len(answers) == 1 and isinstance(answers[0], Server) else Server(*answers)
        client = httpx2.AsyncClient(base_url="http://api", transport=httpx2.MockTransport(server))
        return KubeHttp(client, clock, **options), server

    return build


@pytest.fixture
def api(
    http: Callable[..., tuple[KubeHttp, Server]], clock: FakeClock, logger: FakeLogger
) -> Callable[..., tuple[LightkubeApi, Server]]:
    def build(*answers: Any, **options: Any) -> tuple[LightkubeApi, Server]:
        connection, server = http(*answers)
        return LightkubeApi(
            connection, clock=clock, random=SeededRandom(1), logger=logger, watch_options=WatchOptions(**options)
        ), server

    return build


@pytest.fixture
def stream() -> Callable[..., Any]:
    """A streamed answer of these pieces, made anew for each request."""

    def build(*parts: bytes | Exception) -> Any:
        return lambda _: httpx2.Response(200, stream=Chunks(*parts))

    return build


@pytest.fixture
def refusal() -> Callable[..., httpx2.Response]:
    def build(code: int, reason: str = "", message: str = "no", **headers: str) -> httpx2.Response:
        body = {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": code}
        return httpx2.Response(code, json=body, headers=headers)

    return build
