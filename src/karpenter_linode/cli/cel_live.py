"""The ResourceSlices of a cluster, read once for ``cel --live``. Whatever goes wrong is told in one line."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx2

from karpenter_linode.cli.cel_devices import Sources, of_slices
from karpenter_linode.cli.errors import Place, input_error
from karpenter_linode.cli.version import current
from karpenter_linode.explain.text import names
from karpenter_linode.kube.api import LightkubeApi
from karpenter_linode.kube.config import connect, load_config
from karpenter_linode.kube.errors import ConnectionConfigError
from karpenter_linode.kube.http import KubeHttp
from karpenter_linode.model.resource import ResourceSlice
from karpenter_linode.operator.system import SystemClock, SystemRandom
from karpenter_linode.ports import ForbiddenError, KubeError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lightkube.config.kubeconfig import SingleConfig

_HINTS = {
    ForbiddenError: "; the user of the kubeconfig needs get and list on resourceslices.resource.k8s.io",
    NotFoundError: f"; {ResourceSlice.API_VERSION} is not served: it needs Kubernetes 1.34 or later",
}


def of_cluster(kubeconfig: str = "", node: str = "") -> Sources:
    """The devices of the ResourceSlices that a cluster has now.

    Args:
        kubeconfig: a file; empty for ``KUBECONFIG`` and what else clients look at.
        node: only slices of this node (``spec.nodeName``); empty for all.

    Raises:
        InputError: no cluster is configured, it does not answer or refuses, or has no such slice.
    """
    place, teller = Place("--live"), _Teller()
    try:
        config = load_config(kubeconfig)
        place = Place(f"cluster {httpx2.URL(config.cluster.server).netloc.decode() or config.context_name}")
        slices = asyncio.run(_read(config, teller))
    except (ConnectionConfigError, httpx2.InvalidURL) as error:
        raise input_error(place, _one_line(error)) from None
    except KubeError as error:
        raise input_error(place, _one_line(error) + _HINTS.get(type(error), "")) from None
    chosen = [item for item in slices if node in ("", item.spec.node_name)]
    if not chosen:
        raise input_error(place, _nothing(slices, node))
    sources = of_slices(chosen, slices)
    sources.notes += teller.told
    return sources


async def _read(config: SingleConfig, teller: _Teller) -> Sequence[ResourceSlice]:
    clock = SystemClock()
    http = KubeHttp(connect(config, user_agent=f"karpenter-linode/{current()}"), clock)
    api = LightkubeApi(http, clock=clock, random=SystemRandom(), logger=teller)
    try:
        return (await api.list(ResourceSlice)).items
    finally:
        await api.close()


def _nothing(slices: Sequence[ResourceSlice], node: str) -> str:
    if not node:
        return "no ResourceSlice in it: no driver has published devices"
    there = sorted({item.spec.node_name for item in slices if item.spec.node_name})
    return f"no ResourceSlice of node {node}; " + (f"there are some of {names(there)}" if there else "nor of any other")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


class _Teller:
    """A ``ports.Logger`` that keeps what it hears, to be told after the result."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def debug(self, event: str, **fields: Any) -> None:
        """Of no interest here."""

    def info(self, event: str, **fields: Any) -> None:
        """Likewise."""

    def warning(self, event: str, **fields: Any) -> None:
        """Keep a line."""
        self.told.append(", ".join([event, *(f"{name} {value}" for name, value in fields.items())]))

    error = warning
