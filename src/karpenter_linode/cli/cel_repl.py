"""``cel --repl``: selectors tried one after the other. History is kept while it runs and written nowhere."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Final

import click

from karpenter_linode.cli.cel_devices import Sources, facts_of, of_plans
from karpenter_linode.cli.cel_verdicts import SelectorError, compile_selector, judge, verdict_lines
from karpenter_linode.cli.errors import EXIT_PLACED
from karpenter_linode.cli.output import note, print_lines
from karpenter_linode.explain.text import Line, names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from karpenter_linode.model.linode import LinodeType

_PROMPT: Final = "cel> "
_MAX_LINE: Final = 1024 * 1024
_HELP: Final = (
    ("EXPRESSION", "try a selector on the devices"),
    (":plan NAME", "take the devices predicted for a plan; :plan alone takes every plan with GPUs"),
    (":devices", "show the devices and what a selector can read of them"),
    (":help", "show this"),
    (":quit", "leave; so does the end of the input"),
)


def converse(sources: Sources, types: Sequence[LinodeType]) -> int:
    """Read lines and answer each until the input ends. Whatever a line holds, the next one is asked for.

    Args:
        sources: the devices to begin with.
        types: the plans that ``:plan`` can choose.
    """
    interactive = sys.stdin.isatty()
    if interactive:
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401, PLC0415 - importing it is what gives ``input`` its history
        print_lines([Line("Selectors over `device`; :help lists the commands, :quit leaves.", "dim")])
    for message in sources.notes:
        note(message)
    while True:
        try:
            line = _read(interactive=interactive).strip()
        except EOFError:
            if interactive:
                print_lines([Line()])
            break
        except KeyboardInterrupt:
            print_lines([Line()])
            continue
        if line in {":quit", ":q"}:
            break
        try:
            sources = _answer(line, sources, types)
        except KeyboardInterrupt:
            print_lines([Line("interrupted", "bad")])
    return EXIT_PLACED


def _read(*, interactive: bool) -> str:
    if interactive:
        return input(_PROMPT)
    # input() could not get past bytes that are no text
    raw = sys.stdin.buffer.readline(_MAX_LINE)
    if not raw:
        raise EOFError
    return raw.decode("utf-8", errors="replace")


def _answer(line: str, sources: Sources, types: Sequence[LinodeType]) -> Sources:
    """Answer one line; returns the devices for the next."""
    word, _, rest = line.partition(" ")
    if word == ":plan":
        return _changed(rest.split(), sources, types)
    if word == ":devices":
        print_lines(_devices(sources))
    elif word == ":help":
        print_lines(Line(f"  {name:12} {text}") for name, text in _HELP)
    elif word.startswith(":"):
        print_lines([Line(f"no command {word}: expected one of :help, :plan, :devices, :quit", "bad")])
    elif line:
        print_lines(_tried(line, sources))
    return sources


def _changed(wanted: list[str], sources: Sources, types: Sequence[LinodeType]) -> Sources:
    try:
        changed = of_plans(types, wanted)
    except click.UsageError as error:
        print_lines([Line(error.message, "bad")])
        return sources
    print_lines([Line(f"devices of {names([source.name for source in changed.found])}", "dim")])
    for message in changed.notes:
        note(message)
    return changed


def _devices(sources: Sources) -> Iterator[Line]:
    for source in sources.found:
        yield Line(f"{source.kind} {source.name}, driver {source.driver}", "title")
        shown: dict[int, list[str]] = {}
        shapes = {shape.number: shape for _, shape in source.devices}
        for name, shape in source.devices:
            shown.setdefault(shape.number, []).append(name)
        for number, devices in shown.items():
            yield Line(f"  {names(devices)}")
            yield from (Line(f"    {name:24} {value}") for name, value in facts_of(shapes[number].device))


def _tried(text: str, sources: Sources) -> list[Line]:
    try:
        program = compile_selector(text)
    except SelectorError as error:
        return [Line(part, "bad") for part in str(error).split("\n")]
    return list(verdict_lines(program, judge(program, sources.found)))
