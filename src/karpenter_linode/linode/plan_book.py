"""The plans of the account and their availability, refreshed when they get old, as instance types for a NodeClass."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from karpenter_linode.linode.errors import LinodeApiError
from karpenter_linode.linode.instance_types import build_instance_types
from karpenter_linode.model import codec
from karpenter_linode.ports import CloudError
from karpenter_linode.scheduling.plan_choice import PlanChooser

if TYPE_CHECKING:
    from karpenter_linode.linode.toolbox import Toolbox
    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.model.karpenter import LinodeNodeClass
    from karpenter_linode.model.linode import LinodeType, RegionAvailability


class PlanBook:
    """Types and availability of the cluster's region (spec/linode-provider.md 3.1 and 3.7)."""

    def __init__(self, tools: Toolbox) -> None:
        self._tools = tools
        self._types: tuple[LinodeType, ...] = ()
        self._availability: tuple[RegionAvailability, ...] = ()
        self._types_at: datetime | None = None
        self._availability_at: datetime | None = None
        self._edition = 0
        self._built: dict[bytes, tuple[tuple[int, int], tuple[InstanceType, ...]]] = {}
        self._chooser: tuple[tuple[InstanceType, ...], PlanChooser] | None = None
        self._turn = asyncio.Lock()

    async def instance_types(self, node_class: LinodeNodeClass) -> tuple[InstanceType, ...]:
        """All plans for a NodeClass; the same tuple as before when nothing has changed.

        Raises:
            CloudError: no plan is known.
            QuantityError: a kubelet reservation of the NodeClass is no quantity.
        """
        await self._refresh()
        key, edition = codec.encode(node_class.spec.kubelet), (self._edition, self._tools.unavailable.sequence)
        kept = self._built.get(key)
        if kept is None or kept[0] != edition:
            kept = self._built[key] = (edition, self._build(node_class))
        return kept[1]

    def chooser(self, instance_types: tuple[InstanceType, ...]) -> PlanChooser:
        """Chooses among plans; NodeClaims that come together share what was read of them.

        Args:
            instance_types: what ``instance_types`` returned.
        """
        if self._chooser is None or self._chooser[0] is not instance_types:
            self._chooser = (instance_types, PlanChooser(instance_types))
        return self._chooser[1]

    def _build(self, node_class: LinodeNodeClass) -> tuple[InstanceType, ...]:
        options = self._tools.options
        built = build_instance_types(
            self._types,
            self._availability,
            self._tools.cluster.region,
            node_class=node_class,
            ignore_dra_requests=options.ignore_dra_requests,
            unavailable=self._tools.unavailable.among(plan.id for plan in self._types),
            options=options.instance_types,
        )
        if not built:
            raise CloudError(f"no instance types found for region {self._tools.cluster.region}")
        return built

    async def _refresh(self) -> None:
        async with self._turn:
            options, client = self._tools.options, self._tools.client
            try:
                if self._is_old(self._types_at, options.types_ttl):
                    self._types = await client.list_types()
                    self._types_at = self._changed()
                    self._tools.logger.debug("discovered instance types", count=len(self._types))
                if self._is_old(self._availability_at, options.availability_ttl):
                    fresh = await client.region_availability(self._tools.cluster.region)
                    self._availability_at = self._tools.clock.now()
                    if fresh != self._availability:
                        self._availability = fresh
                        self._changed()
                        text, fields = "discovered offerings for instance types", {"instance-type-count": len(fresh)}
                        self._tools.logger.debug(text, **fields)
            except LinodeApiError as error:
                if self._types_at is None or self._availability_at is None:
                    raise
                self._tools.logger.warning("keeping known plans, the API failed", error=str(error))

    def _changed(self) -> datetime:
        self._edition += 1
        self._built.clear()
        return self._tools.clock.now()

    def _is_old(self, since: datetime | None, ttl: float) -> bool:
        return since is None or self._tools.clock.now() - since >= timedelta(seconds=ttl)
