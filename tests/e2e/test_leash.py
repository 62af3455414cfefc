"""Controllers that tests start do not outlive the tests, however these end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from kube_api import wait_for

STARTER = """
import sys, pathlib, server_process as s
sleeper = s.ServerProcess('sleeper', [sys.executable, str(s.LEASH), 'sleep', '600'], pathlib.Path(sys.argv[1]))
sleeper.start()
print(sleeper.pid, flush=True)
sys.stdin.read()
"""


def test_a_leashed_program_ends_with_the_one_that_was_killed(tmp_path: Path) -> None:
    command, pipe = [sys.executable, "-c", STARTER, str(tmp_path / "log")], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=Path(__file__).parent) as killed:  # noqa: S603  # ours
        assert killed.stdout is not None
        pid = int(killed.stdout.readline())
        wait_for("the program to run", lambda: name_of(pid) == "sleep")
        os.kill(killed.pid, signal.SIGKILL)
    wait_for("the program to end", lambda: name_of(pid) != "sleep")


def name_of(pid: int) -> str:
    """What runs as that process; "" where nothing does, or nobody has asked yet how it ended."""
    try:
        name, _, state = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(") ")
    except OSError:
        return ""
    return "" if state.startswith("Z") else name
