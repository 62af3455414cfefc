"""``ports.KubeApi`` over the store: what a controller sees of the embedded cluster.

Every call takes time and is written down; faults strike here, so that the control plane's own parts stay sound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from karpenter_linode.model import kinds
from karpenter_linode.model.core import Pod
from karpenter_linode.ports import KubeError, Listing, WatchEvent
from karpenter_linode.sim.eviction import evict
from karpenter_linode.sim.kube_faults import ApiCall, KubeFaults
from karpenter_linode.sim.resource_types import ResourceType, type_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from karpenter_linode.model.meta import KubeObject
    from karpenter_linode.ports import Clock, PatchKind
    from karpenter_linode.sim.store import Store

T = TypeVar("T", bound="KubeObject")
_POD = type_of(Pod)


class SimKubeApi:
    """The API server as one user sees it.

    Args:
        store: the cluster's store.
        clock: time passes here for every call and watch event.
        user: who calls; part of the call log.
        faults: what goes wrong, and how long a call takes.
        keep: how many calls are remembered at least, the latest; None for all.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        user: str = "karpenter",
        faults: KubeFaults | None = None,
        keep: int | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._user = user
        self.faults = faults or KubeFaults()
        self.calls: list[ApiCall] = []
        self._keep = keep

    async def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        """One object. Raises NotFoundError."""
        served = type_of(kind)
        await self._arrive("get", served, name, namespace)
        return self._store.get(served, name, namespace).decode(kind)

    async def list(self, kind: type[T], *, namespace: str = "", label_selector: str = "") -> Listing[T]:
        """All objects of a kind in key order, in every namespace when none is given."""
        served = type_of(kind)
        await self._arrive("list", served, "", namespace)
        found = self._store.list(served, namespace=namespace, labels=label_selector)
        return Listing(tuple(stored.decode(kind) for stored in found), self._store.resource_version)

    async def watch(self, kind: type[T], resource_version: str) -> AsyncIterator[WatchEvent[T]]:
        """Changes after a resource version, until cancelled or until the server ends the stream.

        Raises:
            GoneError: the version has been compacted away.
        """
        served = type_of(kind)
        await self._arrive("watch", served)
        history = self._store.history(served)
        watch = history.watch(int(resource_version or 0), lambda: self.faults.watch_lag)
        try:
            while (change := await watch.next()) is not None:
                obj = None if change.stored is None else change.stored.decode(kind)
                yield WatchEvent(change.type, obj, str(change.version))
        finally:
            history.forget(watch)

    async def create(self, obj: T) -> T:
        """Create and return the stored object. Raises AlreadyExistsError, InvalidError."""
        kind = type(obj)
        call = await self._arrive("create", type_of(kind), obj.name, obj.namespace)
        stored = self._store.create(kinds.to_manifest(obj))
        self._answer(call)
        return stored.decode(kind)

    async def patch(
        self,
        kind: type[T],
        name: str,
        patch: Mapping[str, Any] | Sequence[Any],
        *,
        namespace: str = "",
        subresource: str = "",
        patch_kind: PatchKind = "merge",
    ) -> T:
        """Patch and return the stored object. A ``metadata.resourceVersion`` in the patch is an optimistic lock.

        Raises:
            NotFoundError, ConflictError, InvalidError: as the server answers.
        """
        served = type_of(kind)
        call = await self._arrive("patch", served, name, namespace, subresource)
        stored = self._store.patch(
            served, name, patch, namespace=namespace, subresource=subresource, patch_kind=patch_kind
        )
        self._answer(call)
        return stored.decode(kind)

    async def delete(
        self,
        kind: type[T],
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Start deletion. Raises NotFoundError, ConflictError on another ``uid``."""
        served = type_of(kind)
        call = await self._arrive("delete", served, name, namespace)
        self._store.delete(served, name, namespace, uid=uid, grace_period_seconds=grace_period_seconds)
        self._answer(call)

    async def evict(self, name: str, namespace: str, *, uid: str = "", grace_period_seconds: int | None = None) -> None:
        """Evict a pod. Raises NotFoundError, TooManyRequestsError when a budget forbids it now."""
        call = await self._arrive("create", _POD, name, namespace, "eviction")
        evict(self._store, name, namespace, uid=uid, grace_period_seconds=grace_period_seconds)
        self._answer(call)

    async def _arrive(
        self, verb: str, kind: ResourceType, name: str = "", namespace: str = "", subresource: str = ""
    ) -> ApiCall:
        """Note the call, let its latency pass, and fail if a fault says so before anything has happened."""
        call = ApiCall(self._user, verb, kind.group, kind.plural, subresource, namespace, name)
        self.calls.append(call)
        if self._keep is not None and len(self.calls) > 2 * self._keep:
            del self.calls[: self._keep]
        await self._clock.sleep(self.faults.latency(call))
        error = self.faults.before(call)
        if error is not None:
            raise error
        return call

    def _answer(self, call: ApiCall) -> None:
        """Fail after the write has happened, where a fault loses the answer."""
        error: KubeError | None = self.faults.after(call)
        if error is not None:
            raise error
