"""``cel``: try a device selector on predicted or published devices, with the value of every part of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karpenter_linode.cli import options
from karpenter_linode.cli.cel_devices import Sources, of_files, of_plans
from karpenter_linode.cli.cel_verdicts import (
    SelectorError,
    compile_selector,
    judge,
    verdict_data,
    verdict_lines,
)
from karpenter_linode.cli.errors import EXIT_PLACED, EXIT_UNPLACED, Place, input_error
from karpenter_linode.cli.files import STDIN, texts
from karpenter_linode.cli.output import note, print_data, print_lines
from karpenter_linode.linode.tables import DEFAULT_REGION

if TYPE_CHECKING:
    from karpenter_linode.cli.cel_verdicts import Judged

_ARGUMENT = "<expression>"


@click.command("cel")
@click.argument("expression", required=False)
@click.option("--file", "file", metavar="FILE", help="Read the expression from a file; - is the standard input.")
@click.option("--plan", "plan", metavar="NAME", multiple=True, help="Try the devices predicted for this plan.")
@click.option(
    "--slice", "slices", metavar="FILE", multiple=True, help="Try the devices of the ResourceSlices in this file."
)
@click.option("--live", is_flag=True, help="Try the devices of the ResourceSlices that a cluster has now.")
@click.option("--node", metavar="NAME", help="With --live: only the slices of this node.")
@click.option("--kubeconfig", metavar="FILE", help="With --live: how to reach the cluster, in place of KUBECONFIG.")
@options.plans
@click.option("--repl", is_flag=True, help="Ask for expressions, one after the other.")
@options.output
def command(  # noqa: PLR0913 - an argument for each option
    expression: str | None,
    *,
    file: str | None,
    plan: tuple[str, ...],
    slices: tuple[str, ...],
    live: bool,
    node: str | None,
    kubeconfig: str | None,
    plans: str | None,
    repl: bool,
    output: str,
) -> int:
    """Try a device selector: which devices match, what every part of EXPRESSION comes to, and what it costs.

    Without --plan, --slice and --live it is tried on every plan that has GPUs. Without EXPRESSION and --file it is read
    from the standard input. Selectors are checked as the API server checks them: length, types, result and estimated
    cost. Only --live asks a cluster: for its ResourceSlices, once.

    \b
    Examples:
      karpenter-linode cel "device.attributes['gpu.nvidia.com'].architecture == 'Blackwell'"
      karpenter-linode cel --plan g2-gpu-rtx4000a1-s "device.driver == 'gpu.nvidia.com'"
      kubectl get resourceslices -o yaml > slices.yaml; karpenter-linode cel --slice slices.yaml --file selector.cel
      karpenter-linode cel --live --node NAME --file selector.cel
      karpenter-linode cel --repl --plan g2-gpu-rtx4000a1-s

    Exit codes: 0 some plan or slice has a device that matches and none on which the expression fails, 1 there is none
    such, 2 bad input, an expression that does not compile, or no answer from the cluster.
    """  # noqa: D301 - \b is click's mark for "do not rewrap"
    _check_devices(plan, slices, live=live, for_live={"--node": node, "--kubeconfig": kubeconfig})
    if repl and (expression is not None or file is not None or output != "table"):
        raise click.UsageError(
            "--repl asks for expressions itself and prints tables: leave out EXPRESSION, --file and -o"
        )
    if expression is not None and file is not None:
        raise click.UsageError("give an EXPRESSION or --file, not both")
    if STDIN in slices and (repl or (expression is None and file in {None, STDIN})):
        raise click.UsageError("the standard input cannot hold both slices and expressions")
    types = options.market(DEFAULT_REGION, plans).types
    if live:
        from karpenter_linode.cli.cel_live import of_cluster  # noqa: PLC0415 - nothing else needs the network

        sources = of_cluster(kubeconfig or "", node or "")
    else:
        sources = of_files(slices) if slices else of_plans(types, plan)
    if repl:
        from karpenter_linode.cli.cel_repl import converse  # noqa: PLC0415 - readline is of use to nobody else

        return converse(sources, types)
    where, text = (_ARGUMENT, expression) if expression is not None else _read(file or STDIN)
    return _evaluate(where, text, sources, output)


def _check_devices(
    plan: tuple[str, ...], slices: tuple[str, ...], *, live: bool, for_live: dict[str, str | None]
) -> None:
    """Whether the options name devices from one place only."""
    if plan and slices:
        raise click.UsageError("give --plan or --slice, not both")
    if live and (plan or slices):
        raise click.UsageError(f"give --live or {'--plan' if plan else '--slice'}, not both")
    for option, value in for_live.items():
        if value is not None and not live:
            raise click.UsageError(f"{option} is of use with --live only")


def _read(file: str) -> tuple[str, str]:
    """The expression in a file, and the name of the file for messages. Line ends at its end are not part of it."""
    if file == STDIN and sys.stdin.isatty():
        raise click.UsageError("no expression: give it as an argument, with --file, or on the standard input")
    if Path(file).is_dir():
        raise input_error(Place(file), "a directory, expected a file with an expression in it")
    ((name, text),) = texts(file)
    return name, text.rstrip("\r\n")


def _evaluate(where: str, text: str, sources: Sources, output: str) -> int:
    try:
        program = compile_selector(text)
    except SelectorError as error:
        raise input_error(Place(where), str(error)) from None
    judged = judge(program, sources.found)
    if output == "table":
        print_lines(verdict_lines(program, judged))
    else:
        print_data(verdict_data(text, program, judged), output)
    for message in sources.notes:
        note(message)
    return exit_code(judged)


def exit_code(judged: Judged) -> int:
    """Kubernetes gives a claim up on a node when its selector fails on a device there, even beside one that matches."""
    found = ({verdict.outcome for _, verdict in verdicts} for _, verdicts in judged)
    useful = any("match" in outcomes and "error" not in outcomes for outcomes in found)
    return EXIT_PLACED if useful else EXIT_UNPLACED
