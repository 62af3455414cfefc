"""Calls Helm on the charts of this tree."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

CHARTS = Path(__file__).parents[2] / "charts"
TOKEN = ("--set", "apiToken=made-up")


class HelmError(AssertionError):
    """Helm refused; the message is Helm's."""


class Helm:
    """One release of Helm.

    Args:
        program: where it is.
        home: a folder for what it writes.
    """

    def __init__(self, program: Path, home: Path) -> None:
        self._program = program
        self._environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}

    def run(self, *arguments: str) -> str:
        """What it prints. Raises HelmError."""
        command = [str(self._program), *arguments]
        done = subprocess.run(  # noqa: S603  # a program that was compared with its checksum
            command, env=self._environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise HelmError(done.stderr + done.stdout)
        return done.stdout

    def text(self, *arguments: str, chart: str = "karpenter") -> str:
        """The rendered chart."""
        return self.run("template", "karpenter", str(CHARTS / chart), "--namespace", "karpenter", *arguments)

    def render(self, *arguments: str, chart: str = "karpenter") -> dict[tuple[str, str], Any]:
        """Its objects by kind and name."""
        documents = yaml.safe_load_all(self.text(*arguments, chart=chart))
        return {(item["kind"], item["metadata"]["name"]): item for item in documents if item}

    def environment(self, *arguments: str) -> list[dict[str, Any]]:
        """The environment of the controller."""
        objects = self.render(*TOKEN, *arguments)
        (deployment,) = [item for (kind, _), item in objects.items() if kind == "Deployment"]
        containers = deployment["spec"]["template"]["spec"]["containers"]
        (entries,) = [each["env"] for each in containers if each["name"] == "controller"]
        return list(entries)
