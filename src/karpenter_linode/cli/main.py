"""``karpenter-linode``: the command group. Every command's module is imported when that command runs, not before."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from karpenter_linode.cli.errors import EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_READER_GONE
from karpenter_linode.cli.output import ReaderGoneError

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM: Final = "karpenter-linode"

# Name -> (module, what it does in one line). The line stands here too, so that --help imports nothing.
COMMANDS: Final = {
    "plan": (
        "karpenter_linode.cli.plan",
        "Which nodes would be built for these manifests, at what price, and why not others.",
    ),
    "simulate": ("karpenter_linode.cli.simulate", "Run these manifests through the whole system in virtual time."),
    "controller": ("karpenter_linode.cli.controller", "Run the autoscaler against a cluster and the Linode API."),
    "catalog": (
        "karpenter_linode.cli.catalog",
        "Look at plans: price, size, predicted GPUs and where that is known from.",
    ),
    "cel": ("karpenter_linode.cli.cel", "Try a device selector on a plan's predicted devices or on a ResourceSlice."),
    "emulator": ("karpenter_linode.cli.emulator", "Serve an emulated Linode API over HTTP."),
    "completion": ("karpenter_linode.cli.completion", "Print the shell completion script for bash, zsh or fish."),
    "version": ("karpenter_linode.cli.version", "Print the version."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports them on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command, imported now."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = importlib.import_module(entry[0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - likewise
        """The list of commands in ``--help``, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands and options that start so, without importing them."""
        found = [CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items() if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name, or an error that names the nearest."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"no such command {args[0]!r}: expected one of {', '.join(COMMANDS)}")
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's
    if value and not ctx.resilient_parsing:
        ctx.invoke(importlib.import_module(COMMANDS["version"][0]).command)
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 everything is placed, 1 something cannot be placed, 2 bad input or usage, 70 internal error.",
)
@click.option("--traceback", is_flag=True, help="Show the Python traceback of an internal error.")
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
def cli(*, traceback: bool) -> None:
    """A Karpenter-compatible node autoscaler for Linode Kubernetes Engine, with GPUs by ResourceClaim.

    \b
    Start with:
      karpenter-linode plan examples/one-gpu
      karpenter-linode simulate examples/one-gpu --seed 7
    """  # noqa: D301 - \b is click's mark for "do not rewrap"


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; nothing is raised."""
    try:
        result = cli.main(args=list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except ReaderGoneError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered must not fail at exit
        return EXIT_READER_GONE
    except Exception as error:
        if "--traceback" in arguments:
            raise
        return _internal(error)
    return result if isinstance(result, int) else 0


def _internal(error: Exception) -> int:
    click.echo(f"internal error: {type(error).__name__}: {error}", err=True)
    click.echo(f"This is a bug. Run `{PROGRAM} --traceback ...` for details and report it.", err=True)
    return EXIT_INTERNAL


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(sys.argv[1:]))
