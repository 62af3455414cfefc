"""``cel --live``: the ResourceSlices of a cluster, served here by a small HTTP server."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Command = Callable[..., Any]
    Served = Callable[..., str]

ADA = "device.attributes['gpu.nvidia.com'].architecture == 'Ada Lovelace'"
PATH = "/apis/resource.k8s.io/v1/resourceslices"


def resource_slice(node: str, architecture: str, *, devices: Any = None, count: int = 1) -> dict[str, Any]:
    device = {"name": "gpu-0", "attributes": {"architecture": {"string": architecture}}}
    return {
        "metadata": {"name": f"{node}-gpus"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": count},
            "devices": [device] if devices is None else devices,
        },
    }


def kubeconfig(folder: Path, server: str) -> str:
    document = {
        "clusters": [{"name": "test", "cluster": {"server": server}}],
        "users": [{"name": "test", "user": {"token": "secret-token"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    file = folder / "config"
    file.write_text(json.dumps(document))
    return str(file)


@pytest.fixture
def asked() -> list[tuple[str, str]]:
    """Path and credential of every request."""
    return []


@pytest.fixture
def served(tmp_path: Path, asked: list[tuple[str, str]]) -> Iterator[Served]:
    """A kubeconfig for a server that has these slices, or answers with another code."""
    servers = []

    def serve(*slices: dict[str, Any], code: int = 200, message: str = "no") -> str:
        answer = {"metadata": {"resourceVersion": "1"}, "items": slices}
        body = json.dumps(answer if code == 200 else {"kind": "Status", "message": message}).encode()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append((self.path.partition("?")[0], self.headers["Authorization"]))
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        servers.append((server, thread))
        return kubeconfig(tmp_path, f"http://127.0.0.1:{server.server_port}")

    yield serve
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_slices_of_a_cluster_are_read_once(command: Command, served: Served, asked: list[tuple[str, str]]) -> None:
    config = served(resource_slice("a", "Ada Lovelace"), resource_slice("b", "Blackwell"))
    result = command("cel", "--live", "--kubeconfig", config, ADA, "-o", "json")
    assert result.code == 0, result.err
    found = {(item["slice"], item["device"]): item["outcome"] for item in result.data["devices"]}
    assert found == {("a-gpus", "gpu-0"): "match", ("b-gpus", "gpu-0"): "no_match"}
    assert asked == [(PATH, "Bearer secret-token")]


def test_the_environment_names_the_cluster(command: Command, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", served(resource_slice("a", "Blackwell")))
    assert command("cel", "--live", ADA).code == 1


def test_one_node_is_looked_at(command: Command, served: Served) -> None:
    config = served(resource_slice("a", "Ada Lovelace"), resource_slice("b", "Blackwell", count=2))
    result = command("cel", "--live", "--node", "a", "--kubeconfig", config, ADA)
    assert (result.code, result.err) == (0, "")
    assert "b-gpus" not in result.out
    result = command("cel", "--live", "--node", "b", "--kubeconfig", config, ADA)
    assert result.code == 1
    assert "pool gpu.nvidia.com/b is currently being updated: generation 1 shows 1 of 2 slices" in result.err


def test_a_slice_that_cannot_be_read_is_left_out_and_named(command: Command, served: Served) -> None:
    config = served(resource_slice("a", "Ada Lovelace"), resource_slice("b", "Blackwell", devices=7))
    result = command("cel", "--live", "--kubeconfig", config, ADA)
    assert result.code == 0
    assert "note: ignoring an object that cannot be read, kind ResourceSlice, name b-gpus" in result.err


@pytest.mark.parametrize(
    ("code", "message", "told"),
    [
        (401, "Unauthorized", "Unauthorized (HTTP 401)"),
        (403, "forbidden:\nno", "forbidden: no (HTTP 403); the user of the kubeconfig needs get and list"),
        (404, "page not found", "(HTTP 404); resource.k8s.io/v1 is not served: it needs Kubernetes 1.34 or later"),
    ],
)
def test_a_refusal_is_one_line(command: Command, served: Served, code: int, message: str, told: str) -> None:
    result = command("cel", "--live", "--kubeconfig", served(code=code, message=message), ADA)
    assert (result.code, result.out) == (2, "")
    (line,) = result.err.splitlines()
    assert line.startswith("error: cluster 127.0.0.1:")
    assert told in line
    assert "secret" not in line


def test_a_cluster_that_does_not_answer_is_one_line(command: Command, tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound and not listening: refused
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        result = command("cel", "--live", "--kubeconfig", kubeconfig(tmp_path, f"http://127.0.0.1:{port}"), ADA)
    (line,) = result.err.splitlines()
    assert (result.code, result.out) == (2, "")
    assert line.startswith(f"error: cluster 127.0.0.1:{port}: list resourceslices: ConnectError")


@pytest.mark.parametrize("server", ["http://a:b:c", "nothing", ""])
def test_an_address_that_is_none_is_one_line(command: Command, tmp_path: Path, server: str) -> None:
    result = command("cel", "--live", "--kubeconfig", kubeconfig(tmp_path, server), ADA)
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1), result.err


def test_no_cluster_is_one_line(command: Command, tmp_path: Path) -> None:
    result = command("cel", "--live", "--kubeconfig", str(tmp_path / "none"), ADA)
    (line,) = result.err.splitlines()
    assert (result.code, result.out) == (2, "")
    assert line.startswith("error: --live: no cluster is configured")


def test_no_slice_is_bad_input_and_names_the_nodes_that_have_some(command: Command, served: Served) -> None:
    result = command("cel", "--live", "--kubeconfig", served(), ADA)
    assert result.code == 2
    assert "no ResourceSlice in it" in result.err
    config = served(resource_slice("a", "Blackwell"))
    result = command("cel", "--live", "--node", "c", "--kubeconfig", config, ADA)
    assert result.code == 2
    assert result.err.endswith("no ResourceSlice of node c; there are some of a\n")


@pytest.mark.parametrize(
    "arguments",
    [("--live", "--plan", "x"), ("--live", "--slice", "x"), ("--node", "x"), ("--kubeconfig", "x")],
)
def test_options_that_do_not_go_together(command: Command, arguments: tuple[str, ...]) -> None:
    result = command("cel", *arguments, ADA)
    assert result.code == 2
    assert "--live" in result.err


def test_without_live_nothing_of_the_network_is_imported() -> None:
    program = (
        "import sys; from karpenter_linode.cli.main import run; run(['cel', 'true']); "
        "print([name for name in ('httpx2', 'lightkube', 'asyncio', 'ssl') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.splitlines()[-1] == "[]"
