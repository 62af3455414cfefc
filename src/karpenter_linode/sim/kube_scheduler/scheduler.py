"""The scheduling and binding cycles."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from karpenter_linode.dra.errors import AllocationError
from karpenter_linode.model import codec, labels
from karpenter_linode.model.core import Node, PersistentVolumeClaim, Pod
from karpenter_linode.model.meta import find_condition
from karpenter_linode.model.resource import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from karpenter_linode.model.timestamps import rfc3339
from karpenter_linode.ports import KubeError
from karpenter_linode.sim.kube_scheduler.devices import DeviceLedger, PodClaims, Refused
from karpenter_linode.sim.kube_scheduler.extended import ExtendedResources
from karpenter_linode.sim.kube_scheduler.filters import refusals, score
from karpenter_linode.sim.kube_scheduler.queue import SchedulingQueue, Waiting
from karpenter_linode.sim.kube_scheduler.topology import TopologyFilter
from karpenter_linode.sim.kube_scheduler.view import ClusterView, NodeInfo, PodInfo, takes_room
from karpenter_linode.sim.resource_types import type_of

if TYPE_CHECKING:
    from karpenter_linode.sim.context import SimContext
    from karpenter_linode.sim.watches import Change

NAME: Final = "default-scheduler"
NO_NODES: Final = "no nodes available to schedule pods"
UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
SCHEDULING_GATED: Final = "SchedulingGated"
GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"
_POD: Final = type_of(Pod)
_CLAIM: Final = type_of(ResourceClaim)
_ENOUGH_NODES: Final = 100
_MAX_SHAPES: Final = 5_000
_PATIENCE: Final = 5.0
_PERCENT: Final = 100
_LEAST_PERCENT: Final = 5
_NODES_PER_PERCENT: Final = 125


class Placement(Struct, frozen=True):
    """Where a pod goes: the node, the claims it has there, and devices for those that need some."""

    node: NodeInfo
    claims: PodClaims
    devices: tuple[AllocationResult, ...]


class KubeScheduler:
    """Places pods of the default scheduler.

    Args:
        context: the world.
    """

    def __init__(self, context: SimContext) -> None:
        self._context = context
        self._store = context.store
        self._view = ClusterView()
        self._queue = SchedulingQueue(context)
        self._ledger = DeviceLedger(context.store)
        self._extended = ExtendedResources(context.store)
        self._events = context.recorder(NAME)
        self._verdicts: dict[bytes, dict[str, tuple[int, tuple[str, ...]]]] = {}
        self._assumed: dict[str, str] = {}
        self._claimless: dict[str, str] = {}
        context.store.listen(Pod, self._pod_changed)
        context.store.listen(Node, self._node_changed)
        context.store.listen(ResourceSlice, self._slice_changed)
        context.store.listen(ResourceClaim, self._claim_changed)
        context.store.listen(DeviceClass, self._class_changed)

    async def run(self) -> None:
        """Schedule for ever."""
        while True:
            waiting = await self._queue.next()
            await self._context.clock.sleep(self._context.delays.scheduling_cycle)
            self._schedule(waiting)

    # What happens around

    def _pod_changed(self, change: Change) -> None:
        if change.stored is None:
            return
        pod = change.stored.decode(Pod)
        if change.type == "DELETED" or (pod.spec.node_name and not takes_room(pod)):
            self._queue.remove(pod.key)
            self._claimless.pop(pod.key, None)
            self._assumed.pop(pod.key, None)
            place = self._view.remove_pod(pod.key)
            if place:
                self._room_on(place)
        elif pod.spec.node_name:
            self._queue.remove(pod.key)
            self._assumed.pop(pod.key, None)
            self._view.place(PodInfo(pod), pod.spec.node_name)
            self._queue.wake(lambda info: info.has_topology)
        elif pod.spec.scheduler_name == NAME and pod.key not in self._assumed:
            self._take_in(pod)

    def _take_in(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is not None:
            self._queue.remove(pod.key)
        elif pod.spec.scheduling_gates:
            self._write_condition(pod, SCHEDULING_GATED, GATED)
        elif self._has_claims(pod):
            self._queue.put(PodInfo(pod))

    def _has_claims(self, pod: Pod) -> bool:
        """Whether all claims exist. A pod that misses one stays outside the queue, without a condition."""
        try:
            self._ledger.existing(pod)
        except Refused as refused:
            self._queue.remove(pod.key)
            if self._claimless.get(pod.key) != str(refused):
                self._claimless[pod.key] = str(refused)
                tell = self._tell_claimless
                self._context.agenda.after(_PATIENCE, tell, pod.key, str(refused), background=True)
            return False
        self._claimless.pop(pod.key, None)
        return True

    def _tell_claimless(self, pod_key: str, message: str) -> None:
        """Tell of a pod that still waits for its claim; most claims are made in no time."""
        if self._claimless.get(pod_key) == message:
            self._context.journal.step(NAME, f"Pod {pod_key}", f"Pod waits outside the queue: {message}")

    def _look_at_claimless(self, claim: ResourceClaim) -> None:
        """A claim has come to be: pods that waited for it may enter the queue."""
        for key in list(self._claimless):
            namespace, _, name = key.partition("/")
            pod = self._store.find(Pod, name, namespace)
            if pod is not None and _uses(pod, claim):
                self._take_in(pod)

    def _node_changed(self, change: Change) -> None:
        if change.stored is None:
            return
        if change.type == "DELETED":
            self._view.remove_node(change.stored.name)
            for verdicts in self._verdicts.values():
                verdicts.pop(change.stored.name, None)
            self._queue.wake(lambda info: info.has_topology)
            return
        node = change.stored.decode(Node)
        known = self._view.nodes.get(node.name)
        before = None if known is None else _decisive(known.node)
        if before == _decisive(node):
            return
        self._view.set_node(node)
        self._room_on(node.name)

    def _room_on(self, node_name: str) -> None:
        """A node changed or lost a pod: try again the pods that it could take, and those that look at other pods."""
        node = self._view.nodes.get(node_name)
        if node is not None:
            self._queue.wake(lambda info: info.has_topology or not self._refusals(info, node))

    def _slice_changed(self, change: Change) -> None:
        if change.stored is None:
            return
        node = self._view.nodes.get(change.stored.decode(ResourceSlice).spec.node_name)
        self._queue.wake(lambda info: self._needs_devices(info) and (node is None or not self._refusals(info, node)))

    def _claim_changed(self, change: Change) -> None:
        """A claim that comes to be or is released may be what a pod waits for."""
        if change.stored is None:
            return
        claim = change.stored.decode(ResourceClaim)
        if claim.key in self._ledger.in_flight:
            return
        if change.type == "ADDED":
            self._look_at_claimless(claim)
        if change.type == "DELETED" or (change.type == "MODIFIED" and claim.status.allocation is None):
            self._queue.wake(self._needs_devices)
        else:
            self._queue.wake(partial(_info_uses, claim))

    def _class_changed(self, change: Change) -> None:  # noqa: ARG002  # any change of any class may help
        self._verdicts.clear()
        self._queue.wake(self._needs_devices)

    def _needs_devices(self, info: PodInfo) -> bool:
        return bool(info.pod.spec.resource_claims) or self._extended.asked_by(info)

    # The scheduling cycle

    def _schedule(self, waiting: Waiting) -> None:
        pod = self._store.find(Pod, waiting.info.pod.name, waiting.info.pod.namespace)
        if pod is None or pod.uid != waiting.info.pod.uid or pod.spec.node_name or pod.metadata.deletion_timestamp:
            self._queue.remove(waiting.info.pod.key)
            return
        info = waiting.info
        try:
            claims = self._prefilter(info.pod)
            chosen = self._choose(info, claims)
        except Refused as refused:
            self._fail(waiting, UNSCHEDULABLE, self._message(Counter({str(refused): len(self._view.nodes)})))
            return
        except AllocationError as error:
            self._fail_allocation(waiting, error)
            return
        if isinstance(chosen, Counter):
            self._fail(waiting, UNSCHEDULABLE, self._message(chosen))
            return
        self._reserve(waiting, chosen)

    def _prefilter(self, pod: Pod) -> PodClaims:
        for volume in pod.spec.volumes:
            source = volume.persistent_volume_claim
            if source is not None and self._store.find(PersistentVolumeClaim, source.claim_name, pod.namespace) is None:
                raise Refused(f'persistentvolumeclaim "{source.claim_name}" not found')
        return self._ledger.claims_of(pod)

    def _choose(self, info: PodInfo, claims: PodClaims) -> Placement | Counter[str]:
        """The best node with its devices, or how many nodes refuse for which reason."""
        topology = (
            TopologyFilter(info, self._view, self._store) if info.has_topology or self._view.has_topology else None
        )
        reasons: Counter[str] = Counter()
        feasible: list[tuple[int, str, Placement]] = []
        for node in self._view:
            refused = self._refusals(info, node)
            if not refused and topology is not None:
                refusal = topology.refusal(node.node)
                refused = (refusal,) if refusal else ()
            if refused:
                for reason in refused:
                    reasons[reason] += 1
                continue
            needed = replace(claims, implicit=self._extended.claim_on(info, node))
            devices = self._ledger.place(needed, node.node)
            if isinstance(devices, str):
                reasons[devices] += 1
                continue
            feasible.append((-score(info, node), node.name, Placement(node, needed, devices)))
            if len(feasible) >= self._nodes_to_find():
                break
        return min(feasible, key=lambda item: item[:2])[2] if feasible else reasons

    def _nodes_to_find(self) -> int:
        """How many feasible nodes suffice: large clusters are sampled, as by kube-scheduler's default percentage."""
        count = len(self._view.nodes)
        percent = max(_LEAST_PERCENT, 50 - count // _NODES_PER_PERCENT)
        return count if count < _ENOUGH_NODES else max(_ENOUGH_NODES, count * percent // _PERCENT)

    def _refusals(self, info: PodInfo, node: NodeInfo) -> tuple[str, ...]:
        """The one-node filters, remembered for pods of one shape until the node changes."""
        if len(self._verdicts) > _MAX_SHAPES:
            self._verdicts.clear()
        verdicts = self._verdicts.setdefault(info.shape, {})
        known = verdicts.get(node.name)
        if known is not None and known[0] == node.generation:
            return known[1]
        refused = refusals(info, node, self._extended.served)
        verdicts[node.name] = (node.generation, refused)
        return refused

    def _message(self, reasons: Counter[str]) -> str:
        """The text of ``FailedScheduling``: how many nodes refuse for which reason."""
        total = len(self._view.nodes)
        if not total:
            return NO_NODES
        told = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        return (
            f"0/{total} nodes are available: {told}. preemption: 0/{total} nodes are available: "
            f"{total} Preemption is not helpful for scheduling."
        )

    def _fail_allocation(self, waiting: Waiting, error: AllocationError) -> None:
        """A selector that fails on a device aborts the attempt; other mistakes make the pod unschedulable."""
        if error.code == "dra-selector-error":
            self._fail(waiting, SCHEDULER_ERROR, f'running "DynamicResources" filter plugin: {error.message}')
        else:
            self._fail(waiting, UNSCHEDULABLE, self._message(Counter({error.message: len(self._view.nodes)})))

    def _fail(self, waiting: Waiting, reason: str, message: str) -> None:
        pod = waiting.info.pod
        self._events.record(pod, "Warning", "FailedScheduling", message)
        if reason == SCHEDULER_ERROR:
            self._queue.retry(waiting)
        else:
            self._queue.park(waiting)
        self._write_condition(pod, reason, message)

    def _write_condition(self, pod: Pod, reason: str, message: str) -> None:
        """``PodScheduled=False``, unless it says so already."""
        current = self._store.find(Pod, pod.name, pod.namespace)
        if current is None:
            return
        known = find_condition(current.status.conditions, "PodScheduled")
        if known is not None and (known.status, known.reason, known.message) == ("False", reason, message):
            return
        since = known.last_transition_time if known is not None and known.status == "False" else None
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastTransitionTime": rfc3339(since or self._context.clock.now()),
        }
        self._patch_status(pod, {"conditions": [condition]})

    # The binding cycle

    def _reserve(self, waiting: Waiting, placement: Placement) -> None:
        """Count the pod and its devices as placed, and write that down a little later."""
        pod, node_name = waiting.info.pod, placement.node.node.name
        self._assumed[pod.key] = node_name
        self._view.place(waiting.info, node_name)
        for claim, allocation in zip(placement.claims.to_allocate, placement.devices, strict=True):
            self._ledger.assume(claim, allocation)
        delay = self._context.draw(self._context.delays.binding, f"bind/{pod.key}")
        self._context.agenda.after(delay, self._bind, waiting, placement)

    def _bind(self, waiting: Waiting, placement: Placement) -> None:
        pod, claims, node_name = waiting.info.pod, placement.claims, placement.node.node.name
        try:
            for claim, allocation in zip(claims.open, placement.devices, strict=False):
                self._write_allocation(claim, allocation, pod)
            if claims.implicit is not None:
                made = self._extended.create(claims.implicit, pod)
                self._write_allocation(made, placement.devices[-1], pod)
                self._extended.tell(claims.implicit, made.name, pod)
            for claim in claims.allocated:
                self._write_reservation(claim, pod)
            self._store.bind(pod.name, pod.namespace, node_name)
        except KubeError as error:
            self._unreserve(waiting, claims, str(error))
            return
        self._settle(claims)
        message = f"Successfully assigned {pod.key} to {node_name}"
        self._events.record(pod, "Normal", "Scheduled", message)

    def _write_allocation(self, claim: ResourceClaim, allocation: AllocationResult, pod: Pod) -> None:
        """Protect the claim, then write its devices and its first user."""
        finalizers = list(claim.metadata.finalizers)
        if labels.CLAIM_FINALIZER not in finalizers:
            finalizers.append(labels.CLAIM_FINALIZER)
        stored = self._store.patch(
            _CLAIM,
            claim.name,
            {"metadata": {"finalizers": finalizers, "resourceVersion": claim.metadata.resource_version}},
            namespace=claim.namespace,
        )
        version = stored.metadata["resourceVersion"]
        status = {"allocation": codec.to_plain(allocation), "reservedFor": [_consumer(pod)]}
        patch = {"metadata": {"resourceVersion": version}, "status": status}
        self._store.patch(_CLAIM, claim.name, patch, namespace=claim.namespace, subresource="status")
        given = ", ".join(f"{result.pool}/{result.device}" for result in allocation.devices.results)
        self._context.journal.step(NAME, claim, f"ResourceClaim allocated: {given}", pod=pod.key)

    def _write_reservation(self, claim: ResourceClaim, pod: Pod) -> None:
        users = codec.to_plain(claim.status.reserved_for)
        if any(user.get("uid") == pod.uid for user in users):
            return
        patch = {
            "metadata": {"resourceVersion": claim.metadata.resource_version},
            "status": {"reservedFor": [*users, _consumer(pod)]},
        }
        self._store.patch(_CLAIM, claim.name, patch, namespace=claim.namespace, subresource="status")

    def _unreserve(self, waiting: Waiting, claims: PodClaims, error: str) -> None:
        """Binding failed: give everything back and try again. Allocations already written are kept by their claim.

        Only the claim for extended resources goes: the next attempt may find a node that needs none.
        """
        pod = waiting.info.pod
        self._assumed.pop(pod.key, None)
        self._view.remove_pod(pod.key)
        self._settle(claims)
        if claims.implicit is not None:
            self._extended.drop(pod)
        if self._store.find(Pod, pod.name, pod.namespace) is None:
            self._queue.remove(pod.key)
            return
        self._fail(waiting, SCHEDULER_ERROR, error)

    def _settle(self, claims: PodClaims) -> None:
        """Claims are no longer in flight: pods that share one may be placed now."""
        for claim in claims.to_allocate:
            self._ledger.settle(claim.key)
            self._queue.wake(partial(_info_uses, claim))

    def _patch_status(self, pod: Pod, status: dict[str, Any]) -> None:
        self._store.patch(
            _POD, pod.name, {"status": status}, namespace=pod.namespace, subresource="status", patch_kind="strategic"
        )


def _consumer(pod: Pod) -> dict[str, str]:
    return {"resource": "pods", "name": pod.name, "uid": pod.uid}


def _info_uses(claim: ResourceClaim, info: PodInfo) -> bool:
    return _uses(info.pod, claim)


def _uses(pod: Pod, claim: ResourceClaim) -> bool:
    names = [entry.resource_claim_name for entry in pod.spec.resource_claims]
    names += [status.resource_claim_name for status in pod.status.resource_claim_statuses]
    return pod.namespace == claim.namespace and claim.name in names


def _decisive(node: Node) -> tuple[Any, ...]:
    """What of a node may change a verdict."""
    return node.metadata.labels, node.spec.taints, node.spec.unschedulable, node.status.allocatable
