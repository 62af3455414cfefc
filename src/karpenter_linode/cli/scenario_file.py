"""Scenario files of ``simulate``: YAML, with manifests in it or beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from karpenter_linode.cli.errors import Place, input_error
from karpenter_linode.cli.files import documents, texts
from karpenter_linode.cli.manifests import load
from karpenter_linode.model.kinds import to_manifest
from karpenter_linode.sim.scenario import ScenarioError, parse_scenario

if TYPE_CHECKING:
    from karpenter_linode.sim.scenario import Scenario


def read_scenario(path: str) -> Scenario:
    """The scenario of a file. Names of manifest files in it are relative to it.

    Raises:
        InputError: not readable, malformed, or no scenario; says what and where.
    """
    found = [document for file, text in texts(path) for document in documents(file, text)]
    if len(found) != 1:
        raise input_error(Place(path), f"found {len(found)} documents, expected one scenario")

    def manifests(name: str) -> list[dict[str, Any]]:
        return [to_manifest(loaded.obj) for loaded in load([str(Path(path).parent / name)]).objects]

    try:
        return parse_scenario(found[0].plain(), path, manifests)
    except ScenarioError as error:
        raise input_error(Place(path), str(error).removeprefix(f"{path}: ")) from None
