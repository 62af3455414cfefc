"""Requests about resources: which part answers, in which form, and what the story tells of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response, StreamingResponse

from karpenter_linode.model import codec
from karpenter_linode.sim.face import reads
from karpenter_linode.sim.face.admission import Warnings
from karpenter_linode.sim.face.deletes import Deleter
from karpenter_linode.sim.face.errors import RequestError, bad_request, success
from karpenter_linode.sim.face.served import OF_CONTAINERS
from karpenter_linode.sim.face.subresources import NO_LOGS, NO_SESSION, Subresources
from karpenter_linode.sim.face.writes import Writer

if TYPE_CHECKING:
    from karpenter_linode.ports import Clock
    from karpenter_linode.sim.face.requests import ApiRequest, Target
    from karpenter_linode.sim.face.streams import Streams
    from karpenter_linode.sim.journal import Journal
    from karpenter_linode.sim.store import Store
    from karpenter_linode.sim.stored import Stored

_MAX_WARNINGS: Final = 20
_MAX_WARNING: Final = 256
_DONE: Final = {"POST": "Created", "PUT": "Replaced", "PATCH": "Configured", "DELETE": "Deleted"}
_OWN_KINDS: Final = {"scale": "Scaled", "eviction": "Evicted", "binding": "Bound"}


class ResourceApi:
    """Answers requests about resources.

    Args:
        store: where objects are kept.
        clock: the world's time.
        streams: the open watches.
        journal: where writes are told; None for nowhere.
    """

    def __init__(self, store: Store, clock: Clock, streams: Streams, journal: Journal | None) -> None:
        self._store, self._clock, self._streams, self._journal = store, clock, streams, journal
        self._writer, self._deleter = Writer(store, clock), Deleter(store)
        self._subresources = Subresources(store, self._writer)
        self._version = ""

    def answer(self, request: ApiRequest) -> Response:
        """Do what a request asks.

        Raises:
            KubeError: refused.
        """
        self._version = self._store.resource_version
        return self._answer(request)

    def _tell(self, request: ApiRequest, key: str) -> None:
        """Tell what the request did to an object, if it did anything."""
        if self._journal is not None and self._store.resource_version != self._version:
            done = _OWN_KINDS.get(request.target.subresource) or _DONE.get(request.method, "Changed")
            self._journal.step("user", f"{request.target.type.kind} {key}", f"{done} by {request.manager}")

    def _answer(self, request: ApiRequest) -> Response:
        target = request.target
        if target.subresource in {"scale", "eviction", "binding"} | OF_CONTAINERS:
            return self._subresource(request)
        match request.method:
            case "GET" | "HEAD":
                return self._read(request)
            case "POST" if not target.name:
                warnings = Warnings()
                return self._written(request, self._writer.create(request, warnings), 201, warnings)
            case "PUT" if target.name:
                warnings = Warnings()
                return self._written(request, self._writer.update(request, warnings), 200, warnings)
            case "PATCH" if target.name:
                warnings = Warnings()
                stored, made = self._writer.patch(request, warnings)
                return self._written(request, stored, 201 if made else 200, warnings)
            case "DELETE" if not target.subresource:
                return self._delete(request)
            case _:
                raise not_allowed(request.method)

    def _read(self, request: ApiRequest) -> Response:
        if request.flag("watch"):
            kind, lines = self._streams.watch(request)
            return StreamingResponse(lines, media_type=kind)
        now, form = self._clock.now(), reads.wanted_format(request)
        content = (
            reads.get(self._store, request, now) if request.target.name else reads.list_(self._store, request, now)
        )
        return json_response(content, content_type=form.content_type)

    def _written(self, request: ApiRequest, stored: Stored, code: int, warnings: Warnings) -> Response:
        self._tell(request, stored.key)
        form = reads.wanted_format(request)
        content = reads.shaped(request.target.type, stored, form, self._clock.now())
        return json_response(content, code, warnings, form.content_type)

    def _delete(self, request: ApiRequest) -> Response:
        kind, target = request.target.type, request.target
        if not target.name:
            deleted = self._deleter.delete_many(request)
            for stored in deleted:
                self._tell(request, stored.key)
            items = [stored.plain for stored in deleted]
            content = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": {}, "items": items}
            return json_response(content)
        stored, gone = self._deleter.delete(request)
        if gone and kind.kind != "Pod":
            self._tell(request, stored.key)
            return json_response(success(group=kind.group, resource=kind.plural, name=stored.name, uid=stored.uid))
        return self._written(request, stored, 200, Warnings())

    def _subresource(self, request: ApiRequest) -> Response:
        warnings, target = Warnings(), request.target
        match target.subresource, request.method:
            case "scale", "GET" | "HEAD":
                return json_response(self._subresources.read_scale(request))
            case "scale", "PUT" | "PATCH":
                scale = self._subresources.write_scale(request, warnings)
                self._tell(request, _key(target))
                return json_response(scale, 200, warnings)
            case "eviction", "POST":
                self._subresources.evict(request)
            case "binding", "POST":
                self._subresources.bind(request)
            case "log", "GET":
                self._store.get(target.type, target.name, target.namespace)
                raise bad_request(NO_LOGS)
            case "exec" | "attach" | "portforward", "GET" | "POST":
                self._store.get(target.type, target.name, target.namespace)
                raise bad_request(NO_SESSION)
            case _:
                raise not_allowed(request.method)
        self._tell(request, _key(target))
        return json_response(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
        )


def _key(target: Target) -> str:
    return f"{target.namespace}/{target.name}" if target.namespace else target.name


def not_allowed(method: str) -> RequestError:
    """A 405."""
    return RequestError(405, f"the server does not allow this method on the requested resource: {method}")


def json_response(
    content: Any, code: int = 200, warnings: Warnings | None = None, content_type: str = "application/json"
) -> Response:
    """An answer, with the warnings that go in its headers."""
    response = Response(codec.encode(content), code, media_type=content_type)
    for text in (warnings or ())[:_MAX_WARNINGS]:
        shown = (
            text[:_MAX_WARNING].encode("ascii", "backslashreplace").decode().replace("\\", "\\\\").replace('"', '\\"')
        )
        printable = "".join(char if char.isprintable() else "?" for char in shown)
        response.headers.append("Warning", f'299 - "{printable}"')
    return response
