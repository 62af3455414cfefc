"""Device selectors are compiled when they are written (spec/dra-allocation.md 1.5 and 1.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel import CompileError
from karpenter_linode.dra.selector import compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.sim.resource_types import ResourceType

Plain = dict[str, Any]
_MAX_LENGTH: Final = 10_240
_MAX_COST: Final = 1_000_000


def selector_problems(kind: ResourceType, plain: Plain) -> list[str]:
    """Selectors of an object that do not compile, are too long, or may cost too much."""
    spec = plain.get("spec") or {}
    match kind.kind:
        case "DeviceClass":
            found = _placed(spec, "spec")
        case "ResourceClaim":
            found = _of_claim(spec, "spec")
        case "ResourceClaimTemplate":
            found = _of_claim(spec.get("spec") or {}, "spec.spec")
        case _:
            return []
    return [problem for path, text in found if (problem := _problem(path, text))]


def _of_claim(spec: Plain, path: str) -> Iterator[tuple[str, str]]:
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or []):
        at = f"{path}.devices.requests[{index}]"
        yield from _placed(request.get("exactly") or {}, f"{at}.exactly")
        for number, alternative in enumerate(request.get("firstAvailable") or []):
            yield from _placed(alternative, f"{at}.firstAvailable[{number}]")


def _placed(holder: Plain, path: str) -> Iterator[tuple[str, str]]:
    for index, selector in enumerate(holder.get("selectors") or []):
        text = (selector.get("cel") or {}).get("expression")
        if text is not None:
            yield f"{path}.selectors[{index}].cel.expression", str(text)


def _problem(path: str, text: str) -> str:
    size = len(text.encode())
    if size > _MAX_LENGTH:
        return f"{path}: Too long: may not be more than {_MAX_LENGTH} bytes"
    program = compiled(text)
    if isinstance(program, CompileError):
        return f'{path}: Invalid value: "{text}": compilation failed: ERROR: <input>:{program}'
    if program.estimate[1] > _MAX_COST:
        return f"{path}: Forbidden: too complex, exceeds cost limit"
    return ""
