"""Host ports (spec/karpenter-scheduling.md 4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.model.core import Pod

_ANY: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, never bound to
_DEFAULT_IP: Final = "0.0.0.0"  # noqa: S104 - likewise


class HostPort(Struct, frozen=True):
    """A port that a pod takes on its node."""

    ip: str
    port: int
    protocol: str

    def conflicts(self, other: HostPort) -> bool:
        """Whether both cannot be taken on one node."""
        return (
            self.port == other.port
            and self.protocol == other.protocol
            and (self.ip == other.ip or self.ip in _ANY or other.ip in _ANY)
        )


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports of a pod's ordinary containers."""
    return tuple(
        HostPort(port.host_ip or _DEFAULT_IP, port.host_port, port.protocol or "TCP")
        for container in pod.spec.containers
        for port in container.ports
        if port.host_port
    )


def conflict(wanted: Iterable[HostPort], taken: Iterable[HostPort]) -> tuple[HostPort, HostPort] | None:
    """The first pair ``(wanted, taken)`` that cannot be on one node, or None."""
    held = tuple(taken)
    return next(((mine, theirs) for mine in wanted for theirs in held if mine.conflicts(theirs)), None)


def refusal(wanted: HostPort, taken: HostPort) -> str:
    """The contract text for a conflict."""
    return (
        "pod hostport conflicts with existing hostport configuration ("
        f"existing-hostport-ip={taken.ip}, existing-hostport-port={taken.port}, "
        f"existing-hostport-protocol={taken.protocol}, pod-hostport-ip={wanted.ip}, "
        f"pod-hostport-port={wanted.port}, pod-hostport-protocol={wanted.protocol})"
    )
