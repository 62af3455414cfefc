"""The controller process: checks, leads, runs the controllers, and ends in order."""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.controllers.mirror import Mirror
from karpenter_linode.controllers.runtime import Runtime
from karpenter_linode.kube.api import LightkubeApi
from karpenter_linode.kube.config import SERVICE_ACCOUNT, connect
from karpenter_linode.kube.errors import ConnectionConfigError
from karpenter_linode.kube.events import KubeEvents
from karpenter_linode.kube.http import KubeCallRecord, KubeHttp
from karpenter_linode.kube.lease import Candidate, LeaderElector, LeaseLostError
from karpenter_linode.linode.provider import LinodeCloudProvider
from karpenter_linode.model.core import Node
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.operator.checks import CheckError, check_api_server, check_kinds, check_linode, check_permissions
from karpenter_linode.operator.gate import GatedTransport, WriteGate
from karpenter_linode.operator.health import HttpServer, ListenError, health_app, metrics_app
from karpenter_linode.operator.linode_connection import connect_linode
from karpenter_linode.operator.metrics import PrometheusMetrics
from karpenter_linode.operator.system import SystemClock, SystemRandom
from karpenter_linode.operator.wiring import Operator, controllers_of, settings_from

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from lightkube.config.kubeconfig import SingleConfig

    from karpenter_linode.operator.flags import ControllerSettings
    from karpenter_linode.ports import Logger

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
_DRAIN_SECONDS: Final = 30.0


class ControllerProcess:
    """One life of the controller.

    Args:
        settings: settings.
        config: the cluster and who we are.
        environ: environment variables of the Linode client.
        logger: log lines.
        version: of this program.
    """

    def __init__(
        self,
        settings: ControllerSettings,
        config: SingleConfig,
        environ: Mapping[str, str],
        logger: Logger,
        version: str,
    ) -> None:
        self._settings, self._config, self._environ = settings, config, environ
        self._logger, self._version = logger, version
        self._clock, self._random = SystemClock(), SystemRandom()
        self.metrics = PrometheusMetrics(logger)
        self.leading = False
        self._checked = False
        self._runtime: Runtime | None = None
        self._api: LightkubeApi | None = None
        self._events: KubeEvents | None = None

    async def run(self, stop: asyncio.Event) -> int:
        """Run until told to stop, or until the lease is lost; returns the exit code.

        Args:
            stop: set to end.
        """
        for note in self._settings.notes:
            self._logger.warning(note)
        spread = self._settings.options.default_spread
        if spread:
            named = [f"{item.topology_key}: maxSkew {item.max_skew}, {item.when_unsatisfiable}" for item in spread]
            self._logger.info("pods without topology spread constraints get the default ones", constraints=named)
        self._logger.debug("discovered karpenter version", version=self._version)
        servers: list[HttpServer] = []
        try:
            servers += [
                HttpServer(metrics_app(self.metrics, self._refresh), self._settings.metrics_port),
                HttpServer(
                    health_app({"manager": self._not_ready, "crd": self._unchecked}), self._settings.health_probe_port
                ),
            ]
            for server in servers:
                server.start()
            return await self._connected(stop)
        except (CheckError, ConnectionConfigError, ListenError) as error:
            self._logger.error("refusing to start", error=str(error))  # noqa: TRY400 - one clear line, no stack
            return EXIT_FAILED
        finally:
            await asyncio.gather(*(server.stop() for server in servers))

    async def _connected(self, stop: asyncio.Event) -> int:
        """Everything between the first and the last connection."""
        agent = f"karpenter/{self._version}"
        own = KubeHttp(connect(self._config, user_agent=agent), self._clock, on_call=self._count)
        try:
            elector = self._elector(own) if self._settings.leader_election else None
            gate = WriteGate(elector.check if elector is not None else None)
            client = connect(self._config, user_agent=agent, wrap=lambda inner: GatedTransport(inner, gate))
            http = KubeHttp(
                client, self._clock, qps=self._settings.kube_qps, burst=self._settings.kube_burst, on_call=self._count
            )
            try:
                return await self._until_stopped(stop, self._live(own, http, gate, elector))
            finally:
                unfinished = await gate.drain(_DRAIN_SECONDS)
                if unfinished:
                    self._logger.warning("ending with unfinished writes", count=unfinished)
                await http.close()
                if elector is not None:
                    await elector.release()
        finally:
            await own.close()

    async def _until_stopped(self, stop: asyncio.Event, life: Coroutine[Any, Any, int]) -> int:
        living = asyncio.create_task(life, name="life")
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait((living, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if living.done():
            return living.result()
        self._logger.info("stopping")
        living.cancel()
        await asyncio.wait((living,))
        if not living.cancelled() and living.exception() is not None:
            self._logger.error("stopping failed", error=str(living.exception()))
            return EXIT_FAILED
        return EXIT_OK

    async def _live(self, own: KubeHttp, http: KubeHttp, gate: WriteGate, elector: LeaderElector | None) -> int:
        """Check, lead, work. Ends with the lease, or by being cancelled."""
        linode = connect_linode(
            self._environ,
            gate,
            self.metrics,
            clock=self._clock,
            random=self._random,
            logger=self._logger,
            version=self._version,
        )
        provider: LinodeCloudProvider | None = None
        try:
            await check_api_server(own, self._clock, self._logger)
            await check_kinds(own, with_devices=not self._settings.options.ignore_dra_requests, logger=self._logger)
            await check_permissions(own, self._settings, self._namespace(), self._logger)
            cluster = await check_linode(linode, self._settings, self._logger)
            self._checked = True
            self._api = LightkubeApi(http, clock=self._clock, random=self._random, logger=self._logger)
            self._events = KubeEvents(http, self._logger)
            provider = LinodeCloudProvider(
                linode,
                cluster,
                self._api,
                clock=self._clock,
                random=self._random,
                logger=self._logger,
                events=self._events,
                options=self._settings.provider,
            )
            await self._work(provider, self._api, self._events, elector, gate)
        except LeaseLostError as error:
            self._logger.error("leader election lost", error=str(error))  # noqa: TRY400 - one clear line, no stack
            return EXIT_FAILED
        finally:
            if provider is not None:
                await provider.close()
            await linode.close()
        return EXIT_OK

    async def _work(
        self,
        provider: LinodeCloudProvider,
        api: LightkubeApi,
        events: KubeEvents,
        elector: LeaderElector | None,
        gate: WriteGate,
    ) -> None:
        runtime = self._runtime = Runtime(
            api,
            provider,
            self._clock,
            self._random,
            events,
            self.metrics,
            self._logger,
            settings_from(self._settings.options),
        )
        controllers = controllers_of(runtime)
        mirrors = Operator(
            [item for item in controllers if isinstance(item, Mirror)], self._clock, self._random, self._logger
        )
        others = Operator(
            [item for item in controllers if not isinstance(item, Mirror)], self._clock, self._random, self._logger
        )
        writer = asyncio.create_task(events.run(), name="events")
        settler = asyncio.create_task(self._settle(runtime), name="settle")
        try:
            if elector is not None and self._settings.warmup:
                mirrors.start()
            if elector is not None:
                await elector.acquire()
            if elector is None or not self._settings.warmup:
                mirrors.start()
            self.leading = True
            others.start()
            await (elector.hold() if elector is not None else asyncio.Event().wait())
        finally:
            await events.drain()
            # Shut the gate before anything is cut short, so that no answer to a write under way is lost.
            await gate.drain(_DRAIN_SECONDS)
            await others.stop()
            await mirrors.stop()
            for task in (writer, settler):
                task.cancel()
            await asyncio.gather(writer, settler, return_exceptions=True)
            self.leading = False

    async def _settle(self, runtime: Runtime) -> None:
        """What the first lists brought lives long: the garbage collector need not look at it again and again."""
        await runtime.wait_synced()
        self._logger.info("cluster state synced", nodes=self._node_count(runtime))
        gc.collect()
        gc.freeze()

    def _elector(self, own: KubeHttp) -> LeaderElector:
        identity = f"{socket.gethostname()}_{self._random.token(12)}"
        return LeaderElector(
            own,
            Candidate(self._namespace(), self._settings.lease_name, identity),
            clock=self._clock,
            random=self._random,
            logger=self._logger,
        )

    def _namespace(self) -> str:
        """Where the lease is: as set, else our own namespace."""
        own = Path(SERVICE_ACCOUNT, "namespace")
        if self._settings.lease_namespace:
            return self._settings.lease_namespace
        if not os.environ.get("KUBECONFIG") and own.is_file():
            return own.read_text(encoding="utf-8").strip()
        return self._environ.get("SYSTEM_NAMESPACE") or self._config.namespace

    # What the servers ask

    def _unchecked(self) -> str:
        return "" if self._checked else "the checks at the start have not passed yet"

    def _not_ready(self) -> str:
        """A replica that waits for the lease is ready; one that leads is ready once it knows the cluster."""
        if not self.leading or self._runtime is None:
            return ""
        missing = self._runtime.state.unsynced_kinds()
        return f"not listed yet: {', '.join(missing)}" if missing else ""

    def _refresh(self) -> None:
        metrics = self.metrics
        build = {"version": self._version, "goversion": "", "goarch": platform.machine(), "commit": ""}
        metrics.set_gauge("karpenter_build_info", build, 1)
        metrics.set_gauge("leader_election_master_status", {"name": self._settings.lease_name}, int(self.leading))
        if self._runtime is not None:
            metrics.set_gauge("karpenter_cluster_state_synced", {}, int(self._runtime.state.synced()))
            metrics.set_gauge("karpenter_cluster_state_node_count", {}, self._node_count(self._runtime))
        if self._api is not None and self._events is not None:
            watching = self._api.watching
            metrics.clear("karpenter_linode_watch_staleness_seconds")
            for plural, seconds in watching.staleness().items():
                metrics.set_gauge("karpenter_linode_watch_staleness_seconds", {"resource": plural}, seconds)
            metrics.set_gauge("karpenter_linode_watch_reconnects", {}, watching.reconnects)
            metrics.set_gauge("karpenter_linode_unreadable_objects", {}, watching.unreadable_objects)
            metrics.set_gauge("karpenter_linode_events_dropped", {}, self._events.dropped)

    def _node_count(self, runtime: Runtime) -> int:
        nodes, claims = runtime.state.all(Node), runtime.state.all(NodeClaim)
        joined = {claim.status.node_name for claim in claims} & {node.name for node in nodes}
        return len(nodes) + len(claims) - len(joined)

    def _count(self, record: KubeCallRecord) -> None:
        call = record.call
        self.metrics.increment("client_go_request_total", {"code": str(record.code), "method": record.method})
        group, _, version = call.api_version.rpartition("/")
        labels = {
            "verb": call.verb,
            "group": group,
            "version": version,
            "kind": call.plural,
            "subresource": call.subresource,
        }
        self.metrics.observe("client_go_request_duration_seconds", labels, record.seconds)
