"""Schema and CEL rules of the NodePool CustomResourceDefinition (spec/karpenter-scheduling.md 6.1 and 6.3)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model.labels import CAPACITY_TYPE, HOSTNAME, NODEPOOL

if TYPE_CHECKING:
    from collections.abc import Iterable

Plain = dict[str, Any]

_DURATION: Final = re.compile(r"([0-9]+(s|m|h))+")
_DURATION_OR_NEVER: Final = re.compile(r"(([0-9]+(s|m|h))+|Never)")
_BUDGET_NODES: Final = re.compile(r"((100|[0-9]{1,2})%|[0-9]+)")
_COMPARISONS: Final = frozenset({"Gt", "Lt", "Gte", "Lte"})
_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"}) | _COMPARISONS
_POLICIES: Final = frozenset({"WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"})
_EFFECTS: Final = frozenset({"NoSchedule", "PreferNoSchedule", "NoExecute"})
_MAX_REQUIREMENTS: Final = 100
_MAX_BUDGETS: Final = 50
_MAX_WEIGHT: Final = 100
_MAX_MIN_VALUES: Final = 50


def check_node_pool(spec: Plain) -> list[str]:
    """Problems of a NodePool's spec."""
    template = spec.get("template") or {}
    claim = template.get("spec") or {}
    problems = _class_problems(claim.get("nodeClassRef") or {})
    for key in (template.get("metadata") or {}).get("labels") or {}:
        problems += _restricted(key, "spec.template.metadata.labels", pool_key=False)
    problems += _requirement_list_problems(claim.get("requirements"), "spec.template.spec.requirements")
    for field in ("taints", "startupTaints"):
        problems += [
            _unsupported(f"spec.template.spec.{field}[{index}].effect", taint.get("effect", ""), _EFFECTS)
            for index, taint in enumerate(claim.get(field) or [])
            if taint.get("effect") not in _EFFECTS
        ]
    problems += _pattern(claim, "expireAfter", _DURATION_OR_NEVER, "spec.template.spec")
    problems += _pattern(claim, "terminationGracePeriod", _DURATION, "spec.template.spec")
    problems += _disruption_problems(spec.get("disruption") or {})
    weight = spec.get("weight")
    if weight is not None and not 1 <= weight <= _MAX_WEIGHT:
        problems.append(f"spec.weight: Invalid value: {weight}: should be between 1 and {_MAX_WEIGHT}")
    if spec.get("replicas") is not None:
        if set(spec.get("limits") or {}) - {"nodes"}:
            problems.append("spec: Invalid value: only 'limits.nodes' is supported on static NodePools")
        if weight is not None:
            problems.append("spec: Invalid value: 'weight' is not supported on static NodePools")
    return problems


def check_node_pool_change(before: Plain, after: Plain) -> list[str]:
    """Problems of a change of a NodePool."""
    problems = []
    if (before.get("replicas") is None) != (after.get("replicas") is None):
        problems.append(
            "spec: Invalid value: Cannot transition NodePool between static (replicas set) and dynamic "
            "(replicas unset) provisioning modes"
        )
    old, new = (_template_spec(spec).get("nodeClassRef") or {} for spec in (before, after))
    problems += [
        f"spec.template.spec.nodeClassRef: Invalid value: nodeClassRef.{field} is immutable"
        for field in ("group", "kind")
        if old.get(field) != new.get(field)
    ]
    return problems


def _template_spec(spec: Plain) -> Plain:
    claim: Plain = (spec.get("template") or {}).get("spec") or {}
    return claim


def _class_problems(reference: Plain) -> list[str]:
    path = "spec.template.spec.nodeClassRef"
    if not reference:
        return [f"{path}: Required value"]
    problems = [
        f"{path}.{field}: Invalid value: {field} may not be empty"
        for field in ("group", "kind", "name")
        if not reference.get(field)
    ]
    if "/" in reference.get("group", ""):
        problems.append(f'{path}.group: Invalid value: "{reference["group"]}": should match ^[^/]*$')
    return problems


def _restricted(key: str, path: str, *, pool_key: bool) -> list[str]:
    """Keys that pools may not set: the provisioner's own domain and the host name."""
    domain = key.partition("/")[0] if "/" in key else ""
    if domain.endswith("karpenter.sh") and key not in {CAPACITY_TYPE, NODEPOOL}:
        return [f'{path}: Invalid value: label domain "karpenter.sh" is restricted']
    if key in {NODEPOOL, HOSTNAME} and not pool_key:
        return [f'{path}: Invalid value: label "{key}" is restricted']
    return []


def _requirement_list_problems(requirements: list[Plain] | None, path: str) -> list[str]:
    if requirements is None:
        return [f"{path}: Required value"]
    problems = []
    if len(requirements) > _MAX_REQUIREMENTS:
        problems.append(f"{path}: Too many: {len(requirements)}: must have at most {_MAX_REQUIREMENTS} items")
    for index, requirement in enumerate(requirements):
        problems += _restricted(str(requirement.get("key", "")), f"{path}[{index}].key", pool_key=False)
        problems += _requirement_problems(requirement, f"{path}[{index}]", path)
    return problems


def _requirement_problems(requirement: Plain, path: str, whole: str) -> list[str]:
    operator, values = requirement.get("operator"), requirement.get("values") or []
    minimum = requirement.get("minValues")
    problems = []
    if operator not in _OPERATORS:
        problems.append(_unsupported(f"{path}.operator", operator, _OPERATORS))
    if operator == "In" and not values:
        problems.append(f"{whole}: Invalid value: requirements with operator 'In' must have a value defined")
    if operator in _COMPARISONS and (len(values) != 1 or not str(values[0]).isdigit()):
        problems.append(
            f"{whole}: Invalid value: requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive "
            "integer value"
        )
    if minimum is not None and not 1 <= minimum <= _MAX_MIN_VALUES:
        problems.append(f"{path}.minValues: Invalid value: {minimum}: should be between 1 and {_MAX_MIN_VALUES}")
    if operator == "In" and minimum is not None and len(values) < minimum:
        problems.append(
            f"{whole}: Invalid value: requirements with 'minValues' must have at least that many values specified in "
            "the 'values' field"
        )
    return problems


def _unsupported(path: str, found: object, supported: Iterable[str]) -> str:
    known = ", ".join(f'"{value}"' for value in sorted(supported))
    return f'{path}: Unsupported value: "{found}": supported values: {known}'


def _disruption_problems(disruption: Plain) -> list[str]:
    problems = _pattern(disruption, "consolidateAfter", _DURATION_OR_NEVER, "spec.disruption")
    policy, budgets = disruption.get("consolidationPolicy"), disruption.get("budgets") or []
    if policy not in _POLICIES:
        problems.append(_unsupported("spec.disruption.consolidationPolicy", policy, _POLICIES))
    if len(budgets) > _MAX_BUDGETS:
        problems.append(f"spec.disruption.budgets: Too many: {len(budgets)}: must have at most {_MAX_BUDGETS} items")
    for index, budget in enumerate(budgets):
        path = f"spec.disruption.budgets[{index}]"
        problems += _pattern(budget, "nodes", _BUDGET_NODES, path)
        if ("schedule" in budget) != ("duration" in budget):
            problems.append(f"{path}: Invalid value: 'schedule' must be set with 'duration'")
    return problems


def _pattern(container: Plain, field: str, pattern: re.Pattern[str], path: str) -> list[str]:
    value = container.get(field)
    if value is None or pattern.fullmatch(str(value)):
        return []
    return [f"{path}.{field}: Invalid value: \"{value}\": should match '^{pattern.pattern}$'"]
