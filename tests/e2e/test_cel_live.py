"""`karpenter-linode cel --live` on the ResourceSlices of a real cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from karpenter_world import KarpenterWorld, example

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from controlplane import ControlPlane

pytestmark = pytest.mark.e2e
ADA = "device.attributes['gpu.nvidia.com'].architecture == 'Ada Lovelace'"
TURING = "device.attributes['gpu.nvidia.com'].architecture == 'Turing'"


@pytest.fixture
def world(control_plane: ControlPlane, tmp_path: Path) -> Iterator[KarpenterWorld]:
    with KarpenterWorld(control_plane, tmp_path) as world:
        yield world


def test_a_selector_is_tried_on_the_devices_that_drivers_published(world: KarpenterWorld) -> None:
    empty = cel(world, ADA)
    assert empty.returncode == 2
    assert "no ResourceSlice in it: no driver has published devices" in empty.stderr

    world.apply(*example("one-gpu").values())
    world.wait("the pod to be bound", lambda: world.pod("gpu-job")["spec"].get("nodeName"))
    node = world.pod("gpu-job")["spec"]["nodeName"]

    ada, turing = cel(world, ADA), cel(world, TURING)
    assert ada.returncode == 0, ada.stderr
    assert node in ada.stdout
    assert turing.returncode == 1, turing.stderr

    other = cel(world, ADA, "--node", "nowhere")
    assert other.returncode == 2
    assert f"no ResourceSlice of node nowhere; there are some of {node}" in other.stderr


def test_who_may_not_read_them_is_told_what_is_missing(world: KarpenterWorld) -> None:
    stranger = world.kubeconfig_of("stranger", [])
    refused = cel(world, ADA, "--kubeconfig", str(stranger))
    assert refused.returncode == 2
    assert "needs get and list on resourceslices.resource.k8s.io" in refused.stderr


def cel(world: KarpenterWorld, selector: str, *more: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "karpenter_linode.cli", "cel", selector, "--live", *more]
    environment = {**os.environ, "KUBECONFIG": str(world.control_plane.kubeconfig), "COLUMNS": "200"}
    return subprocess.run(  # noqa: S603  # our own program
        program, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
