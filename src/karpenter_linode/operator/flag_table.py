"""Every setting of the controller: its flag, its environment variable, its default, the chart's value for it.

Sources: spec/karpenter-lifecycle.md 6.1 and spec/linode-provider.md 2.1, 2.2 and 6.3. ``docs/reference/settings.md`` is
written from these tables.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from typing import Any, Final

from msgspec import Struct

from karpenter_linode.linode.capacity import VM_MEMORY_OVERHEAD
from karpenter_linode.linode.provider_options import ProviderOptions
from karpenter_linode.model.duration import DurationError, format_duration, parse_duration
from karpenter_linode.operator.options import Options

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_OPTIONS: Final = Options()
_PROVIDER: Final = ProviderOptions()
LKE_CREATE_DEADLINE: Final = timedelta(seconds=10)
"""Of one attempt; an attempt that is cut off is taken up again. The provider by itself would wait longer."""
GATES: Final = {
    "NodeRepair": False,
    "ReservedCapacity": _OPTIONS.reserved_capacity,
    "SpotToSpotConsolidation": False,
    "NodeOverlay": False,
    "StaticCapacity": False,
    "CapacityBuffer": False,
}
"""Feature gates and their defaults. What is off here is not built."""


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
        chart: the chart's value that becomes the variable, or "".
    """

    name: str
    default: str
    parse: Callable[[str], Any]
    help: str
    env: str = ""
    boolean: bool = False
    used: bool = True
    chart: str = ""

    @property
    def variable(self) -> str:
        """The environment variable."""
        return self.env or self.name.upper().replace("-", "_")


class Variable(Struct, frozen=True):
    """A setting that has no flag.

    Args:
        name: the environment variable.
        help: what it is for.
        default: as text, "" for none.
        used: False for variables that charts of others set and that change nothing here.
        chart: the chart's value that becomes the variable, or "".
    """

    name: str
    help: str
    default: str = ""
    used: bool = True
    chart: str = ""


def boolean(text: str) -> bool:
    """A truth value as Go spells it. Raises ValueError."""
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


def _seconds(number: float) -> str:
    return format_duration(timedelta(seconds=number))


def _switch(name: str, text: str, *, default: bool = False, used: bool = True, chart: str = "") -> Flag:
    return Flag(name, str(default).lower(), boolean, text, boolean=True, used=used, chart=chart)


def _time(name: str, default: timedelta | float, text: str, chart: str) -> Flag:
    shown = format_duration(default) if isinstance(default, timedelta) else _seconds(default)
    return Flag(name, shown, _duration, text, chart=chart)


FLAGS: Final[tuple[Flag, ...]] = (
    Flag("cluster-name", "", str, "Label of the LKE cluster to serve. Required.", chart="settings.clusterName"),
    Flag("cluster-region", "", str, "Region to build nodes in, instead of the LKE cluster's own.", chart="region"),
    Flag(
        "cluster-endpoint",
        "",
        str,
        "Checked and not used: LKE nodes know their API server.",
        used=False,
        chart="settings.clusterEndpoint",
    ),
    Flag("mode", "lke", str, "How nodes are built. Only lke is supported.", "KARPENTER_MODE", chart="settings.mode"),
    _switch(
        "ignore-dra-requests",
        "Refuse pods with ResourceClaims.",
        default=_OPTIONS.ignore_dra_requests,
        chart="settings.dra.enabled",
    ),
    _time(
        "batch-max-duration",
        _OPTIONS.batch_max_duration,
        "A batch of pending pods never stays open longer.",
        "settings.batchMaxDuration",
    ),
    _time(
        "batch-idle-duration",
        _OPTIONS.batch_idle_duration,
        "A batch of pending pods closes after this much quiet.",
        "settings.batchIdleDuration",
    ),
    Flag("preference-policy", _OPTIONS.preference_policy, str, "Respect or Ignore the preferences of pods."),
    Flag(
        "min-values-policy", _OPTIONS.min_values_policy, str, "Strict, or BestEffort: whether minValues may be missed."
    ),
    Flag("feature-gates", "", str, "Gates as A=true,B=false.", chart="settings.featureGates"),
    Flag(
        "scheduler-config",
        "",
        str,
        "Topology spread of pods that declare none, as YAML or JSON.",
        chart="settings.schedulerConfig",
    ),
    Flag(
        "vm-memory-overhead-percent",
        str(float(VM_MEMORY_OVERHEAD)),
        Fraction,
        "Share of a plan's memory that the machine itself takes.",
        chart="settings.vmMemoryOverheadPercent",
    ),
    _time(
        "lke-create-deadline",
        LKE_CREATE_DEADLINE,
        "How long one attempt to create a node waits for its instance.",
        "settings.lkeCreateDeadline",
    ),
    _time(
        "lke-tag-verification-timeout",
        _PROVIDER.tag_verification_timeout,
        "How long a written tag may stay invisible.",
        "settings.lkeTagVerificationTimeout",
    ),
    _time(
        "lke-retry-delay",
        _PROVIDER.poll_interval,
        "Pause between two looks at a growing pool.",
        "settings.lkeRetryDelay",
    ),
    _switch("disable-dry-run", "Nothing is created to try it out here.", used=False),
    Flag("metrics-port", "8080", _port, "Port of /metrics.", chart="controller.metrics.port"),
    Flag("health-probe-port", "8081", _port, "Port of /healthz and /readyz.", chart="controller.healthProbe.port"),
    Flag("kube-client-qps", "200", float, "Calls to the API server per second."),
    Flag("kube-client-burst", "300", int, "Calls to the API server at once."),
    _switch("disable-leader-election", "Run without a lease; then run one replica."),
    Flag("leader-election-name", "karpenter-leader-election", str, "Name of the lease."),
    Flag("leader-election-namespace", "", str, "Namespace of the lease; our own by default."),
    _switch("disable-controller-warmup", "Start to mirror the cluster only once this process leads.", default=True),
    Flag("log-level", "info", str, "debug, info or error.", chart="logLevel"),
    Flag(
        "log-output-paths",
        "stdout",
        str,
        "Where log lines go: stdout, stderr or files, joined with commas.",
        chart="logOutputPaths",
    ),
    Flag(
        "log-error-output-paths",
        "stderr",
        str,
        "Where it is told that log lines cannot be written.",
        chart="logErrorOutputPaths",
    ),
    Flag(
        "cpu-requests",
        "1000",
        int,
        "Millicores of this process; decides how many objects are worked on at a time.",
        chart="controller.resources",
    ),
    Flag("memory-limit", "-1", int, "Bytes. Python has no soft limit for its heap.", used=False),
    Flag("karpenter-service", "", str, "Name of an old webhook's service.", used=False),
    _switch("enable-profiling", "Profiles of a Go program.", used=False),
    _switch(
        "disable-cluster-state-observability",
        "No metrics of pods, nodes, NodePools and conditions, and no events of conditions.",
    ),
)
"""Every flag, in the order of ``--help``."""

VARIABLES: Final[tuple[Variable, ...]] = (
    Variable("LINODE_TOKEN", "Token of the Linode API. Required.", chart="apiToken"),
    Variable("LINODE_URL", "Address of the Linode API.", "https://api.linode.com", chart="apiURL"),
    Variable("LINODE_API_VERSION", "Its version; clusters have no tier in others.", "v4beta", chart="apiVersion"),
    Variable("LINODE_CA", "File with further certificates of authorities to trust with the Linode API."),
    Variable("LINODE_CLIENT_TIMEOUT", "Seconds for each request to the Linode API.", "10"),
    Variable(
        "LINODE_DEBUG",
        "true shows each request to the Linode API and its answer in the log, without credentials.",
        "false",
        chart="linodeDebug",
    ),
    Variable("KUBECONFIG", "How to reach the cluster, outside of it: files, joined with colons."),
    Variable("SYSTEM_NAMESPACE", "Namespace of the lease, where neither a flag nor a service account tells."),
    Variable("KUBERNETES_SERVICE_HOST", "Set in every pod: the service account is used."),
    Variable("CLUSTER_CA_BUNDLE", "LKE nodes know the CA of their cluster.", used=False),
    Variable("LINODE_REGION", "Never read; CLUSTER_REGION sets the region.", used=False),
    Variable("KUBERNETES_MIN_VERSION", "The API server is asked what it serves.", used=False),
    Variable("DISABLE_WEBHOOK", "There is no webhook.", used=False),
    Variable("WEBHOOK_PORT", "There is no webhook.", used=False),
    Variable("WEBHOOK_METRICS_PORT", "There is no webhook.", used=False),
)
"""Every setting without a flag."""
