"""One call to the API server: limits, time-outs, typed errors; and streams of lines."""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeVar

import httpx2
from lightkube.core.exceptions import ConfigError
from msgspec import Struct, field

from karpenter_linode.kube.bucket import TokenBucket
from karpenter_linode.kube.errors import ConnectionConfigError, UnreachableError, UnreadableError, error_from, status_of
from karpenter_linode.kube.streaming import STREAM
from karpenter_linode.model import codec

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from karpenter_linode.ports import Clock, KubeError

T = TypeVar("T")
JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
_TOO_MANY: Final = 429
_BUSY_ATTEMPTS: Final = 4
_LONGEST_WAIT: Final = 30
_LONGEST_LINE: Final = 64 << 20
_METHODS: Final = {"get": "GET", "list": "GET", "watch": "GET", "create": "POST", "patch": "PATCH", "delete": "DELETE"}


class KubeCall(Struct, frozen=True):
    """A call.

    Args:
        verb: as RBAC names it.
        api_version: ``v1`` or ``group/version``.
        plural: the resource.
        namespace: "" for cluster-scoped kinds, or for every namespace.
        name: "" for collections.
        subresource: as ``status``.
        params: query parameters.
        body: JSON body.
        content_type: of the body.
        retry_busy: wait and try again where the server says that it is busy.
        raw_path: in place of the path that the other parts make.
    """

    verb: str
    api_version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    params: dict[str, str] = field(default_factory=dict)
    body: Any = None
    content_type: str = JSON
    retry_busy: bool = True
    raw_path: str = ""

    @property
    def path(self) -> str:
        """The path on the server."""
        if self.raw_path:
            return self.raw_path
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        namespace = f"/namespaces/{self.namespace}" if self.namespace else ""
        return root + namespace + "".join(f"/{part}" for part in (self.plural, self.name, self.subresource) if part)

    def __str__(self) -> str:
        if self.raw_path:
            return f"{self.verb} {self.raw_path}"
        resource = f"{self.plural}/{self.subresource}" if self.subresource else self.plural
        name = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{self.verb} {resource} {name}".rstrip()


class KubeCallRecord(Struct, frozen=True):
    """A request that was sent, for metrics; ``code`` 0 means no answer."""

    call: KubeCall
    method: str
    code: int
    seconds: float


class KubeHttp:
    """Sends calls over one connection pool.

    Args:
        client: made by ``config.connect``; closed with this object.
        clock: pauses.
        qps: calls per second in the long run; watches do not count. 0 for no limit.
        burst: calls at once.
        on_call: told of every request.
    """

    def __init__(
        self,
        client: httpx2.AsyncClient,
        clock: Clock,
        *,
        qps: float = 0,
        burst: int = 0,
        on_call: Callable[[KubeCallRecord], None] | None = None,
    ) -> None:
        self._client, self._clock = client, clock
        self._bucket = TokenBucket(qps, burst) if qps > 0 else None
        self._on_call = on_call

    @property
    def server(self) -> str:
        """Host and port of the API server, for messages."""
        return self._client.base_url.netloc.decode()

    async def close(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def send(self, call: KubeCall) -> bytes:
        """The body of a successful answer.

        Raises:
            KubeError: what the server refused, or UnreachableError where no answer came.
        """
        for attempt in range(1, _BUSY_ATTEMPTS + 1):
            await self._admit()
            response = await self._answer(call)
            if response.is_success:
                return response.content
            wait = _busy_seconds(response) if call.retry_busy and attempt < _BUSY_ATTEMPTS else None
            if wait is None:
                raise error_from(str(call), response.status_code, status_of(response.content))
            await self._clock.sleep(wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def read(self, path: str) -> bytes:
        """What the server has at a path that is no resource, as ``/version``. Raises KubeError."""
        return await self.send(KubeCall("get", "", "", raw_path=path))

    async def lines(self, call: KubeCall, silence_seconds: float) -> AsyncGenerator[list[bytes], None]:
        """The lines of a stream until the server ends it, as many at a time as arrive at once.

        Args:
            call: the call.
            silence_seconds: a stream that says nothing for so long is given up.

        Raises:
            KubeError: refused; UnreachableError: broken off, or silent.
        """
        timeout = httpx2.Timeout(60.0, connect=10.0, read=silence_seconds)
        request = self._request(call, timeout)
        started = time.monotonic()
        response = await self._guarded(call, self._client.send(request, stream=True))
        try:
            self._record(call, response.status_code, time.monotonic() - started)
            if not response.is_success:
                content = await self._guarded(call, response.aread())
                raise error_from(str(call), response.status_code, status_of(content))
            async with aclosing(_split(call, response)) as batches:
                async for batch in batches:
                    yield batch
        except httpx2.RequestError as error:
            raise _unreachable(call, error) from None
        finally:
            await response.aclose()

    async def _admit(self) -> None:
        if self._bucket is not None:
            wait = self._bucket.reserve(time.monotonic())
            if wait > 0:
                await self._clock.sleep(wait)

    async def _answer(self, call: KubeCall) -> httpx2.Response:
        started = time.monotonic()
        code = 0
        try:
            response = await self._guarded(call, self._client.send(self._request(call)))
            code = response.status_code
        finally:
            self._record(call, code, time.monotonic() - started)
        return response

    async def _guarded(self, call: KubeCall, work: Awaitable[T]) -> T:
        try:
            return await work
        except httpx2.RequestError as error:
            raise _unreachable(call, error) from None
        except (ConnectionConfigError, ConfigError) as error:  # a credential plug-in or a token file failed
            raise UnreachableError(f"{call}: {error}") from None

    def _request(self, call: KubeCall, timeout: httpx2.Timeout | None = None) -> httpx2.Request:
        content = None if call.body is None else codec.encode(call.body)
        headers = {} if call.body is None else {"Content-Type": call.content_type}
        method = _METHODS[call.verb]
        if timeout is None:
            return self._client.build_request(method, call.path, params=call.params, headers=headers, content=content)
        return self._client.build_request(
            method, call.path, params=call.params, headers=headers, timeout=timeout, extensions={STREAM: True}
        )

    def _record(self, call: KubeCall, code: int, seconds: float) -> None:
        if self._on_call is not None:
            self._on_call(KubeCallRecord(call, _METHODS[call.verb], code, seconds))


async def _split(call: KubeCall, response: httpx2.Response) -> AsyncGenerator[list[bytes], None]:
    parts: list[bytes] = []
    size = 0
    async with aclosing(response.aiter_raw()) as chunks:
        async for chunk in chunks:
            first, *rest = chunk.split(b"\n")
            parts.append(first)
            size += len(first)
            if size > _LONGEST_LINE:
                raise UnreadableError(f"{call}: an event of more than {_LONGEST_LINE >> 20} MiB")
            if not rest:
                continue
            last = rest.pop()
            yield [b"".join(parts), *rest]
            parts, size = [last], len(last)
    if parts and parts[-1]:
        # What has no end of line was cut off; the change will come again.
        raise UnreachableError(f"{call}: the stream broke off within an event")


def _unreachable(call: KubeCall, error: Exception) -> KubeError:
    return UnreachableError(f"{call}: {type(error).__name__}: {error}".rstrip(": "))


def _busy_seconds(response: httpx2.Response) -> float | None:
    """How long the server asks to wait; None where it does not ask."""
    text = response.headers.get("Retry-After")
    if response.status_code != _TOO_MANY and response.status_code < 500:  # noqa: PLR2004 - server errors start there
        return None
    if text is None or not text.isdigit():
        return None
    return min(float(text), _LONGEST_WAIT)
