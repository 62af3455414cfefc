"""The scheduler's DynamicResources plug-in: which claims a pod needs, where they fit, and who holds which device.

Source: spec/dra-allocation.md 1.8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET, Struct

from karpenter_linode.dra.claims import claim_keys
from karpenter_linode.dra.errors import AllocationError
from karpenter_linode.dra.in_use import InUse
from karpenter_linode.dra.node import allocate_on_node
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.resource import (
    AllocationResult,
    DeviceClass,
    DeviceID,
    ResourceClaim,
    ResourceSlice,
)
from karpenter_linode.model.selectors import term_holds
from karpenter_linode.sim.kube_scheduler.extended import ImplicitClaim

if TYPE_CHECKING:
    from karpenter_linode.model.core import Node, Pod
    from karpenter_linode.sim.store import Store
    from karpenter_linode.sim.watches import Change

PoolKey = tuple[str, str]
NOT_CREATED: Final = "ResourceClaim not created yet"
CANNOT_ALLOCATE: Final = "cannot allocate all claims"
NOT_AVAILABLE: Final = "resourceclaim not available on the node"
MAX_RESERVED: Final = 256


class PodClaims(Struct, frozen=True):
    """A pod's claims: those that have devices, those that need some, and the one for its extended resources."""

    allocated: tuple[ResourceClaim, ...] = ()
    open: tuple[ResourceClaim, ...] = ()
    implicit: ImplicitClaim | None = None

    @property
    def to_allocate(self) -> tuple[ResourceClaim, ...]:
        """Claims that need devices; the implicit one stands last."""
        return self.open if self.implicit is None else (*self.open, self.implicit.claim)


class Refused(Exception):  # noqa: N818  # not an error: a pod that has to wait
    """The pod cannot be placed anywhere now; the message is kube-scheduler's."""


class DeviceLedger:
    """Slices by node, and devices in use by pool: bound allocations and those still being written.

    Args:
        store: the cluster's store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._local: dict[str, dict[str, ResourceSlice]] = {}
        self._wide: dict[str, ResourceSlice] = {}
        self._held: dict[str, AllocationResult] = {}
        self._taken: dict[PoolKey, dict[DeviceID, int]] = {}
        self._shares: dict[PoolKey, dict[DeviceID, dict[str, int]]] = {}
        self.in_flight: dict[str, AllocationResult] = {}
        store.listen(ResourceSlice, self._slice_changed)
        store.listen(ResourceClaim, self._claim_changed)

    def _slice_changed(self, change: Change) -> None:
        if change.stored is None:
            return
        item = change.stored.decode(ResourceSlice)
        place = self._local.setdefault(item.spec.node_name, {}) if item.spec.node_name else self._wide
        if change.type == "DELETED":
            place.pop(item.name, None)
        else:
            place[item.name] = item

    def _claim_changed(self, change: Change) -> None:
        if change.stored is None:
            return
        claim = change.stored.decode(ResourceClaim)
        allocation = None if change.type == "DELETED" else claim.status.allocation
        if allocation is None and claim.key in self.in_flight and change.type != "DELETED":
            return
        self._hold(claim.key, allocation)

    def _hold(self, claim_key: str, allocation: AllocationResult | None) -> None:
        """Count a claim's devices as held, in place of what it held before."""
        before = self._held.pop(claim_key, None)
        if before is not None:
            self._count(before, -1)
        if allocation is not None:
            self._held[claim_key] = allocation
            self._count(allocation, 1)

    def _count(self, allocation: AllocationResult, sign: int) -> None:
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            pool, device = (result.driver, result.pool), DeviceID(result.driver, result.pool, result.device)
            if result.consumed_capacity is UNSET:
                taken = self._taken.setdefault(pool, {})
                taken[device] = taken.get(device, 0) + sign
                if not taken[device]:
                    del taken[device]
                continue
            shares = self._shares.setdefault(pool, {}).setdefault(device, {"": 0})
            shares[""] += sign
            for name, quantity in result.consumed_capacity.items():
                shares[name] = shares.get(name, 0) + sign * quantity.nano
            if not shares[""]:
                del self._shares[pool][device]

    def assume(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        """Hold devices for a claim while its allocation is being written."""
        self.in_flight[claim.key] = allocation
        self._hold(claim.key, allocation)

    def settle(self, claim_key: str) -> None:
        """The write has succeeded or failed: what the store says counts again."""
        self.in_flight.pop(claim_key, None)
        namespace, _, name = claim_key.partition("/")
        claim = self._store.find(ResourceClaim, name, namespace)
        self._hold(claim_key, None if claim is None else claim.status.allocation)

    def existing(self, pod: Pod) -> list[ResourceClaim]:
        """The claims that a pod refers to. While one is missing, the pod does not even enter the queue.

        Raises:
            Refused: one does not exist, or was made for another pod.
        """
        keys = claim_keys(pod)
        if isinstance(keys, Reason):
            raise Refused(NOT_CREATED)
        found = []
        generated = {status.resource_claim_name for status in pod.status.resource_claim_statuses}
        for key in keys:
            claim = self._store.find(ResourceClaim, key.name, key.namespace)
            if claim is None:
                raise Refused(f'resourceclaim "{key.name}" not found')
            owners = claim.metadata.owner_references
            if key.name in generated and not any(owner.controller and owner.uid == pod.uid for owner in owners):
                raise Refused(f"ResourceClaim {claim.key} was not created for pod {pod.key} (pod is not owner)")
            found.append(claim)
        return found

    def claims_of(self, pod: Pod) -> PodClaims:
        """The claims that a pod needs.

        Raises:
            Refused: one is missing, belongs to another pod, is being deleted, or cannot take another user now.
        """
        allocated, unallocated = [], []
        for claim in self.existing(pod):
            if claim.metadata.deletion_timestamp is not None:
                raise Refused(f'resourceclaim "{claim.name}" is being deleted')
            if claim.key in self.in_flight:
                raise Refused(f"resourceclaim {claim.key} is in the process of being allocated")
            if claim.status.allocation is None:
                unallocated.append(claim)
            elif len(claim.status.reserved_for) >= MAX_RESERVED:
                raise Refused("resourceclaim in use")
            else:
                allocated.append(claim)
        return PodClaims(tuple(allocated), tuple(unallocated))

    def place(self, claims: PodClaims, node: Node) -> tuple[AllocationResult, ...] | str:
        """Devices for the open claims on a node, or why there are none.

        Raises:
            AllocationError: the claims are in error, whatever the node.
        """
        for claim in claims.allocated:
            selector = claim.status.allocation.node_selector if claim.status.allocation else None
            if selector is not None and not any(
                term_holds(term, node.metadata.labels, node.name) for term in selector.node_selector_terms
            ):
                return NOT_AVAILABLE
        if not claims.to_allocate:
            return ()
        slices = (*self._local.get(node.name, {}).values(), *self._wide.values())
        slices = tuple(sorted(slices, key=lambda item: item.name))
        in_use = self._in_use({(item.spec.driver, item.spec.pool.name) for item in slices})
        try:
            found = allocate_on_node(node, slices, self._store.all(DeviceClass), claims.to_allocate, in_use)
        except AllocationError as error:
            if error.code in {"dra-pool-unusable", "dra-step-limit"}:
                return error.message
            raise
        return CANNOT_ALLOCATE if found is None else found

    def _in_use(self, pools: set[PoolKey]) -> InUse:
        exclusive = frozenset(device for pool in pools for device in self._taken.get(pool, ()))
        shares = {
            device: {name: amount for name, amount in amounts.items() if name}
            for pool in sorted(pools)
            for device, amounts in self._shares.get(pool, {}).items()
        }
        return InUse(exclusive, shares)
