"""What reaches the terminal."""

from __future__ import annotations

import io
import json
import sys

import pytest
import yaml

from karpenter_linode.cli import output
from karpenter_linode.explain.text import Line


def test_control_characters_never_reach_the_terminal() -> None:
    assert output.printable("a\x1b[31mb\x9bc\x07") == "a\\x1b[31mb\\x9bc\\x07"
    assert output.printable("tree ├─ ok\nnext") == "tree ├─ ok\nnext"
    assert output.printable("a\rb\tc") == "a\\x0db\\x09c"


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def attach_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal as standard output; within the test, since pytest sets its own stream when the test begins."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    return stream


def test_a_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = attach_terminal(monkeypatch)
    output.print_lines([Line("good", "good"), Line("plain")])
    assert terminal.getvalue() == "\x1b[32mgood\x1b[0m\nplain\n"


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = attach_terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    output.print_lines([Line("good", "good")])
    assert terminal.getvalue() == "good\n"


def test_a_dumb_terminal_gets_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = attach_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    output.print_lines([Line("bad", "bad")])
    assert terminal.getvalue() == "bad\n"


def test_a_pipe_gets_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_lines([Line("bad", "bad")])
    assert capsys.readouterr().out == "bad\n"


def test_branches_are_drawn_in_ascii_where_the_encoding_has_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    output.print_lines([Line("│  └─ x"), Line("├─ y")])
    stream.flush()
    assert stream.buffer.getvalue() == b"|  `- x\n|- y\n"  # type: ignore[attr-defined]


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_data_can_be_read_back_in_the_order_written(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = {"b": [1, {"x": "é"}], "a": None}
    output.print_data(data, form)
    text = capsys.readouterr().out
    assert (json.loads(text) if form == "json" else yaml.safe_load(text)) == data
    assert text.index("b") < text.index("a")


def test_progress_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("working"):
        pass
    assert capsys.readouterr() == ("", "")


def test_progress_is_wiped_from_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with output.progress("working"):
        assert stream.getvalue() == "working ..."
    assert stream.getvalue().endswith("\r\x1b[K")
