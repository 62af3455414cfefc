"""The controller process: checks, leads, runs the controllers, and ends in order."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from karpenter_linode.kube.api import LightkubeApi
from karpenter_linode.kube.config import SERVICE_ACCOUNT, connect
from karpenter_linode.kube.errors import ConnectionConfigError
from karpenter_linode.kube.events import KubeEvents
from karpenter_linode.kube.http import KubeCallRecord, KubeHttp
from karpenter_linode.kube.lease import Candidate, LeaderElector, LeaseLostError
from karpenter_linode.linode.provider import LinodeCloudProvider
from karpenter_linode.operator.checks import CheckError, check_api_server, check_kinds, check_linode, check_permissions
from karpenter_linode.operator.gate import GatedTransport, WriteGate
from karpenter_linode.operator.health import HttpServer, ListenError, health_app, metrics_app
from karpenter_linode.operator.linode_connection import connect_linode
from karpenter_linode.operator.metered_cloud import MeteredCloud
from karpenter_linode.operator.metrics import PrometheusMetrics
from karpenter_linode.operator.permission_watch import PermissionWatch
from karpenter_linode.operator.scrape import Scrape
from karpenter_linode.operator.system import SystemClock, SystemRandom
from karpenter_linode.operator.token_scopes import GrantedScopes
from karpenter_linode.operator.work import DRAIN_SECONDS, Tools, Work

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from lightkube.config.kubeconfig import SingleConfig

    from karpenter_linode.operator.flags import ControllerSettings
    from karpenter_linode.ports import Logger

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1


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
        metrics = PrometheusMetrics(logger)
        scrape = Scrape(metrics, version, settings.lease_name, observability=settings.observability)
        self._tools = Tools(settings, SystemClock(), SystemRandom(), metrics, scrape, logger)
        self._checked = False
        self._work: Work | None = None
        self._permissions: PermissionWatch | None = None

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
        ready = {"manager": self._not_ready, "crd": self._unchecked, "rbac": self._forbidden}
        try:
            servers += [
                HttpServer(metrics_app(self._tools.scrape.text), self._settings.metrics_port),
                HttpServer(health_app(ready), self._settings.health_probe_port),
            ]
            for text, server in zip(("serving metrics", "serving health probes"), servers, strict=True):
                server.start()
                self._logger.info(text, port=server.port)
            return await self._connected(stop)
        except CheckError as error:
            self._logger.error(error.said, error=str(error))  # noqa: TRY400 - one clear line, no stack
            return EXIT_FAILED
        except (ConnectionConfigError, ListenError) as error:
            self._logger.error(CheckError.said, error=str(error))  # noqa: TRY400 - likewise
            return EXIT_FAILED
        finally:
            await asyncio.gather(*(server.stop() for server in servers))

    async def _connected(self, stop: asyncio.Event) -> int:
        """Everything between the first and the last connection."""
        agent = f"karpenter/{self._version}"
        own = KubeHttp(connect(self._config, user_agent=agent), self._tools.clock, on_call=self._count)
        try:
            elector = self._elector(own) if self._settings.leader_election else None
            gate = WriteGate(elector.check if elector is not None else None)
            client = connect(self._config, user_agent=agent, wrap=lambda inner: GatedTransport(inner, gate))
            http = KubeHttp(
                client,
                self._tools.clock,
                qps=self._settings.kube_qps,
                burst=self._settings.kube_burst,
                on_call=self._count,
            )
            try:
                return await self._until_stopped(stop, self._live(own, http, gate, elector))
            finally:
                unfinished = await gate.drain(DRAIN_SECONDS)
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
        granted = GrantedScopes()
        linode = connect_linode(
            self._environ,
            gate,
            self._tools.metrics,
            granted,
            clock=self._tools.clock,
            random=self._tools.random,
            logger=self._logger,
            version=self._version,
        )
        provider: LinodeCloudProvider | None = None
        asking: asyncio.Task[None] | None = None
        try:
            await check_api_server(own, self._tools.clock, self._logger)
            await check_kinds(own, with_devices=not self._settings.options.ignore_dra_requests, logger=self._logger)
            wanted = await check_permissions(own, self._settings, self._namespace(), self._logger)
            cluster = await check_linode(linode, granted, self._settings, self._logger)
            self._checked = True
            self._permissions = PermissionWatch(own, wanted, self._tools.clock, self._logger)
            asking = asyncio.create_task(self._permissions.run(), name="permissions")
            api = LightkubeApi(http, clock=self._tools.clock, random=self._tools.random, logger=self._logger)
            events = KubeEvents(http, self._logger)
            provider = LinodeCloudProvider(
                linode,
                cluster,
                api,
                clock=self._tools.clock,
                random=self._tools.random,
                logger=self._logger,
                events=events,
                options=self._settings.provider,
            )
            cloud = MeteredCloud(provider, cluster.tier, self._tools.clock, self._tools.metrics)
            self._work = Work(self._tools, api, cloud, events, gate)
            await self._work.run(elector)
        except LeaseLostError as error:
            self._logger.error("leader election lost", error=str(error))  # noqa: TRY400 - one clear line, no stack
            return EXIT_FAILED
        finally:
            if asking is not None:
                asking.cancel()
            if provider is not None:
                await provider.close()
            await linode.close()
        return EXIT_OK

    def _elector(self, own: KubeHttp) -> LeaderElector:
        identity = f"{socket.gethostname()}_{self._tools.random.token(12)}"
        return LeaderElector(
            own,
            Candidate(self._namespace(), self._settings.lease_name, identity),
            clock=self._tools.clock,
            random=self._tools.random,
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
        return self._work.not_ready() if self._work is not None else ""

    def _forbidden(self) -> str:
        return self._permissions.problem() if self._permissions is not None else ""

    def _count(self, record: KubeCallRecord) -> None:
        call, metrics, code = record.call, self._tools.metrics, str(record.code)
        metrics.increment("client_go_request_total", {"code": code, "method": record.method})
        host = urlsplit(self._config.cluster.server).netloc
        metrics.increment("rest_client_requests_total", {"code": code, "method": record.method, "host": host})
        group, _, version = call.api_version.rpartition("/")
        labels = {
            "verb": call.verb,
            "group": group,
            "version": version,
            "kind": call.plural,
            "subresource": call.subresource,
        }
        metrics.observe("client_go_request_duration_seconds", labels, record.seconds)
        if self._permissions is not None:
            self._permissions.answered(record.code)
