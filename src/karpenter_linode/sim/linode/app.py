"""The HTTP face of the emulated cloud (spec/linode-provider.md 7)."""

from __future__ import annotations

from secrets import compare_digest
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Route

from karpenter_linode.model import codec
from karpenter_linode.sim.linode import handlers_catalog as catalog
from karpenter_linode.sim.linode import handlers_linode as linode
from karpenter_linode.sim.linode import handlers_lke as lke
from karpenter_linode.sim.linode.calls import Call, Handler
from karpenter_linode.sim.linode.fault_layer import FaultLayer
from karpenter_linode.sim.linode.limits import RateLimiter, RateLimits
from karpenter_linode.sim.linode.records import ApiFaultError, not_found

if TYPE_CHECKING:
    from starlette.requests import Request

    from karpenter_linode.sim.linode.world import LinodeWorld

_VERSIONS: Final = frozenset({"v4", "v4beta"})
_MAX_BODY: Final = 1 << 20
_CREATES: Final = frozenset({linode.create_instance, lke.create_pool})
_LISTS: Final[frozenset[Handler]] = frozenset(
    {catalog.list_types, catalog.list_regions, lke.list_clusters, lke.list_pools, linode.list_instances},
)
_PUBLIC: Final[tuple[tuple[str, str, Handler], ...]] = (
    ("GET", "/linode/types", catalog.list_types),
    ("GET", "/linode/types/{type}", catalog.get_type),
    ("GET", "/regions", catalog.list_regions),
    ("GET", "/regions/availability", catalog.list_availability),
    ("GET", "/regions/{region}", catalog.get_region),
    ("GET", "/regions/{region}/availability", catalog.region_availability),
)
_PRIVATE: Final[tuple[tuple[str, str, Handler], ...]] = (
    ("GET", "/profile", catalog.get_profile),
    ("GET", "/lke/tiers/{tier}/versions", catalog.list_versions),
    ("GET", "/lke/clusters", lke.list_clusters),
    ("GET", "/lke/clusters/{cluster}", lke.get_cluster),
    ("GET", "/lke/clusters/{cluster}/pools", lke.list_pools),
    ("POST", "/lke/clusters/{cluster}/pools", lke.create_pool),
    ("GET", "/lke/clusters/{cluster}/pools/{pool}", lke.get_pool),
    ("PUT", "/lke/clusters/{cluster}/pools/{pool}", lke.update_pool),
    ("DELETE", "/lke/clusters/{cluster}/pools/{pool}", lke.delete_pool),
    ("POST", "/lke/clusters/{cluster}/pools/{pool}/recycle", lke.recycle_pool),
    ("GET", "/lke/clusters/{cluster}/nodes/{node}", lke.get_node),
    ("DELETE", "/lke/clusters/{cluster}/nodes/{node}", lke.delete_node),
    ("POST", "/lke/clusters/{cluster}/nodes/{node}/recycle", lke.recycle_node),
    ("GET", "/linode/instances", linode.list_instances),
    ("POST", "/linode/instances", linode.create_instance),
    ("GET", "/linode/instances/{instance}", linode.get_instance),
    ("PUT", "/linode/instances/{instance}", linode.update_instance),
    ("DELETE", "/linode/instances/{instance}", linode.delete_instance),
    ("GET", "/linode/instances/{instance}/firewalls", linode.list_firewalls),
    ("PUT", "/linode/instances/{instance}/firewalls", linode.set_firewalls),
    ("POST", "/networking/firewalls/{firewall}/devices", linode.attach_firewall),
    ("POST", "/tags", linode.create_tag),
)


class Face:
    """Turns requests into calls and what comes back into answers.

    Args:
        world: the state.
        token: the only token that is let in; empty lets any token in.
        limits: rate limits, or None for none.
    """

    def __init__(self, world: LinodeWorld, token: str, limits: RateLimits | None) -> None:
        self._world, self._token = world, token
        self._limiter = None if limits is None else RateLimiter(world.clock, limits)

    def route(self, method: str, path: str, handler: Handler, *, public: bool) -> Route:
        """A route for both versions of the API."""

        async def endpoint(request: Request) -> Response:
            return await self._serve(request, handler, public=public)

        return Route("/{version}" + path, endpoint, methods=[method])

    async def _serve(self, request: Request, handler: Handler, *, public: bool) -> Response:
        headers: dict[str, str] = {"X-OAuth-Scopes": "*"}
        await self._world.api_latency()
        try:
            _check_version(request)
            authenticated = self._authenticate(request, public=public)
            if self._limiter is not None:
                headers |= self._limiter.admit(_kind(handler))
            answer = handler(await self._call(request, authenticated=authenticated))
        except ApiFaultError as fault:
            return _refusal(fault)
        return Response(codec.encode(answer), media_type="application/json", headers=headers)

    def _authenticate(self, request: Request, *, public: bool) -> bool:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        known = not self._token or compare_digest(token.encode(), self._token.encode())
        if scheme == "Bearer" and token and known:
            return True
        if public and not token:
            return False
        raise ApiFaultError(401, "Invalid Token")

    async def _call(self, request: Request, *, authenticated: bool) -> Call:
        return Call(
            world=self._world,
            version=request.path_params["version"],
            path=request.path_params,
            query=request.query_params,
            body=await _body(request),
            filter=request.headers.get("X-Filter"),
            authenticated=authenticated,
        )


def create_app(world: LinodeWorld, *, token: str = "", limits: RateLimits | None = None) -> Starlette:
    """The API of a world as an ASGI app, reached by ``httpx2.ASGITransport(app=...)`` or served over HTTP.

    Args:
        world: the state.
        token: the only token that is let in; empty lets any token in.
        limits: rate limits, or None for none.
    """
    face = Face(world, token, limits)
    routes = [face.route(*entry, public=True) for entry in _PUBLIC]
    routes += [face.route(*entry, public=False) for entry in _PRIVATE]
    return Starlette(
        routes=routes,
        middleware=[Middleware(FaultLayer, world=world)],
        exception_handlers={HTTPException: _no_route},
    )


def _check_version(request: Request) -> None:
    if request.path_params["version"] not in _VERSIONS:
        raise not_found()


def _kind(handler: Handler) -> str:
    return "create" if handler in _CREATES else "list" if handler in _LISTS else "other"


async def _body(request: Request) -> dict[str, Any]:
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > _MAX_BODY:
            raise ApiFaultError(413, "Request Entity Too Large")
    try:
        body = msgspec.json.decode(content) if content else {}
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ApiFaultError(400, "Invalid JSON") from error
    if not isinstance(body, dict):
        raise ApiFaultError(400, "Invalid JSON")
    return body


async def _no_route(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    return _refusal(ApiFaultError(status, "Method Not Allowed" if status == 405 else "Not found"))  # noqa: PLR2004 - HTTP


def _refusal(fault: ApiFaultError) -> Response:
    entry = {"reason": fault.reason} | ({"field": fault.field} if fault.field else {})
    # The official Go client compares this content type for equality, so nothing may stand behind it.
    content = codec.encode({"errors": [entry]})
    return Response(content, fault.status, media_type="application/json", headers=fault.headers)
