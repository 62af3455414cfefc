"""Each scenario on the real control plane and in the embedded world, and both stories compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import controlplane_binary
import pytest
from scenarios import SCENARIOS
from stages import Scenario, play_embedded, play_for_real
from stories import differences

if TYPE_CHECKING:
    from pathlib import Path

    from controlplane import ControlPlane

every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.script.__name__)


@every_scenario
def test_embedded(scenario: Scenario) -> None:
    play_embedded(scenario)


@pytest.mark.e2e
@every_scenario
def test_real_and_embedded(scenario: Scenario, control_plane: ControlPlane, tmp_path: Path) -> None:
    if scenario.releases and controlplane_binary.minor_release() not in scenario.releases:
        pytest.skip(f"needs Kubernetes {' or '.join(scenario.releases)}")
    real = play_for_real(scenario, control_plane, tmp_path)
    embedded = play_embedded(scenario)
    found = differences(real.story(), embedded.story(), by_line=scenario.many)
    assert not found, "\n".join(found)
