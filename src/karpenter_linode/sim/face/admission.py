"""What a written object must look like before the store sees it: its schema's shape, known fields, CRD defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karpenter_linode.sim.face.errors import bad_request
from karpenter_linode.sim.face.structure import Findings, pruned, with_defaults
from karpenter_linode.sim.schemas import schema_of
from karpenter_linode.sim.validation import RefusedError

if TYPE_CHECKING:
    from karpenter_linode.sim.face.requests import ApiRequest
    from karpenter_linode.sim.resource_types import ResourceType

Plain = dict[str, Any]


class Warnings(list[str]):
    """What the server wants to say beside its answer; kubectl prints it."""


def admitted(kind: ResourceType, plain: Plain, request: ApiRequest, warnings: Warnings) -> Plain:
    """The object with its kind's defaults and without unknown fields.

    Args:
        kind: its type.
        plain: the object.
        request: tells what to do about unknown fields.
        warnings: filled where those are only warned about.

    Raises:
        RequestError: fields of the wrong type, or unknown ones where they are refused (400).
        RefusedError: a rule of the CRD's schema does not hold (422).
    """
    schema = schema_of(kind)
    filled = with_defaults(schema, plain) if kind.custom else plain
    findings = Findings()
    kept: Plain = pruned(schema, filled, findings)
    name = str(kept.get("metadata", {}).get("name", ""))
    if findings.mistyped:
        version = kind.api_version
        what = "; ".join(findings.mistyped)
        raise bad_request(f'{kind.kind} in version "{version}" cannot be handled as a {kind.kind}: {what}')
    check_unknown(findings.unknown, request, warnings)
    if findings.broken and kind.custom:
        raise RefusedError(kind, name, findings.broken)
    return kept


def known_part(kind: ResourceType, config: Plain, request: ApiRequest, warnings: Warnings) -> Plain:
    """An applied configuration without unknown fields; what it does not say may still come from the live object.

    Raises:
        RequestError: fields of the wrong type, or unknown ones where they are refused (400).
    """
    findings = Findings()
    kept: Plain = pruned(schema_of(kind), config, findings)
    if findings.mistyped:
        raise bad_request(f"failed to create typed patch object: {'; '.join(findings.mistyped)}")
    check_unknown(findings.unknown, request, warnings)
    return kept


def check_unknown(unknown: list[str], request: ApiRequest, warnings: Warnings) -> None:
    """Refuse unknown fields, warn of them, or let them go, as the request says.

    Raises:
        RequestError: there are some, and they are refused (400).
    """
    validation = request.field_validation
    told = [f'unknown field "{path}"' for path in unknown]
    if told and validation == "Strict":
        kind = request.target.type
        raise bad_request(
            f'{kind.kind} in version "{kind.api_version}" cannot be handled as a {kind.kind}: '
            f"strict decoding error: {', '.join(told)}"
        )
    if validation == "Warn":
        warnings += told
