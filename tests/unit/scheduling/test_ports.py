"""Host ports (spec/karpenter-scheduling.md 4.3)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.scheduling.ports import HostPort, conflict, host_ports, refusal

ANY = "0.0.0.0"  # noqa: S104 - compared with, never bound to


@pytest.mark.parametrize(
    ("mine", "theirs", "clash"),
    [
        (("10.0.0.1", 80, "TCP"), ("10.0.0.1", 80, "TCP"), True),
        (("10.0.0.1", 80, "TCP"), ("10.0.0.2", 80, "TCP"), False),
        ((ANY, 80, "TCP"), ("10.0.0.2", 80, "TCP"), True),
        (("10.0.0.1", 80, "TCP"), (ANY, 80, "TCP"), True),
        (("::", 80, "TCP"), ("fd00::1", 80, "TCP"), True),
        (("fd00::1", 80, "TCP"), ("::", 80, "TCP"), True),
        (("::", 80, "TCP"), ("10.0.0.1", 80, "TCP"), True),
        ((ANY, 80, "TCP"), (ANY, 80, "UDP"), False),
        ((ANY, 80, "TCP"), (ANY, 81, "TCP"), False),
    ],
)
def test_ports_clash_on_equal_numbers_protocols_and_addresses_that_overlap(
    mine: tuple[str, int, str], theirs: tuple[str, int, str], *, clash: bool
) -> None:
    assert (conflict([HostPort(*mine)], [HostPort(*theirs)]) is not None) is clash


def test_ports_of_ordinary_containers_are_read_with_their_defaults(make: Any) -> None:
    def ports(number: int) -> list[dict[str, Any]]:
        return [{"containerPort": 80, "hostPort": number}, {"containerPort": 81}]

    pod = make.pod(containers=[{"name": "a", "ports": ports(8080)}], initContainers=[{"name": "b", "ports": ports(9)}])
    assert host_ports(pod) == (HostPort(ANY, 8080, "TCP"),)


def test_the_text_of_a_clash() -> None:
    text = refusal(HostPort("10.0.0.1", 80, "TCP"), HostPort(ANY, 80, "TCP"))
    assert text == (
        "pod hostport conflicts with existing hostport configuration (existing-hostport-ip=0.0.0.0, "
        "existing-hostport-port=80, existing-hostport-protocol=TCP, pod-hostport-ip=10.0.0.1, pod-hostport-port=80, "
        "pod-hostport-protocol=TCP)"
    )
