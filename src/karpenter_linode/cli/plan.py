"""``plan``: which nodes would be built for a set of manifests, and why nothing else. No cluster, no network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import replace

from karpenter_linode.cli import options
from karpenter_linode.cli.errors import EXIT_PLACED, EXIT_UNPLACED, Place, input_error
from karpenter_linode.cli.inputs import read_input
from karpenter_linode.cli.manifests import Manifests
from karpenter_linode.cli.offline import Offline, pose
from karpenter_linode.cli.output import note, print_data, print_lines, progress, warn
from karpenter_linode.cluster.pending import NOT_FOR_KARPENTER
from karpenter_linode.dra.claims import has_dra_requirements
from karpenter_linode.explain import solution_data, solution_lines
from karpenter_linode.linode.tables import bundled_types
from karpenter_linode.model import codec
from karpenter_linode.operator.options import Options
from karpenter_linode.scheduling.pods import DRA_SKIPPED_LOG
from karpenter_linode.scheduling.problem import PodRef, Problem, Solution, Unplaced
from karpenter_linode.scheduling.rejected import with_rejected
from karpenter_linode.scheduling.solver import DRA_IGNORED_CODE, solve

if TYPE_CHECKING:
    from karpenter_linode.cli.offline import Market
    from karpenter_linode.model.core import Pod

DRA_ON: Final = (
    "ResourceClaims count here, as with --ignore-dra-requests=false on the controller; "
    "the controller itself ignores them by default"
)
# Where the line in the controller's log is not the one in the event: people search for either.
_LOGGED: Final = {
    DRA_IGNORED_CODE: f"the controller logs: {DRA_SKIPPED_LOG}; leave out --ignore-dra-requests, and set "
    "IGNORE_DRA_REQUESTS=false on the controller, to have ResourceClaims count"
}
_NO_PODS: Final = "the input holds no pod that waits for a node: nothing was checked"
_FIRST_ROUND: Final = (
    "limits count a planned node as the largest plan that it may become, and a launched one as the plan that it is: "
    "the controller tries again then and may place more, as simulate shows"
)
_MANY_PODS: Final = 500


@click.command("plan")
@click.argument("paths", nargs=-1, metavar="PATH...")
@options.region
@options.plans
@options.ignore_dra_requests
@options.scheduler_config
@options.strict
@options.output
@click.option("--explain", is_flag=True, help="Also tell which devices each claim gets and why other plans are out.")
@click.option(
    "--snapshot", metavar="FILE", help="Solve a problem that was written by --dump-problem, instead of PATHs."
)
@click.option("--dump-problem", metavar="FILE", help="Write the whole problem to FILE, to be solved again elsewhere.")
def command(  # noqa: PLR0913 - one parameter for each option
    paths: tuple[str, ...],
    *,
    region: str | None,
    plans: str | None,
    ignore_dra_requests: bool,
    scheduler_config: str | None,
    strict: bool,
    output: str,
    explain: bool,
    snapshot: str | None,
    dump_problem: str | None,
) -> int:
    """Tell which nodes would be built for the pods in PATH..., at what price, and why not others.

    PATH is a YAML or JSON file, a directory of them (not its sub-directories), or - for the standard input. Put in
    what the cluster has: NodePools, LinodeNodeClasses, DeviceClasses, ResourceClaims and their templates, pods or the
    Deployments, StatefulSets, Jobs and CronJobs that make them, DaemonSets, and, if there are nodes, Nodes,
    NodeClaims, ResourceSlices and the pods on them. Plans and prices are those that ship with the program, or those
    of --plans; nothing is asked of a cluster or of Linode.

    \b
    Examples:
      karpenter-linode plan examples/one-gpu
      karpenter-linode plan examples/two-gpus --explain
      karpenter-linode plan nodepool.yaml pod.yaml -o json

    \b
    All that matters of a cluster (one line):
      kubectl get -A -o yaml nodepools,linodenodeclasses,nodeclaims,nodes,pods,daemonsets,namespaces,
        priorityclasses,poddisruptionbudgets,deviceclasses,resourceclaims,resourceclaimtemplates,resourceslices,
        persistentvolumeclaims,persistentvolumes,storageclasses,csinodes,volumeattachments | karpenter-linode plan -

    Exit codes: 0 every pod has a place, 1 some pod has none, 2 bad input.
    """  # noqa: D301 - \b is click's mark for "do not rewrap"
    if bool(paths) == bool(snapshot):
        raise click.UsageError("give PATHs of manifests, or --snapshot FILE, and not both")
    if snapshot:
        if region or plans or ignore_dra_requests or scheduler_config or strict:
            raise click.UsageError("a snapshot has its own region, plans and settings: they cannot be changed")
        posed, manifests = Offline(_read_problem(snapshot)), Manifests()
    else:
        market = options.market(region, plans)
        settings = Options(
            ignore_dra_requests=ignore_dra_requests, default_spread=options.default_spread(scheduler_config)
        )
        manifests = read_input(paths, market, strict=strict, spread=bool(settings.default_spread))
        posed = _posed(manifests, market, settings)
    if dump_problem:
        _write_problem(posed.problem, dump_problem)
    with progress(f"placing {len(posed.problem.pods)} pods", wanted=len(posed.problem.pods) >= _MANY_PODS):
        solution = _solved(posed)
        if explain:
            solution = with_rejected(posed.problem, solution)
    _report(solution, posed, manifests, output, explain=explain)
    return EXIT_UNPLACED if solution.unplaced else EXIT_PLACED


def _posed(manifests: Manifests, market: Market, settings: Options) -> Offline:
    posed = pose(manifests, market, settings.scheduling())
    if not settings.ignore_dra_requests and any(map(has_dra_requirements, posed.problem.pods)):
        posed.notes.insert(0, DRA_ON)
    if market.types == bundled_types():
        posed.notes.append(f"plans and prices are those bundled with this release, for region {market.region}")
    return posed


def _solved(posed: Offline) -> Solution:
    """The solver's answer, and the pods it was not asked about."""
    solution = solve(posed.problem)
    opted_out = tuple(reason for _, reason in posed.ignored if reason.code == NOT_FOR_KARPENTER)
    refused = tuple(Unplaced(_ref(pod), reason) for pod, reason in posed.ignored if reason.code != NOT_FOR_KARPENTER)
    return replace(solution, unplaced=(*refused, *solution.unplaced), notes=(*solution.notes, *opted_out))


def _ref(pod: Pod) -> PodRef:
    return PodRef(pod.namespace, pod.name, pod.uid)


def _waits_for_launches(solution: Solution) -> bool:
    """Whether limits refuse a pod here that the controller may place once the plans of the planned nodes are known."""
    undecided = any(len(planned.instance_types) > 1 for planned in solution.new_node_claims)
    return undecided and any(reason.code == "limits" for item in solution.unplaced for reason in item.reason.walk())


def _report(solution: Solution, posed: Offline, manifests: Manifests, output: str, *, explain: bool) -> None:
    logged = [_LOGGED[item.reason.code] for item in solution.unplaced if item.reason.code in _LOGGED]
    ignored = [f"{count} x {kind}" if count > 1 else kind for kind, count in sorted(manifests.ignored.items())]
    notes = [
        *([] if posed.problem.pods or posed.ignored else [_NO_PODS]),
        *dict.fromkeys(logged),
        *([_FIRST_ROUND] if _waits_for_launches(solution) else []),
        *posed.notes,
        *([f"without a say here, ignored: {', '.join(ignored)}"] if ignored else []),
    ]
    warnings = [str(warning) for warning in manifests.warnings]
    if output == "table":
        for text in warnings:
            warn(text)
        print_lines(solution_lines(solution, explain=explain))
        for text in notes:
            note(text)
        return
    head: dict[str, Any] = {
        "apiVersion": "karpenter-linode/v1",
        "kind": "Plan",
        "assumptions": notes,
        "warnings": warnings,
    }
    print_data(head | solution_data(solution), output)


def _read_problem(path: str) -> Problem:
    try:
        return codec.decode(Path(path).read_bytes(), Problem)
    except OSError as error:
        raise input_error(Place(path), f"cannot be read: {error.strerror}") from None
    except codec.DecodeError as error:
        raise input_error(Place(path), f"no problem written by --dump-problem: {error}") from None


def _write_problem(problem: Problem, path: str) -> None:
    try:
        Path(path).write_bytes(codec.encode(problem) + b"\n")
    except OSError as error:
        raise input_error(Place(path), f"cannot be written: {error.strerror}") from None
