"""Scenario files of ``simulate``: YAML, with manifests in it or beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from msgspec.structs import fields

from karpenter_linode.cli.errors import Finding, InputError, Place, input_error
from karpenter_linode.cli.field_errors import explain_decode_error, field_text
from karpenter_linode.cli.files import documents, texts
from karpenter_linode.cli.manifests import load
from karpenter_linode.cli.references import offer
from karpenter_linode.linode.tables import bundled_regions, bundled_types
from karpenter_linode.model import codec
from karpenter_linode.model.kinds import to_manifest
from karpenter_linode.sim.faults import Fault, LinodeSoldOut
from karpenter_linode.sim.scenario import ObjectName, Scenario, ScenarioError, Step, parse_scenario

if TYPE_CHECKING:
    from karpenter_linode.cli.yaml_reader import Document

_UNKNOWN_FIELD: Final = re.compile(r"object contains unknown field `(?P<name>[^`]*)`", re.IGNORECASE)
_FAULTS: Final = {fault.__struct_config__.tag: fault for fault in get_args(Fault)}


def read_scenario(path: str, *, spread: bool = False) -> Scenario:
    """The scenario of a file. Names of manifest files in it are relative to it.

    Args:
        path: the file.
        spread: keep what only a default topology spread asks for.

    Raises:
        InputError: not readable, malformed, or no scenario; says what and where.
    """
    found = [document for file, text in texts(path) for document in documents(file, text)]
    if len(found) != 1:
        raise input_error(Place(path), f"found {len(found)} documents, expected one scenario")
    (document,) = found

    def manifests(name: str) -> list[dict[str, Any]]:
        found = load([str(Path(path).parent / name)], spread=spread)
        return [to_manifest(loaded.obj) for loaded in found.objects]

    plain = document.plain()
    try:
        scenario = parse_scenario(plain, path, manifests)
    except ScenarioError as error:
        raise InputError([_finding(error, document, plain)]) from None
    problems = _sales(scenario, document)
    if problems:
        raise InputError(problems)
    return scenario


def _finding(error: ScenarioError, document: Document, plain: Any) -> Finding:
    cause = error.__cause__
    if not isinstance(cause, codec.DecodeError):
        return Finding(document.place(error.path), error.message, field=field_text(error.path))
    path, message = explain_decode_error(cause, plain, Scenario)
    unknown = _UNKNOWN_FIELD.search(message)
    if unknown is not None:
        known = _known_fields(path, plain)
        message = f"unknown field{offer(unknown['name'], known)}"
        path = (*path, unknown["name"])
        return Finding(document.place(path, key=True), message, field=field_text(path))
    if path[-2:] == ("fault", "kind"):
        given = plain["steps"][path[1]]["fault"].get("kind")
        message = f"found {given!r}, but there is no fault of that kind{offer(str(given), sorted(_FAULTS))}"
    return Finding(document.place(path), message, field=field_text(path))


def _known_fields(path: tuple[str | int, ...], plain: Any) -> list[str]:
    """The fields of the struct at a path of a scenario."""
    struct: Any = Scenario
    if path[-1:] == ("fault",):
        struct = _FAULTS.get(plain["steps"][path[1]]["fault"].get("kind"), Scenario)
    elif path[-1:] == ("delete",):
        struct = ObjectName
    elif path[:1] == ("steps",):
        struct = Step
    elif path:
        struct = next(field.type for field in fields(Scenario) if field.encode_name == path[0])
    return sorted(field.encode_name for field in fields(struct))


def _sales(scenario: Scenario, document: Document) -> list[Finding]:
    """Plans and regions that are to sell out but that nobody sells: such a fault would do nothing, silently."""
    plans, regions = sorted(plan.id for plan in bundled_types()), sorted(region.id for region in bundled_regions())
    found = []
    for index, step in enumerate(scenario.steps):
        if isinstance(step.fault, LinodeSoldOut):
            for name, value, known in (("plan", step.fault.plan, plans), ("region", step.fault.region, regions)):
                if value not in known:
                    path = ("steps", index, "fault", name)
                    message = f"found {value!r}, but there is no {name} of that name{offer(value, known)}"
                    found.append(Finding(document.place(path), message, field=field_text(path)))
    return found
