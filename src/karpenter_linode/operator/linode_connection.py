"""The Linode client of the controller, as its environment asks for it (spec/linode-provider.md 2.2)."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

import httpx2

from karpenter_linode.linode.client import LinodeClient
from karpenter_linode.linode.http import ClientOptions
from karpenter_linode.operator.checks import ProviderCheckError
from karpenter_linode.operator.gate import GatedTransport
from karpenter_linode.operator.linode_dump import DumpingTransport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from karpenter_linode.linode.http import CallRecord
    from karpenter_linode.operator.gate import WriteGate
    from karpenter_linode.operator.metrics import PrometheusMetrics
    from karpenter_linode.operator.token_scopes import GrantedScopes
    from karpenter_linode.ports import Clock, Logger, Random

_DEFAULT_URL: Final = "https://api.linode.com"
_DEFAULT_SECONDS: Final = 10
_TRUE: Final = frozenset({"1", "t", "true"})


def connect_linode(
    environ: Mapping[str, str],
    gate: WriteGate,
    metrics: PrometheusMetrics,
    granted: GrantedScopes,
    *,
    clock: Clock,
    random: Random,
    logger: Logger,
    version: str,
) -> LinodeClient:
    """A client for ``LINODE_URL`` with ``LINODE_TOKEN``.

    Args:
        environ: environment variables.
        gate: every write passes it.
        metrics: where calls are counted.
        granted: told what the token may do.
        clock: pauses.
        random: jitter.
        logger: told of settings that cannot be used, and of every call where ``LINODE_DEBUG`` is on.
        version: of this program.

    Raises:
        ProviderCheckError: no token, or a CA file that cannot be read.
    """

    def record(call: CallRecord) -> None:
        labels = {"method": call.method, "route": call.route}
        metrics.increment("karpenter_linode_api_requests_total", {**labels, "code": str(call.status)})
        metrics.observe("karpenter_linode_api_request_duration_seconds", labels, call.seconds)
        if call.rate_limit_remaining is not None:
            metrics.set_gauge("karpenter_linode_api_ratelimit_remaining", labels, call.rate_limit_remaining)
        if call.scopes is not None:
            granted.text = call.scopes

    token = environ.get("LINODE_TOKEN", "").strip()
    if not token:
        raise ProviderCheckError("LINODE_TOKEN environment variable is not set")
    url = environ.get("LINODE_URL") or _DEFAULT_URL
    return LinodeClient(
        url if "://" in url else f"https://{url}",
        token,
        clock=clock,
        random=random,
        transport=GatedTransport(_network(environ, logger), gate),
        options=ClientOptions(
            api_version=environ.get("LINODE_API_VERSION") or "v4beta",
            timeout_seconds=_timeout(environ, logger),
            program_version=version,
        ),
        on_call=record,
    )


def _network(environ: Mapping[str, str], logger: Logger) -> httpx2.AsyncBaseTransport:
    network: httpx2.AsyncBaseTransport = httpx2.AsyncHTTPTransport(verify=_trust(environ), retries=0)
    if environ.get("LINODE_DEBUG", "").lower() not in _TRUE:
        return network
    logger.warning("LINODE_DEBUG is on: every call of the Linode API is shown")
    return DumpingTransport(network, logger)


def _trust(environ: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    extra = environ.get("LINODE_CA", "")
    if extra:
        try:
            context.load_verify_locations(extra)
        except OSError as error:
            raise ProviderCheckError(f"LINODE_CA {extra}: cannot be read as certificates: {error}") from None
    return context


def _timeout(environ: Mapping[str, str], logger: Logger) -> int:
    text = environ.get("LINODE_CLIENT_TIMEOUT", "")
    if not text:
        return _DEFAULT_SECONDS
    if text.isdigit() and int(text) > 0:
        return int(text)
    logger.warning("LINODE_CLIENT_TIMEOUT environment variable is invalid, using default timeout", value=text)
    return _DEFAULT_SECONDS
