"""docs/getting-started.md, command by command, with the real `kubectl` and `helm`; `--snapshot-update` writes it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import controlplane_binary
import pytest
from controller_pods import ControllerPods
from controlplane import ControlPlane
from linode_emulator import LinodeEmulator
from played_nodes import PlayedNodes

sys.path.insert(0, str(Path(__file__).parents[1] / "charts"))
import chart_tools

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "getting-started.md"
_FENCE = "```"
_COMMAND_SECONDS = 240
_VARYING = (  # what differs from run to run, and what stands for it where two runs are compared
    (re.compile(r"LAST DEPLOYED: .*"), "LAST DEPLOYED"),
    (re.compile(r"lke561146-\d+-[0-9a-f]{12}"), "<node>"),
    (re.compile(r"(<node>-gpu\.nvidia\.com|gpu-job-gpu|gpu|karpenter-[0-9a-f]+)-[a-z0-9]{5}\b"), r"\1-<suffix>"),
    (re.compile(r"karpenter-[0-9a-f]{8,10}-"), "karpenter-<hash>-"),
    (re.compile(r"(karpenter-leader-election) +\S+"), r"\1 <holder>"),
    (re.compile(r"linode://\d+"), "linode://<id>"),
    (re.compile(r"\b(\d+[dhms])+\b"), "<age>"),
    (re.compile(r"[ \t]+"), " "),
)


class Command(NamedTuple):
    """A command of the page: the line of its `$`, its text, and the lines that it is said to print."""

    line: int
    text: str
    printed: list[str]


@pytest.fixture
def shell(binary: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which the commands run: a control plane of its own, a cloud, and played machines."""
    if controlplane_binary.minor_release() != controlplane_binary.NEWEST:
        pytest.skip("the page shows the newest release")
    programs = tmp_path / "bin"
    programs.mkdir()
    here = Path(sys.executable).parent
    for name, target in {"helm": chart_tools.helm(max(chart_tools.HELM)), "kubectl": here / "kubectl"}.items():
        (programs / name).symlink_to(target)
    (programs / "karpenter-linode").symlink_to(here / "karpenter-linode")
    with (
        ControlPlane(binary, tmp_path_factory.mktemp("gs")) as plane,
        LinodeEmulator() as cloud,
        plane.http_client() as client,
        PlayedNodes(client, cloud),
        ControllerPods(plane, tmp_path, {"LINODE_URL": cloud.url}),
    ):
        yield {
            "PATH": f"{programs}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "KUBECONFIG": str(plane.kubeconfig),
            "LINODE_TOKEN": "any",
        }


def test_the_page_shows_what_the_commands_print(shell: dict[str, str], request: pytest.FixtureRequest) -> None:
    page = PAGE.read_text(encoding="utf-8").splitlines()
    ran = [command._replace(printed=run(command.text, shell)) for command in commands(page)]
    if request.config.getoption("update_snapshots", default=False):
        PAGE.write_text("\n".join(with_output(page, ran)) + "\n", encoding="utf-8")
    for said, real in zip(commands(PAGE.read_text(encoding="utf-8").splitlines()), ran, strict=True):
        assert normal(said.printed) == normal(real.printed), said.text


def commands(page: list[str]) -> list[Command]:
    """The commands in the `console` blocks of a page."""
    found: list[Command] = []
    inside, open_line = False, False
    for number, line in enumerate(page):
        if line.startswith(_FENCE):
            inside = line == f"{_FENCE}console"
        elif inside and line.startswith("$ "):
            found.append(Command(number, line[2:], []))
            open_line = line.endswith("\\")
        elif inside and open_line:
            found[-1] = found[-1]._replace(text=f"{found[-1].text}\n{line}")
            open_line = line.endswith("\\")
        elif inside:
            found[-1].printed.append(line)
    return found


def with_output(page: list[str], ran: list[Command]) -> list[str]:
    """The page with what its commands printed now."""
    result, at = [], 0
    for before, command in zip(commands(page), ran, strict=True):
        end = before.line + 1 + before.text.count("\n")
        result += [*page[at:end], *command.printed]
        at = end + len(before.printed)
    return [*result, *page[at:]]


def run(text: str, environment: dict[str, str]) -> list[str]:
    """What a command prints on both streams, and its exit code if that is not 0. Variables reach later commands."""
    variables = f"{environment['HOME']}/variables"
    script = f'set -a; . "{variables}"; set -o pipefail\n{text}\ncode=$?; export -p > "{variables}"; exit $code\n'
    Path(variables).touch()
    done = subprocess.run(  # noqa: S603 - the commands of our own page
        ["/bin/bash", "-c", script],
        cwd=ROOT,
        env={**environment, "LC_ALL": "C.UTF-8", "TERM": "dumb", "COLUMNS": "130"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_COMMAND_SECONDS,
        check=False,
    )
    ended = [f"(exit code {done.returncode})"] if done.returncode else []
    return [*(line.rstrip() for line in done.stdout.splitlines()), *ended]


def normal(lines: list[str]) -> list[str]:
    """Lines without what varies."""
    for pattern, constant in _VARYING:
        lines = [pattern.sub(constant, line) for line in lines]
    return [line.strip() for line in lines]
