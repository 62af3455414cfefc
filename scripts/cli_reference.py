# ruff: noqa: INP001 - a script, not a package
"""Writes ``docs/reference/cli.md`` from the commands themselves. A test fails when the page is not what this writes."""

from __future__ import annotations

import inspect
from pathlib import Path

import click

from karpenter_linode.cli.main import COMMANDS, PROGRAM, cli

PAGE = Path(__file__).parent.parent / "docs/reference/cli.md"
HEAD = f"""# Command line

<!-- Written by scripts/cli_reference.py; change the help texts instead. -->

| exit code | meaning |
|---|---|
| 0 | everything has a place; for other commands: done |
| 1 | something cannot be placed |
| 2 | bad input or bad usage |
| 70 | internal error: a bug in the program; `{PROGRAM} --traceback ...` tells more |
| 130 | interrupted |
| 141 | whoever read the output has left |

Results go to standard output, notes and warnings to standard error. Colours are used on a terminal only; `NO_COLOR`
turns them off. All commands know `-h` and `--help`.
"""


def page() -> str:
    """The whole page."""
    context = click.Context(cli, info_name=PROGRAM)
    parts = [HEAD, _options(cli, context)]
    for name in COMMANDS:
        command = cli.get_command(context, name)
        if command is None:
            raise LookupError(name)
        parts += _command(command, click.Context(command, info_name=name, parent=context), level=2)
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def _command(command: click.Command, context: click.Context, level: int) -> list[str]:
    usage = command.get_usage(context).removeprefix("Usage: ")
    parts = [f"{'#' * level} {context.command_path.removeprefix(PROGRAM + ' ')}\n", f"```text\n{usage}\n```\n"]
    parts += [_help(command), _options(command, context)]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                parts += _command(child, click.Context(child, info_name=name, parent=context), level + 1)
    return parts


def _help(command: click.Command) -> str:
    """The help text; what it marks as preformatted becomes a code block."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    blocks = []
    for paragraph in paragraphs:
        if paragraph.startswith("\b\n"):
            blocks.append(f"```text\n{paragraph[2:]}\n```\n")
        else:
            blocks.append(paragraph + "\n")
    return "\n".join(blocks)


def _options(command: click.Command, context: click.Context) -> str:
    rows = [
        record
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context)) is not None
    ]
    lines = [f"| `{_cell(names)}` | {_cell(text)} |" for names, text in rows if "--help" not in names]
    return "\n".join(["| option | meaning |", "|---|---|", *lines]) + "\n" if lines else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
