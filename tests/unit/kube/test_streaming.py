"""The way of watches over real sockets; what is asserted never depends on how fast anything is."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from karpenter_linode.kube.config import NamedServer
from karpenter_linode.kube.errors import UnreachableError, UnreadableError
from karpenter_linode.kube.http import KubeCall, KubeHttp
from karpenter_linode.kube.streaming import ChunkedBody, StreamsApart, StreamTransport
from karpenter_linode.ports import ForbiddenError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
WATCH = KubeCall("watch", "v1", "nodes", params={"watch": "true"})
PATIENT = 60.0


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


@pytest.mark.parametrize("size", range(1, 60))
def test_chunks_may_be_cut_anywhere(size: int) -> None:
    whole = chunk(b"first\n") + b"0A;note=1\r\nsecond\r\nX!\r\n" + chunk(b"z" * 20) + b"0\r\nTrailer: x\r\n\r\n"
    body = ChunkedBody()
    found = b"".join(body.feed(whole[place : place + size]) for place in range(0, len(whole), size) if not body.ended)
    assert found == b"first\nsecond\r\nX!" + b"z" * 20
    assert body.ended


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"zz\r\n", "no number"),
        (b"\r\n", "no number"),
        (b"-5\r\nhello\r\n", "no number"),
        (b"0x5\r\nhello\r\n", "no number"),
        (b"1_0\r\n", "no number"),
        (b"f" * 17 + b"\r\n", "no number"),
        (b"5" * 2000, "has no end"),
        (b"5;" + b"x" * 2000 + b"\r\n", "has no end"),
        (b"3\r\nhello\r\n", "longer than it says"),
        (b"5\r\nhello\n\n", "longer than it says"),
    ],
)
def test_what_is_no_chunk_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ChunkedBody().feed(data)


class Lines:
    """A server that answers each connection with the same bytes, and what a client makes of it."""

    def __init__(
        self, clock: Any, answer: bytes, *, stays: bool = False, served: ssl.SSLContext | None = None, name: str = ""
    ) -> None:
        self._clock, self._answer, self._stays, self._served, self._name = clock, answer, stays, served, name
        self.requests: list[bytes] = []

    def read(self, trusted: ssl.SSLContext | None = None, silence: float = PATIENT, host: str = "127.0.0.1") -> Any:
        async def follow(http: KubeHttp) -> list[bytes]:
            found: list[bytes] = []
            async with aclosing(http.lines(WATCH, silence)) as batches:
                async for batch in batches:
                    found += batch
            return found

        return self.run(follow, trusted, host)

    def run(
        self,
        work: Callable[[KubeHttp], Awaitable[Any]],
        trusted: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
    ) -> Any:
        async def main() -> Any:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._served)
            port = server.sockets[0].getsockname()[1]
            context = trusted or ssl.create_default_context()
            transport: Any = StreamsApart(httpx2.MockTransport(_not_here), StreamTransport(context))
            if self._name:
                transport = NamedServer(transport, self._name)
            scheme = "https" if self._served else "http"
            client = httpx2.AsyncClient(base_url=f"{scheme}://{host}:{port}", transport=transport, trust_env=False)
            http = KubeHttp(client, self._clock)
            try:
                return await work(http)
            finally:
                await http.close()
                server.close()
                await server.wait_closed()

        return asyncio.run(main())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(self._answer)
            await writer.drain()
            if self._stays:
                await reader.read()  # until the client goes
        except (OSError, asyncio.IncompleteReadError):
            return  # the client left first, as it may
        finally:
            writer.close()


def _not_here(request: httpx2.Request) -> httpx2.Response:
    raise AssertionError(f"{request.url}: streams do not go the way of calls")


def test_lines_come_through_in_order(clock: Any) -> None:
    lines = [b'{"number":%d,"text":"%b"}' % (number, b"x" * number) for number in range(3000)]
    server = Lines(clock, HEAD + b"".join(chunk(line + b"\n") for line in lines) + b"0\r\n\r\n", stays=True)
    assert server.read() == lines
    head = server.requests[0].split(b"\r\n")
    assert head[0] == b"GET /api/v1/nodes?watch=true HTTP/1.1"
    assert any(line.lower().startswith(b"host: 127.0.0.1:") for line in head)


def test_a_reader_that_leaves_in_the_middle_closes_the_connection(clock: Any) -> None:
    server = Lines(clock, HEAD + chunk(b"one\n") + chunk(b"two\n"), stays=True)

    async def first(http: KubeHttp) -> list[bytes]:
        async with aclosing(http.lines(WATCH, PATIENT)) as batches:
            return (await anext(batches))[:1]

    assert server.run(first) == [b"one"]  # and the server saw the end, or this would never return


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 8\r\n\r\none\ntwo\n", b"Connection: close\r\n\r\none\ntwo\n"], ids=["length", "close"]
)
def test_an_answer_that_is_not_in_chunks_is_read_too(clock: Any, framing: bytes) -> None:
    assert Lines(clock, b"HTTP/1.1 200 OK\r\n" + framing).read() == [b"one", b"two"]


def test_a_refusal_is_told_with_its_reason(clock: Any) -> None:
    body = b'{"kind":"Status","status":"Failure","message":"no","reason":"Forbidden","code":403}'
    with pytest.raises(ForbiddenError, match="no"):
        Lines(clock, b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)).read()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "closed without an answer"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "RemoteProtocolError"),
        (HEAD, "closed within its answer"),
        (HEAD + chunk(b"one\n") + b"50\r\nhalf", "closed within its answer"),
        (HEAD + b"nonsense\r\n", "no number"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n", "RemoteProtocolError"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "RemoteProtocolError"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello", "no number|Protocol"),
    ],
    ids=["nothing", "no-http", "head-only", "half", "no-chunk", "endless-head", "encoding", "two-framings"],
)
def test_a_broken_answer_is_no_end_of_the_stream(clock: Any, answer: bytes, said: str) -> None:
    with pytest.raises(UnreachableError, match=said):
        Lines(clock, answer).read()


@pytest.mark.parametrize("answer", [b"", HEAD, HEAD + chunk(b"one\n")], ids=["no-head", "no-body", "one-line"])
def test_silence_ends_a_stream(clock: Any, answer: bytes) -> None:
    with pytest.raises(UnreachableError, match="ReadTimeout"):
        Lines(clock, answer, stays=True).read(silence=0.05)


def test_a_server_that_is_not_there_is_unreachable(clock: Any) -> None:
    async def elsewhere(http: KubeHttp) -> None:
        del http
        closed = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = closed.sockets[0].getsockname()[1]
        closed.close()
        await closed.wait_closed()
        transport = StreamTransport(ssl.create_default_context())
        async with (
            httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", transport=transport) as client,
            aclosing(KubeHttp(client, clock).lines(WATCH, PATIENT)) as batches,
        ):
            await anext(batches)

    with pytest.raises(UnreachableError, match="ConnectError"):
        Lines(clock, b"").run(elsewhere)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make certificates")
    folder = tmp_path_factory.mktemp("tls")
    made = {}
    for name, names in (("ours", "IP:127.0.0.1"), ("other", "IP:127.0.0.1"), ("misnamed", "DNS:elsewhere.example")):
        key, certificate = folder / f"{name}.key", folder / f"{name}.crt"
        what = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        where = ["-subj", "/CN=test", "-addext", f"subjectAltName={names}", "-keyout", str(key), "-out"]
        subprocess.run(["openssl", *what, *where, str(certificate)], check=True, capture_output=True)  # noqa: S603, S607 - written above
        made[name] = certificate
    return made


def serving(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    return context


def test_lines_come_through_over_tls(clock: Any, certificates: dict[str, Path]) -> None:
    lines = [b"%d %b" % (number, b"x" * 5000) for number in range(400)]
    answer = HEAD + b"".join(chunk(line + b"\n") for line in lines) + b"0\r\n\r\n"
    server = Lines(clock, answer, stays=True, served=serving(certificates["ours"]))
    assert server.read(ssl.create_default_context(cafile=str(certificates["ours"]))) == lines


@pytest.mark.parametrize("serves", ["other", "misnamed"])
def test_a_server_that_cannot_prove_who_it_is_hears_nothing(
    clock: Any, certificates: dict[str, Path], serves: str
) -> None:
    trusted = ssl.create_default_context(cafile=str(certificates["misnamed" if serves == "misnamed" else "ours"]))
    server = Lines(clock, HEAD + b"0\r\n\r\n", served=serving(certificates[serves]))
    with pytest.raises(UnreachableError, match=r"ConnectError.*CERTIFICATE_VERIFY_FAILED"):
        server.read(trusted)
    assert server.requests == []


def test_a_server_proves_the_name_that_it_is_known_by(clock: Any, certificates: dict[str, Path]) -> None:
    trusted = ssl.create_default_context(cafile=str(certificates["misnamed"]))
    answer = HEAD + chunk(b"one\n") + b"0\r\n\r\n"
    server = Lines(clock, answer, served=serving(certificates["misnamed"]), name="elsewhere.example")
    assert server.read(trusted) == [b"one"]


def test_a_line_without_end_is_given_up(clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karpenter_linode.kube.http._LONGEST_LINE", 1 << 20)
    endless = HEAD + chunk(b"x" * (64 << 10)) * 20
    with pytest.raises(UnreadableError, match="an event of more than"):
        Lines(clock, endless, stays=True).read()
