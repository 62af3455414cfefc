"""The shapes that the package carries are those of the chart."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[4]


def test_the_package_carries_the_crds_of_the_chart() -> None:
    carried = runpy.run_path(str(ROOT / "scripts/carried_crds.py"))
    assert carried["TARGET"].read_text() == carried["carried"](), "run `python scripts/carried_crds.py`"
