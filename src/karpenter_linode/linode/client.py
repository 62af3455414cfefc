"""The Linode API calls that the provider makes, typed (spec/linode-provider.md 7.1 and 7.2)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from msgspec import Struct

from karpenter_linode.linode.errors import LinodeTransportError
from karpenter_linode.linode.governor import CallKind
from karpenter_linode.linode.http import ApiCall, CallRecord, ClientOptions, LinodeHttp
from karpenter_linode.model import codec
from karpenter_linode.model.linode import (
    LinodeInstance,
    LinodeType,
    LKECluster,
    LKEPool,
    LKETaint,
    Region,
    RegionAvailability,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import httpx2

    from karpenter_linode.ports import Clock, Random

T = TypeVar("T")
PAGE_SIZE: Final = 500
_MAX_PAGES: Final = 1000
_POOLS: Final = "/lke/clusters/{cluster}/pools"
_POOL: Final = "/lke/clusters/{cluster}/pools/{pool}"
_INSTANCE: Final = "/linode/instances/{instance}"
DEFAULT_OPTIONS: Final = ClientOptions()


class _Page(Struct, Generic[T], frozen=True):
    data: tuple[T, ...]
    page: int
    pages: int
    results: int


class NewPool(Struct, frozen=True, omit_defaults=True):
    """A pool to create; version and update strategy are for the enterprise tier."""

    type: str
    count: int
    tags: tuple[str, ...] = ()
    labels: dict[str, str] | None = None
    taints: tuple[LKETaint, ...] | None = None
    firewall_id: int | None = None
    k8s_version: str | None = None
    update_strategy: str | None = None


class LinodeClient:
    """The Linode API over one token.

    Args:
        base_url: ``https://api.linode.com`` or an emulator, without a version.
        token: personal access token with ``lke:read_write`` and ``linodes:read_write``.
        clock: for pauses and limits.
        random: jitters pauses.
        transport: in place of the network, as ``httpx2.ASGITransport(app=...)``.
        options: version, time-out, retries, limits.
        on_call: told of every HTTP request sent, for metrics.

    Raises:
        ValueError: the token is empty.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        clock: Clock,
        random: Random,
        transport: httpx2.AsyncBaseTransport | None = None,
        options: ClientOptions = DEFAULT_OPTIONS,
        on_call: Callable[[CallRecord], None] | None = None,
    ) -> None:
        if not token:
            raise ValueError("LINODE_TOKEN environment variable is not set")
        self.calls: Counter[tuple[str, int]] = Counter()
        self._on_call = on_call
        self._http = LinodeHttp(
            base_url,
            token,
            clock=clock,
            random=random,
            transport=transport,
            options=options,
            on_call=self._count,
        )

    def __repr__(self) -> str:
        return f"LinodeClient({self._http!r})"

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()

    async def list_types(self) -> tuple[LinodeType, ...]:
        """All plans that the account sees."""
        return await self._list("/linode/types", "/linode/types", LinodeType)

    async def list_regions(self) -> tuple[Region, ...]:
        """All regions."""
        return await self._list("/regions", "/regions", Region)

    async def region_availability(self, region: str) -> tuple[RegionAvailability, ...]:
        """Plans of limited deployment in a region; a plan that is missing is available."""
        call = ApiCall("GET", "/regions/{region}/availability", f"/regions/{region}/availability")
        return await self._decoded(call, tuple[RegionAvailability, ...])

    async def list_clusters(self, label: str) -> tuple[LKECluster, ...]:
        """LKE clusters of that label."""
        return await self._list("/lke/clusters", "/lke/clusters", LKECluster, {"label": label})

    async def get_cluster(self, cluster: int) -> LKECluster:
        """An LKE cluster."""
        return await self._decoded(ApiCall("GET", "/lke/clusters/{cluster}", f"/lke/clusters/{cluster}"), LKECluster)

    async def list_pools(self, cluster: int) -> tuple[LKEPool, ...]:
        """All pools of a cluster; filtering by tag is left to the caller, since the API does it unreliably."""
        return await self._list(_POOLS, f"/lke/clusters/{cluster}/pools", LKEPool)

    async def get_pool(self, cluster: int, pool: int) -> LKEPool:
        """A pool."""
        return await self._decoded(ApiCall("GET", _POOL, f"/lke/clusters/{cluster}/pools/{pool}"), LKEPool)

    async def create_pool(self, cluster: int, pool: NewPool) -> LKEPool:
        """Buy a pool. Sent once: after an error with ``outcome_unknown``, look for it before trying again."""
        path = f"/lke/clusters/{cluster}/pools"
        return await self._decoded(ApiCall("POST", _POOLS, path, CallKind.CREATE, body=pool), LKEPool)

    async def update_pool(self, cluster: int, pool: int, change: dict[str, Any]) -> LKEPool:
        """Change a pool: ``count``, ``k8s_version``, ``update_strategy`` and others."""
        call = ApiCall("PUT", _POOL, f"/lke/clusters/{cluster}/pools/{pool}", body=change)
        return await self._decoded(call, LKEPool)

    async def delete_pool(self, cluster: int, pool: int) -> None:
        """Delete a pool with all its members."""
        await self._http.send(ApiCall("DELETE", _POOL, f"/lke/clusters/{cluster}/pools/{pool}"))

    async def delete_node(self, cluster: int, node: str) -> None:
        """Delete one member of a pool; the pool's count falls by one."""
        template = "/lke/clusters/{cluster}/nodes/{node}"
        await self._http.send(ApiCall("DELETE", template, f"/lke/clusters/{cluster}/nodes/{node}"))

    async def list_instances(self, query: dict[str, Any]) -> tuple[LinodeInstance, ...]:
        """Instances that an ``X-Filter`` selects. ``+contains`` is a substring match: check what comes back."""
        return await self._list("/linode/instances", "/linode/instances", LinodeInstance, query)

    async def get_instance(self, instance: int) -> LinodeInstance:
        """An instance."""
        return await self._decoded(ApiCall("GET", _INSTANCE, f"/linode/instances/{instance}"), LinodeInstance)

    async def set_instance_tags(self, instance: int, tags: Sequence[str]) -> LinodeInstance:
        """Replace all tags of an instance."""
        call = ApiCall("PUT", _INSTANCE, f"/linode/instances/{instance}", body={"tags": list(tags)})
        return await self._decoded(call, LinodeInstance)

    async def set_instance_firewalls(self, instance: int, firewalls: Sequence[int]) -> None:
        """Replace the firewalls of an instance."""
        template = "/linode/instances/{instance}/firewalls"
        path = f"/linode/instances/{instance}/firewalls"
        await self._http.send(ApiCall("PUT", template, path, body={"firewall_ids": list(firewalls)}))

    async def _list(
        self,
        template: str,
        path: str,
        kind: type[T],
        query: dict[str, Any] | None = None,
    ) -> tuple[T, ...]:
        items: list[T] = []
        for number in range(1, _MAX_PAGES + 1):
            paging = {"page": str(number), "page_size": str(PAGE_SIZE)}
            page: _Page[T] = await self._decoded(
                ApiCall("GET", template, path, CallKind.LIST, query=paging, filter=query),
                _Page[kind],  # type: ignore[valid-type]  # the Struct is made generic at run time
            )
            items.extend(page.data)
            if number >= page.pages:
                return tuple(items)
        raise LinodeTransportError(f"GET {template}", f"more than {_MAX_PAGES} pages", outcome_unknown=False)

    async def _decoded(self, call: ApiCall, kind: type[T]) -> T:
        content = await self._http.send(call)
        try:
            return codec.decode(content, kind)
        except codec.DecodeError as error:
            raise LinodeTransportError(call.route, f"unreadable answer: {error}") from error

    def _count(self, record: CallRecord) -> None:
        self.calls[f"{record.method} {record.route}", record.status] += 1
        if self._on_call is not None:
            self._on_call(record)
