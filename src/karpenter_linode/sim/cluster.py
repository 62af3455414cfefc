"""The embedded cluster: API server, control plane, nodes, devices and cloud. The controller comes from outside."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from karpenter_linode.model.core import Event, Namespace, Taint
from karpenter_linode.model.linode import LinodeType, LKECluster, Region, RegionAvailability
from karpenter_linode.model.timestamps import parse_rfc3339
from karpenter_linode.ports import AlreadyExistsError, NotFoundError
from karpenter_linode.sim.agenda import Agenda
from karpenter_linode.sim.budgets import DisruptionController
from karpenter_linode.sim.claims import ClaimController
from karpenter_linode.sim.context import SimContext
from karpenter_linode.sim.delays import SimDelays
from karpenter_linode.sim.deployments import DeploymentController
from karpenter_linode.sim.events import JournalEvents
from karpenter_linode.sim.garbage import GarbageCollector, PodGarbageCollector
from karpenter_linode.sim.journal import Journal, JournalLogger
from karpenter_linode.sim.kube_api import SimKubeApi
from karpenter_linode.sim.kube_faults import KubeFaults
from karpenter_linode.sim.kube_scheduler import KubeScheduler
from karpenter_linode.sim.kubelet import Kubelet
from karpenter_linode.sim.linode.app import create_app
from karpenter_linode.sim.linode.delays import LinodeDelays
from karpenter_linode.sim.linode.events import NodeBooted
from karpenter_linode.sim.linode.world import DEFAULT_CLUSTER, DEFAULT_DELAYS, LinodeWorld
from karpenter_linode.sim.machine_shape import MachineShape, shape_of
from karpenter_linode.sim.metrics import MemoryMetrics
from karpenter_linode.sim.namespaces import NamespaceController
from karpenter_linode.sim.nodes import Machine, NodeLifecycle
from karpenter_linode.sim.nvidia import DriverBehaviour, NvidiaDriver, device_classes
from karpenter_linode.sim.replica_sets import ReplicaSetController
from karpenter_linode.sim.replicas import ReplicaKeeper
from karpenter_linode.sim.resource_types import RESOURCE_TYPES, served_type, type_of
from karpenter_linode.sim.seeded import SeededRandom
from karpenter_linode.sim.store import Store
from karpenter_linode.sim.taint_eviction import TaintEviction
from karpenter_linode.sim.watches import HISTORY
from karpenter_linode.sim.workloads import DaemonSetController

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from karpenter_linode.ports import Clock
    from karpenter_linode.sim.linode.events import CloudEvent
    from karpenter_linode.sim.stored import Stored

BOOKMARK_SECONDS: Final = 60.0
NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")


class Account(Struct, frozen=True):
    """What the emulated account sees.

    Args:
        types: plans.
        regions: regions.
        availability: rows for plans of limited deployment.
        cluster: the LKE cluster.
    """

    types: tuple[LinodeType, ...]
    regions: tuple[Region, ...] = ()
    availability: tuple[RegionAvailability, ...] = ()
    cluster: LKECluster = DEFAULT_CLUSTER


class SimSettings(Struct, frozen=True):
    """How the world behaves.

    Args:
        delays: of the Kubernetes side.
        linode_delays: of the cloud.
        driver: of the DRA driver.
        default_runtime: how long pods run that do not say; None for ever.
        keep: how much is kept of the journal, of calls and of changes to replay, the latest; None for all.
        event_ttl: how long events are kept, as an API server does; None for ever.
    """

    delays: SimDelays = SimDelays()
    linode_delays: LinodeDelays = DEFAULT_DELAYS
    driver: DriverBehaviour = DriverBehaviour()
    default_runtime: timedelta | None = None
    keep: int | None = None
    event_ttl: timedelta | None = None


DEFAULT_SETTINGS: Final = SimSettings()


class EmbeddedCluster:
    """Everything but the controller. Build it inside the running loop whose clock it is given.

    Args:
        clock: time; its present is the journal's time zero.
        account: what Linode sells, and the LKE cluster.
        seed: decides every name, UID and delay.
        settings: how the world behaves.
        machine_shape: what a plan's kubelet reports.

    Attributes:
        store: the API server's store.
        journal: the story.
        agenda: what is still to come.
        linode: the emulated cloud.
        linode_app: its ASGI face.
        nodes: machines and Node objects.
        driver: the DRA driver.
        faults: latency and faults of the API server, for the clients that ``kube_api`` makes.
        metrics: metrics of the controller.
        kubernetes_version: the release that API server and kubelets are of, like ``1.35``.
    """

    def __init__(
        self,
        clock: Clock,
        account: Account,
        *,
        seed: int,
        settings: SimSettings = DEFAULT_SETTINGS,
        machine_shape: Callable[[LinodeType], MachineShape] = shape_of,
    ) -> None:
        delays = settings.delays
        self.clock = clock
        self.random = SeededRandom(seed)
        self.kubernetes_version = account.cluster.k8s_version
        self._keep, self._event_ttl = settings.keep, settings.event_ttl
        self.journal = Journal(clock, clock.now(), settings.keep)
        self.agenda = Agenda(clock)
        self.store = Store(clock, self.random, history=min(HISTORY, settings.keep or HISTORY))
        self.metrics = MemoryMetrics()
        self._shape = machine_shape
        self.linode = LinodeWorld(
            clock,
            self.random.child("linode"),
            types=account.types,
            regions=account.regions,
            availability=account.availability,
            cluster=account.cluster,
            delays=settings.linode_delays,
        )
        self.linode_app = create_app(self.linode)
        self.faults = KubeFaults(
            self.random.child("api"), latency_seconds=delays.api_latency, watch_lag=delays.watch_lag
        )
        self.context = SimContext(self.store, clock, self.random, delays, self.agenda, self.journal, settings.keep)
        self._build(settings)

    def _build(self, settings: SimSettings) -> None:
        """The parts that listen to the store, in the order in which they hear of a change."""
        context = self.context
        self.collectors = (GarbageCollector(context), PodGarbageCollector(context), NamespaceController(context))
        self.nodes = NodeLifecycle(context)
        self.claims = ClaimController(context)
        self.scheduler = KubeScheduler(context)
        self.kubelet = Kubelet(context, self.nodes, settings.default_runtime)
        self.driver = NvidiaDriver(context, self.nodes, settings.driver)
        self.workloads = DaemonSetController(context)
        self.replica_sets = ReplicaSetController(context)
        self.deployments = DeploymentController(context)
        self.replicas = ReplicaKeeper(context, self.kubelet.is_done)
        self.disruption = DisruptionController(context)
        self.evictions = TaintEviction(context)
        self.linode.subscribe(self._cloud_event)

    def start(self) -> None:
        """Create the namespaces that every cluster has, and start scheduling."""
        for name in NAMESPACES:
            self._create_namespace(name)
        self.agenda.run(self.scheduler.run())
        self.agenda.run(self._send_bookmarks())
        if self._event_ttl is not None:
            self.agenda.run(self._expire_events(self._event_ttl))

    async def _send_bookmarks(self) -> None:
        """Tell all watches, now and then, how far the server has come, as it does for clients that allow it."""
        while True:
            await self.clock.sleep(BOOKMARK_SECONDS)
            for kind in RESOURCE_TYPES:
                self.store.history(kind).bookmark(int(self.store.resource_version))

    async def _expire_events(self, ttl: timedelta) -> None:
        """Drop events that nobody repeated for a while."""
        kind = type_of(Event)
        while True:
            await self.clock.sleep(BOOKMARK_SECONDS)
            oldest = self.clock.now() - ttl
            for event in self.store.list(kind):
                if _last_seen(event) < oldest:
                    self.store.delete(kind, event.name, event.namespace)

    async def stop(self) -> None:
        """Stop everything. Raises the first error that a part of the world met."""
        await self.linode.close()
        await self.agenda.close()
        self.agenda.check()

    # Faces for the controller

    def kube_api(self, user: str = "karpenter") -> SimKubeApi:
        """A client of the API server."""
        return SimKubeApi(self.store, self.clock, user=user, faults=self.faults, keep=self._keep)

    def logger(self, component: str = "karpenter") -> JournalLogger:
        """A logger that writes into the journal."""
        return JournalLogger(self.journal, component)

    def events(self, component: str = "karpenter") -> JournalEvents:
        """An event sink that writes into the store and the journal."""
        return JournalEvents(self.context.recorder(component), self.clock)

    # What users do

    def install_device_classes(self) -> None:
        """Create the DeviceClasses of the driver's chart that do not exist yet."""
        for manifest in device_classes():
            try:
                self.store.create(manifest)
            except AlreadyExistsError:
                continue

    def apply(self, manifests: Iterable[Mapping[str, Any]]) -> tuple[Stored, ...]:
        """As ``kubectl apply``: create what is missing, merge into what exists. Missing namespaces are created.

        Raises:
            NotFoundError: a kind that the cluster does not serve.
            InvalidError: the server's validation refuses an object.
        """
        return tuple(self._apply(manifest) for manifest in manifests)

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "default") -> None:
        """As ``kubectl delete``. Raises NotFoundError."""
        served = served_type(api_version, kind)
        within = namespace if served.namespaced else ""
        found = self.store.get(served, name, within)
        self.journal.step("user", f"{kind} {found.key}", "Deleted")
        self.store.delete(served, name, within)

    def _apply(self, manifest: Mapping[str, Any]) -> Stored:
        served = served_type(str(manifest.get("apiVersion", "")), str(manifest.get("kind", "")))
        metadata = manifest.get("metadata") or {}
        namespace = (metadata.get("namespace") or "default") if served.namespaced else ""
        if namespace and self.store.find(Namespace, namespace) is None:
            self._create_namespace(namespace)
        try:
            current = self.store.get(served, str(metadata.get("name", "")), namespace)
        except NotFoundError:
            stored = self.store.create(manifest)
            self.journal.step("user", f"{served.kind} {stored.key}", "Created")
            return stored
        patch = {key: value for key, value in manifest.items() if key != "status"}
        stored = self.store.patch(served, current.name, patch, namespace=namespace)
        if stored is not current:
            self.journal.step("user", f"{served.kind} {stored.key}", "Configured")
        return stored

    def _create_namespace(self, name: str) -> None:
        if self.store.find(Namespace, name) is None:
            kind = type_of(Namespace)
            self.store.create({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}})

    # What the cloud does

    def _cloud_event(self, event: CloudEvent) -> None:
        subject = f"Node {event.node_name}"
        if isinstance(event, NodeBooted):
            self.journal.step(
                "linode", subject, "Linode booted", providerID=event.provider_id, type=event.instance_type
            )
            self.nodes.booted(self._machine(event))
        else:
            self.journal.step("linode", subject, "Linode is gone", providerID=event.provider_id)
            self.nodes.gone(event.node_name)

    def _machine(self, event: NodeBooted) -> Machine:
        plan = self.linode.types[event.instance_type]
        shape = self._shape(plan)
        return Machine(
            node_name=event.node_name,
            provider_id=event.provider_id,
            instance_type=event.instance_type,
            region=event.region,
            pool_id=str(event.pool_id),
            host_uuid=event.host_uuid,
            capacity=shape.capacity,
            allocatable=shape.allocatable,
            gpus=plan.gpus,
            labels=dict(event.labels),
            taints=tuple(Taint(taint.key, taint.value, taint.effect) for taint in event.taints),
            kubelet_version=f"v{self.kubernetes_version}.0",
        )

    # Where things stand

    @property
    def pending(self) -> int:
        """Things that the control plane has set itself to do, housekeeping aside."""
        return self.agenda.pending


def _last_seen(event: Stored) -> datetime:
    """When an event was last reported; a client may have written one without saying."""
    try:
        return parse_rfc3339(str(event.plain.get("lastTimestamp") or event.metadata["creationTimestamp"]))
    except ValueError:
        return parse_rfc3339(event.metadata["creationTimestamp"])
