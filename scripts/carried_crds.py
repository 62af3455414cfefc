# ruff: noqa: INP001 - a script, not a package
"""Writes the CustomResourceDefinitions of the chart `karpenter-crd` into the package, for the served world to read.

The chart is where they are written; a wheel or an image does not carry it. A test fails when the two differ.
"""

from __future__ import annotations

import json
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
CHART = ROOT / "charts/karpenter-crd/templates"
TARGET = ROOT / "src/karpenter_linode/sim/data/crds.json"


def carried() -> str:
    """The text of the package's file, one definition a line."""
    found = {file.stem: yaml.safe_load(file.read_text()) for file in sorted(CHART.glob("*.yaml"))}
    lines = [f"{json.dumps(name)}: {json.dumps(item, sort_keys=True)}" for name, item in found.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    TARGET.write_text(carried())
