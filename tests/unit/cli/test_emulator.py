"""``emulator``: it serves, it stops when told, and it says why it cannot listen."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Any

from karpenter_linode.sim.linode.world import DEFAULT_CLUSTER

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[..., Any]


def test_it_serves_types_and_ends_on_an_interrupt() -> None:
    program = [sys.executable, "-m", "karpenter_linode.cli", "emulator", "--port", "0"]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as running:  # noqa: S603
        assert running.stderr is not None
        line = running.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/v4", line)
        assert found is not None, line
        request = urllib.request.Request(f"{found[0]}/linode/types?page_size=500")  # noqa: S310 - loopback
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - likewise
            plans = {plan["id"] for plan in json.load(answer)["data"]}
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=20) == 0
    assert "g2-gpu-rtx4000a1-s" in plans


def test_the_help_names_the_cluster_that_is_there(command: Command) -> None:
    cluster = DEFAULT_CLUSTER
    assert f"LKE cluster {cluster.id} ({cluster.label}, {cluster.region})" in command("emulator", "--help").out


def test_a_port_in_use_is_bad_input(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = command("emulator", "--port", str(taken.getsockname()[1]))
    assert result.code == 2
    assert "cannot listen on 127.0.0.1 port" in result.err
