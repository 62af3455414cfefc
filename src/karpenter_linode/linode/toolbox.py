"""What the parts of the provider share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.linode.client import LinodeClient
    from karpenter_linode.linode.cluster_view import ClusterReader
    from karpenter_linode.linode.discovery import Cluster
    from karpenter_linode.linode.ledger import Ledger
    from karpenter_linode.linode.provider_options import ProviderOptions
    from karpenter_linode.linode.unavailable import UnavailableOfferings
    from karpenter_linode.ports import Clock, EventSink, Logger, Random


@dataclass(frozen=True)
class Toolbox:
    """The API, what is known from it, the outside world, and when this process began to look at it."""

    client: LinodeClient
    cluster: Cluster
    reader: ClusterReader
    ledger: Ledger
    unavailable: UnavailableOfferings
    clock: Clock
    random: Random
    logger: Logger
    events: EventSink
    options: ProviderOptions
    started: datetime
