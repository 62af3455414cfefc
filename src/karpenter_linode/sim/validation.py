"""What the API server refuses, in its words. Rules that nobody here can trip over are left out.

Sources: spec/dra-allocation.md 1.4 to 1.6, spec/karpenter-scheduling.md 6, spec/karpenter-lifecycle.md 8.2.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model.validation import is_subdomain
from karpenter_linode.ports import InvalidError
from karpenter_linode.sim.validation_dra import check_claim, check_claim_spec, check_claim_status, check_slice
from karpenter_linode.sim.validation_karpenter import check_node_pool, check_node_pool_change
from karpenter_linode.sim.validation_selectors import selector_problems
from karpenter_linode.sim.validation_workloads import check_workload

if TYPE_CHECKING:
    from karpenter_linode.sim.resource_types import ResourceType

Plain = dict[str, Any]

_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_PERCENTAGE: Final = re.compile(r"(?:100|[0-9]{1,2})%")
_PERCENTAGE_RULE: Final = "must be a whole number, or a percentage from 0% to 100%"
_POD_IS_FIXED: Final = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_MUTABLE_POD_FIELDS: Final = frozenset(
    {"tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds", "schedulingGates"},
)


class RefusedError(InvalidError):
    """The server's validation refuses an object.

    Args:
        kind: its type.
        name: its name, empty where it has none.
        problems: what is wrong, each as ``field.path: what``.
    """

    def __init__(self, kind: ResourceType, name: str, problems: list[str]) -> None:
        text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        super().__init__(f'{f"{kind.kind}.{kind.group}" if kind.group else kind.kind} "{name}" is invalid: {text}')
        self.kind, self.name, self.problems = kind, name, tuple(problems)


def check_create(kind: ResourceType, new: Plain) -> None:
    """Raise InvalidError when a new object breaks a rule."""
    name = new["metadata"].get("name", "")
    if not name:
        _refuse(kind, new, ["metadata.name: Required value: name or generateName is required"])
    if not is_subdomain(name):
        _refuse(kind, new, [f'metadata.name: Invalid value: "{name}": {_SUBDOMAIN_RULE}'])
    _refuse(kind, new, spec_problems(kind, new) + selector_problems(kind, new))


def check_update(kind: ResourceType, old: Plain, new: Plain, subresource: str) -> None:
    """Raise InvalidError when a change breaks a rule."""
    problems: list[str] = []
    if "deletionTimestamp" in old["metadata"]:
        added = [
            f for f in new["metadata"].get("finalizers") or [] if f not in (old["metadata"].get("finalizers") or [])
        ]
        if added:
            problems.append(
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
                f"found new finalizers {added}"
            )
    if subresource == "status":
        if kind.kind == "ResourceClaim":
            problems += check_claim_status(old, new)
    else:
        problems += _change_problems(kind, old, new) + spec_problems(kind, new) + selector_problems(kind, new)
    _refuse(kind, new, problems)


def spec_problems(kind: ResourceType, new: Plain) -> list[str]:
    """What is wrong with a defaulted object's spec, each as ``field.path: what``."""
    spec = new.get("spec") or {}
    match kind.kind:
        case "ResourceClaim":
            return check_claim(spec)
        case "ResourceClaimTemplate":
            return check_claim_spec(spec.get("spec") or {}, "spec.spec")
        case "ResourceSlice":
            return check_slice(spec)
        case "NodePool":
            return check_node_pool(spec)
        case "Pod":
            return _pod_problems(spec)
        case "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController":
            return check_workload(kind, spec)
        case "PodDisruptionBudget":
            return _budget_problems(spec)
        case _:
            return []


def _change_problems(kind: ResourceType, old: Plain, new: Plain) -> list[str]:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    match kind.kind:
        case "NodeClaim" if before != after:
            return ["spec: Invalid value: spec is immutable"]
        case "ResourceClaim" | "ResourceClaimTemplate" if before != after:
            return ["spec: Invalid value: field is immutable"]
        case "ResourceSlice":
            return [
                f"spec.{field}: Invalid value: field is immutable"
                for field in ("driver", "nodeName")
                if before.get(field) != after.get(field)
            ] + (
                ["spec.pool.name: Invalid value: field is immutable"]
                if before.get("pool", {}).get("name") != after.get("pool", {}).get("name")
                else []
            )
        case "Pod":
            return _pod_change_problems(before, after)
        case "NodePool":
            return check_node_pool_change(before, after)
        case "Node" if before.get("providerID") and before["providerID"] != after.get("providerID"):
            return ['spec.providerID: Forbidden: node updates may not change providerID except from "" to valid']
        case _:
            return []


def _pod_problems(spec: Plain) -> list[str]:
    problems = [] if spec.get("containers") else ["spec.containers: Required value"]
    entries = spec.get("resourceClaims") or []
    names = [entry.get("name", "") for entry in entries]
    for index, entry in enumerate(entries):
        if bool(entry.get("resourceClaimName")) == bool(entry.get("resourceClaimTemplateName")):
            problems.append(
                f"spec.resourceClaims[{index}]: Invalid value: must specify one of: "
                "`resourceClaimName`, `resourceClaimTemplateName`"
            )
        if names.index(entry.get("name", "")) != index:
            problems.append(f'spec.resourceClaims[{index}].name: Duplicate value: "{entry.get("name", "")}"')
    for field in ("containers", "initContainers"):
        for at, container in enumerate(spec.get(field) or []):
            for index, claim in enumerate((container.get("resources") or {}).get("claims") or []):
                if claim.get("name") not in names:
                    path = f"spec.{field}[{at}].resources.claims[{index}].name"
                    problems.append(f'{path}: Not found: "{claim.get("name", "")}"')
    return problems


def _budget_problems(spec: Plain) -> list[str]:
    """A budget says a count or a percentage, of one of two kinds."""
    said = [(field, spec[field]) for field in ("minAvailable", "maxUnavailable") if spec.get(field) is not None]
    problems = ["spec: Invalid value: minAvailable and maxUnavailable cannot be both set"] if len(said) > 1 else []
    for field, value in said:
        if isinstance(value, str) and not _PERCENTAGE.fullmatch(value):
            problems.append(f'spec.{field}: Invalid value: "{value}": {_PERCENTAGE_RULE}')
        elif isinstance(value, int) and value < 0:
            problems.append(f"spec.{field}: Invalid value: {value}: must be greater than or equal to 0")
    return problems


def _pod_change_problems(before: Plain, after: Plain) -> list[str]:
    """Containers may change their image alone; a few fields are free; the rest is fixed at creation."""

    def fixed(spec: Plain) -> Plain:
        kept = {key: value for key, value in spec.items() if key not in _MUTABLE_POD_FIELDS}
        for field in ("containers", "initContainers"):
            if field in kept:
                kept[field] = [
                    {k: v for k, v in item.items() if k not in {"image", "resources"}} for item in kept[field]
                ]
        return kept

    if fixed(before) == fixed(after):
        return []
    return [_POD_IS_FIXED]


def _refuse(kind: ResourceType, new: Plain, problems: list[str]) -> None:
    if problems:
        raise RefusedError(kind, str(new["metadata"].get("name", "")), problems)
