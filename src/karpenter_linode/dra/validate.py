"""What the API server would refuse about a claim's spec (spec/dra-allocation.md 1.3 and 1.6)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.cel import DEFAULT_COST_LIMIT, CompileError
from karpenter_linode.cel.declarations import UNBOUNDED
from karpenter_linode.dra.selector import compiled
from karpenter_linode.model.resource import ALL, EXACT_COUNT, DeviceRequest, DeviceSubRequest, ExactDeviceRequest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from karpenter_linode.model.resource import (
        DeviceClaim,
        DeviceConstraint,
        DeviceSelector,
        DeviceToleration,
        ResourceClaimSpec,
    )

MAX_REQUESTS: Final = 32
MAX_SELECTORS: Final = 32
MAX_CONSTRAINTS: Final = 32
MAX_ALTERNATIVES: Final = 8
MAX_TOLERATIONS: Final = 16
MAX_EXPRESSION: Final = 10 * 1024
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_MAX_DOMAIN: Final = 63
_Item = ExactDeviceRequest | DeviceSubRequest


class Problem(Struct, frozen=True):
    """Something wrong with a spec: where, and what was found and expected."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def validate_claim_spec(spec: ResourceClaimSpec, path: str = "spec") -> tuple[Problem, ...]:
    """Everything wrong with a claim's spec, selectors included; empty for a valid one.

    Args:
        spec: of a claim, or of a template's claim. Fields that the API server defaults may be empty.
        path: of the spec, put before every field.
    """
    return tuple(_devices(spec.devices, f"{path}.devices"))


def selector_problem(text: str) -> str:
    """Why the API server would refuse a selector, or an empty text. A compile error is rendered with its place."""
    size = len(text.encode())
    if size > MAX_EXPRESSION:
        return f"too long: found {size} bytes, expected at most {MAX_EXPRESSION}"
    program = compiled(text)
    if isinstance(program, CompileError):
        return f"compilation failed: {program.render()}"
    most = program.estimate[1]
    if most <= DEFAULT_COST_LIMIT:
        return ""
    cost = f"may be {most} units" if most < UNBOUNDED else "has no bound known beforehand"
    return f"too complex, exceeds cost limit: its cost {cost}, expected at most {DEFAULT_COST_LIMIT}"


def _devices(devices: DeviceClaim, path: str) -> Iterator[Problem]:
    yield from _at_most(devices.requests, MAX_REQUESTS, f"{path}.requests")
    names = [request.name for request in devices.requests]
    for index, request in enumerate(devices.requests):
        yield from _request(request, f"{path}.requests[{index}]", names[:index])
    known = {
        *names,
        *(f"{request.name}/{item.name}" for request in devices.requests for item in request.first_available),
    }
    yield from _at_most(devices.constraints, MAX_CONSTRAINTS, f"{path}.constraints")
    for index, constraint in enumerate(devices.constraints):
        yield from _constraint(constraint, f"{path}.constraints[{index}]", known)
    for index, config in enumerate(devices.config):
        yield from _known_requests(config.requests, f"{path}.config[{index}].requests", known)


def _request(request: DeviceRequest, path: str, earlier: Collection[str]) -> Iterator[Problem]:
    yield from _name(request.name, f"{path}.name", earlier)
    if (request.exactly is None) == (not request.first_available):
        yield Problem(path, "exactly one of `exactly` or `firstAvailable` is required")
        return
    if request.exactly is not None:
        yield from _item(request.exactly, f"{path}.exactly")
    yield from _at_most(request.first_available, MAX_ALTERNATIVES, f"{path}.firstAvailable")
    names = [item.name for item in request.first_available]
    for index, item in enumerate(request.first_available):
        yield from _name(item.name, f"{path}.firstAvailable[{index}].name", names[:index])
        yield from _item(item, f"{path}.firstAvailable[{index}]")


def _item(item: _Item, path: str) -> Iterator[Problem]:
    if not item.device_class_name:
        yield Problem(f"{path}.deviceClassName", "required")
    if item.allocation_mode not in {"", EXACT_COUNT, ALL}:
        found = item.allocation_mode
        yield Problem(f"{path}.allocationMode", f"found {found!r}, expected {EXACT_COUNT!r} or {ALL!r}")
    elif item.allocation_mode == ALL and item.count:
        yield Problem(f"{path}.count", f"found {item.count}: must not be specified when allocationMode is 'All'")
    elif item.count < 0:
        yield Problem(f"{path}.count", f"found {item.count}: must be greater than zero")
    yield from _selectors(item.selectors, f"{path}.selectors")
    yield from _at_most(item.tolerations, MAX_TOLERATIONS, f"{path}.tolerations")
    for index, toleration in enumerate(item.tolerations):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")


def _selectors(selectors: tuple[DeviceSelector, ...], path: str) -> Iterator[Problem]:
    yield from _at_most(selectors, MAX_SELECTORS, path)
    for index, selector in enumerate(selectors):
        if selector.cel is None:
            yield Problem(f"{path}[{index}].cel", "required: only CEL selectors exist")
            continue
        problem = selector_problem(selector.cel.expression)
        if problem:
            yield Problem(f"{path}[{index}].cel.expression", problem)


def _toleration(toleration: DeviceToleration, path: str) -> Iterator[Problem]:
    if toleration.operator not in {"", "Equal", "Exists"}:
        yield Problem(f"{path}.operator", f"found {toleration.operator!r}, expected 'Equal' or 'Exists'")
    if not toleration.key and toleration.operator != "Exists":
        yield Problem(f"{path}.operator", "must be 'Exists' when `key` is empty")
    if toleration.operator == "Exists" and toleration.value:
        yield Problem(f"{path}.value", "must be empty when `operator` is 'Exists'")
    if toleration.effect not in {"", "None", "NoSchedule", "NoExecute"}:
        yield Problem(f"{path}.effect", f"found {toleration.effect!r}, expected 'NoSchedule', 'NoExecute' or 'None'")


def _constraint(constraint: DeviceConstraint, path: str, known: Collection[str]) -> Iterator[Problem]:
    yield from _known_requests(constraint.requests, f"{path}.requests", known)
    fields = {"matchAttribute": constraint.match_attribute, "distinctAttribute": constraint.distinct_attribute}
    given = {name: value for name, value in fields.items() if value is not None}
    if len(given) != 1:
        yield Problem(path, "exactly one of `matchAttribute` or `distinctAttribute` is required")
    for name, value in given.items():
        domain, slash, identifier = value.partition("/")
        if not slash:
            message = f"found {value!r}: a fully qualified name must be a domain and a name separated by a slash"
            yield Problem(f"{path}.{name}", message)
        elif len(domain) > _MAX_DOMAIN or not _DOMAIN.fullmatch(domain) or not _IDENTIFIER.fullmatch(identifier):
            message = f"found {value!r}, expected a DNS subdomain, a slash and a C identifier of at most 32 characters"
            yield Problem(f"{path}.{name}", message)


def _known_requests(requests: tuple[str, ...], path: str, known: Collection[str]) -> Iterator[Problem]:
    for index, name in enumerate(requests):
        if name not in known:
            yield Problem(f"{path}[{index}]", f"found {name!r}: must be the name of a request in the claim")


def _name(name: str, path: str, earlier: Collection[str]) -> Iterator[Problem]:
    if not _LABEL.fullmatch(name):
        yield Problem(path, f"found {name!r}, expected a DNS label (lower case letters, digits and '-', at most 63)")
    elif name in earlier:
        yield Problem(path, f"found {name!r} a second time: names must be unique")


def _at_most(items: tuple[object, ...], limit: int, path: str) -> Iterator[Problem]:
    if len(items) > limit:
        yield Problem(path, f"found {len(items)} items, expected at most {limit}")
