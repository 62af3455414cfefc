"""``linode_story``: runs a coroutine in virtual time beside an emulated Linode account and providers that serve it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from msgspec.structs import replace

from karpenter_linode.linode.client import LinodeClient
from karpenter_linode.linode.discovery import discover_cluster
from karpenter_linode.linode.http import ClientOptions
from karpenter_linode.linode.provider import LinodeCloudProvider
from karpenter_linode.linode.provider_options import ProviderOptions
from karpenter_linode.linode.tables import bundled_regions, bundled_types
from karpenter_linode.model import labels
from karpenter_linode.model.core import Taint
from karpenter_linode.model.karpenter import (
    LinodeNodeClass,
    LinodeNodeClassSpec,
    LinodeNodeClassStatus,
    NodeClaim,
    NodeClaimResources,
    NodeClaimSpec,
    NodeClassRef,
    NodePool,
)
from karpenter_linode.model.meta import Condition, ObjectMeta
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
from karpenter_linode.ports import NotFoundError
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.linode.app import create_app
from karpenter_linode.sim.linode.faults import LinodeFaults
from karpenter_linode.sim.linode.world import DEFAULT_CLUSTER, DEFAULT_DELAYS, LinodeWorld
from karpenter_linode.sim.loop import run_virtual
from karpenter_linode.sim.seeded import SeededRandom

if TYPE_CHECKING:
    from karpenter_linode.sim.linode.delays import LinodeDelays
    from karpenter_linode.sim.linode.limits import RateLimits

# The same examples each time, however slow the machine; `--hypothesis-profile=default` looks for new ones.
hypothesis_settings.register_profile(
    "fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
hypothesis_settings.load_profile("fixed")

START = datetime(2026, 10, 1, tzinfo=UTC)


class NodeClassShelf:
    """The part of the Kubernetes API that the provider reads."""

    def __init__(self) -> None:
        self.by_name = {}

    async def get(self, kind: Any, name: Any, namespace: str = "") -> Any:
        if name not in self.by_name:
            raise NotFoundError(f'linodenodeclasses.karpenter.k8s.linode "{name}" not found')
        return self.by_name[name]


class Notebook:
    """Events and log lines, as they came."""

    def __init__(self) -> None:
        self.events = []
        self.lines = []

    def publish(self, obj: Any, event_type: str, reason: str, message: str, **_: Any) -> None:
        self.events.append((obj.name, event_type, reason, message))

    def _note(self, event: Any, **fields: Any) -> None:
        self.lines.append((event, fields))

    debug = info = warning = error = _note


class LinodeLab:
    """An account with one LKE cluster, and processes that serve it."""

    def __init__(
        self,
        *,
        tier: str = "standard",
        cluster_name: str = "lab",
        delays: LinodeDelays = DEFAULT_DELAYS,
        options: ProviderOptions | None = None,
        limits: RateLimits | None = None,
        client_options: ClientOptions | None = None,
    ) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop(), START)
        self.faults = LinodeFaults()
        cluster = replace(DEFAULT_CLUSTER, tier=tier, label=cluster_name)
        if tier == "enterprise":
            cluster = replace(cluster, k8s_version="v1.34.6+lke2")
        self.world = LinodeWorld(
            self.clock,
            SeededRandom(7).child("world"),
            types=bundled_types(),
            regions=bundled_regions(),
            cluster=cluster,
            delays=delays,
            faults=self.faults,
        )
        self.cloud_events = []
        self.world.subscribe(self.cloud_events.append)
        self.app = create_app(self.world, limits=limits)
        self.kube = NodeClassShelf()
        self.notebook = Notebook()
        self.options = options or ProviderOptions()
        self.client_options = client_options or ClientOptions()
        self.cluster_id, self.cluster_name = cluster.id, cluster_name
        self.add_node_class()
        self._providers = []

    def client(self) -> LinodeClient:
        return LinodeClient(
            "http://linode",
            "a-token",
            clock=self.clock,
            random=SeededRandom(3),
            transport=httpx2.ASGITransport(app=self.app),
            options=self.client_options,
        )

    async def provider(self) -> Any:
        """A fresh process: it knows nothing but what the API tells."""
        client = self.client()
        provider = LinodeCloudProvider(
            client,
            await discover_cluster(client, self.cluster_name),
            self.kube,
            clock=self.clock,
            random=SeededRandom(4),
            logger=self.notebook,
            events=self.notebook,
            options=self.options,
        )
        self._providers.append(provider)
        return provider

    def add_node_class(
        self,
        name: str = "default",
        *,
        ready: str = "True",
        observed: int = 1,
        deleting: Any = False,
        annotations: Any = None,
        **spec: Any,
    ) -> Any:
        condition = Condition(type="Ready", status=ready, reason="Ready", message="", observed_generation=observed)
        self.kube.by_name[name] = LinodeNodeClass(
            metadata=ObjectMeta(
                name=name,
                generation=1,
                annotations=annotations or {},
                deletion_timestamp=START if deleting else None,
            ),
            spec=LinodeNodeClassSpec(**spec),
            status=LinodeNodeClassStatus(conditions=(condition,)),
        )

    def claim(
        self,
        name: str,
        plans: tuple[str, ...] = ("g6-standard-2",),
        *,
        node_pool: str = "pool",
        node_class: str = "default",
        extra_labels: dict[str, str] | None = None,
        requirements: tuple[NodeSelectorRequirement, ...] = (),
        requests: dict[str, str] | None = None,
        taints: tuple[tuple[str, str, str], ...] = (),
    ) -> NodeClaim:
        wanted = [NodeSelectorRequirement(labels.INSTANCE_TYPE, "In", tuple(plans))] if plans else []
        return NodeClaim(
            metadata=ObjectMeta(
                name=name,
                uid=f"uid-{name}",
                labels={labels.NODEPOOL: node_pool, labels.LINODE_NODE_CLASS: node_class, **(extra_labels or {})},
            ),
            spec=NodeClaimSpec(
                taints=tuple(Taint(*taint) for taint in taints),
                requirements=(*wanted, *requirements),
                resources=NodeClaimResources(
                    {key: Quantity.parse(value) for key, value in (requests or {"cpu": "1"}).items()},
                ),
                node_class_ref=NodeClassRef(labels.LINODE_GROUP, "LinodeNodeClass", node_class),
            ),
        )

    def node_pool(self, node_class: str = "default") -> Any:
        pool = NodePool(metadata=ObjectMeta(name="pool", uid="uid-pool"))
        template = replace(
            pool.spec.template,
            spec=replace(pool.spec.template.spec, node_class_ref=NodeClassRef(name=node_class)),
        )
        return replace(pool, spec=replace(pool.spec, template=template))

    @property
    def pools(self) -> Any:
        return self.world.pools.of(self.cluster_id)

    def machines(self) -> Any:
        """Linodes that aren't on their way out."""
        return [machine for machine in self.world.machines.all() if machine.status != "deleting"]

    def claim_tags(self) -> Any:
        """How many Linodes carry each claim tag."""
        written = (machine.coming_tags or machine.tags for machine in self.machines())
        return Counter(tag for tags in written for tag in tags if tag.startswith(f"{labels.NODECLAIM_TAG}="))

    def writes(self, client: Any) -> Any:
        return {key: count for key, count in client.calls.items() if not key[0].startswith("GET")}

    async def close(self) -> None:
        for provider in self._providers:
            await provider.close()
        await self.world.close()


@pytest.fixture
def linode_story() -> Any:
    """``linode_story(story, **settings)`` runs ``async def story(lab)``; no NodeClaim ever ends with two Linodes."""
    logging.getLogger("httpx2").setLevel(logging.WARNING)

    def run(story: Any, **settings: Any) -> Any:
        async def main() -> Any:
            loop = asyncio.get_running_loop()
            failures = []
            loop.set_exception_handler(lambda _, context: failures.append(context))
            lab = LinodeLab(**settings)
            try:
                result = await story(lab)
                doubles = {tag: count for tag, count in lab.claim_tags().items() if count > 1}
                assert not doubles, f"two Linodes for one NodeClaim: {doubles}"
            finally:
                await lab.close()
            assert not failures
            return result

        return run_virtual(main())

    return run
