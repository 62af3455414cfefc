"""Flags of the controller, their environment variables and defaults.

Sources: spec/karpenter-lifecycle.md 6.1 and spec/linode-provider.md 2.1. A flag wins over the environment, which wins
over the default; a variable that cannot be read counts as unset, as upstream has it, and is told of in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from karpenter_linode.linode.instance_types import InstanceTypeOptions
from karpenter_linode.linode.provider_options import ProviderOptions
from karpenter_linode.model.duration import DurationError, parse_duration
from karpenter_linode.operator.options import Options
from karpenter_linode.operator.scheduler_config import SchedulerConfigError, parse_scheduler_config

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_LOG_LEVELS: Final = ("", "debug", "info", "error")
_GATES: Final = {
    "NodeRepair": False,
    "ReservedCapacity": True,
    "SpotToSpotConsolidation": False,
    "NodeOverlay": False,
    "StaticCapacity": False,
    "CapacityBuffer": False,
}
# Objects worked on at a time, with one core and with sixty (spec/karpenter-lifecycle.md 0.4).
_WORKERS: Final = (10, 1000)
_LAUNCH_WORKERS: Final = (1000, 5000)
_DRAIN_WORKERS: Final = (100, 5000)
_MANY_CORES: Final = 60


class FlagError(Exception):
    """Settings that cannot be used. The message joins all of them, in upstream's words."""


class Flag(Struct, frozen=True):
    """A setting.

    Args:
        name: of the flag, without dashes; the environment variable is the same in upper case with underscores.
        default: as text.
        parse: from text; raises ValueError.
        help: what it is for.
        env: the variable, where its name differs.
        boolean: a bare flag means true.
        used: False for settings that are accepted for the sake of existing manifests and change nothing here.
    """

    name: str
    default: str
    parse: Callable[[str], Any]
    help: str
    env: str = ""
    boolean: bool = False
    used: bool = True

    @property
    def variable(self) -> str:
        """The environment variable."""
        return self.env or self.name.upper().replace("-", "_")


def _boolean(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ValueError(f"invalid boolean value {text!r}")


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:  # noqa: PLR2004 - ports end there
        raise ValueError(f"port {number} is not between 0 and 65535")
    return number


def _duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except DurationError as error:
        raise ValueError(str(error)) from None


FLAGS: Final[tuple[Flag, ...]] = (
    Flag("cluster-name", "", str, "Label of the LKE cluster to serve. Required."),
    Flag("cluster-region", "", str, "Region to build nodes in, instead of the LKE cluster's own."),
    Flag("cluster-endpoint", "", str, "Checked and not used: LKE nodes know their API server.", used=False),
    Flag("mode", "lke", str, "How nodes are built. Only lke is supported.", "KARPENTER_MODE"),
    Flag("ignore-dra-requests", "true", _boolean, "Refuse pods with ResourceClaims.", boolean=True),
    Flag("batch-max-duration", "10s", _duration, "A batch of pending pods never stays open longer."),
    Flag("batch-idle-duration", "1s", _duration, "A batch of pending pods closes after this much quiet."),
    Flag("preference-policy", "Respect", str, "Respect or Ignore the preferences of pods."),
    Flag("min-values-policy", "Strict", str, "Strict, or BestEffort: whether minValues may be missed."),
    Flag("feature-gates", "", str, "Gates as A=true,B=false."),
    Flag("scheduler-config", "", str, "Topology spread of pods that declare none, as YAML or JSON."),
    Flag("vm-memory-overhead-percent", "0.075", Fraction, "Share of a plan's memory that the machine itself takes."),
    Flag("lke-create-deadline", "10s", _duration, "How long one attempt to create a node waits for its instance."),
    Flag("lke-tag-verification-timeout", "4s", _duration, "How long a written tag may stay invisible."),
    Flag("lke-retry-delay", "2s", _duration, "Pause between two looks at a growing pool."),
    Flag("disable-dry-run", "false", _boolean, "Nothing is created to try it out here.", boolean=True, used=False),
    Flag("metrics-port", "8080", _port, "Port of /metrics."),
    Flag("health-probe-port", "8081", _port, "Port of /healthz and /readyz."),
    Flag("kube-client-qps", "200", float, "Calls to the API server per second."),
    Flag("kube-client-burst", "300", int, "Calls to the API server at once."),
    Flag("disable-leader-election", "false", _boolean, "Run without a lease; then run one replica.", boolean=True),
    Flag("leader-election-name", "karpenter-leader-election", str, "Name of the lease."),
    Flag("leader-election-namespace", "", str, "Namespace of the lease; our own by default."),
    Flag(
        "disable-controller-warmup",
        "true",
        _boolean,
        "Start to mirror the cluster only once this process leads.",
        boolean=True,
    ),
    Flag("log-level", "info", str, "debug, info or error."),
    Flag("log-output-paths", "stdout", str, "Where log lines go: stdout, stderr or files, joined with commas."),
    Flag("log-error-output-paths", "stderr", str, "Where the logger's own errors go.", used=False),
    Flag("cpu-requests", "1000", int, "Millicores of this process; decides how many objects are worked on at a time."),
    Flag("memory-limit", "-1", int, "Bytes.", used=False),
    Flag("karpenter-service", "", str, "Name of an old webhook's service.", used=False),
    Flag("enable-profiling", "false", _boolean, "Profiles of a Go program.", boolean=True, used=False),
    Flag(
        "disable-cluster-state-observability",
        "false",
        _boolean,
        "No metrics of pods, nodes, NodePools and conditions, and no events of conditions.",
        boolean=True,
    ),
)
"""Every setting, in the order of ``--help``."""


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
        f"feature gate {name} is not supported" for name, on in gates.items() if on and name != "ReservedCapacity"
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
        notes.append(f"--{flag.name} ({flag.variable}) has no effect")
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
    gates = dict(_GATES)
    for part in filter(None, (item.strip() for item in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ValueError(f"missing bool value for {name}")
        if name in gates:
            gates[name] = _boolean(value)
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
        create_deadline=values["lke-create-deadline"].total_seconds() or 10.0,
        poll_interval=pause,
        poll_cap=max(pause, defaults.poll_cap),
        tag_verification_timeout=values["lke-tag-verification-timeout"].total_seconds() or 4.0,
    )
