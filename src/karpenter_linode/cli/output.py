"""Writing to the terminal: colours only where wanted, control characters never, tables without a library."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from karpenter_linode.explain.text import Line

FORMATS: Final = ("table", "json", "yaml")

_STYLES: Final[dict[str, dict[str, Any]]] = {
    "title": {"bold": True},
    "good": {"fg": "green"},
    "bad": {"fg": "red"},
    "dim": {"dim": True},
    "plain": {},
}
_FIRST_PRINTABLE: Final = 0x20
_DELETE: Final = 0x7F
_C1_END: Final = 0x9F


class ReaderGoneError(Exception):
    """Whoever read standard output has left (``| head``): there is nobody to tell anything more."""


def printable(text: str) -> str:
    """Text without control characters (a manifest must not steer the reader's terminal); newlines stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char
        if char == "\n" or not (ord(char) < _FIRST_PRINTABLE or _DELETE <= ord(char) <= _C1_END)
        else f"\\x{ord(char):02x}"
        for char in text
    )


def colour_wanted() -> bool:
    """Whether standard output is a terminal and the user has not opted out (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_lines(lines: Iterable[Line]) -> None:
    """Print rendered lines, styled by their kind when a terminal reads them."""
    colour = colour_wanted()
    unicode_ok = _can_draw()
    chunks = []
    for line in lines:
        text = printable(line.text if unicode_ok else _plain_branches(line.text))
        chunks.append(click.style(text, **_STYLES[line.kind]) if colour and line.kind != "plain" else text)
    _write("\n".join(chunks) + "\n", colour=colour)


def print_data(data: Any, output: str) -> None:
    """Print plain data as JSON or YAML, the same bytes for the same data."""
    if output == "json":
        import json  # noqa: PLC0415 - the table needs none of it, and start-up time counts

        _write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
        return
    import yaml  # noqa: PLC0415 - likewise

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    _write(yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=True, width=120))


def _write(text: str, *, colour: bool = False) -> None:
    try:
        click.echo(text, file=sys.stdout, nl=False, color=colour)
    except BrokenPipeError:
        raise ReaderGoneError from None


@contextmanager
def progress(message: str, *, wanted: bool = True) -> Iterator[None]:
    """Say what is going on while it goes on, on a terminal only; the line is wiped afterwards."""
    shown = wanted and sys.stderr.isatty()
    if shown:
        click.echo(f"{message} ...", err=True, nl=False)
    try:
        yield
    finally:
        if shown:
            click.echo("\r\033[K", err=True, nl=False)


def note(message: str) -> None:
    """Say something beside the result, on standard error."""
    click.echo(f"note: {printable(message)}", err=True)


def warn(message: str) -> None:
    """Say that something in the input looks wrong, on standard error."""
    click.echo(f"warning: {printable(message)}", err=True)


def _can_draw() -> bool:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return encoding.startswith("utf")


def _plain_branches(text: str) -> str:
    return text.translate({ord("├"): "|", ord("└"): "`", ord("─"): "-", ord("│"): "|"})
