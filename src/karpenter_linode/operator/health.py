"""The two small HTTP servers of the controller: metrics, and probes (spec/karpenter-lifecycle.md 6.2)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Final, cast

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from starlette.requests import Request


_CONNECTIONS: Final = 64
_MOST: Final = 32
_PATIENCE: Final = 30.0
"""Seconds for a connection, and as many again for an answer that is under way by then."""


class ListenError(Exception):
    """A port cannot be listened on; the message names it."""


class _Server(uvicorn.Server):
    """Leaves signals to the process that it is part of."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Connection(H11Protocol):
    """Cannot be held for ever: whoever opens many and says nothing must not keep the kubelet and Prometheus out."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the base has it
        super().connection_made(transport)
        self._made = self.loop.time()
        self._end = self.loop.call_later(_PATIENCE, self._late)
        others = cast("set[_Connection]", self.connections)
        silent = [other for other in others if other is not self and not other._answers]  # noqa: SLF001 - one of us
        if len(others) > _MOST and silent:
            min(silent, key=lambda other: other._made).transport.abort()  # noqa: SLF001 - likewise

    def connection_lost(self, exc: Exception | None) -> None:
        self._end.cancel()
        super().connection_lost(exc)

    @property
    def _answers(self) -> bool:
        return not getattr(self.cycle, "response_complete", True)  # None before the first request

    def _late(self) -> None:
        if self._answers:
            self._end = self.loop.call_later(_PATIENCE, self.transport.abort)
        else:
            self.transport.abort()


class HttpServer:
    """An HTTP server in this process's loop.

    Args:
        app: what it serves.
        port: port on all addresses; 0 picks a free one.

    Raises:
        ListenError: the port is taken, or not allowed.
    """

    def __init__(self, app: Starlette, port: int) -> None:
        try:
            self._socket = _listen(port)
        except OSError as error:
            raise ListenError(f"cannot listen on port {port}: {error.strerror}") from None
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            http=_Connection,
            ws="none",
            limit_concurrency=_CONNECTIONS,
        )
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Serve until stopped."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]), name=f"http:{self.port}")

    async def stop(self) -> None:
        """Stop serving."""
        self._server.should_exit = self._server.force_exit = True
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        self._socket.close()


def _listen(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def metrics_app(scrape: Callable[[], Awaitable[bytes]]) -> Starlette:
    """``/metrics``.

    Args:
        scrape: what is shown.
    """

    async def show(_: Request) -> Response:
        return Response(await scrape(), media_type=CONTENT_TYPE_LATEST)

    return Starlette(routes=[Route("/metrics", show)])


def health_app(ready: Mapping[str, Callable[[], str]]) -> Starlette:
    """``/healthz`` answers while the loop turns; ``/readyz`` while every check says "".

    Args:
        ready: checks by name; each returns what is wrong, or "".
    """

    async def healthy(_: Request) -> Response:
        return PlainTextResponse("ok")

    async def is_ready(_: Request) -> Response:
        wrong = {name: check() for name, check in ready.items()}
        lines = [f"[-]{name} failed: {text}" if text else f"[+]{name} ok" for name, text in wrong.items()]
        failed = any(wrong.values())
        lines.append("readyz check failed" if failed else "readyz check passed")
        return PlainTextResponse("\n".join(lines) + "\n", 500 if failed else 200)

    return Starlette(routes=[Route("/healthz", healthy), Route("/readyz", is_ready)])
