"""``simulate``: the controllers themselves, run against the embedded world in virtual time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct
from msgspec.structs import replace

from karpenter_linode.cli import options
from karpenter_linode.cli.errors import EXIT_PLACED, EXIT_UNPLACED
from karpenter_linode.cli.files import is_empty_directory
from karpenter_linode.cli.inputs import read_input
from karpenter_linode.cli.manifests import Manifests
from karpenter_linode.cli.outcome_view import show_outcome, succeeded
from karpenter_linode.cli.output import progress
from karpenter_linode.cli.plan import DRA_ON
from karpenter_linode.cli.scenario_file import read_scenario
from karpenter_linode.cluster.view import is_supported
from karpenter_linode.dra.claims import has_dra_requirements
from karpenter_linode.model.core import CSINode, Event, Node, Pod, VolumeAttachment
from karpenter_linode.model.duration import DurationError, parse_duration
from karpenter_linode.model.karpenter import LinodeNodeClass, NodeClaim, NodePool
from karpenter_linode.model.kinds import to_manifest
from karpenter_linode.model.meta import ObjectMeta
from karpenter_linode.model.resource import ResourceSlice
from karpenter_linode.operator.embedded import EmbeddedWorld, run_embedded
from karpenter_linode.operator.options import Options
from karpenter_linode.sim.cluster import SimSettings
from karpenter_linode.sim.kubelet import RUNTIME_ANNOTATION
from karpenter_linode.sim.scenario import Scenario, play

if TYPE_CHECKING:
    from karpenter_linode.model.meta import KubeObject

MAX_SPEED: Final = 1_000
# What a world that starts without machines cannot be told about: they would be names without anything behind them.
_MADE_BY_THE_WORLD: Final = (Node, NodeClaim, ResourceSlice, CSINode, VolumeAttachment, Event)


class Duration(click.ParamType[timedelta]):
    """A duration as Go and Kubernetes write it."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """The duration of a text such as ``1h30m``."""
        if isinstance(value, timedelta):
            return value
        try:
            duration = parse_duration(str(value))
        except DurationError as error:
            self.fail(str(error), param, ctx)
        if duration <= timedelta(0):
            self.fail(f"{value} is not longer than nothing", param, ctx)
        return duration


@click.command("simulate")
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides every delay: same seed, same story.")
@click.option("--duration", type=Duration(), help="Virtual time after which to stop.  [default: 2h]")
@click.option(
    "--pod-runtime",
    type=Duration(),
    help=f"How long pods run that do not say so in the annotation {RUNTIME_ANNOTATION}.  [default: 1h]",
)
@click.option(
    "--scenario", "scenario_file", metavar="FILE", help="What else happens: later objects, deletions, faults."
)
@options.ignore_dra_requests
@options.scheduler_config
@options.strict
@options.output
@click.option("--quiet", is_flag=True, help="Leave out the story, print only what it came to.")
@click.option("--serve", is_flag=True, help="Run in accelerated real time until interrupted, open to kubectl.")
@click.option(
    "--speed",
    type=click.IntRange(1, MAX_SPEED),
    help="With --serve: seconds of the world in a real one.  [default: 20]",
)
@click.option("--port", type=click.IntRange(0, 65535), help="With --serve: port on 127.0.0.1.  [default: a free one]")
@click.option(
    "--kubeconfig",
    "kubeconfig_file",
    metavar="FILE",
    help="With --serve: where to write the kubeconfig, instead of printing it; removed at the end.",
)
def command(  # noqa: PLR0913 - one parameter for each option
    paths: tuple[str, ...],
    *,
    seed: int,
    duration: timedelta | None,
    pod_runtime: timedelta | None,
    scenario_file: str | None,
    ignore_dra_requests: bool,
    scheduler_config: str | None,
    strict: bool,
    output: str,
    quiet: bool,
    serve: bool,
    speed: int | None,
    port: int | None,
    kubeconfig_file: str | None,
) -> int:
    """Run the manifests in PATH... through the whole system in virtual time.

    The controllers are the real ones. Around them live an API server, kubelets, a scheduler that allocates claims, the
    NVIDIA DRA driver and the Linode API, in this process. An hour takes about a second. The world begins without nodes;
    it ends when nothing is left to do, or after --duration.

    With --serve it runs in accelerated real time instead, with or without manifests at the start, and kubectl can work
    with it. It ends when interrupted, or after --duration.

    \b
    Examples:
      karpenter-linode simulate examples/one-gpu --seed 7
      karpenter-linode simulate examples/five-pods --quiet
      karpenter-linode simulate examples/any-plan --scenario examples/scenarios/sold-out.yaml
      karpenter-linode simulate examples/one-gpu --seed 7 -o json
      karpenter-linode simulate --serve --kubeconfig /tmp/simulated

    Exit codes: 0 every pod got a node or the world was served, 1 some pod got none, 2 bad input.
    """  # noqa: D301 - \b is click's mark for "do not rewrap"
    _check_usage(paths, serve=serve, given=[speed, port, kubeconfig_file])
    spread = options.default_spread(scheduler_config)
    controllers = Options(ignore_dra_requests=ignore_dra_requests, default_spread=spread)
    if serve:
        paths = tuple(path for path in paths if not is_empty_directory(path))
    start = _read(paths, scenario_file, controllers, pod_runtime, strict=strict)
    if not serve:
        return _run(start, controllers, seed, duration or start.scenario.limit, output, story=not quiet)
    from karpenter_linode.cli import serve as serving  # noqa: PLC0415 - a server is much to import

    return serving.Serving(
        start.objects,
        seed=seed,
        options=controllers,
        scenario=start.play,
        settings=replace(start.settings, keep=serving.KEEP, event_ttl=serving.EVENT_TTL),
        speed=speed or serving.DEFAULT_SPEED,
        port=port or 0,
        kubeconfig_file=kubeconfig_file,
        limit=duration,
        output=output,
        story=not quiet,
    ).run(start.notes, start.warnings)


class _Start(Struct, frozen=True):
    """What a world begins with.

    Args:
        objects: what is applied at its start.
        scenario: what else happens.
        settings: how long things take.
        notes: what was taken for granted about the input.
        warnings: what looks wrong in the input.
    """

    objects: list[dict[str, Any]]
    scenario: Scenario
    settings: SimSettings
    notes: list[str]
    warnings: list[str]

    async def play(self, world: EmbeddedWorld) -> None:
        """Let happen what the scenario says."""
        await play(world.cluster, self.scenario)


def _read(
    paths: tuple[str, ...],
    scenario_file: str | None,
    controllers: Options,
    pod_runtime: timedelta | None,
    *,
    strict: bool,
) -> _Start:
    """What the input makes of a world. Raises InputError."""
    spread = bool(controllers.default_spread)
    market = options.market(None, None)
    manifests = read_input(paths, market, strict=strict, spread=spread) if paths else Manifests()
    notes: list[str] = []
    objects = _objects(manifests, notes)
    if not controllers.ignore_dra_requests and any(
        isinstance(obj, Pod) and has_dra_requirements(obj) for obj in objects
    ):
        notes.insert(0, DRA_ON)
    scenario = read_scenario(scenario_file, spread=spread) if scenario_file else Scenario()
    return _Start(
        [to_manifest(obj) for obj in objects],
        scenario,
        SimSettings(scenario.delays, scenario.linode_delays, scenario.driver, pod_runtime or scenario.runtime),
        notes,
        [str(warning) for warning in manifests.warnings],
    )


def _run(start: _Start, controllers: Options, seed: int, limit: timedelta, output: str, *, story: bool) -> int:
    """Live a world through in virtual time and print what it came to; returns the exit code."""
    with progress("simulating"):
        outcome = run_embedded(
            start.objects,
            seed=seed,
            options=controllers,
            scenario=start.play,
            settings=start.settings,
            limit_seconds=limit.total_seconds(),
        )
    show_outcome(outcome, output, story=story, assumptions=start.notes, warnings=start.warnings)
    return EXIT_PLACED if succeeded(outcome) else EXIT_UNPLACED


def _check_usage(paths: tuple[str, ...], *, serve: bool, given: list[Any]) -> None:
    """Raise UsageError for options that belong to ``--serve`` alone, and for no manifests without it."""
    if not serve and any(value is not None for value in given):
        raise click.UsageError("--speed, --port and --kubeconfig go with --serve")
    if not serve and not paths:
        raise click.UsageError("Missing argument 'PATH...'.")


def _objects(manifests: Manifests, notes: list[str]) -> list[KubeObject]:
    """What is applied at the start: the input less what only a running world makes, and a node class for each pool."""
    kept: list[KubeObject] = []
    left_out = 0
    for loaded in manifests.objects:
        obj = loaded.obj
        if isinstance(obj, _MADE_BY_THE_WORLD) or (isinstance(obj, Pod) and _is_under_way(obj)):
            left_out += 1
        else:
            kept.append(obj)
    if left_out:
        notes.append(f"the world begins empty: {left_out} nodes, NodeClaims, slices and pods under way are left out")
    return [*_missing_classes(kept, notes), *kept]


def _is_under_way(pod: Pod) -> bool:
    return bool(pod.spec.node_name) or pod.status.phase in {"Succeeded", "Failed"}


def _missing_classes(objects: list[KubeObject], notes: list[str]) -> list[KubeObject]:
    there = {obj.name for obj in objects if isinstance(obj, LinodeNodeClass)}
    missing = {
        obj.spec.template.spec.node_class_ref.name: obj.name
        for obj in objects
        if isinstance(obj, NodePool)
        and is_supported(obj.spec.template.spec.node_class_ref)
        and obj.spec.template.spec.node_class_ref.name not in there
    }
    for name, pool in missing.items():
        notes.append(f"LinodeNodeClass {name} of NodePool {pool} is not in the input: an empty one is assumed")
    return [LinodeNodeClass(metadata=ObjectMeta(name=name)) for name in missing]
