"""Values as people read them, in explanations."""

from __future__ import annotations

from typing import Any, Final

from karpenter_linode.cel.libraries.numbers import format_double
from karpenter_linode.cel.libraries.times import format_duration, format_timestamp
from karpenter_linode.cel.values import NONE, Duration, Optional, Timestamp, UInt, decode_key

_LONGEST: Final = 120
_DEEPEST: Final = 4


def render(value: Any) -> str:
    """A value as short text: strings in quotes, quantities and versions as they are written; cut when it gets long."""
    text = _render(value, 0)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _render(value: Any, depth: int) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, UInt):
        return f"{int(value)}u"
    if isinstance(value, str):
        escaped = value[:_LONGEST].replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, float):
        return format_double(value)
    if isinstance(value, bytes):
        return repr(value[:_LONGEST])
    if isinstance(value, Duration):
        return format_duration(value)
    if isinstance(value, Timestamp):
        return format_timestamp(value)
    if isinstance(value, Optional):
        return "none" if value is NONE else f"optional({_render(value.value, depth + 1)})"
    return _render_container(value, depth)


def _render_container(value: Any, depth: int) -> str:
    if isinstance(value, list | tuple):
        shown = [_render(element, depth + 1) for element in value[:_LONGEST]] if depth < _DEEPEST else ["..."]
        return f"[{', '.join(shown)}]"
    if isinstance(value, dict):
        # what the map holds, also where its class lets no expression go through it
        entries = list(dict.items(value))[:_LONGEST] if depth < _DEEPEST else []
        shown = [f"{_render(decode_key(key), depth + 1)}: {_render(item, depth + 1)}" for key, item in entries]
        return "{" + ", ".join(shown) + "}"
    return str(value)
