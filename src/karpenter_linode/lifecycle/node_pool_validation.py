"""Run-time validation of a NodePool's template (spec/karpenter-lifecycle.md 5.4, spec/karpenter-scheduling.md 6.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model import labels
from karpenter_linode.model.validation import (
    label_value_error,
    qualified_name_error,
    requirement_errors,
    restricted_label_error,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.model.core import Taint
    from karpenter_linode.model.karpenter import NodeClaimTemplate

_EFFECTS: Final = frozenset({"NoSchedule", "PreferNoSchedule", "NoExecute", ""})


def template_errors(template: NodeClaimTemplate) -> tuple[str, ...]:
    """Everything that is wrong with a template, in the contract's words; empty where it is valid."""
    return (*_label_errors(template), *_taint_errors(template), *_requirement_errors(template))


def _label_errors(template: NodeClaimTemplate) -> Iterator[str]:
    for key, value in sorted(template.metadata.labels.items()):
        if key == labels.NODEPOOL:
            yield f'invalid key name "{key}" in labels, restricted'
        name_error = qualified_name_error(key)
        if name_error is not None:
            yield f'invalid key name "{key}" in labels, {name_error}'
        value_error = label_value_error(value)
        if value_error is not None:
            yield f"invalid value: {value} for label[{key}], {value_error}"
        restricted = restricted_label_error(key)
        if restricted is not None:
            yield f'invalid key name "{key}" in labels, {restricted}'


def _taint_errors(template: NodeClaimTemplate) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    for field, taints in (("taints", template.spec.taints), ("startupTaints", template.spec.startup_taints)):
        for taint in taints:
            yield from (f"invalid value: {error} in {field}" for error in _one_taint_errors(taint))
            if (taint.key, taint.effect) in seen:
                yield f"duplicate taint Key/Effect pair {taint.key}={taint.effect}"
            seen.add((taint.key, taint.effect))


def _one_taint_errors(taint: Taint) -> Iterator[str]:
    key_error = qualified_name_error(taint.key) if taint.key else "the key must be set"
    if key_error is not None:
        yield f"{taint.key}, {key_error}"
    value_error = qualified_name_error(taint.value) if taint.value else None
    if value_error is not None:
        yield f"{taint.value}, {value_error}"
    if taint.effect not in _EFFECTS:
        yield f"{taint.effect}, the effect must be NoSchedule, PreferNoSchedule or NoExecute"


def _requirement_errors(template: NodeClaimTemplate) -> Iterator[str]:
    for spec in template.spec.requirements:
        if spec.key == labels.NODEPOOL:
            yield f'invalid key: "{labels.NODEPOOL}" in requirements, restricted'
        yield from (f"invalid value: {error} in requirements, restricted" for error in requirement_errors(spec))
