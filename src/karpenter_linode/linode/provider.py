"""``CloudProvider`` for LKE (spec/linode-provider.md 4)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from karpenter_linode.linode import tags
from karpenter_linode.linode.cluster_view import (
    ClusterReader,
    ClusterView,
    is_leaving,
    node_pool_of,
)
from karpenter_linode.linode.deletion import Deletion
from karpenter_linode.linode.errors import LinodeNotFoundError
from karpenter_linode.linode.lane_plan import built_for
from karpenter_linode.linode.lanes import Lanes
from karpenter_linode.linode.ledger import Ledger
from karpenter_linode.linode.node_classes import NodeClasses, NodeClassMissingError
from karpenter_linode.linode.plan_book import PlanBook
from karpenter_linode.linode.pool_template import PoolTemplate, pool_template
from karpenter_linode.linode.provider_id import instance_id, provider_id
from karpenter_linode.linode.provider_options import ProviderOptions
from karpenter_linode.linode.toolbox import Toolbox
from karpenter_linode.linode.unavailable import UnavailableOfferings
from karpenter_linode.model import labels
from karpenter_linode.model.instance import CloudInstance, Launched
from karpenter_linode.model.reason import Reason
from karpenter_linode.ports import (
    CloudError,
    CreateError,
    InstanceNotFoundError,
    InsufficientCapacityError,
)
from karpenter_linode.scheduling.resources import allocatable, to_resource_list

if TYPE_CHECKING:
    from karpenter_linode.linode.client import LinodeClient
    from karpenter_linode.linode.discovery import Cluster
    from karpenter_linode.model.core import ResourceList
    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.model.karpenter import LinodeNodeClass, NodeClaim, NodePool
    from karpenter_linode.model.linode import LinodeInstance
    from karpenter_linode.model.quantity import Quantity
    from karpenter_linode.ports import Clock, EventSink, KubeApi, Logger, Random

DEFAULT_OPTIONS: Final = ProviderOptions()
_REMEMBERED: Final = 10_000


class LinodeCloudProvider:
    """Builds nodes as members of LKE pools, on both tiers.

    One process at a time may write (leader election); everything it must know survives in tags and pool counts.

    Args:
        client: the Linode API.
        cluster: what ``discover_cluster`` found.
        kube: where LinodeNodeClasses are read.
        clock: time.
        random: jitter.
        logger: log lines.
        events: Kubernetes events.
        options: settings.
    """

    name = "linode"

    def __init__(
        self,
        client: LinodeClient,
        cluster: Cluster,
        kube: KubeApi,
        *,
        clock: Clock,
        random: Random,
        logger: Logger,
        events: EventSink,
        options: ProviderOptions = DEFAULT_OPTIONS,
    ) -> None:
        unavailable = UnavailableOfferings(clock, logger, cluster.region)
        reader = ClusterReader(client, cluster, clock)
        self._tools = Toolbox(
            client,
            cluster,
            reader,
            Ledger(clock),
            unavailable,
            clock,
            random,
            logger,
            events,
            options,
            clock.now(),
        )
        self._plans = PlanBook(self._tools)
        self._node_classes = NodeClasses(kube, events)
        self._lanes = Lanes(self._tools)
        self._deletion = Deletion(self._tools, self._lanes)
        self._begun: dict[str, PoolTemplate] = {}

    async def close(self) -> None:
        """Stop what runs in the background; machines that were asked for stay asked for."""
        await self._lanes.close()

    async def create(self, node_claim: NodeClaim) -> Launched:
        """Build, or find what was built for this NodeClaim before: called again, it never buys twice.

        Raises:
            InsufficientCapacityError: no plan that the NodeClaim allows can be had now, or its NodeClass is missing.
            NodeClassNotReadyError: the NodeClass can't be used now.
            CreateError: a reason for the ``Launched`` condition; call again.
            CloudError: the API failed; call again.
        """
        try:
            node_class = await self._node_classes.usable(node_claim)
        except NodeClassMissingError as error:
            raise InsufficientCapacityError(f"resolving nodeclass, {error}") from error
        instance_types = await self._resolved_types(node_class)
        instance = await self._obtain(node_claim, node_class, instance_types)
        self._begun.pop(node_claim.name, None)
        chosen = next((item for item in instance_types if item.name == instance.type), None)
        if chosen is None:
            raise CloudError(f"instance {instance.id} of NodeClaim {node_claim.name} has unknown plan {instance.type}")
        return _launched(instance, chosen, node_class)

    async def delete(self, provider_id: str) -> None:
        """Start deletion; called repeatedly until it raises InstanceNotFoundError.

        Raises:
            InstanceNotFoundError: the instance is gone, or the id is none of ours.
            CloudError: the API failed, or the instance isn't ours to delete; never a sign that it is gone.
        """
        await self._deletion.delete(instance_id(provider_id))

    async def get(self, provider_id: str) -> CloudInstance:
        """One instance of this cluster.

        Raises:
            InstanceNotFoundError: it doesn't exist, or belongs to another cluster.
            CloudError: the API failed.
        """
        number = instance_id(provider_id)
        try:
            instance = await self._tools.client.get_instance(number)
        except LinodeNotFoundError as error:
            raise InstanceNotFoundError(f"instance {number} not found: {error}") from error
        if instance.lke_cluster_id != self._tools.cluster.id and tags.MANAGED not in instance.tags:
            raise InstanceNotFoundError(f"instance {number} is no member of cluster {self._tools.cluster.label}")
        return self._sighting(instance, None)

    async def list(self) -> tuple[CloudInstance, ...]:
        """All instances of this provider in this cluster, ordered by id; unclaimed pool members too.

        Raises:
            CloudError: any part of the list failed; it is never partial.
        """
        view = await self._tools.reader.read()
        return tuple(self._sighting(view.instances[item], view) for item in sorted(view.instances))

    async def instance_types(self, node_pool: NodePool) -> tuple[InstanceType, ...]:
        """All plans for a pool, unavailable ones included, ordered by name.

        Raises:
            CloudError: the NodeClass is missing or cannot be read, or no plan is known.
        """
        node_class = await self._node_classes.of_node_pool(node_pool)
        try:
            return await self._plans.instance_types(node_class)
        except ValueError as error:
            # One NodeClass with a bad amount must not stop the pools of the others.
            raise CloudError(f"LinodeNodeClass {node_class.name}: spec.kubelet: {error}") from error

    async def _resolved_types(self, node_class: LinodeNodeClass) -> tuple[InstanceType, ...]:
        try:
            return await self._plans.instance_types(node_class)
        except (CloudError, ValueError) as error:
            raise CreateError("InstanceTypeResolutionFailed", f"Error resolving instance types: {error}") from error

    async def _obtain(
        self,
        node_claim: NodeClaim,
        node_class: LinodeNodeClass,
        instance_types: tuple[InstanceType, ...],
    ) -> LinodeInstance:
        try:
            template = self._begun.get(node_claim.name) or self._template(node_claim, node_class, instance_types)
        except InsufficientCapacityError:
            # No plan can be had any more; one may have been built before that.
            built = built_for(await self._tools.reader.read(), node_claim.name)
            if built:
                return built[0]
            raise
        self._remember(node_claim.name, template)
        try:
            return await self._lanes.of(template.identity).obtain(node_claim, template)
        except InsufficientCapacityError:
            self._begun.pop(node_claim.name, None)
            raise

    def _template(
        self,
        node_claim: NodeClaim,
        node_class: LinodeNodeClass,
        instance_types: tuple[InstanceType, ...],
    ) -> PoolTemplate:
        choice = self._plans.chooser(instance_types).cheapest(node_claim)
        if isinstance(choice, Reason):
            raise InsufficientCapacityError(choice.message)
        options = self._tools.options
        return pool_template(node_claim, node_class, choice.instance_type.name, self._tools.cluster, options.pool_tags)

    def _remember(self, node_claim: str, template: PoolTemplate) -> None:
        """A NodeClaim stays with the pool it began to wait for, lest a second one is bought for it elsewhere."""
        self._begun[node_claim] = template
        if len(self._begun) > _REMEMBERED:
            del self._begun[next(iter(self._begun))]

    def _sighting(self, instance: LinodeInstance, view: ClusterView | None) -> CloudInstance:
        claimed = tags.value_of(instance.tags, labels.NODECLAIM_TAG)
        return CloudInstance(
            provider_id=provider_id(instance.id),
            instance_type=instance.type or "",
            node_claim=claimed or self._tools.ledger.holder(instance.id),
            node_pool=_node_pool(instance, view),
            created=_timestamp(instance.created),
            deleting=is_leaving(instance),
        )


def _node_pool(instance: LinodeInstance, view: ClusterView | None) -> str:
    pools = () if view is None else view.pools
    pool = next((item for item in pools if view is not None and item.id == view.pool_of.get(instance.id)), None)
    return node_pool_of(None if pool is None else pool.labels, (*instance.tags, *(() if pool is None else pool.tags)))


def _timestamp(text: str) -> datetime | None:
    """Linode writes UTC without saying so."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None


def _launched(instance: LinodeInstance, chosen: InstanceType, node_class: LinodeNodeClass) -> Launched:
    hashes = (labels.LINODE_NODE_CLASS_HASH, labels.LINODE_NODE_CLASS_HASH_VERSION)
    annotations = node_class.metadata.annotations
    return Launched(
        provider_id=provider_id(instance.id),
        instance_type=chosen.name,
        capacity=_without_zeros(chosen.capacity),
        allocatable=_without_zeros(to_resource_list(allocatable(chosen))),
        labels={spec.key: spec.values[0] for spec in chosen.requirements if len(spec.values) == 1},
        annotations={key: annotations[key] for key in hashes if key in annotations},
    )


def _without_zeros(amounts: ResourceList) -> dict[str, Quantity]:
    return {name: amount for name, amount in amounts.items() if amount.nano != 0}
