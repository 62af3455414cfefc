# ruff: noqa: INP001 - a script, not a package
"""Writes what the documentation takes from the program: commands, settings, metrics, and the runs shown in pages.

A page marks a run with a comment, and the block below it holds what the run prints::

    <!-- run: plan examples/two-gpus -->

``--skip WORD`` in the mark leaves out lines with that word; long lines are cut. A test fails when a page is not what
this writes. The copy of the CRDs that the package carries is written as well.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
WIDTH = 150
RUN = re.compile(r"<!-- run: (?P<command>.+?) -->\n\n```text\n(?P<output>.*?)```\n", re.DOTALL)


def pages() -> list[Path]:
    """Pages that show runs."""
    return [
        page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if RUN.search(page.read_text())
    ]


def shown(mark: str) -> str:
    """What a page shows for a run: the command, its standard output, and its exit code if that is not 0."""
    command, *skipped = mark.split(" --skip ")
    done = subprocess.run(  # noqa: S603 - commands from our own pages
        [sys.executable, "-m", "karpenter_linode.cli", *shlex.split(command)],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if not any(word in line for word in skipped)]
    cut = [line if len(line) <= WIDTH else line[: WIDTH - 3] + "..." for line in lines]
    code = [f"(exit code {done.returncode})"] if done.returncode else []
    return "\n".join([f"$ karpenter-linode {command}", *cut, *code]) + "\n"


def refreshed(text: str) -> str:
    """A page with its runs done again."""
    return RUN.sub(lambda m: f"<!-- run: {m['command']} -->\n\n```text\n{shown(m['command'])}```\n", text)


if __name__ == "__main__":
    for script in ("carried_crds.py", "cli_reference.py", "reference_tables.py"):
        runpy.run_path(str(ROOT / "scripts" / script), run_name="__main__")
    for page in pages():
        page.write_text(refreshed(page.read_text()), encoding="utf-8")
