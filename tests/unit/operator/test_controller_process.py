"""The controller as a process: it gets ready, tells its metrics, and ends when it is told to."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from control_plane_stub import ControlPlaneStub

from karpenter_linode.operator.metric_table import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKENS = ("the-token-of-linode", "the-token-of-the-cluster")
LONG = 90.0  # far more than it takes: only a hang is a failure


class Controller:
    """A running controller and the lines that it has written."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []

    def until(self, message: str) -> dict[str, Any]:
        """Read on up to a line with that message."""
        assert self.process.stdout is not None
        for text in self.process.stdout:
            self.lines.append(json.loads(text))
            if self.lines[-1]["message"] == message:
                return self.lines[-1]
        raise AssertionError(f"{message!r} was never said: {self.lines}")

    def end(self) -> int:
        """How it ended."""
        assert self.process.stdout is not None
        self.lines += [json.loads(text) for text in self.process.stdout]
        return self.process.wait(LONG)


@contextlib.contextmanager
def controller(stub: ControlPlaneStub, folder: Path, *flags: str) -> Iterator[Controller]:
    command = [
        *(sys.executable, "-m", "karpenter_linode.cli", "controller", "--kubeconfig", stub.kubeconfig(folder)),
        *("--cluster-name", "prod", "--metrics-port", "0", "--health-probe-port", "0", *flags),
    ]
    environment = {**os.environ, "LINODE_TOKEN": TOKENS[0], "LINODE_URL": stub.url}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own program
    try:
        yield Controller(process)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def get(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=LONG) as answer:
        return str(answer.read().decode())


def test_it_gets_ready_tells_its_metrics_and_ends_in_order(tmp_path: Path) -> None:
    with ControlPlaneStub() as stub, controller(stub, tmp_path, "--log-level", "debug") as running:
        ports = [running.until(f"serving {name}")["port"] for name in ("metrics", "health probes")]
        running.until("cluster state synced")
        readiness, metrics = get(ports[1], "/readyz"), get(ports[0], "/metrics")
        running.process.send_signal(signal.SIGTERM)
        code = running.end()
        assert stub.released.is_set()
    assert readiness.splitlines() == ["[+]manager ok", "[+]crd ok", "[+]rbac ok", "readyz check passed"]
    told = set(re.findall(r"^# TYPE (\S+) ", metrics, re.MULTILINE))
    assert {name for name in METRICS if name not in told} == set()
    assert "karpenter_cluster_state_synced 1.0" in metrics
    assert 'leader_election_master_status{name="karpenter-leader-election"} 1.0' in metrics
    assert re.search(r'client_go_request_total\{code="200",method="GET"\} [1-9]', metrics)
    assert code == 0
    assert running.lines[-1]["message"] == "stopping"
    assert not any(token in json.dumps(line) for line in running.lines for token in TOKENS)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_ends_it_at_once(tmp_path: Path, number: signal.Signals) -> None:
    with ControlPlaneStub() as stub:
        stub.hold_release = True  # nobody takes the lease back: after the first signal it waits for a minute
        with controller(stub, tmp_path) as running:
            running.until("cluster state synced")
            running.process.send_signal(number)
            assert stub.released.wait(LONG)
            running.process.send_signal(number)
            assert running.end() == 1
    assert running.lines[-1]["message"] == "stopping"


def test_a_signal_while_it_waits_for_the_api_server_ends_it(tmp_path: Path) -> None:
    stub = ControlPlaneStub()  # listens, and answers nobody
    try:
        with controller(stub, tmp_path) as running:
            running.until("serving health probes")
            running.process.send_signal(signal.SIGTERM)
            assert running.end() == 0
    finally:
        stub.ending.set()
        stub.close()


def test_a_token_that_may_not_write_is_refused(tmp_path: Path) -> None:
    with ControlPlaneStub() as stub:
        stub.scopes = "lke:read_only linodes:read_only"
        with controller(stub, tmp_path) as running:
            assert running.end() == 1
    last = running.lines[-1]
    assert last["message"] == "cannot start provider"
    assert last["error"].startswith("LINODE_TOKEN has the scopes 'lke:read_only linodes:read_only' and lacks ")
