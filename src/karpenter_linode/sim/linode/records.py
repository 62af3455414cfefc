"""The state of the emulated cloud. Mutable on purpose: it is the world that others observe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.model.linode import LinodeType, LKETaint


class ApiFaultError(Exception):
    """A refusal that the API answers with.

    Args:
        status: HTTP status.
        reason: the text.
        field: the field at fault, if one is.
        headers: extra headers.
    """

    def __init__(self, status: int, reason: str, field: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.field, self.headers = status, reason, field, headers or {}


def not_found() -> ApiFaultError:
    """What the API says of anything that doesn't exist."""
    return ApiFaultError(404, "Not found")


@dataclass
class Machine:
    """A Linode."""

    id: int
    label: str
    plan: LinodeType
    region: str
    created: datetime
    host_uuid: str
    status: str = "provisioning"
    updated: datetime | None = None
    image: str | None = None
    cluster: int | None = None
    pool: int | None = None
    tags: tuple[str, ...] = ()
    coming_tags: tuple[str, ...] | None = None
    reads_until_visible: int = 0
    firewalls: tuple[int, ...] = ()
    joined: bool = False

    def read_tags(self) -> tuple[str, ...]:
        """The tags that a reader sees now; a write may take some reads to show."""
        if self.coming_tags is not None:
            if self.reads_until_visible > 0:
                self.reads_until_visible -= 1
            else:
                self.tags, self.coming_tags = self.coming_tags, None
        return self.tags

    def write_tags(self, tags: tuple[str, ...], reads_until_visible: int) -> None:
        """Replace all tags; a repeated write doesn't make the first one later."""
        if tags == self.coming_tags:
            return
        self.coming_tags, self.reads_until_visible = tags, reads_until_visible
        if reads_until_visible == 0:
            self.tags, self.coming_tags = tags, None


@dataclass
class Member:
    """A node of a pool."""

    id: str
    machine: int | None = None
    ready: bool = False
    listed: bool = True


@dataclass
class Pool:
    """An LKE node pool."""

    id: int
    cluster: int
    plan: LinodeType
    label: str = ""
    members: list[Member] = field(default_factory=list)
    tags: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[LKETaint, ...] = ()
    k8s_version: str | None = None
    update_strategy: str | None = None
    firewall_id: int | None = None
    autoscaler: dict[str, object] = field(default_factory=dict)


@dataclass
class Cluster:
    """An LKE cluster."""

    id: int
    label: str
    region: str
    tier: str
    k8s_version: str
    created: datetime
    tags: tuple[str, ...] = ()
