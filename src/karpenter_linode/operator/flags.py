"""Settings of the controller process, from its command line and its environment.

A flag wins over the environment, which wins over the default; a variable that cannot be read counts as unset, as
upstream has it, and is told of in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from karpenter_linode.linode.instance_types import InstanceTypeOptions
from karpenter_linode.linode.provider_options import ProviderOptions
from karpenter_linode.operator.flag_table import FLAGS, GATES, LKE_CREATE_DEADLINE, VARIABLES, boolean
from karpenter_linode.operator.options import Options
from karpenter_linode.operator.scheduler_config import SchedulerConfigError, parse_scheduler_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from karpenter_linode.operator.flag_table import Flag

_LOG_LEVELS: Final = ("", "debug", "info", "error")
# Objects worked on at a time, with one core and with sixty (spec/karpenter-lifecycle.md 0.4).
_WORKERS: Final = (10, 1000)
_LAUNCH_WORKERS: Final = (1000, 5000)
_DRAIN_WORKERS: Final = (100, 5000)
_MANY_CORES: Final = 60


class FlagError(Exception):
    """Settings that cannot be used. The message joins all of them, in upstream's words."""


class ControllerSettings(Struct, frozen=True):
    """What the settings come to.

    Args:
        options: of the controllers.
        provider: of the cloud provider.
        cluster_name: label of the LKE cluster.
        cluster_region: overrides the cluster's own region; "" for none.
        notes: what was set and does not count, for the log.
    """

    options: Options
    provider: ProviderOptions
    cluster_name: str
    cluster_region: str
    metrics_port: int
    health_probe_port: int
    kube_qps: float
    kube_burst: int
    leader_election: bool
    lease_name: str
    lease_namespace: str
    warmup: bool
    observability: bool
    log_level: str
    log_output_paths: str
    log_error_output_paths: str
    notes: tuple[str, ...] = ()


def read_settings(flags: Mapping[str, str | None], environ: Mapping[str, str]) -> ControllerSettings:
    """Settings from the command line and the environment.

    Args:
        flags: text by flag name; None or missing where a flag was not given.
        environ: environment variables.

    Raises:
        FlagError: a flag cannot be read, or settings do not go together.
    """
    notes: list[str] = []
    values = {flag.name: _value(flag, flags.get(flag.name), environ, notes) for flag in FLAGS}
    problems = [problem for check in (_core_problems, _provider_problems) for problem in check(values)]
    if problems:
        raise FlagError("validating options, " + "; ".join(problems))
    gates = _gates(values["feature-gates"])
    notes += [
        f"feature gate {name} is not available in this program and stays off"
        for name, on in gates.items()
        if on and not GATES[name]
    ]
    notes += [
        f"{item.name} has no effect: {item.help}" for item in VARIABLES if not item.used and environ.get(item.name)
    ]
    return ControllerSettings(
        options=_options(values, gates),
        provider=_provider(values),
        cluster_name=values["cluster-name"],
        cluster_region=values["cluster-region"],
        metrics_port=values["metrics-port"],
        health_probe_port=values["health-probe-port"],
        kube_qps=values["kube-client-qps"],
        kube_burst=values["kube-client-burst"],
        leader_election=not values["disable-leader-election"],
        lease_name=values["leader-election-name"],
        lease_namespace=values["leader-election-namespace"],
        warmup=not values["disable-controller-warmup"],
        observability=not values["disable-cluster-state-observability"],
        log_level=values["log-level"],
        log_output_paths=values["log-output-paths"],
        log_error_output_paths=values["log-error-output-paths"],
        notes=tuple(notes),
    )


def _value(flag: Flag, given: str | None, environ: Mapping[str, str], notes: list[str]) -> Any:
    if given is not None:
        try:
            value = flag.parse(given)
        except (ValueError, ZeroDivisionError) as error:
            raise FlagError(f"parsing flags, invalid value {given!r} for --{flag.name}: {error}") from None
        text = given
    else:
        text = environ.get(flag.variable) or flag.default
        try:
            value = flag.parse(text)
        except (ValueError, ZeroDivisionError) as error:
            notes.append(f"{flag.variable}={text!r} cannot be read and counts as unset: {error}")
            text, value = flag.default, flag.parse(flag.default)
    if not flag.used and text != flag.default:
        notes.append(f"--{flag.name} ({flag.variable}) has no effect: {flag.help}")
    return value


def _core_problems(values: Mapping[str, Any]) -> list[str]:
    allowed = {
        "log-level": _LOG_LEVELS,
        "preference-policy": ("Respect", "Ignore"),
        "min-values-policy": ("Strict", "BestEffort"),
    }
    problems = [
        f'validating cli flags / env vars, invalid {name.upper().replace("-", "_")} "{values[name]}"'
        for name, choices in allowed.items()
        if values[name] not in choices
    ]
    try:
        parse_scheduler_config(values["scheduler-config"])
    except SchedulerConfigError as error:
        problems.append(str(error))
    try:
        _gates(values["feature-gates"])
    except ValueError as error:
        problems.append(f"parsing feature gates, {error}")
    return problems


def _provider_problems(values: Mapping[str, Any]) -> list[str]:
    problems = []
    if not values["cluster-name"]:
        problems.append("missing field, cluster-name")
    endpoint = values["cluster-endpoint"]
    if endpoint and not (urlsplit(endpoint).scheme and urlsplit(endpoint).hostname):
        problems.append("cluster endpoint URL is not valid")
    if values["vm-memory-overhead-percent"] < 0:
        problems.append("vm-memory-overhead-percent cannot be negative")
    if values["mode"] not in {"lke", "instance"}:
        problems.append(f"""invalid mode "{values["mode"]}", must be either 'lke' or 'instance'""")
    elif values["mode"] == "instance":
        problems.append("mode instance is not supported: its machines would never join the cluster")
    return problems


def _gates(text: str) -> dict[str, bool]:
    gates = dict(GATES)
    for part in filter(None, (item.strip() for item in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ValueError(f"missing bool value for {name}")
        if name in gates:
            gates[name] = boolean(value)
    return gates


def _options(values: Mapping[str, Any], gates: Mapping[str, bool]) -> Options:
    millicores = values["cpu-requests"] if values["cpu-requests"] > 0 else 1000
    return Options(
        batch_idle_duration=values["batch-idle-duration"],
        batch_max_duration=values["batch-max-duration"],
        ignore_dra_requests=values["ignore-dra-requests"],
        preference_policy=values["preference-policy"],
        min_values_policy=values["min-values-policy"],
        reserved_capacity=gates["ReservedCapacity"],
        default_spread=parse_scheduler_config(values["scheduler-config"]),
        workers=_scaled(millicores, *_WORKERS),
        launch_workers=_scaled(millicores, *_LAUNCH_WORKERS),
        drain_workers=_scaled(millicores, *_DRAIN_WORKERS),
    )


def _scaled(millicores: int, least: int, most: int) -> int:
    cores = -(-millicores // 1000)
    return min(max(least, (most - least) * (cores - 1) // (_MANY_CORES - 1) + least), most)


def _provider(values: Mapping[str, Any]) -> ProviderOptions:
    defaults = ProviderOptions()
    pause = values["lke-retry-delay"].total_seconds() or defaults.poll_interval
    return ProviderOptions(
        ignore_dra_requests=values["ignore-dra-requests"],
        instance_types=InstanceTypeOptions(vm_memory_overhead=values["vm-memory-overhead-percent"]),
        create_deadline=(values["lke-create-deadline"] or LKE_CREATE_DEADLINE).total_seconds(),
        poll_interval=pause,
        poll_cap=max(pause, defaults.poll_cap),
        tag_verification_timeout=values["lke-tag-verification-timeout"].total_seconds()
        or defaults.tag_verification_timeout,
    )
