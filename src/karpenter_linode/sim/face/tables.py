"""Tables: the rows and columns that ``kubectl get`` shows, made by the server (``meta.k8s.io/v1`` Table)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karpenter_linode.sim.face.columns import DEFAULT_COLUMNS, Column
from karpenter_linode.sim.face.columns_custom import custom_columns
from karpenter_linode.sim.face.columns_dra import DRA_COLUMNS
from karpenter_linode.sim.face.columns_pod import POD_COLUMNS
from karpenter_linode.sim.face.columns_workload import WORKLOAD_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from karpenter_linode.sim.resource_types import ResourceType
    from karpenter_linode.sim.stored import Stored

Plain = dict[str, Any]

_BY_KIND = {**DEFAULT_COLUMNS, **POD_COLUMNS, **WORKLOAD_COLUMNS, **DRA_COLUMNS}


def columns_of(kind: ResourceType) -> tuple[Column, ...]:
    """The columns of a kind."""
    return custom_columns(kind) if kind.custom else _BY_KIND.get(kind.kind, _BY_KIND[""])


def table(
    kind: ResourceType, objects: Sequence[Stored], metadata: Plain, now: datetime, include: str = "Metadata"
) -> Plain:
    """A Table of objects.

    Args:
        kind: of all of them.
        objects: one row each.
        metadata: of the list, or of the only object.
        now: ages are counted to here.
        include: what a row holds of its object: ``None``, ``Metadata`` or ``Object``.
    """
    columns = columns_of(kind)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [column.definition() for column in columns],
        "rows": [_row(columns, stored.plain, now, include) for stored in objects],
    }


def partial(plain: Plain) -> Plain:
    """An object's metadata alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": plain["metadata"]}


def _row(columns: tuple[Column, ...], plain: Plain, now: datetime, include: str) -> Plain:
    row: Plain = {"cells": [column.cell(plain, now) for column in columns]}
    if include == "Object":
        row["object"] = plain
    elif include != "None":
        row["object"] = partial(plain)
    phase = plain.get("status", {}).get("phase") if plain.get("kind") == "Pod" else ""
    if phase in ("Succeeded", "Failed"):
        message = "The pod has completed successfully." if phase == "Succeeded" else "The pod failed."
        row["conditions"] = [{"type": "Completed", "status": "True", "reason": phase, "message": message}]
    return row
