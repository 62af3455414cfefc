"""``helm``: the charts, rendered by Helm 3 and by Helm 4."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

# Test folders are not packages; their helpers are plain modules.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "charts"))

import chart_tools
from rendering import Helm


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
