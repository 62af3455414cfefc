"""Watches without what their bytes cost on the general way: a connection of its own for each, read in large pieces.

The general transport hands a stream on in TLS records of 16 KB and takes each HTTP chunk apart in many steps; at
thousands of events in a second most of the time went there. h11 still reads the head of every answer, and the body of
every answer that isn't in chunks.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import h11
import httpx2

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

STREAM: Final = "karpenter_linode.stream"
"""The extension of a request that asks for this way."""
_READ_SIZE: Final = 256 << 10
_LONGEST_HEAD: Final = 64 << 10
_LONGEST_SIZE_LINE: Final = 1 << 10
_SIZE_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;.*)?", re.DOTALL)
_SECOND_ADDRESS: Final = 0.25
"""Seconds for one address of a host before the next is tried beside it (RFC 8305)."""


class StreamsApart(httpx2.AsyncBaseTransport):
    """Requests that ask for it go one way, all others the other.

    Args:
        calls: carries calls.
        streams: carries requests with the extension ``STREAM``.
    """

    def __init__(self, calls: httpx2.AsyncBaseTransport, streams: httpx2.AsyncBaseTransport) -> None:
        self._calls, self._streams = calls, streams

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it where it belongs. Raises httpx2.RequestError."""
        way = self._streams if request.extensions.get(STREAM) else self._calls
        return await way.handle_async_request(request)

    async def aclose(self) -> None:
        """Close idle connections; a stream closes its own."""
        await self._calls.aclose()
        await self._streams.aclose()


class StreamTransport(httpx2.AsyncBaseTransport):
    """One connection for each request, closed with its answer.

    Args:
        context: trust and client certificate; what it verifies, this verifies.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        context.set_alpn_protocols(["http/1.1"])

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The head of the answer; its body is read as it comes.

        Raises:
            httpx2.RequestError: no connection, a broken one, silence for longer than the request's time-out allows,
                or an answer that is no HTTP.
        """
        timeout = request.extensions.get("timeout", {})
        connection = _Connection(*await self._open(request, timeout.get("connect")), request)
        try:
            await connection.send(timeout.get("write"))
            head = await connection.head(timeout.get("read"))
        except BaseException:
            await connection.close()
            raise
        return httpx2.Response(
            head.status_code,
            headers=list(head.headers.raw_items()),
            stream=_Body(connection, _is_chunked(head), timeout.get("read")),
            extensions={"http_version": b"HTTP/" + head.http_version, "reason_phrase": head.reason},
            request=request,
        )

    async def _open(
        self, request: httpx2.Request, seconds: float | None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        url = request.url
        options: dict[str, Any] = {}
        if url.scheme == "https":
            options = {"ssl": self._context, "server_hostname": request.extensions.get("sni_hostname") or url.host}
        port = url.port or (443 if options else 80)
        with _told_as(request, httpx2.ConnectTimeout, httpx2.ConnectError):
            async with asyncio.timeout(seconds):
                return await asyncio.open_connection(
                    url.raw_host.decode("ascii"),
                    port,
                    limit=_READ_SIZE,
                    happy_eyeballs_delay=_SECOND_ADDRESS,
                    **options,
                )


class ChunkedBody:
    """Takes the framing off a body that comes in chunks (RFC 9112 7.1).

    Attributes:
        ended: whether the last chunk was seen; what follows it is of no interest on a connection that ends with it.
    """

    def __init__(self) -> None:
        self.ended = False
        self._rest = b""
        self._left = 0
        self._closing = False

    def feed(self, data: bytes) -> bytes:
        """The part of the body within the next bytes.

        Raises:
            ValueError: these are no chunks.
        """
        if self._rest:
            data = self._rest + data
        parts: list[bytes] = []
        place = 0
        while place < len(data) and not self.ended:
            start = place
            if self._left:
                part = data[place : place + self._left]
                parts.append(part)
                place += len(part)
                self._left -= len(part)
                self._closing = not self._left
            elif self._closing:
                place = self._past_end(data, place)
            else:
                place = self._past_size(data, place)
            if place == start:
                break
        self._rest = data[place:]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _past_end(self, data: bytes, place: int) -> int:
        end = data[place : place + 2]
        if not b"\r\n".startswith(end):
            raise ValueError("a chunk is longer than it says")
        if len(end) < 2:  # noqa: PLR2004 - the two characters that end a line
            return place
        self._closing = False
        return place + 2

    def _past_size(self, data: bytes, place: int) -> int:
        end = data.find(b"\r\n", place, place + _LONGEST_SIZE_LINE)
        if end < 0:
            if len(data) - place >= _LONGEST_SIZE_LINE:
                raise ValueError("the size of a chunk has no end")
            return place
        size = _SIZE_LINE.fullmatch(data, place, end)
        if size is None:
            raise ValueError(f"the size of a chunk is no number: {data[place:end][:40]!r}")
        self._left = int(size[1], 16)
        self.ended = not self._left
        return end + 2


class _Connection:
    """One request and its answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: httpx2.Request) -> None:
        self._reader, self._writer, self._request = reader, writer, request
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)

    async def send(self, seconds: float | None) -> None:
        request = self._request
        with _told_as(request, httpx2.WriteTimeout, httpx2.WriteError):
            try:
                head = h11.Request(
                    method=request.method, target=request.url.raw_path, headers=list(request.headers.raw)
                )
                self._writer.write(self._http.send(head) or b"")
                self._writer.write(self._http.send(h11.EndOfMessage()) or b"")
            except h11.LocalProtocolError as error:
                raise httpx2.LocalProtocolError(str(error), request=request) from error
            async with asyncio.timeout(seconds):
                await self._writer.drain()

    async def head(self, seconds: float | None) -> h11.Response:
        while not isinstance(event := await self._event(seconds), h11.Response):
            pass  # an informational answer; the real one follows
        return event

    async def whole(self, seconds: float | None) -> AsyncGenerator[bytes, None]:
        """A body with a length, or one that ends with the connection."""
        while isinstance(event := await self._event(seconds), h11.Data):
            yield bytes(event.data)

    async def chunks(self, seconds: float | None) -> AsyncGenerator[bytes, None]:
        body, data = ChunkedBody(), self._http.trailing_data[0]
        while True:
            try:
                part = body.feed(data)
            except ValueError as error:
                raise httpx2.RemoteProtocolError(str(error), request=self._request) from None
            if part:
                yield part
            if body.ended:
                return
            data = await self._read(seconds)
            if not data:
                raise httpx2.RemoteProtocolError("the server closed within its answer", request=self._request)

    async def close(self) -> None:
        # Not the polite way: the end of a stream that nobody reads any more need not be waited for.
        self._writer.transport.abort()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _event(self, seconds: float | None) -> Any:
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                raise httpx2.RemoteProtocolError(str(error), request=self._request) from error
            if event is not h11.NEED_DATA:
                return event
            data = await self._read(seconds)
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise httpx2.RemoteProtocolError("the server closed without an answer", request=self._request)
            self._http.receive_data(data)

    async def _read(self, seconds: float | None) -> bytes:
        with _told_as(self._request, httpx2.ReadTimeout, httpx2.ReadError):
            async with asyncio.timeout(seconds):
                return await self._reader.read(_READ_SIZE)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, connection: _Connection, chunked: bool, seconds: float | None) -> None:  # noqa: FBT001 - private
        self._connection = connection
        self._parts = connection.chunks(seconds) if chunked else connection.whole(seconds)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._parts

    async def aclose(self) -> None:
        await self._parts.aclose()
        await self._connection.close()


def _is_chunked(head: h11.Response) -> bool:
    # h11 has refused every other encoding, and several at once.
    return any(name == b"transfer-encoding" for name, _ in head.headers)


@contextmanager
def _told_as(
    request: httpx2.Request, late: type[httpx2.RequestError], broken: type[httpx2.RequestError]
) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise late(str(error) or "no answer in time", request=request) from error
    except OSError as error:
        raise broken(str(error), request=request) from error
