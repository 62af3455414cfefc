"""Scenarios: what happens to a world beside its own course, at which time.

A scenario file is YAML::

    duration: 2h
    podRuntime: 10m
    steps:
      - at: 0s
        apply: [pods.yaml]
      - at: 30m
        delete: {apiVersion: v1, kind: Pod, name: gpu-job}
      - at: 40m
        fault: {kind: linode-sold-out, plan: g2-gpu-rtx4000a1-s, region: us-ord}

Reading files is the caller's business; this module turns plain data into a ``Scenario`` and plays it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from karpenter_linode.model import codec
from karpenter_linode.model.duration import DurationError, parse_duration
from karpenter_linode.ports import NotFoundError
from karpenter_linode.sim.delays import SimDelays
from karpenter_linode.sim.faults import Fault, play_fault
from karpenter_linode.sim.linode.delays import LinodeDelays
from karpenter_linode.sim.nvidia import DriverBehaviour

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from karpenter_linode.sim.cluster import EmbeddedCluster

Manifest = dict[str, Any]
FOREVER: Final = "forever"


class ScenarioError(ValueError):
    """A scenario cannot be understood. The message names the scenario, the place in it, and what was expected.

    Args:
        source: name of the scenario.
        path: where in it, as keys and indices.
        message: what was found and expected.
    """

    def __init__(self, source: str, path: tuple[str | int, ...], message: str) -> None:
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
        super().__init__(": ".join(part for part in (source, place, message) if part))
        self.path = path
        self.message = message


class ObjectName(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """An object to delete."""

    api_version: str
    kind: str
    name: str
    namespace: str = "default"


class Step(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """One thing that happens: exactly one of ``apply``, ``delete`` and ``fault``.

    Args:
        at: time since the start, as a Go duration.
        apply: manifests, or names of files with manifests.
        delete: an object.
        fault: something that goes wrong.
    """

    at: str = "0s"
    apply: tuple[str | Manifest, ...] = ()
    delete: ObjectName | None = None
    fault: Fault | None = None

    @property
    def offset(self) -> timedelta:
        """When, since the start."""
        return parse_duration(self.at)


class Scenario(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """What a run adds to the world's own course.

    Args:
        duration: when the run ends at the latest, as a Go duration.
        pod_runtime: how long pods run that do not say, as a Go duration, or ``forever``.
        delays: how long things take in the cluster.
        linode_delays: how long things take at Linode.
        driver: how the DRA driver behaves.
        steps: in any order.
    """

    duration: str = "2h"
    pod_runtime: str = "1h"
    delays: SimDelays = SimDelays()
    linode_delays: LinodeDelays = LinodeDelays()
    driver: DriverBehaviour = DriverBehaviour()
    steps: tuple[Step, ...] = ()

    @property
    def limit(self) -> timedelta:
        """When the run ends at the latest."""
        return parse_duration(self.duration)

    @property
    def runtime(self) -> timedelta | None:
        """How long pods run that do not say; None for ever."""
        return None if self.pod_runtime == FOREVER else parse_duration(self.pod_runtime)

    @property
    def ordered(self) -> list[Step]:
        """Steps by time; those of one time in the order of the file."""
        return sorted(self.steps, key=lambda step: step.offset)


def parse_scenario(plain: Any, source: str, read: Callable[[str], Sequence[Manifest]] | None = None) -> Scenario:
    """A scenario from plain data.

    Args:
        plain: what the YAML file holds.
        source: its name, for messages.
        read: reads the manifests of a file named in ``apply``; without it names are refused.

    Raises:
        ScenarioError: a field of the wrong type, an unknown field, a bad duration, a step with no or several actions.
    """
    try:
        scenario = codec.convert(plain or {}, Scenario)
    except codec.DecodeError as error:
        raise ScenarioError(source, (), str(error)) from error
    for text, name in ((scenario.duration, "duration"), (scenario.pod_runtime, "podRuntime")):
        if text != FOREVER or name == "duration":
            _check_duration(text, source, (name,))
    steps = []
    for index, step in enumerate(scenario.steps):
        _check_duration(step.at, source, ("steps", index, "at"))
        if sum((bool(step.apply), step.delete is not None, step.fault is not None)) != 1:
            raise ScenarioError(source, ("steps", index), "exactly one of apply, delete and fault is expected")
        apply = _resolved(step.apply, source, ("steps", index, "apply"), read)
        steps.append(Step(step.at, apply, step.delete, step.fault))
    return Scenario(
        scenario.duration,
        scenario.pod_runtime,
        scenario.delays,
        scenario.linode_delays,
        scenario.driver,
        tuple(steps),
    )


async def play(cluster: EmbeddedCluster, scenario: Scenario) -> None:
    """Take the scenario's steps at their times, counted from now."""
    start = cluster.clock.now()
    for step in scenario.ordered:
        wait = (start + step.offset - cluster.clock.now()).total_seconds()
        if wait > 0:
            await cluster.clock.sleep(wait)
        _take(cluster, step)


def _take(cluster: EmbeddedCluster, step: Step) -> None:
    if step.apply:
        cluster.apply(manifest for manifest in step.apply if not isinstance(manifest, str))
    if step.delete is not None:
        target = step.delete
        try:
            cluster.delete(target.api_version, target.kind, target.name, target.namespace)
        except NotFoundError as error:
            cluster.journal.step("user", f"{target.kind} {target.name}", f"Not deleted: {error}")
    if step.fault is not None:
        play_fault(cluster, step.fault)


def _check_duration(text: str, source: str, path: tuple[str | int, ...]) -> None:
    try:
        duration = parse_duration(text)
    except DurationError as error:
        raise ScenarioError(source, path, str(error)) from None
    if duration < timedelta():
        raise ScenarioError(source, path, f"{text!r} lies in the past; expected a duration of at least 0s")


def _resolved(
    items: Sequence[str | Mapping[str, Any]],
    source: str,
    path: tuple[str | int, ...],
    read: Callable[[str], Sequence[Manifest]] | None,
) -> tuple[Manifest, ...]:
    """Manifests, with those of named files in place of the names."""
    manifests: list[Manifest] = []
    for index, item in enumerate(items):
        if not isinstance(item, str):
            manifests.append(dict(item))
        elif read is None:
            message = f"cannot read the file {item!r} here; expected a manifest"
            raise ScenarioError(source, (*path, index), message)
        else:
            manifests += read(item)
    return tuple(manifests)
