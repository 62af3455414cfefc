"""What DaemonSets will take of a node (spec/karpenter-scheduling.md 1.8 step 6, 2.4, 2.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from karpenter_linode.dra.claims import has_dra_requirements
from karpenter_linode.model.core import Affinity, NodeAffinity, Pod, Toleration
from karpenter_linode.model.meta import ObjectMeta
from karpenter_linode.scheduling import resources as res
from karpenter_linode.scheduling.ports import HostPort, host_ports
from karpenter_linode.scheduling.resources import Resources
from karpenter_linode.scheduling.selection import Selection, required_alternatives
from karpenter_linode.scheduling.taints import TOLERATE_PREFER_NO_SCHEDULE, untolerated

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from karpenter_linode.model.core import DaemonSet, Taint
    from karpenter_linode.model.requirements import Requirements
    from karpenter_linode.scheduling.plans import PlanSet


class Daemon(Struct, frozen=True):
    """The pod that a DaemonSet runs on each of its nodes.

    Args:
        key: ``namespace/name`` of the DaemonSet.
        requests: what its pod asks for.
        ports: host ports it takes.
        selections: node selection, of which one must hold.
        tolerations: its own, and one for PreferNoSchedule, which never keeps a daemon away.
    """

    key: str
    requests: Resources
    ports: tuple[HostPort, ...]
    selections: tuple[Selection, ...]
    tolerations: tuple[Toleration, ...]

    def runs_on(self, node: Requirements, taints: Iterable[Taint]) -> bool:
        """Whether it runs on a node with these labels and taints."""
        return not untolerated(taints, self.tolerations) and any(
            selection.strictly_met_by(node) for selection in self.selections
        )


class DaemonGroup(Struct, frozen=True):
    """Plans that the same daemons run on.

    Args:
        mask: the plans.
        overhead: what those daemons ask for together, ``pods`` included; empty where there are none.
        ports: host ports they take.
        daemons: which they are, for explanations.
    """

    mask: int
    overhead: Resources
    ports: tuple[HostPort, ...] = ()
    daemons: tuple[str, ...] = ()


def daemons_of(daemon_sets: Iterable[DaemonSet], bound: Iterable[Pod], *, ignore_dra: bool) -> tuple[Daemon, ...]:
    """The daemons to reckon with, by name.

    Args:
        daemon_sets: all DaemonSets.
        bound: pods on nodes; the newest pod of a DaemonSet stands for it, since admission may have changed its size.
        ignore_dra: leave out daemons that use ResourceClaims.
    """
    newest: dict[str, Pod] = {}
    for pod in bound:
        for owner in pod.metadata.owner_references:
            if owner.controller and owner.kind == "DaemonSet":
                held = newest.get(owner.uid)
                if held is None or _age(pod) > _age(held):
                    newest[owner.uid] = pod
    pods = [
        (daemon_set, _representative(daemon_set, newest.get(daemon_set.uid)))
        for daemon_set in sorted(daemon_sets, key=lambda item: item.key)
    ]
    return tuple(
        Daemon(
            daemon_set.key,
            res.pod_requests(pod),
            host_ports(pod),
            required_alternatives(pod),
            (*pod.spec.tolerations, TOLERATE_PREFER_NO_SCHEDULE),
        )
        for daemon_set, pod in pods
        if not (ignore_dra and has_dra_requirements(pod))
    )


def daemon_groups(
    daemons: Sequence[Daemon],
    requirements: Requirements,
    taints: Sequence[Taint],
    plans: PlanSet,
) -> tuple[DaemonGroup, ...]:
    """Plans of a pool, grouped by the daemons that will run on them. Startup taints do not count."""
    parts: list[tuple[int, tuple[Daemon, ...]]] = [(plans.everything, ())]
    for daemon in daemons:
        mask = _plans_of(daemon, requirements, taints, plans)
        split: list[tuple[int, tuple[Daemon, ...]]] = []
        for part, members in parts:
            split += [(part & mask, (*members, daemon)), (part & ~mask, members)]
        parts = [(part, members) for part, members in split if part]
    return tuple(
        DaemonGroup(
            mask,
            res.total(daemon.requests for daemon in members),
            tuple(port for daemon in members for port in daemon.ports),
            tuple(daemon.key for daemon in members),
        )
        for mask, members in sorted(parts, key=lambda part: part[0] & -part[0])
    )


def _plans_of(daemon: Daemon, requirements: Requirements, taints: Sequence[Taint], plans: PlanSet) -> int:
    if untolerated(taints, daemon.tolerations):
        return 0
    mask = 0
    defined = frozenset(requirements.keys())
    for selection in daemon.selections:
        if selection.refusal(requirements, defined, plans.well_known) is None:
            mask |= plans.meeting(selection.requirements)
    return mask


def _representative(daemon_set: DaemonSet, pod: Pod | None) -> Pod:
    template = daemon_set.spec.template
    if pod is None:
        metadata = ObjectMeta(name=daemon_set.name, namespace=daemon_set.namespace, labels=template.metadata.labels)
        return Pod(metadata=metadata, spec=template.spec)
    node = template.spec.affinity.node_affinity if template.spec.affinity is not None else None
    required = node.required_during_scheduling_ignored_during_execution if node is not None else None
    if required is None:
        return pod
    affinity = pod.spec.affinity or Affinity()
    unpinned = msgspec.structs.replace(
        affinity.node_affinity or NodeAffinity(), required_during_scheduling_ignored_during_execution=required
    )
    spec = msgspec.structs.replace(pod.spec, affinity=msgspec.structs.replace(affinity, node_affinity=unpinned))
    return msgspec.structs.replace(pod, spec=spec)


def _age(pod: Pod) -> tuple[str, str]:
    created = pod.metadata.creation_timestamp
    return (created.isoformat() if created is not None else "", pod.name)
