"""Keys of log lines, what a reconcile adds to them, and what never stands in them."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from karpenter_linode.controllers.scope import SCOPE, Scope
from karpenter_linode.kube.http import KubeCall, KubeHttp
from karpenter_linode.linode.client import LinodeClient
from karpenter_linode.model.core import Pod
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.operator.logging import JsonLogger, open_outputs
from karpenter_linode.operator.system import SystemClock, SystemRandom
from karpenter_linode.ports import CloudError, KubeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINODE = "0123456789abcdef-of-linode"
BEARER = "eyJhbGciOiJSUzI1NiIsImtpZCI6IkEifQ.e30.c2lnbmF0dXJl"


def lines(output: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.getvalue().splitlines()]


@contextlib.contextmanager
def reconcile(scope: Scope) -> Iterator[None]:
    token = SCOPE.set(scope)
    try:
        yield
    finally:
        SCOPE.reset(token)


def test_a_line_of_a_reconcile_says_which_one() -> None:
    output = io.StringIO()
    log = JsonLogger([output], commit="0123abc", now=lambda: datetime(2026, 8, 20, 15, 19, 15, tzinfo=UTC))
    with reconcile(Scope("nodeclaim.lifecycle", NodeClaim, "gpu-1")):
        log.info("launched nodeclaim", controller="nodeclaim.lifecycle", NodeClaim="gpu-1", Node="n")
        log.error("Reconciler error", name="gpu-1", error="why")
    first, second = lines(output)
    assert list(first) == [
        *("level", "time", "logger", "message", "commit", "controller", "controllerGroup", "controllerKind"),
        *("NodeClaim", "namespace", "name", "reconcileID", "Node"),
    ]
    assert first["time"] == "2026-08-20T15:19:15.000Z"
    assert (first["commit"], first["controllerGroup"], first["controllerKind"]) == (
        "0123abc",
        "karpenter.sh",
        "NodeClaim",
    )
    assert (first["NodeClaim"], first["namespace"], first["name"]) == ({"name": "gpu-1"}, "", "gpu-1")
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", first["reconcileID"])
    assert second["reconcileID"] == first["reconcileID"]


def test_a_namespaced_object_is_told_with_its_namespace() -> None:
    output = io.StringIO()
    with reconcile(Scope("provisioner.trigger.pod", Pod, "team/web-0")):
        JsonLogger([output]).error("Reconciler error", name="team/web-0", error="why")
    (line,) = lines(output)
    assert line["Pod"] == {"name": "web-0", "namespace": "team"}
    assert (line["controllerGroup"], line["namespace"], line["name"]) == ("", "team", "web-0")


def test_two_reconciles_of_an_object_are_told_apart_and_outside_of_them_nothing_is_added() -> None:
    output = io.StringIO()
    log = JsonLogger([output])
    for _ in range(2):
        with reconcile(Scope("provisioner")):
            log.info("a pass")
    log.info("no pass")
    first, second, third = lines(output)
    assert first["reconcileID"] != second["reconcileID"]
    assert (first["controller"], first["namespace"], first["name"]) == ("provisioner", "", "")
    assert list(third) == ["level", "time", "logger", "message"]


def test_who_writes_a_line_is_told_when_debugging_only() -> None:
    for level, told in (("info", False), ("debug", True)):
        output = io.StringIO()
        JsonLogger([output], level).info("here")
        (line,) = lines(output)
        assert ("caller" in line) is told
        if told:
            assert re.fullmatch(r"operator/test_logging\.py:\d+", line["caller"])


def test_credentials_are_never_written_wherever_they_stand() -> None:
    output = io.StringIO()
    log = JsonLogger([output], "debug")
    log.hide(LINODE, "")
    log.error("request failed", error=f"GET /x: Authorization: Bearer {BEARER}", headers={"X": LINODE})
    quoting = f"token {LINODE}"
    log.info(quoting, exc_info=ValueError(LINODE))
    text = output.getvalue()
    assert LINODE not in text
    assert BEARER not in text
    assert "Bearer [redacted]" in text
    assert len(lines(output)) == 2


def test_a_secret_that_json_writes_otherwise_is_hidden_as_well() -> None:
    output = io.StringIO()
    log = JsonLogger([output])
    log.hide('quoted"secret\\')
    log.info('a quoted"secret\\ b')
    assert lines(output)[0]["message"] == "a [redacted] b"


@pytest.mark.parametrize("text", ["Basic authentication is off", "bearer token missing", "a bearer of news"])
def test_words_about_credentials_stay(text: str) -> None:
    output = io.StringIO()
    JsonLogger([output]).info(text)
    assert lines(output)[0]["message"] == text


def test_errors_of_both_clients_hold_no_credentials() -> None:
    async def refuse(request: httpx2.Request) -> httpx2.Response:
        if request.headers["Authorization"] == f"Bearer {LINODE}":
            return httpx2.Response(401, json={"errors": [{"reason": "Invalid Token"}]})
        return httpx2.Response(401, json={"kind": "Status", "message": "Unauthorized", "code": 401})

    async def errors() -> list[str]:
        transport, found = httpx2.MockTransport(refuse), []
        linode = LinodeClient("http://linode", LINODE, clock=SystemClock(), random=SystemRandom(), transport=transport)
        client = httpx2.AsyncClient(
            base_url="http://api", transport=transport, headers={"Authorization": f"Bearer {BEARER}"}
        )
        http = KubeHttp(client, SystemClock())
        try:
            await linode.list_regions()
        except CloudError as error:
            found += [str(error), repr(error), repr(linode)]
        try:
            await http.send(KubeCall("list", "v1", "pods"))
        except KubeError as error:
            found += [str(error), repr(error)]
        await http.close()
        await linode.close()
        return found

    found = asyncio.run(errors())
    assert len(found) == 5
    assert not any(LINODE in text or BEARER in text for text in found)


class Full(io.StringIO):
    """A disk without room."""

    def write(self, text: str, /) -> int:
        raise OSError(28, "No space left on device")


def test_an_output_that_cannot_be_written_to_is_complained_of_and_ends_nothing() -> None:
    complaints, other = io.StringIO(), io.StringIO()
    JsonLogger([Full(), other], complaints=[Full(), complaints]).info("here")
    assert "write error: [Errno 28] No space left on device" in complaints.getvalue()
    assert lines(other)[0]["message"] == "here"


def test_outputs_are_streams_or_files_that_are_added_to(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("before\n", encoding="utf-8")
    outputs = open_outputs(f"stdout, {file}")
    outputs[1].write("after\n")
    outputs[1].close()
    assert file.read_text(encoding="utf-8") == "before\nafter\n"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_what_a_stream_has_no_letters_for_is_written_otherwise_and_ends_nothing(encoding: str) -> None:
    raw = io.BytesIO()
    log = JsonLogger([io.TextIOWrapper(raw, encoding=encoding)])
    text = "caf\u00e9 \u2603 \udcff"  # the last is what Python has for a byte of a file's name that is no text
    log.info("read", file=text)
    log.info("and on")
    assert [json.loads(line).get("file") for line in raw.getvalue().splitlines()] == [text, None]


def test_a_secret_is_hidden_there_too() -> None:
    raw = io.BytesIO()
    log = JsonLogger([io.TextIOWrapper(raw, encoding="ascii")])
    log.hide("s\u00e9cret-of-linode")
    log.info("read", file="\u2603 s\u00e9cret-of-linode")
    assert json.loads(raw.getvalue())["file"] == "\u2603 [redacted]"
