"""Rules that are taken away while the controller runs."""

from __future__ import annotations

import asyncio
import io
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from karpenter_linode.kube.http import KubeHttp
from karpenter_linode.operator.logging import JsonLogger
from karpenter_linode.operator.permission_watch import PermissionWatch
from karpenter_linode.operator.permissions import permissions
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.loop import run_virtual

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

WANTED = permissions(with_devices=False)


class Rbac:
    """An API server that is asked what is allowed."""

    def __init__(self) -> None:
        self.forbidden: list[dict[str, str]] = []
        self.questions = 0
        self.away = False
        self.page = b""

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if self.away:
            raise httpx2.ConnectError("refused")
        self.questions += 1
        if self.page:
            return httpx2.Response(200, content=self.page)
        asked = json.loads(request.content)["spec"]["resourceAttributes"]
        refused = any(item.items() <= asked.items() for item in self.forbidden)
        return httpx2.Response(201, json={"status": {"allowed": not refused}})


def watched(rbac: Rbac, story: Callable[[PermissionWatch, VirtualClock], Awaitable[None]]) -> list[dict[str, Any]]:
    """Run a story in virtual time beside a watch; the log lines."""
    output = io.StringIO()

    async def go() -> None:
        clock = VirtualClock(asyncio.get_running_loop(), datetime(2026, 1, 1, tzinfo=UTC))
        async with httpx2.AsyncClient(base_url="http://api", transport=httpx2.MockTransport(rbac)) as client:
            watch = PermissionWatch(KubeHttp(client, clock), WANTED, clock, JsonLogger([output]))
            running = asyncio.create_task(watch.run())
            await story(watch, clock)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    run_virtual(go())
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_a_rule_that_goes_is_named_and_one_that_comes_back_is_told() -> None:
    rbac = Rbac()
    problems: list[str] = []

    async def story(watch: PermissionWatch, clock: VirtualClock) -> None:
        await clock.sleep(40)
        problems.append(watch.problem())
        rbac.forbidden = [{"resource": "pods", "subresource": "eviction"}, {"resource": "nodes", "verb": "delete"}]
        await clock.sleep(35)
        problems.append(watch.problem())
        rbac.forbidden = []
        await clock.sleep(35)
        problems.append(watch.problem())

    lines = watched(rbac, story)
    assert problems == ["", "RBAC does not allow: delete nodes; create pods/eviction", ""]
    assert [(line["level"], line["rule"]) for line in lines] == [
        ("ERROR", "delete nodes"),
        ("ERROR", "create pods/eviction"),
        ("INFO", "delete nodes"),
        ("INFO", "create pods/eviction"),
    ]


def test_a_refusal_is_looked_into_at_once_and_many_of_them_once() -> None:
    rbac = Rbac()

    async def story(watch: PermissionWatch, clock: VirtualClock) -> None:
        await clock.sleep(1)
        rbac.forbidden = [{"resource": "nodeclaims", "verb": "create"}]
        for _ in range(100):
            watch.answered(403)
        watch.answered(200)
        await clock.sleep(6)
        assert watch.problem() == "RBAC does not allow: create nodeclaims.karpenter.sh"

    watched(rbac, story)
    assert rbac.questions == len(WANTED)


def test_an_api_server_that_cannot_be_asked_changes_nothing() -> None:
    rbac = Rbac()
    rbac.forbidden = [{"resource": "nodeclaims", "verb": "create"}]

    async def story(watch: PermissionWatch, clock: VirtualClock) -> None:
        await watch.look()
        known = watch.problem()
        assert known
        rbac.away = True
        await watch.look()
        assert watch.problem() == known
        await clock.sleep(0)

    assert len(watched(rbac, story)) == 1


@pytest.mark.parametrize("page", [b"<html>", b"null", b"{" * 9, b'{"status":{"allowed":"yes"}}'])
def test_an_answer_that_is_none_changes_nothing_and_is_asked_for_again(page: bytes) -> None:
    rbac = Rbac()
    problems: list[str] = []

    async def story(watch: PermissionWatch, clock: VirtualClock) -> None:
        rbac.page = page
        await clock.sleep(65)
        problems.append(watch.problem())
        rbac.page = b""
        rbac.forbidden = [{"resource": "nodes", "verb": "delete"}]
        await clock.sleep(35)
        problems.append(watch.problem())

    watched(rbac, story)
    assert problems[0] == ""
    assert "nodes" in problems[1]
