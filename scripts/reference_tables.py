# ruff: noqa: INP001 - a script, not a package
"""Writes the tables of the reference from the program: settings and metrics.

A page marks a table, and what stands between the marks is what the program has::

    <!-- table: flags -->
    <!-- end of table -->

A test fails when a page is not what this writes.
"""

from __future__ import annotations

import inspect
import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from karpenter_linode.model.duration import format_duration
from karpenter_linode.operator.flag_table import FLAGS, GATES, VARIABLES
from karpenter_linode.operator.metric_table import METRICS, NODE_LABELS, NOT_THERE
from karpenter_linode.operator.options import Options
from karpenter_linode.operator.quantiles import QUANTILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from karpenter_linode.operator.flag_table import Flag, Variable
    from karpenter_linode.operator.metric_table import MetricSpec

ROOT: Final = Path(__file__).parent.parent
PAGES: Final = tuple(ROOT / "docs/reference" / name for name in ("settings.md", "metrics.md"))
MARK: Final = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n)(?P<table>.*?)(<!-- end of table -->)", re.DOTALL)
_TAKEN_FROM_FLAGS: Final = {
    "reserved_capacity": "part of `FEATURE_GATES`",
    "default_spread": "part of `SCHEDULER_CONFIG`",
}
_FROM_PROCESSOR: Final = "follows from `CPU_REQUESTS`"


def flags() -> str:
    """Flags that have an effect."""
    return _table(
        ("flag", "environment variable", "default", "chart value", "meaning"),
        (
            (f"`--{flag.name}`", f"`{flag.variable}`", _code(flag.default), _code(flag.chart), flag.help)
            for flag in FLAGS
            if flag.used
        ),
    )


def variables() -> str:
    """Variables that have an effect and no flag."""
    return _table(
        ("environment variable", "default", "chart value", "meaning"),
        ((f"`{item.name}`", _code(item.default), _code(item.chart), item.help) for item in VARIABLES if item.used),
    )


def without_effect() -> str:
    """What is accepted and changes nothing."""

    def row(item: Flag | Variable, name: str) -> tuple[str, ...]:
        return (name, _code(item.chart), item.help)

    return _table(
        ("setting", "chart value", "why"),
        [
            *(row(flag, f"`--{flag.name}`, `{flag.variable}`") for flag in FLAGS if not flag.used),
            *(row(item, f"`{item.name}`") for item in VARIABLES if not item.used),
        ],
    )


def gates() -> str:
    """Feature gates."""
    return _table(
        ("gate", "default", "effect"),
        (
            (f"`{name}`", _code(str(default).lower()), "see [differences](../differences.md)" if default else "none")
            for name, default in GATES.items()
        ),
    )


def options() -> str:
    """Everything that the controllers are told, flags or not."""
    meanings = _meanings(Options)
    variable = {flag.name: f"`{flag.variable}`" for flag in FLAGS}
    rows = []
    for field in msgspec.structs.fields(Options):
        name = field.name.replace("_", "-")
        workers = name.endswith("workers")
        source = variable.get(name) or _TAKEN_FROM_FLAGS.get(field.name) or (_FROM_PROCESSOR if workers else "none")
        rows.append((f"`{name}`", source, _code(_shown(field.default)), meanings[field.name]))
    return _table(("option", "environment variable", "default", "meaning"), rows)


def _metrics_of(chosen: Callable[[str], bool]) -> str:
    return _table(
        ("metric", "type", "labels", "meaning"),
        ((f"`{name}`", _kind(spec), _labels(spec), spec.help) for name, spec in METRICS.items() if chosen(name)),
    )


def node_labels() -> str:
    """Labels that metrics of nodes take over."""
    return _table(
        ("label", "of the node"),
        ((f"`{name}`", ", else ".join(f"`{key}`" for key in keys)) for name, keys in NODE_LABELS.items()),
    )


def missing() -> str:
    """Metrics of the contract that are not registered."""
    return _table(("metric", "why"), ((f"`{name}`", why) for name, why in NOT_THERE.items()))


def _of(*prefixes: str) -> Callable[[], str]:
    return lambda: _metrics_of(lambda name: name.startswith(prefixes))


_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "metrics-of-node-claims": ("karpenter_nodeclaims_",),
    "metrics-of-nodes": ("karpenter_nodes_", "karpenter_cluster_utilization"),
    "metrics-of-pods": ("karpenter_pods_",),
    "metrics-of-node-pools": ("karpenter_nodepools_", "karpenter_voluntary_disruption_"),
    "metrics-of-scheduling": ("karpenter_scheduler_", "karpenter_cluster_state_"),
    "metrics-of-the-cloud": ("karpenter_cloudprovider_", "karpenter_linode_"),
    "metrics-of-conditions": ("operator_",),
    "metrics-of-the-process": (
        *("karpenter_build_info", "leader_election_", "client_go_", "rest_client_"),
        *("controller_runtime_", "workqueue_"),
    ),
}

TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "flags": flags,
    "variables": variables,
    "without-effect": without_effect,
    "gates": gates,
    "options": options,
    "missing-metrics": missing,
    "node-labels": node_labels,
    **{name: _of(*prefixes) for name, prefixes in _GROUPS.items()},
}


def filled(text: str) -> str:
    """A page with its tables written anew."""
    return MARK.sub(lambda found: f"{found[1]}\n{TABLES[found['name']]()}\n{found[4]}", text)


def _kind(spec: MetricSpec) -> str:
    if spec.kind == "summary":
        return f"summary ({', '.join(f'{quantile:g}' for quantile in QUANTILES)})"
    if spec.buckets:
        return f"histogram ({spec.buckets[0]:g} to {spec.buckets[-1]:g}, {len(spec.buckets)} buckets)"
    return spec.kind


def _labels(spec: MetricSpec) -> str:
    names = spec.labels
    of_node = names[: len(NODE_LABELS)] == tuple(NODE_LABELS)
    told = [f"`{label}`" for label in (names[len(NODE_LABELS) :] if of_node else names)]
    return ", ".join([*(["[labels of the node](#labels-of-the-node)"] if of_node else []), *told]) or "none"


def _meanings(struct: type[Any]) -> dict[str, str]:
    """What a docstring says of each field."""
    found: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc(struct.__doc__ or "").partition("Args:\n")[2].splitlines():
        if match := re.match(r"    (\w+): (.+)", line):
            name, found[match[1]] = match[1], match[2]
        elif name and line.strip():
            found[name] += f" {line.strip()}"
    return found


def _shown(value: Any) -> str:
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value == () else str(value)


def _code(text: str) -> str:
    return f"`{text}`" if text else "none"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *(tuple(cell.replace("|", "\\|") for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
