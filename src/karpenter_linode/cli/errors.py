"""What the commands say about bad input: where it stands, what was found, what was expected. Exit code 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import click

from karpenter_linode.cli.output import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_PLACED = 0
EXIT_UNPLACED = 1
EXIT_BAD_INPUT = 2
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141  # as a shell reports a program that wrote into a closed pipe

_SHOWN = 20


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A position in an input file; line and column count from 1, and 0 stands for "not known"."""

    file: str
    line: int = 0
    column: int = 0
    document: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or odd, in the input.

    Args:
        place: where.
        message: what was found and what was expected, one line and perhaps an indented excerpt below it.
        subject: the object, as ``Kind namespace/name``; empty before an object could be read.
        field: path inside the object, as ``spec.devices.requests[0].name``; empty for the whole object.
    """

    place: Place
    message: str
    subject: str = ""
    field: str = ""

    def __str__(self) -> str:
        document = f"document {self.place.document}" if self.place.document else ""
        where = ", ".join(part for part in (document, self.subject, self.field) if part)
        message = self.message.replace("\n", "\n  ")
        return f"{self.place}: {where}: {message}" if where else f"{self.place}: {message}"


class InputError(click.ClickException):
    """The input cannot be used. Carries every finding, so that a file is mended in one go.

    Args:
        findings: what is wrong.
        warnings: what was odd before that; often the cause of what is wrong, so they are told first.
    """

    exit_code = EXIT_BAD_INPUT

    def __init__(self, findings: list[Finding], warnings: Sequence[Finding] = ()) -> None:
        super().__init__(str(findings[0]) if findings else "bad input")
        self.findings = findings
        self.warnings = tuple(warnings)

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the warnings and the findings, the first ones in full."""
        for warning in self.warnings[:_SHOWN]:
            click.echo(f"warning: {printable(str(warning))}", file=file, err=file is None)
        for finding in self.findings[:_SHOWN]:
            click.echo(f"error: {printable(str(finding))}", file=file, err=file is None)
        if len(self.findings) > _SHOWN:
            click.echo(f"error: and {len(self.findings) - _SHOWN} more", file=file, err=file is None)


def input_error(place: Place, message: str, subject: str = "", field: str = "") -> InputError:
    """An InputError with a single finding."""
    return InputError([Finding(place, message, subject, field)])
