"""How to reach the cluster: kubeconfig files, or the service account of a pod.

lightkube reads the entries and sets up TLS. Around it: ``KUBECONFIG`` before the service account as every other client
has it, several files merged, ``tls-server-name``, ``proxy-url``, credential plug-ins of
``client.authentication.k8s.io/v1`` and their certificates (docs/decisions/0008).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx2
import yaml
from lightkube.config.client_adapter import user_auth, verify_cluster
from lightkube.config.kubeconfig import KubeConfig
from lightkube.config.models import Cluster, User
from lightkube.core.exceptions import ConfigError
from msgspec import MsgspecError, convert, field

from karpenter_linode.kube.credentials import ExecAuth, ExecPlugin
from karpenter_linode.kube.errors import ConnectionConfigError
from karpenter_linode.kube.streaming import StreamsApart, StreamTransport

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lightkube.config.kubeconfig import SingleConfig

SERVICE_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_DEFAULT_FILE: Final = "~/.kube/config"
_PROXIES: Final = ("http", "https", "socks5")
_SECTIONS: Final = ("clusters", "contexts", "users")
_FILES: Final = {
    "cluster": ("certificate-authority",),
    "user": ("client-certificate", "client-key", "tokenFile"),
}
_TIMEOUT: Final = httpx2.Timeout(60.0, connect=10.0)
# For calls, each watch has a connection of its own; idle ones are kept, since a new one costs a TLS handshake.
_LIMITS: Final = httpx2.Limits(max_connections=200, max_keepalive_connections=50, keepalive_expiry=60.0)


class ClusterEntry(Cluster, omit_defaults=True):
    """A cluster of a kubeconfig, with what lightkube leaves out.

    Args:
        tls_server_name: the name that the server's certificate is checked against, where it isn't that of its address.
        proxy_url: an ``http``, ``https`` or ``socks5`` proxy on the way to the server.
    """

    tls_server_name: str | None = field(name="tls-server-name", default=None)
    proxy_url: str | None = field(name="proxy-url", default=None)


def load_config(kubeconfig: str = "", environ: Mapping[str, str] = os.environ, *, context: str = "") -> SingleConfig:
    """Find the cluster: the given file, else ``KUBECONFIG``, else the pod's service account, else ``~/.kube/config``.

    Args:
        kubeconfig: a file, or several joined with ``:``; their entries are merged, the first one wins.
        environ: environment variables.
        context: of the kubeconfig; its current one where empty. With it the service account is not looked at.

    Raises:
        ConnectionConfigError: nothing is configured, or what is configured cannot be used.
    """
    files = kubeconfig or environ.get("KUBECONFIG", "")
    try:
        in_cluster = not files and not context and environ.get("KUBERNETES_SERVICE_HOST")
        if in_cluster and Path(SERVICE_ACCOUNT, "token").is_file():
            config = KubeConfig.from_service_account(SERVICE_ACCOUNT).get()
        else:
            config = _from_files([name for name in (files or _DEFAULT_FILE).split(os.pathsep) if name], context)
    except ConfigError as error:
        raise ConnectionConfigError(str(error)) from None
    if config is None:
        raise ConnectionConfigError("kubeconfig: no current context is set; set one with `kubectl config use-context`")
    return config


def connect(
    config: SingleConfig,
    *,
    user_agent: str,
    wrap: Callable[[httpx2.AsyncBaseTransport], httpx2.AsyncBaseTransport] | None = None,
) -> httpx2.AsyncClient:
    """An HTTP client for the cluster's API server, with its own connections.

    Args:
        config: the cluster and who we are.
        user_agent: sent with every call; the server takes the field manager's name from it.
        wrap: puts something between the client and the network.

    Raises:
        ConnectionConfigError: certificates cannot be read, or a way to log in is not supported.
    """
    try:
        user = config.user or User()
        ssl_context = verify_cluster(config.cluster, user, config.abs_file, trust_env=False)
        transport = _transport(config.cluster, ssl_context)
        auth = _auth(user, ssl_context)
    except (ConfigError, OSError, ValueError) as error:
        raise ConnectionConfigError(f"context {config.context_name}: {error}") from None
    return httpx2.AsyncClient(
        base_url=config.cluster.server,
        auth=auth,
        transport=wrap(transport) if wrap is not None else transport,
        timeout=_TIMEOUT,
        trust_env=False,
        # Compressing large lists costs the server more than the network inside a cluster does.
        headers={"User-Agent": user_agent, "Accept": "application/json", "Accept-Encoding": "identity"},
    )


class NamedServer(httpx2.AsyncBaseTransport):
    """Checks the server's certificate against another name than that of its address.

    Args:
        inner: the network.
        name: the name.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, name: str) -> None:
        self._inner, self._name = inner, name

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        request.extensions = {**request.extensions, "sni_hostname": self._name}
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close connections."""
        await self._inner.aclose()


def _transport(cluster: Cluster, context: ssl.SSLContext) -> httpx2.AsyncBaseTransport:
    proxy = cluster.proxy_url if isinstance(cluster, ClusterEntry) and cluster.proxy_url else None
    calls: httpx2.AsyncBaseTransport = httpx2.AsyncHTTPTransport(
        verify=context, limits=_LIMITS, trust_env=False, proxy=proxy
    )
    # Streams find no way through a proxy by themselves.
    transport = calls if proxy else StreamsApart(calls, StreamTransport(context))
    if isinstance(cluster, ClusterEntry) and cluster.tls_server_name:
        return NamedServer(transport, cluster.tls_server_name)
    return transport


def _auth(user: User, context: ssl.SSLContext) -> httpx2.Auth | None:
    if user.exec is None or user.token or user.token_file:
        return user_auth(user)
    environment = {item.name: item.value for item in user.exec.env or ()}
    plugin = ExecPlugin(user.exec.apiVersion, user.exec.command, tuple(user.exec.args or ()), environment)
    return ExecAuth(plugin, context)


def _from_files(names: Sequence[str], context: str) -> SingleConfig | None:
    documents = [document for name in names if (document := _read(Path(name).expanduser())) is not None]
    if not documents:
        raise ConnectionConfigError(
            f"no cluster is configured: {', '.join(names)} not found and no service account is mounted; "
            "set KUBECONFIG or --kubeconfig"
        )
    try:
        merged = _merge(documents)
        config = KubeConfig.from_dict(merged).get(context or None)
        return config and config._replace(cluster=_entry(merged, config.context.cluster))
    except (KeyError, TypeError, MsgspecError) as error:
        raise ConnectionConfigError(f"kubeconfig {', '.join(names)}: cannot be used: {error}") from None


def _entry(merged: dict[str, Any], name: str) -> ClusterEntry:
    (raw,) = [item["cluster"] for item in merged["clusters"] if item["name"] == name][:1]
    entry = convert(raw, ClusterEntry)
    scheme = urlsplit(entry.proxy_url or "").scheme
    if entry.proxy_url and scheme not in _PROXIES:
        raise ConnectionConfigError(
            f"cluster {name}: proxy-url {entry.proxy_url!r}: expected one of {', '.join(_PROXIES)}"
        )
    return entry


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, RecursionError, yaml.YAMLError) as error:
        raise ConnectionConfigError(f"kubeconfig {path}: cannot be read: {error}") from None
    except (ValueError, KeyError, AttributeError) as error:  # PyYAML's words for a value that isn't of its type
        raise ConnectionConfigError(f"kubeconfig {path}: a value is not of its type: {error}") from None
    if not isinstance(document, dict):
        raise ConnectionConfigError(f"kubeconfig {path}: expected a mapping, found {type(document).__name__}")
    for section in _SECTIONS:
        for entry in document.get(section) or ():
            _absolute(entry, path.resolve().parent)
    return document


def _absolute(entry: Any, folder: Path) -> None:
    """Files named in an entry are relative to the kubeconfig that names them."""
    for part, keys in _FILES.items():
        inner = entry.get(part) if isinstance(entry, dict) else None
        if isinstance(inner, dict):
            for key in keys:
                if isinstance(inner.get(key), str) and inner[key]:
                    inner[key] = str(folder / inner[key])


def _merge(documents: Iterable[dict[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {section: [] for section in _SECTIONS}
    for document in documents:
        for section in _SECTIONS:
            known = {entry["name"] for entry in merged[section]}
            merged[section] += [entry for entry in document.get(section) or () if entry["name"] not in known]
        if document.get("current-context"):
            merged.setdefault("current-context", document["current-context"])
    return merged
