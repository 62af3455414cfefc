"""Runs a real Kubernetes control plane on loopback: etcd, API server, scheduler and controller manager, no kubelet.

Everything is the real thing as released; only the nodes are missing, and played through the API by whoever needs them.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import httpx2
from server_process import ServerError, ServerProcess

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_POLL_SECONDS = 0.05


class ControlPlane:
    """One control plane, in its own directory, with credentials made anew.

    A context manager: it is ready inside, and nothing of it runs afterwards.
    """

    def __init__(self, binary: Path, directory: Path, *, start_seconds: float = 300.0) -> None:
        """Reserves a port and writes the credentials; nothing runs yet.

        Args:
            binary: The multi-call binary of `controlplane/`.
            directory: An empty or missing folder for state, credentials and logs. Its path must be short enough for a
                Unix socket in it (some 90 characters).
            start_seconds: How long any one part may take to be ready.
        """
        (directory / "logs").mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.credentials = directory / "credentials"
        self._start_seconds = start_seconds
        self._port = _reserve_port()
        self.url = f"https://127.0.0.1:{self._port.getsockname()[1]}"
        make_credentials = [str(binary), "certs", str(self.credentials), self.url]
        subprocess.run(make_credentials, check=True)  # noqa: S603  # our own binary
        self._socket = directory / "etcd.sock"
        self.etcd = self._server(binary, "etcd", self._etcd_flags())
        self.api_server = self._server(binary, "kube-apiserver", self._api_server_flags())
        self.scheduler = self._server(binary, "kube-scheduler", self._client_flags("kube-scheduler"))
        self.controller_manager = self._server(binary, "kube-controller-manager", self._controller_manager_flags())

    @property
    def servers(self) -> tuple[ServerProcess, ...]:
        """The four processes, in the order in which they start."""
        return (self.etcd, self.api_server, self.controller_manager, self.scheduler)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.credentials / "admin.kubeconfig"

    def http_client(self, token: str | None = None) -> httpx2.Client:
        """A client for paths like `/api/v1/nodes`: as the owner of the bearer `token`, else as the administrator."""
        context = ssl.create_default_context(cafile=str(self.credentials / "ca.crt"))
        headers = {}
        if token is None:
            context.load_cert_chain(self.credentials / "admin.crt", self.credentials / "admin.key")
        else:
            headers["Authorization"] = f"Bearer {token}"
        return httpx2.Client(base_url=self.url, verify=context, headers=headers, timeout=120.0, trust_env=False)

    def start(self) -> None:
        """Starts all parts and returns when the API server is ready and the controllers work.

        Raises:
            ServerError: a part ended or did not get ready; the message has the end of its log.
        """
        try:
            self.start_etcd()
            self.start_api_server()
            self.controller_manager.start()
            self.scheduler.start()
            with self.http_client() as client:
                # The first thing that the controllers make, and what a pod needs before it can be created.
                self._wait(self.controller_manager, lambda: _serves(client, _DEFAULT_SERVICE_ACCOUNT))
        except BaseException:
            self.stop()
            raise

    def revive(self) -> None:
        """Starts what does not run: a test that failed may have left a part dead."""
        for server, start in (
            (self.etcd, self.start_etcd),
            (self.api_server, self.start_api_server),
            (self.controller_manager, self.controller_manager.start),
            (self.scheduler, self.scheduler.start),
        ):
            if not server.runs():
                server.kill()
                start()

    def start_etcd(self) -> None:
        """Starts etcd and returns when it takes connections."""
        self.etcd.start()
        self._wait(self.etcd, lambda: _accepts(self._socket))

    def start_api_server(self) -> None:
        """Starts the API server, or starts it again on the same port, and returns when it is ready."""
        self.api_server.start()
        with self.http_client() as client:
            self._wait(self.api_server, lambda: _serves(client, "/readyz"))

    def stop(self) -> None:
        """Stops all parts, the users of a part before the part itself."""
        for server in (self.scheduler, self.controller_manager):
            server.terminate()
        for server in reversed(self.servers):
            server.stop()

    def close(self) -> None:
        """Stops all parts and gives the port back."""
        self.stop()
        self._port.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _server(self, binary: Path, name: str, flags: dict[str, str]) -> ServerProcess:
        arguments = [f"--{flag}={value}" for flag, value in flags.items()]
        return ServerProcess(name, [str(binary), name, *arguments], self.directory / "logs" / f"{name}.log")

    def _wait(self, server: ServerProcess, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._start_seconds
        while not ready():
            for each in self.servers:
                each.check()
            if time.monotonic() > deadline:
                raise ServerError(f"{server.name} was not ready after {self._start_seconds} s; {server.log_tail()}")
            time.sleep(_POLL_SECONDS)

    def _etcd_flags(self) -> dict[str, str]:
        return {
            "data-dir": str(self.directory / "etcd"),
            # A socket in our own folder: no port to clash on, and nobody else's to open.
            "listen-client-urls": f"unix://{self._socket}",
            # Must have a port and is used by nobody; likewise the peers' port, which the kernel picks.
            "advertise-client-urls": "http://127.0.0.1:0",
            "listen-peer-urls": "http://127.0.0.1:0",
            # The state need not outlive the machine's power.
            "unsafe-no-fsync": "true",
        }

    def _api_server_flags(self) -> dict[str, str]:
        return {
            "etcd-servers": f"unix://{self._socket}",
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            "secure-port": self.url.rpartition(":")[2],
            "permit-port-sharing": "true",  # with the socket that keeps the port for us
            "endpoint-reconciler-type": "none",  # a Service must not lead to a loopback address
            "service-cluster-ip-range": "10.96.0.0/16",
            "allow-privileged": "true",
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "client-ca-file": self._credential("ca.crt"),
            "tls-cert-file": self._credential("apiserver.crt"),
            "tls-private-key-file": self._credential("apiserver.key"),
            "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
            "service-account-key-file": self._credential("sa.pub"),
            "service-account-signing-key-file": self._credential("sa.key"),
        }

    def _controller_manager_flags(self) -> dict[str, str]:
        return self._client_flags("kube-controller-manager") | {
            "root-ca-file": self._credential("ca.crt"),
            "service-account-private-key-file": self._credential("sa.key"),
            "use-service-account-credentials": "true",
            # Each of its controllers asks for a token at start: at the default rate that takes 5 s.
            "kube-api-qps": "200",
            "kube-api-burst": "300",
        }

    def _client_flags(self, name: str) -> dict[str, str]:
        # Nothing scrapes their port, and with one of each there is no leader to elect.
        return {"kubeconfig": self._credential(f"{name}.kubeconfig"), "secure-port": "0", "leader-elect": "false"}

    def _credential(self, name: str) -> str:
        return str(self.credentials / name)


_DEFAULT_SERVICE_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


def _reserve_port() -> socket.socket:
    """Binds a free loopback port without listening, so that only a process of ours that shares ports can have it."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        with suppress(ConnectionRefusedError, FileNotFoundError):
            probe.connect(str(path))
            return True
        return False


def _serves(client: httpx2.Client, path: str) -> bool:
    with suppress(httpx2.TransportError):
        return client.get(path).is_success
    return False
