"""The ASGI application: who may come in, which part answers, and how errors leave."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from karpenter_linode.model import codec
from karpenter_linode.ports import KubeError
from karpenter_linode.sim.face import discovery, openapi
from karpenter_linode.sim.face.errors import RETRY_SECONDS, RequestError, bad_request, status_of
from karpenter_linode.sim.face.requests import MAX_BODY, ApiRequest, parse_body, parse_path
from karpenter_linode.sim.face.resource_api import ResourceApi, json_response, not_allowed
from karpenter_linode.sim.face.reviews import review
from karpenter_linode.sim.face.streams import Streams

if TYPE_CHECKING:
    from starlette.requests import Request

    from karpenter_linode.ports import Clock
    from karpenter_linode.sim.journal import Journal
    from karpenter_linode.sim.store import Store

Plain = dict[str, Any]

_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_HEALTH: Final = frozenset({"/healthz", "/livez", "/readyz"})
_TOO_MANY: Final = 429


class Face:
    """The API server as HTTP clients see it.

    Args:
        store: what it serves.
        clock: the world's time.
        version: the Kubernetes release that it names, like ``1.35``.
        secret: the first part of every path; whoever does not know it is not let in.
        hosts: values of the Host header that are let in: a web page that points its own name at this machine is not.
        speed: the world's seconds in one of the clients'.
        journal: where writes are told; None for nowhere.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        version: str,
        secret: str,
        hosts: frozenset[str],
        speed: float = 1.0,
        journal: Journal | None = None,
    ) -> None:
        self._version = version
        self._secret, self._hosts = secret, hosts
        self.streams = Streams(store, clock, speed)
        self._resources = ResourceApi(store, clock, self.streams, journal)

    def app(self) -> Starlette:
        """The application."""
        return Starlette(routes=[Route("/{path:path}", self._answer, methods=list(_METHODS))])

    async def _answer(self, request: Request) -> Response:
        """Answer, with a Status where that fails."""
        try:
            path = self._let_in(request)
            body = await _body(request)
            return self._dispatch(request, path, body)
        except KubeError as error:
            return _failed(error)

    def _let_in(self, request: Request) -> str:
        """The path behind the secret, still percent-encoded.

        Raises:
            RequestError: not for this server (403), or without the secret (401).
        """
        if request.headers.get("host", "").lower() not in self._hosts or "origin" in request.headers:
            raise RequestError(403, "forbidden: this server answers programs on its own machine, not web pages")
        raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
        secret, _, path = raw.partition(b"?")[0].removeprefix(b"/").partition(b"/")
        if not hmac.compare_digest(secret, self._secret.encode()):
            raise RequestError(401, "Unauthorized: the path must begin with the secret of the kubeconfig")
        return "/" + path.decode("ascii", "replace")

    def _dispatch(self, request: Request, path: str, body: bytes) -> Response:
        if path in _HEALTH and request.method in ("GET", "HEAD"):
            return PlainTextResponse("ok")
        if path == "/openapi/v2" and openapi.V2_PROTOBUF_ASKED in _accepted(request):
            return Response(b"", media_type=openapi.V2_PROTOBUF)
        known = self._document(request, path)
        if known is not None:
            if request.method not in ("GET", "HEAD"):
                raise not_allowed(request.method)
            content, kind = known
            return json_response(content, content_type=kind)
        api_version, _, plural = path.removeprefix("/apis/").rpartition("/")
        reviewed = dict(discovery.REVIEWS.get(api_version, ())).get(plural)
        if reviewed:
            if request.method != "POST":
                raise not_allowed(request.method)
            return json_response(review(reviewed, parse_body(body, _content_type(request))), 201)
        return self._resources.answer(_understood(request, path, body))

    def _document(self, request: Request, path: str) -> tuple[Plain, str] | None:
        """What is served beside resources, with its content type: version, discovery, OpenAPI."""
        parts = path.strip("/").split("/")
        content: Plain | None = None
        match parts:
            case ["version"]:
                content = self._version_info()
            case ["api" | "apis"] if discovery.AGGREGATED in _accepted(request):
                return discovery.aggregated(core=parts == ["api"]), discovery.AGGREGATED
            case ["api" | "apis", *_]:
                content = discovery.document(parts)
            case ["openapi", "v2"]:
                content = openapi.EMPTY_V2
            case ["openapi", "v3", *place]:
                content = openapi.document("/".join(place[1:])) if place else openapi.index()
        return None if content is None else (content, "application/json")

    def _version_info(self) -> Plain:
        major, _, minor = self._version.partition(".")
        return {
            "major": major,
            "minor": minor,
            "gitVersion": f"v{self._version}.0",
            "gitTreeState": "clean",
            "platform": "linux/amd64",
        }


def _understood(request: Request, path: str, body: bytes) -> ApiRequest:
    query: dict[str, str] = {}
    try:
        pairs = parse_qsl(request.url.query, keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise bad_request("the query has more than 100 parameters") from None
    for name, value in pairs:
        query.setdefault(name, value)
    headers = request.headers
    return ApiRequest(
        request.method,
        parse_path(path),
        query,
        _content_type(request),
        headers.get("accept", ""),
        headers.get("user-agent", ""),
        body,
    )


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _body(request: Request) -> bytes:
    """The body.

    Raises:
        RequestError: larger than the server takes (413).
    """
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_BODY:
            raise RequestError(413, f"the body is larger than {MAX_BODY} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def _accepted(request: Request) -> list[str]:
    return [item.replace(" ", "") for item in request.headers.get("accept", "").split(",")]


def _failed(error: KubeError) -> Response:
    response = Response(codec.encode(status_of(error)), error.status, media_type="application/json")
    if error.status == _TOO_MANY:
        response.headers["Retry-After"] = str(RETRY_SECONDS)
    return response
