"""Validation of ResourceClaims and ResourceSlices (spec/dra-allocation.md 1.4 and 1.6)."""

from __future__ import annotations

import re
from typing import Any, Final

from karpenter_linode.model.semver import SemVer, SemVerError

Plain = dict[str, Any]

_MAX_REQUESTS: Final = 32
_MAX_ALTERNATIVES: Final = 8
_MAX_RESERVED: Final = 256
_MAX_RESULTS: Final = 32
_MAX_DEVICES: Final = 128
_MAX_DEVICES_WITH_TAINTS_OR_COUNTERS: Final = 64
_MAX_ATTRIBUTES: Final = 32
_MAX_TEXT: Final = 64
_MIN_INT: Final = -(2**63)
_MAX_INT: Final = 2**63 - 1
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_ATTRIBUTE_MEMBERS: Final = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")
_NODE_SELECTION: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def check_claim(spec: Plain) -> list[str]:
    """Problems of a ResourceClaim's spec."""
    return check_claim_spec(spec, "spec")


def check_claim_spec(spec: Plain, path: str) -> list[str]:
    """Problems of a claim spec that stands at ``path``."""
    devices = spec.get("devices") or {}
    requests = devices.get("requests") or []
    problems = []
    if len(requests) > _MAX_REQUESTS:
        problems.append(f"{path}.devices.requests: Too many: {len(requests)}: must have at most {_MAX_REQUESTS} items")
    for index, request in enumerate(requests):
        problems += _request_problems(request, f"{path}.devices.requests[{index}]")
    names = [request.get("name", "") for request in requests]
    problems += [
        f'{path}.devices.requests[{index}].name: Duplicate value: "{name}"'
        for index, name in enumerate(names)
        if names.index(name) != index
    ]
    for index, constraint in enumerate(devices.get("constraints") or []):
        at = f"{path}.devices.constraints[{index}]"
        if bool(constraint.get("matchAttribute")) == bool(constraint.get("distinctAttribute")):
            problems.append(f"{at}: Required value: exactly one of `matchAttribute` or `distinctAttribute` is required")
        for field in ("matchAttribute", "distinctAttribute"):
            name = constraint.get(field)
            if name and "/" not in name:
                problems.append(
                    f'{at}.{field}: Invalid value: "{name}": a fully qualified name must be a domain and a name '
                    "separated by a slash"
                )
    return problems


def _request_problems(request: Plain, path: str) -> list[str]:
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    if bool(exactly) == bool(alternatives):
        return [f"{path}: Invalid value: exactly one of `exactly` or `firstAvailable` is required"]
    if exactly:
        return _device_problems(exactly, f"{path}.exactly")
    if len(alternatives) > _MAX_ALTERNATIVES:
        return [f"{path}.firstAvailable: Too many: {len(alternatives)}: must have at most {_MAX_ALTERNATIVES} items"]
    return [
        problem
        for index, item in enumerate(alternatives)
        for problem in _device_problems(item, f"{path}.firstAvailable[{index}]")
    ]


def _device_problems(request: Plain, path: str) -> list[str]:
    problems = []
    if not request.get("deviceClassName"):
        problems.append(f"{path}.deviceClassName: Required value")
    mode, count = request.get("allocationMode"), request.get("count", 0)
    match mode:
        case "ExactCount":
            if count <= 0:
                problems.append(f"{path}.count: Invalid value: {count}: must be greater than zero")
        case "All":
            if count:
                problems.append(
                    f"{path}.count: Invalid value: {count}: must not be specified when allocationMode is 'All'"
                )
        case _:
            problems.append(
                f'{path}.allocationMode: Unsupported value: "{mode}": supported values: "All", "ExactCount"'
            )
    return problems


def check_claim_status(old: Plain, new: Plain) -> list[str]:
    """Problems of a claim's new status."""
    before, after = old.get("status") or {}, new.get("status") or {}
    problems = []
    if before.get("allocation") and after.get("allocation") and before["allocation"] != after["allocation"]:
        problems.append("status.allocation: Invalid value: field is immutable")
    results = (after.get("allocation") or {}).get("devices", {}).get("results") or []
    if len(results) > _MAX_RESULTS:
        problems.append(f"status.allocation.devices.results: Too many: {len(results)}: must have at most 32 items")
    reserved = after.get("reservedFor") or []
    if reserved and not after.get("allocation"):
        problems.append("status.reservedFor: Forbidden: may not be specified when `allocated` is not set")
    if len(reserved) > _MAX_RESERVED:
        problems.append(f"status.reservedFor: Too many: {len(reserved)}: must have at most {_MAX_RESERVED} items")
    uids = [entry.get("uid") for entry in reserved]
    if len(set(uids)) != len(uids):
        problems.append("status.reservedFor: Duplicate value")
    known = {entry.get("uid") for entry in before.get("reservedFor") or []}
    if "deletionTimestamp" in new["metadata"] and any(uid not in known for uid in uids):
        problems.append("status.reservedFor: Forbidden: new entries may not be added while `deletionTimestamp` is set")
    return problems


def check_slice(spec: Plain) -> list[str]:
    """Problems of a ResourceSlice's spec."""
    pool, devices = spec.get("pool") or {}, spec.get("devices") or []
    problems = [f"spec.{field}: Required value" for field in ("driver", "pool") if not spec.get(field)]
    if sum(bool(spec.get(field)) for field in _NODE_SELECTION) != 1:
        problems.append(
            "spec: Invalid value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` "
            "is required"
        )
    if spec.get("nodeSelector") and len(spec["nodeSelector"].get("nodeSelectorTerms") or []) != 1:
        problems.append("spec.nodeSelector.nodeSelectorTerms: Invalid value: must have exactly one node selector term")
    if pool.get("generation", 0) < 0:
        problems.append("spec.pool.generation: Invalid value: must be greater than or equal to zero")
    if pool.get("resourceSliceCount", 0) <= 0:
        problems.append("spec.pool.resourceSliceCount: Invalid value: must be greater than zero")
    if devices and spec.get("sharedCounters"):
        problems.append("spec: Invalid value: only one of `sharedCounters` or `devices` is allowed")
    scarce = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    limit = _MAX_DEVICES_WITH_TAINTS_OR_COUNTERS if scarce else _MAX_DEVICES
    if len(devices) > limit:
        problems.append(f"spec.devices: Too many: {len(devices)}: must have at most {limit} items")
    problems += _device_name_problems([device.get("name", "") for device in devices])
    for index, device in enumerate(devices):
        problems += _published_device_problems(device, f"spec.devices[{index}]")
    return problems


def _device_name_problems(names: list[str]) -> list[str]:
    problems = []
    for index, name in enumerate(names):
        at = f"spec.devices[{index}].name"
        if not name:
            problems.append(f"{at}: Required value")
        elif names.index(name) != index:
            problems.append(f'{at}: Duplicate value: "{name}"')
        elif not _LABEL.fullmatch(name):
            expected = "a DNS label (lower case letters, digits and '-', at most 63)"
            problems.append(f'{at}: Invalid value: "{name}": must be {expected}')
    return problems


def _published_device_problems(device: Plain, path: str) -> list[str]:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    problems = []
    if len(attributes) + len(capacity) > _MAX_ATTRIBUTES:
        problems.append(f"{path}: Invalid value: the total number of attributes and capacities must not exceed 32")
    for key, value in attributes.items():
        at = f"{path}.attributes[{key}]"
        if sum(value.get(member) is not None for member in _ATTRIBUTE_MEMBERS) != 1:
            problems.append(f"{at}: Invalid value: exactly one value must be specified")
        if any(len(str(value.get(member) or "")) > _MAX_TEXT for member in ("string", "version")):
            problems.append(f"{at}: Too long: may not be more than {_MAX_TEXT} bytes")
        problems += _version_problems(value, at)
        if any(not _MIN_INT <= number <= _MAX_INT for number in (value.get("int") or 0, *(value.get("ints") or ()))):
            problems.append(f"{at}: Invalid value: must be a whole number of 64 bits")
    for key, value in capacity.items():
        if value.get("requestPolicy") and not device.get("allowMultipleAllocations"):
            problems.append(f"{path}.capacity[{key}].requestPolicy: Forbidden: allowMultipleAllocations must be true")
    return problems


def _version_problems(value: Plain, path: str) -> list[str]:
    versions = [("version", value.get("version"))]
    versions += [(f"versions[{index}]", text) for index, text in enumerate(value.get("versions") or [])]
    problems = []
    for member, text in versions:
        try:
            if text is not None:
                SemVer.parse(text)
        except SemVerError:
            message = "must be a string compatible with semver.org spec 2.0.0"
            problems.append(f'{path}.{member}: Invalid value: "{text}": {message}')
    return problems
