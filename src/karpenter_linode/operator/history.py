"""Keeps what happened to pods, NodeClaims and claims of an embedded world, and sums it up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from karpenter_linode.linode.provider_id import instance_id
from karpenter_linode.model import labels
from karpenter_linode.model.condition_types import INITIALIZED, LAUNCHED, REGISTERED
from karpenter_linode.model.core import Pod
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.model.meta import find_condition
from karpenter_linode.model.resource import ResourceClaim
from karpenter_linode.operator.outcome import BillLine, DeviceOutcome, JournalEntry, NodeClaimOutcome, PodOutcome
from karpenter_linode.scheduling.pods import is_terminal
from karpenter_linode.sim.events import forget_oldest

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.sim.cluster import EmbeddedCluster
    from karpenter_linode.sim.journal import Entry
    from karpenter_linode.sim.linode.billing import Charge
    from karpenter_linode.sim.watches import Change


class History:
    """Listens to the store of an embedded cluster from its first moment.

    Args:
        cluster: the cluster.
        keep: how many pods, NodeClaims and devices are remembered, the latest; None for all.
    """

    def __init__(self, cluster: EmbeddedCluster, keep: int | None = None) -> None:
        self._cluster = cluster
        self._keep = keep
        self._pods: dict[str, PodOutcome] = {}
        self._claims: dict[str, NodeClaimOutcome] = {}
        self._devices: dict[tuple[str, str, str, str, str], DeviceOutcome] = {}
        cluster.store.listen(Pod, self._on_pod)
        cluster.store.listen(NodeClaim, self._on_node_claim)
        cluster.store.listen(ResourceClaim, self._on_resource_claim)

    def pods(self) -> tuple[PodOutcome, ...]:
        """Every pod there was, by name."""
        return tuple(sorted(self._pods.values(), key=lambda item: (item.pod, _order(item.created))))

    def node_claims(self) -> tuple[NodeClaimOutcome, ...]:
        """Every NodeClaim there was, in order of creation, with the price of the plan it got."""
        prices = {charge.instance: charge for charge in self._cluster.linode.billing.charges}
        return tuple(_priced(item, prices) for item in self._claims.values())

    def devices(self) -> tuple[DeviceOutcome, ...]:
        """Every device that was ever allocated, by claim."""
        return tuple(self._devices[key] for key in sorted(self._devices))

    def bill(self, now: datetime) -> tuple[BillLine, ...]:
        """Every Linode that was paid for, in order of creation."""
        return tuple(_line(charge, now) for charge in self._cluster.linode.billing.charges)

    def journal(self) -> tuple[JournalEntry, ...]:
        """The story without debug lines."""
        return tuple(told(entry) for entry in self._cluster.journal.entries if entry.level != "debug")

    def _on_pod(self, change: Change) -> None:
        if change.stored is None:
            return
        pod = change.stored.decode(Pod)
        known = self._pods.get(pod.uid) or PodOutcome(pod.key, created=pod.metadata.creation_timestamp)
        finished = known.finished
        if finished is None and (is_terminal(pod) or change.type == "DELETED"):
            finished = change.at
        self._pods[pod.uid] = replace(
            known,
            phase=pod.status.phase or known.phase,
            node=pod.spec.node_name or known.node,
            scheduled=known.scheduled or (change.at if pod.spec.node_name else None),
            started=known.started or (change.at if pod.status.phase == "Running" else None),
            finished=finished,
            deleted=change.type == "DELETED",
        )
        forget_oldest(self._pods, self._keep)

    def _on_node_claim(self, change: Change) -> None:
        if change.stored is None:
            return
        claim = change.stored.decode(NodeClaim)
        known = self._claims.get(claim.uid) or _new_claim(claim)
        deleting = known.deleting or (change.at if claim.metadata.deletion_timestamp is not None else None)
        self._claims[claim.uid] = replace(
            known,
            instance_type=claim.metadata.labels.get(labels.INSTANCE_TYPE, "") or known.instance_type,
            node=claim.status.node_name or known.node,
            provider_id=claim.status.provider_id or known.provider_id,
            launched=known.launched or _became_true(claim, LAUNCHED),
            registered=known.registered or _became_true(claim, REGISTERED),
            initialized=known.initialized or _became_true(claim, INITIALIZED),
            deleting=deleting,
            deleted=change.at if change.type == "DELETED" else None,
        )
        forget_oldest(self._claims, self._keep)

    def _on_resource_claim(self, change: Change) -> None:
        if change.stored is None:
            return
        claim = change.stored.decode(ResourceClaim)
        allocation = claim.status.allocation
        if allocation is None:
            return
        pods = {f"{claim.namespace}/{item.name}" for item in claim.status.reserved_for if item.resource == "pods"}
        for result in allocation.devices.results:
            key = (claim.key, result.request, result.driver, result.pool, result.device)
            known = self._devices.get(key)
            everyone = pods | set(known.pods if known is not None else ())
            self._devices[key] = DeviceOutcome(*key, pods=tuple(sorted(everyone)))
        forget_oldest(self._devices, self._keep)


def _order(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0


def _new_claim(claim: NodeClaim) -> NodeClaimOutcome:
    allowed = next(
        (spec.values for spec in claim.spec.requirements if spec.key == labels.INSTANCE_TYPE and spec.operator == "In"),
        (),
    )
    return NodeClaimOutcome(
        name=claim.name,
        node_pool=claim.metadata.labels.get(labels.NODEPOOL, ""),
        instance_types=allowed,
        created=claim.metadata.creation_timestamp,
    )


def _became_true(claim: NodeClaim, kind: str) -> datetime | None:
    condition = find_condition(claim.status.conditions, kind)
    return condition.last_transition_time if condition is not None and condition.status == "True" else None


def _priced(item: NodeClaimOutcome, charges: dict[int, Charge]) -> NodeClaimOutcome:
    charge = charges.get(instance_id(item.provider_id)) if item.provider_id else None
    return item if charge is None else replace(item, price=charge.price, instance_type=charge.plan)


def _line(charge: Charge, now: datetime) -> BillLine:
    return BillLine(
        instance=charge.label,
        instance_type=charge.plan,
        hours=charge.hours(now),
        nano_dollars=charge.cost(now),
        since=charge.start,
        until=charge.end,
    )


def told(entry: Entry) -> JournalEntry:
    """A line of the story for readers."""
    text = entry.message
    if entry.kind == "event":
        text = f"{entry.fields.get('reason', '')}: {text}"
    shown = {key: value for key, value in entry.fields.items() if _is_shown(key, value, entry)}
    details = ", ".join(f"{key}={_plain(value)}" for key, value in shown.items())
    return JournalEntry(entry.at, entry.component, entry.subject, f"{text} ({details})" if details else text)


def _is_shown(key: str, value: Any, entry: Entry) -> bool:
    if key in {"controller", "reason"} and entry.kind == "event":
        return False
    return key != "controller" and value not in ("", None) and f"{key} {value}" != entry.subject


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_plain(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_plain, value)) + "]"
    return str(value)
