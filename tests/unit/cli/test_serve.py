"""``simulate --serve``: how it begins, what it prints, how it ends."""

from __future__ import annotations

import json
import socket
import stat
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from karpenter_linode.cli import kubeconfig
from karpenter_linode.cli.errors import InputError
from karpenter_linode.sim.face.server import FaceServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Command = Callable[..., Any]

FAST = ("simulate", "--serve", "--speed", "1000")


def test_an_empty_world_ends_at_its_limit_with_the_ordinary_summary(command: Command) -> None:
    result = command(*FAST, "--duration", "2m")
    assert result.code == 0
    document, _, _ = result.out.partition("\n\n")
    config = yaml.safe_load(document)
    assert config["current-context"] == kubeconfig.CONTEXT
    assert config["clusters"][0]["cluster"]["server"].startswith("http://127.0.0.1:")
    assert len(config["clusters"][0]["cluster"]["server"].rpartition("/")[2]) >= 32, "the secret"
    assert "save the lines above" in result.err
    assert result.out.splitlines()[-1].startswith("0 pods placed; 0 nodes built; $0.00 billed; nothing left billed;")


def test_manifests_live_on_and_data_come_alone_on_standard_output(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "config"
    more = ("--kubeconfig", str(file), "--duration", "20m", "-o", "json")
    result = command(*FAST, "examples/one-gpu", *more)
    assert result.code == 0
    outcome = json.loads(result.out)
    assert [(pod["pod"], pod["phase"]) for pod in outcome["pods"]] == [("default/gpu-job", "Running")]
    assert f"export KUBECONFIG={file}" in result.err
    assert not file.exists(), "it is taken away at the end"


def test_a_world_where_a_pod_finds_no_place_was_served_all_the_same(command: Command) -> None:
    result = command(*FAST, "examples/two-gpus", "--duration", "5m", "--quiet", "-o", "yaml")
    assert result.code == 0
    assert yaml.safe_load(result.out)["succeeded"] is False


def test_an_empty_directory_is_an_empty_world(command: Command, tmp_path: Path) -> None:
    assert command(*FAST, str(tmp_path), "--duration", "1m", "--quiet").code == 0
    assert command("simulate", str(tmp_path)).code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate",), "Missing argument 'PATH...'"),
        (("simulate", "examples/one-gpu", "--speed", "2"), "--speed, --port and --kubeconfig go with --serve"),
        (("simulate", "--serve", "--speed", "0"), "0 is not in the range 1<=x<=1000"),
        ((*FAST, "nowhere"), "no such file or directory"),
    ],
)
def test_usage_that_makes_no_sense(command: Command, arguments: tuple[str, ...], message: str) -> None:
    result = command(*arguments)
    assert result.code == 2
    assert message in result.err


def test_a_port_that_is_taken(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = command(*FAST, "--port", str(port))
    assert result.code == 2
    assert f"cannot listen on 127.0.0.1 port {port}" in result.err


def test_a_server_that_fails_ends_the_world_with_its_error(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(_: FaceServer) -> None:
        raise RuntimeError("no more sockets")

    monkeypatch.setattr(FaceServer, "run_until_stopped", fails)
    result = command(*FAST)
    assert result.code == 70
    assert "no more sockets" in result.err


def test_a_kubeconfig_is_its_owners_alone_and_replaces_no_file_of_others(tmp_path: Path) -> None:
    file = tmp_path / "config"
    for url in ("http://127.0.0.1:1/old", "http://127.0.0.1:1/new"):
        kubeconfig.check_target(str(file))
        kubeconfig.write(str(file), kubeconfig.kubeconfig(url))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert yaml.safe_load(file.read_text())["clusters"][0]["cluster"]["server"].endswith("/new")
    kubeconfig.remove(str(file), kubeconfig.kubeconfig("http://127.0.0.1:1/old"))
    assert file.exists(), "another world's"
    kubeconfig.remove(str(file), kubeconfig.kubeconfig("http://127.0.0.1:1/new"))
    assert not file.exists()
    file.write_text("theirs")
    with pytest.raises(InputError, match="did not write"):
        kubeconfig.check_target(str(file))
    with pytest.raises(InputError, match="no such directory"):
        kubeconfig.check_target(str(tmp_path / "none/config"))
