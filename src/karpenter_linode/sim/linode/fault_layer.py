"""ASGI middleware that plays the faults of single calls in front of the app."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import httpx2
from starlette.responses import HTMLResponse, JSONResponse

from karpenter_linode.sim.linode.faults import Effect, FaultRule

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from karpenter_linode.sim.linode.world import LinodeWorld

_VERSION: Final = re.compile(r"^/v4(?:beta)?")


class FaultLayer:
    """Answers, drops or delays the calls that the script picks.

    In process, a dropped connection is the exception that the client would meet. Over a socket the server turns it into
    a 500 without a body that means anything: what became of the call is just as unknown.
    """

    def __init__(self, app: ASGIApp, world: LinodeWorld) -> None:
        self._app, self._world = app, world

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one call."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        rule = self._world.faults.take(scope["method"], _VERSION.sub("", scope["path"]))
        if rule is None:
            await self._app(scope, receive, send)
            return
        await self._world.api_latency()
        await self._play(rule, scope, receive, send)

    async def _play(self, rule: FaultRule, scope: Scope, receive: Receive, send: Send) -> None:
        if rule.effect is Effect.STATUS:
            await _answer(rule)(scope, receive, send)
            return
        if rule.effect is Effect.REFUSED:
            raise httpx2.ConnectError("connection refused, as the fault script says")
        body = await _read(receive)
        if rule.effect is Effect.LATE:
            self._world.later(rule.seconds, lambda: self._app(scope, _replay(body), _nowhere))
        else:
            await self._app(scope, _replay(body), _nowhere)
        raise httpx2.ReadError("connection dropped, as the fault script says")


def _answer(rule: FaultRule) -> JSONResponse | HTMLResponse:
    if not rule.reason:
        page = f"<html><body><h1>{rule.status}</h1></body></html>"
        return HTMLResponse(page, status_code=rule.status, headers=rule.headers)
    return JSONResponse({"errors": [{"reason": rule.reason}]}, status_code=rule.status, headers=rule.headers)


async def _read(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _replay(body: bytes) -> Receive:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _nowhere(_: Message) -> None:
    """An answer that nobody gets."""
