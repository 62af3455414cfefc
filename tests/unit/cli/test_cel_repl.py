"""``cel --repl`` as a program that talks over standard input."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Command = Callable[..., Any]

A1_S = "g2-gpu-rtx4000a1-s"


@pytest.fixture
def talk(command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs the dialogue with some lines on standard input."""

    def call(text: str | bytes, *arguments: str) -> Any:
        raw = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
        return command("cel", "--repl", *arguments)

    return call


def test_expressions_are_answered_until_the_input_ends(talk: Command) -> None:
    result = talk("device.driver == 'a'\n\ndevice.driver != 'a'", "--plan", A1_S)
    assert result.code == 0
    assert "0 of 1 device matches" in result.out
    assert "1 of 1 device matches" in result.out


def test_nothing_is_answered_after_quit(talk: Command) -> None:
    assert talk(":quit\ndevice.driver == 'a'\n", "--plan", A1_S).out == ""


def test_an_error_is_shown_with_its_place_and_the_next_line_is_read(talk: Command) -> None:
    result = talk("device.x\ndevice.driver != ''\n", "--plan", A1_S)
    assert "compilation failed: 1:7: undefined field 'x'\n | device.x\n |       ^\n" in result.out
    assert "1 of 1 device matches" in result.out


def test_the_plan_is_changed(talk: Command) -> None:
    result = talk(":plan g3-gpu-rtxpro6000-blackwell-1\n:devices\n", "--plan", A1_S)
    assert "productName              NVIDIA RTX PRO 6000 Blackwell Server Edition" in result.out
    assert "Ada" not in result.out


def test_an_unknown_plan_changes_nothing(talk: Command) -> None:
    result = talk(":plan nope\n:devices\n", "--plan", A1_S)
    assert "no plan 'nope'" in result.out
    assert f"plan {A1_S}, driver gpu.nvidia.com" in result.out


def test_plan_without_a_name_takes_every_plan(talk: Command) -> None:
    assert "g2-gpu-rtx4000a2-s" in talk(":plan\n:devices\n", "--plan", A1_S).out


def test_help_names_the_commands(talk: Command) -> None:
    text = talk(":help\n:nope\n").out
    assert all(name in text for name in (":plan NAME", ":devices", ":help", ":quit", "no command :nope"))


def test_bytes_that_are_no_text_do_not_end_the_dialogue(talk: Command) -> None:
    result = talk(b"\xff\xfe\x00\ndevice.driver != ''\n", "--plan", A1_S)
    assert result.code == 0
    assert "1 of 1 device matches" in result.out


def test_control_characters_are_not_sent_back_to_the_terminal(talk: Command) -> None:
    assert "\x1b" not in talk("'\x1b[2J' == device.driver\n", "--plan", A1_S).out


def test_on_a_terminal_an_interrupt_drops_the_line_and_history_reaches_no_file(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    # A runner's workers ignore interrupts, and their children inherit that: this child does not.
    start = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from karpenter_linode.cli.main import main; main()"
    )
    program = [sys.executable, "-c", start, "cel", "--repl", "--plan", A1_S]
    environment = {**os.environ, "HOME": str(tmp_path), "TERM": "dumb"}
    with subprocess.Popen(  # noqa: S603 - our own program
        program, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        try:
            os.close(theirs)
            read_until(ours, b"cel> ")
            os.write(ours, b"device.nonsense")
            read_until(ours, b"nonsense")
            interrupt(process, ours)
            os.write(ours, b"device.driver != ''\n")
            read_until(ours, b"1 of 1 device matches.*cel> ")
            os.write(ours, b"\x04")
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()
            os.close(ours)
    assert list(tmp_path.iterdir()) == []


def interrupt(process: subprocess.Popen[bytes], descriptor: int) -> None:
    """Press Ctrl-C until a fresh prompt is shown: Python keeps one that comes just before it waits for a key."""
    seen, deadline = b"", time.monotonic() + 90
    while b"cel> " not in seen:
        assert time.monotonic() < deadline, seen
        process.send_signal(signal.SIGINT)
        while select.select([descriptor], [], [], 2)[0] and b"cel> " not in seen:
            seen += os.read(descriptor, 4096)


def read_until(descriptor: int, pattern: bytes) -> bytes:
    """What a terminal shows, up to a text of some pattern."""
    seen, deadline = b"", time.monotonic() + 90
    while not re.search(pattern, seen, re.DOTALL):
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, seen
        seen += os.read(descriptor, 4096)
    return seen
