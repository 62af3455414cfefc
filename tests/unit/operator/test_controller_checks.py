"""The checks at the start: what is found, said, and refused."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from karpenter_linode.kube.http import KubeHttp
from karpenter_linode.linode.client import LinodeClient
from karpenter_linode.linode.http import LONGEST_ANSWER
from karpenter_linode.linode.tables import bundled_regions, bundled_types
from karpenter_linode.model.linode import LKECluster
from karpenter_linode.operator import linode_connection
from karpenter_linode.operator.checks import CheckError, check_api_server, check_kinds, check_linode, check_permissions
from karpenter_linode.operator.flags import read_settings
from karpenter_linode.operator.gate import WriteGate
from karpenter_linode.operator.linode_connection import connect_linode
from karpenter_linode.operator.linode_dump import DumpingTransport, shown_body
from karpenter_linode.operator.logging import JsonLogger
from karpenter_linode.operator.metrics import PrometheusMetrics
from karpenter_linode.operator.permissions import permissions
from karpenter_linode.operator.system import SystemClock, SystemRandom
from karpenter_linode.operator.token_scopes import GrantedScopes
from karpenter_linode.sim.linode.app import create_app
from karpenter_linode.sim.linode.delays import INSTANT
from karpenter_linode.sim.linode.world import LinodeWorld
from karpenter_linode.sim.seeded import SeededRandom

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

KINDS = {
    "karpenter.sh/v1": ["nodepools", "nodepools/status", "nodeclaims", "nodeclaims/status"],
    "karpenter.k8s.linode/v1alpha1": ["linodenodeclasses", "linodenodeclasses/status"],
    "resource.k8s.io/v1": ["resourceslices", "resourceclaims", "deviceclasses", "resourceclaimtemplates"],
}
SETTINGS = read_settings({}, {"CLUSTER_NAME": "prod", "IGNORE_DRA_REQUESTS": "false"})


class NoWait(SystemClock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Cluster:
    """An API server that serves kinds and allows things."""

    def __init__(self) -> None:
        self.kinds = {key: list(value) for key, value in KINDS.items()}
        self.forbidden: list[dict[str, str]] = []
        self.silent = 0

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        if self.silent:
            self.silent -= 1
            raise httpx2.ConnectError("refused")
        if path == "/version":
            return httpx2.Response(200, json={"gitVersion": "v1.37.2"})
        if request.method == "POST":
            asked = json.loads(request.content)["spec"]["resourceAttributes"]
            refused = any(item.items() <= asked.items() for item in self.forbidden)
            return httpx2.Response(201, json={"status": {"allowed": not refused}})
        served = self.kinds.get(path.removeprefix("/apis/"))
        if served is None:
            return httpx2.Response(404, json={"reason": "NotFound", "code": 404})
        return httpx2.Response(200, json={"resources": [{"name": name} for name in served]})


def run(cluster: Cluster, check: Callable[[KubeHttp, JsonLogger], Awaitable[None]]) -> list[dict[str, Any]]:
    """The log lines of a check."""
    output = io.StringIO()

    async def go() -> None:
        async with httpx2.AsyncClient(base_url="http://api", transport=httpx2.MockTransport(cluster)) as client:
            await check(KubeHttp(client, NoWait()), JsonLogger([output]))

    asyncio.run(go())
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_the_api_server_is_waited_for() -> None:
    cluster = Cluster()
    cluster.silent = 3
    lines = run(cluster, lambda http, logger: check_api_server(http, NoWait(), logger))
    assert [line["message"] for line in lines] == ["waiting for the API server"] * 3 + ["check passed: API server"]
    assert lines[-1]["version"] == "v1.37.2"


def test_an_api_server_that_never_answers_is_given_up() -> None:
    cluster = Cluster()
    cluster.silent = 1000
    with pytest.raises(CheckError, match="the API server api cannot be reached: get /version: ConnectError: refused"):
        run(cluster, lambda http, logger: check_api_server(http, NoWait(), logger))


def test_each_group_of_kinds_passes_with_a_line_of_its_own() -> None:
    lines = run(Cluster(), lambda http, logger: check_kinds(http, with_devices=True, logger=logger))
    assert [line["apiVersion"] for line in lines] == list(KINDS)


@pytest.mark.parametrize(
    ("group", "missing", "said"),
    [
        ("karpenter.sh/v1", "nodeclaims/status", "install or upgrade the chart karpenter-crd"),
        ("karpenter.k8s.linode/v1alpha1", "linodenodeclasses", "install or upgrade the chart karpenter-crd"),
        ("resource.k8s.io/v1", "resourceslices", "set IGNORE_DRA_REQUESTS=true"),
    ],
)
def test_a_missing_kind_is_named_with_what_to_do(group: str, missing: str, said: str) -> None:
    cluster = Cluster()
    cluster.kinds[group].remove(missing)
    with pytest.raises(CheckError, match=f"does not serve {missing} of {group}: .*{said}"):
        run(cluster, lambda http, logger: check_kinds(http, with_devices=True, logger=logger))


def test_without_dra_an_old_cluster_will_do() -> None:
    cluster = Cluster()
    del cluster.kinds["resource.k8s.io/v1"]
    assert len(run(cluster, lambda http, logger: check_kinds(http, with_devices=False, logger=logger))) == 2
    with pytest.raises(CheckError, match=r"Kubernetes 1\.34"):
        run(cluster, lambda http, logger: check_kinds(http, with_devices=True, logger=logger))


def test_every_rule_that_is_missing_is_named() -> None:
    cluster = Cluster()
    cluster.forbidden = [
        {"resource": "pods", "subresource": "eviction"},
        {"resource": "leases", "verb": "patch", "namespace": "kube-system"},
    ]
    with pytest.raises(CheckError) as found:
        run(cluster, lambda http, logger: check_permissions(http, SETTINGS, "kube-system", logger))
    assert "create pods/eviction; patch leases.coordination.k8s.io in namespace kube-system" in str(found.value)


def test_what_is_not_used_is_not_asked_for() -> None:
    with_devices = {str(item) for item in permissions(with_devices=True, lease_namespace="x")}
    without = {str(item) for item in permissions(with_devices=False)}
    assert {item for item in with_devices - without if "leases" not in item} == {
        f"{verb} {plural}.resource.k8s.io"
        for verb in ("list", "watch")
        for plural in ("resourceslices", "resourceclaims", "deviceclasses")
    }
    assert not any(item.startswith("update ") for item in with_devices)  # nothing is ever PUT


def linode(token: str = "", scopes: str | None = "*", **cluster: Any) -> tuple[str, list[dict[str, Any]]]:
    """The region that is discovered, and the log lines."""
    output = io.StringIO()

    async def go() -> str:
        world = LinodeWorld(
            NoWait(),
            SeededRandom(1),
            types=bundled_types(),
            regions=bundled_regions(),
            cluster=LKECluster(id=1, **{"label": "prod", **cluster}, region="us-ord", tier="standard", status="ready"),
            delays=INSTANT,
        )
        transport = httpx2.ASGITransport(app=create_app(world, token=token))
        client = LinodeClient("http://linode", "mine", clock=NoWait(), random=SeededRandom(1), transport=transport)
        try:
            granted = GrantedScopes()
            granted.text = scopes
            return (await check_linode(client, granted, SETTINGS, JsonLogger([output]))).region
        finally:
            await client.close()
            await world.close()

    return asyncio.run(go()), [json.loads(line) for line in output.getvalue().splitlines()]


def test_the_cluster_is_found_by_its_label() -> None:
    region, lines = linode()
    assert region == "us-ord"
    assert [line["message"] for line in lines] == [
        "initializing in LKE mode",
        "check passed: Linode token",
        "discovered LKE cluster region",
    ]
    assert lines[-1]["tier"] == "standard"


@pytest.mark.parametrize(
    "scopes", ["*", "lke:read_write linodes:read_write", "account:read_only,linodes:*,lke:read_write", None]
)
def test_a_token_that_may_do_what_is_needed_passes(scopes: str | None) -> None:
    _, lines = linode(scopes=scopes)
    assert lines[1]["scopes"] == (scopes or "the API does not tell")


@pytest.mark.parametrize(
    ("scopes", "missing"),
    [
        ("lke:read_write linodes:read_only", "linodes:read_write"),
        ("lke:read_only", "lke:read_write, linodes:read_write"),
        ("", "lke:read_write, linodes:read_write"),
    ],
)
def test_a_token_that_may_buy_and_not_delete_is_refused_before_it_does(scopes: str, missing: str) -> None:
    with pytest.raises(CheckError, match=f"has the scopes '{scopes}' and lacks {missing}; make a token"):
        linode(scopes=scopes)


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[GrantedScopes, str]]:
    """Lists plans and makes an instance with a client of the controller; what was granted, and the log."""

    def call(**environment: str) -> tuple[GrantedScopes, str]:
        granted, output = GrantedScopes(), io.StringIO()

        async def go() -> None:
            world = LinodeWorld(
                NoWait(), SeededRandom(1), types=bundled_types(), regions=bundled_regions(), delays=INSTANT
            )
            network = httpx2.ASGITransport(app=create_app(world))
            monkeypatch.setattr(linode_connection.httpx2, "AsyncHTTPTransport", lambda **_: network)
            client = connect({"LINODE_TOKEN": "a-token-of-ours", **environment}, output, granted)
            await client.list_regions()
            await client.close()
            await world.close()

        asyncio.run(go())
        return granted, output.getvalue()

    return call


def test_the_answers_of_the_api_tell_what_the_token_may_do(
    emulator: Callable[..., tuple[GrantedScopes, str]],
) -> None:
    granted, log = emulator()
    assert granted.text == "*"
    assert log == ""


@pytest.mark.parametrize("switch", ["1", "true", "TRUE"])
def test_calls_of_the_api_are_shown_on_demand_and_the_token_is_not(
    emulator: Callable[..., tuple[GrantedScopes, str]], switch: str
) -> None:
    _, log = emulator(LINODE_DEBUG=switch)
    told, request, response = (json.loads(line) for line in log.splitlines())
    assert told["message"] == "LINODE_DEBUG is on: every call of the Linode API is shown"
    assert (request["message"], request["method"], response["status"]) == ("linode request", "GET", 200)
    assert request["url"].endswith("/v4beta/regions?page=1&page_size=500")
    assert request["headers"]["authorization"] == "[redacted]"
    assert '"ap-northeast"' in response["body"]
    assert "a-token-of-ours" not in log


def test_bodies_that_are_shown_hide_what_is_secret() -> None:
    shown = shown_body(b'{"label": "a", "root_pass": "hunter2", "nested": [{"api_token": "t0ps3cret"}]}')
    assert json.loads(shown) == {"label": "a", "root_pass": "[redacted]", "nested": [{"api_token": "[redacted]"}]}
    assert shown_body(b"<html>") == "6 bytes"
    assert shown_body(b"") == ""
    assert shown_body(b"[" * 100_000) == "100000 bytes"
    assert shown_body(b"[" * 50 + b"]" * 50).count("[") < 30
    assert len(shown_body(b'"' + b"x" * 10_000 + b'"')) < 5000


def test_a_name_that_no_cluster_has_says_nothing_of_scopes() -> None:
    with pytest.raises(CheckError, match=r"^could not determine LKE cluster with name: prod$"):
        linode(label="test")


def test_a_token_that_is_refused_says_which_scopes_are_needed() -> None:
    with pytest.raises(CheckError, match="LINODE_TOKEN needs the scopes lke:read_write and linodes:read_write"):
        linode(token="another")


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "LINODE_TOKEN environment variable is not set"),
        ({"LINODE_TOKEN": " "}, "LINODE_TOKEN environment variable is not set"),
        ({"LINODE_TOKEN": "x", "LINODE_CA": "/nowhere"}, "LINODE_CA /nowhere: cannot be read"),
    ],
)
def test_an_environment_without_what_is_needed_is_refused(environment: dict[str, str], said: str) -> None:
    with pytest.raises(CheckError, match=said):
        connect(environment, io.StringIO())


def test_a_time_out_that_cannot_be_read_is_told_of_and_not_used() -> None:
    output = io.StringIO()
    client = connect(
        {"LINODE_TOKEN": "secret-token", "LINODE_URL": "api.example", "LINODE_CLIENT_TIMEOUT": "soon"}, output
    )
    assert "LINODE_CLIENT_TIMEOUT environment variable is invalid, using default timeout" in output.getvalue()
    assert "https://api.example/v4beta" in repr(client)
    assert "secret-token" not in repr(client) + output.getvalue()
    asyncio.run(client.close())


def connect(environment: dict[str, str], output: io.StringIO, granted: GrantedScopes | None = None) -> LinodeClient:
    logger = JsonLogger([output])
    return connect_linode(
        environment,
        WriteGate(),
        PrometheusMetrics(logger),
        granted or GrantedScopes(),
        clock=SystemClock(),
        random=SystemRandom(),
        logger=logger,
        version="test",
    )


def dumped(answer: httpx2.Response) -> tuple[httpx2.Response, str]:
    output = io.StringIO()
    transport = DumpingTransport(httpx2.MockTransport(lambda _: answer), JsonLogger([output]))

    async def call() -> httpx2.Response:
        return await transport.handle_async_request(httpx2.Request("GET", "https://api.linode.com/v4/regions"))

    return asyncio.run(call()), output.getvalue()


def test_an_answer_that_is_shown_is_handed_on_whole() -> None:
    packed = gzip.compress(b'{"data": []}')
    headers = {"content-encoding": "gzip", "content-length": str(len(packed)), "x-oauth-scopes": "*"}
    answer, log = dumped(httpx2.Response(200, headers=headers, content=packed))
    assert (answer.content, answer.headers["x-oauth-scopes"]) == (b'{"data": []}', "*")
    assert json.loads(log.splitlines()[1])["body"] == '{"data":[]}'


def test_showing_calls_reads_no_more_of_an_answer_than_is_allowed() -> None:
    with pytest.raises(httpx2.ReadError, match="longer than 16 MiB"):
        dumped(httpx2.Response(200, content=b" " * (LONGEST_ANSWER + 1)))
