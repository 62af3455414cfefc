"""What every end-to-end test starts from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # test folders are not packages; their helpers are plain modules

import controlplane_binary
from controlplane import ControlPlane
from kube_api import KubeApi

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def binary() -> Path:
    """The control plane's binary, built if need be."""
    return controlplane_binary.build()


@pytest.fixture(scope="session")
def control_plane(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A running control plane that all tests of the session share: each works in a namespace of its own."""
    with ControlPlane(binary, tmp_path_factory.mktemp("cp")) as running:
        yield running


@pytest.fixture
def api(control_plane: ControlPlane) -> Iterator[KubeApi]:
    """The shared control plane, as its administrator."""
    with control_plane.http_client() as client:
        yield KubeApi(client)
