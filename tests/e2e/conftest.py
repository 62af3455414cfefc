"""What every end-to-end test starts from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # test folders are not packages; their helpers are plain modules

import controlplane_binary
from attempts import pytest_collection_modifyitems, pytest_runtest_protocol
from controlplane import ControlPlane
from kube_api import KubeApi
from summary import pytest_terminal_summary

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["pytest_collection_modifyitems", "pytest_runtest_protocol", "pytest_terminal_summary"]  # pytest's hooks


@pytest.fixture(scope="session")
def binary() -> Path:
    """The control plane's binary, built if need be."""
    return controlplane_binary.build()


@pytest.fixture(scope="session")
def shared_control_plane(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that lives as long as the session."""
    with ControlPlane(binary, tmp_path_factory.mktemp("cp")) as running:
        yield running


@pytest.fixture
def control_plane(shared_control_plane: ControlPlane) -> ControlPlane:
    """A running control plane that the tests of the session share: one after another, each in its own namespace."""
    shared_control_plane.revive()
    return shared_control_plane


@pytest.fixture
def api(control_plane: ControlPlane) -> Iterator[KubeApi]:
    """The shared control plane, as its administrator."""
    with control_plane.http_client() as client:
        yield KubeApi(client)
