"""How to reach the cluster: kubeconfig files, or the service account of a pod.

lightkube reads the entries and sets up TLS. Around it: ``KUBECONFIG`` before the service account as every other client
has it, several files merged, credential plug-ins of ``client.authentication.k8s.io/v1`` (docs/decisions/0008).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx2
import yaml
from lightkube.config.client_adapter import user_auth, verify_cluster
from lightkube.config.kubeconfig import KubeConfig
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError
from msgspec import MsgspecError

from karpenter_linode.kube.credentials import ExecAuth, ExecPlugin
from karpenter_linode.kube.errors import ConnectionConfigError
from karpenter_linode.kube.streaming import StreamsApart, StreamTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lightkube.config.kubeconfig import SingleConfig

SERVICE_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_DEFAULT_FILE: Final = "~/.kube/config"
_SECTIONS: Final = ("clusters", "contexts", "users")
_FILES: Final = {
    "cluster": ("certificate-authority",),
    "user": ("client-certificate", "client-key", "tokenFile"),
}
_TIMEOUT: Final = httpx2.Timeout(60.0, connect=10.0)
# For calls, each watch has a connection of its own; idle ones are kept, since a new one costs a TLS handshake.
_LIMITS: Final = httpx2.Limits(max_connections=200, max_keepalive_connections=50, keepalive_expiry=60.0)


def load_config(kubeconfig: str = "", environ: Mapping[str, str] = os.environ) -> SingleConfig:
    """Find the cluster: the given file, else ``KUBECONFIG``, else the pod's service account, else ``~/.kube/config``.

    Args:
        kubeconfig: a file, or several joined with ``:``; their entries are merged, the first one wins.
        environ: environment variables.

    Raises:
        ConnectionConfigError: nothing is configured, or what is configured cannot be used.
    """
    files = kubeconfig or environ.get("KUBECONFIG", "")
    try:
        if not files and environ.get("KUBERNETES_SERVICE_HOST") and Path(SERVICE_ACCOUNT, "token").is_file():
            config = KubeConfig.from_service_account(SERVICE_ACCOUNT).get()
        else:
            config = _from_files([name for name in (files or _DEFAULT_FILE).split(os.pathsep) if name])
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
        context = verify_cluster(config.cluster, user, config.abs_file, trust_env=False)
        transport: httpx2.AsyncBaseTransport = StreamsApart(
            httpx2.AsyncHTTPTransport(verify=context, limits=_LIMITS, trust_env=False), StreamTransport(context)
        )
        auth = _auth(user)
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


def _auth(user: User) -> httpx2.Auth | None:
    if user.exec is None or user.token or user.token_file:
        return user_auth(user)
    environment = {item.name: item.value for item in user.exec.env or ()}
    return ExecAuth(ExecPlugin(user.exec.apiVersion, user.exec.command, tuple(user.exec.args or ()), environment))


def _from_files(names: Sequence[str]) -> SingleConfig | None:
    documents = [document for name in names if (document := _read(Path(name).expanduser())) is not None]
    if not documents:
        raise ConnectionConfigError(
            f"no cluster is configured: {', '.join(names)} not found and no service account is mounted; "
            "set KUBECONFIG or --kubeconfig"
        )
    try:
        return KubeConfig.from_dict(_merge(documents)).get()
    except (KeyError, TypeError, MsgspecError) as error:
        raise ConnectionConfigError(f"kubeconfig {', '.join(names)}: cannot be used: {error}") from None


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, yaml.YAMLError) as error:
        raise ConnectionConfigError(f"kubeconfig {path}: cannot be read: {error}") from None
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
