"""The group: help, errors, exit codes, laziness, completion."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import click
import pytest

from karpenter_linode.cli import main, version
from karpenter_linode.cli.main import COMMANDS, cli

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[..., Any]

HEAVY = ("httpx2", "starlette", "uvicorn", "structlog", "rich", "asyncio", "yaml", "msgspec")


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout


def loaded_after(imports: str) -> set[str]:
    return set(python(f"import sys\n{imports}\nprint(*sys.modules)").split())


def test_the_group_imports_nothing_heavy() -> None:
    assert loaded_after("import karpenter_linode.cli.main").isdisjoint(HEAVY)


def test_plan_imports_neither_web_nor_loop() -> None:
    assert loaded_after("import karpenter_linode.cli.plan").isdisjoint(HEAVY[:6])


def test_help_lists_every_command_without_importing_it(command: Command) -> None:
    result = command("--help")
    assert result.code == 0
    for name, (_, text) in COMMANDS.items():
        assert f"  {name}" in result.out
        assert text.split()[0] in result.out
    assert "Exit codes" in result.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_teaches(command: Command, name: str) -> None:
    result = command(name, "--help")
    assert result.code == 0
    assert "Usage: karpenter-linode" in result.out
    if name in {"plan", "simulate", "catalog", "emulator"}:
        assert "Examples:" in result.out


def test_the_version_is_printed_by_a_command_and_by_an_option(command: Command) -> None:
    assert command("--version") == command("version")
    assert command("--version").out.startswith("karpenter-linode ")


def test_without_arguments_help_is_shown(command: Command) -> None:
    result = command()
    assert result.code == 2
    assert "Commands:" in result.out + result.err


def test_an_unknown_command_names_the_known_ones(command: Command) -> None:
    result = command("plna")
    assert result.code == 2
    assert "no such command 'plna'" in result.err
    assert "plan" in result.err


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command("version")
    def fails() -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(version, "command", fails)


@pytest.mark.usefixtures("broken")
def test_an_internal_error_is_one_line_and_how_to_learn_more(command: Command) -> None:
    result = command("version")
    assert result.code == 70
    assert result.err.splitlines()[0] == "internal error: RuntimeError: boom"
    assert "--traceback" in result.err


@pytest.mark.usefixtures("broken")
def test_the_traceback_is_there_for_those_who_ask(command: Command) -> None:
    with pytest.raises(RuntimeError, match="boom"):
        command("--traceback", "version")


def test_an_interrupt_has_an_exit_code_of_its_own(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(**_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)
    assert command("version").code == 130


def test_a_reader_that_leaves_is_no_error() -> None:
    program = [sys.executable, "-m", "karpenter_linode.cli", "catalog", "list", "-o", "json"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:  # noqa: S603
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        errors = running.stderr.read()
    assert b"Traceback" not in errors
    assert b"Exception ignored" not in errors
    assert running.returncode == 141


def test_version(command: Command) -> None:
    assert command("version").out == f"karpenter-linode {version.current()}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(command: Command, shell: str) -> None:
    result = command("completion", shell)
    assert result.code == 0
    assert "_KARPENTER_LINODE_COMPLETE" in result.out


@pytest.mark.parametrize(
    ("words", "position", "expected"),
    [
        ("karpenter-linode ", 1, list(COMMANDS)),
        ("karpenter-linode si", 1, ["simulate"]),
        ("karpenter-linode plan --exp", 2, ["--explain"]),
        ("karpenter-linode plan -o j", 3, ["json"]),
    ],
)
def test_completion_answers(words: str, position: int, expected: list[str]) -> None:
    environment = {
        **os.environ,
        "_KARPENTER_LINODE_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(position),
    }
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.argv[0] = 'karpenter-linode'; from karpenter_linode.cli.main import main; main()",
        ],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line.partition(",")[2] for line in done.stdout.splitlines()] == expected


def test_main_ends_the_process_with_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["karpenter-linode", "plan"])
    with pytest.raises(SystemExit) as caught:
        main.main()
    assert caught.value.code == 2
