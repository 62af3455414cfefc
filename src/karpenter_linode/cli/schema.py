"""Fields that a kind does not have: told when they look like a slip of the pen, or when the kind is known in full."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin, get_type_hints

import msgspec

from karpenter_linode.model import karpenter
from karpenter_linode.model.meta import KubeObject, ObjectMeta

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.cli.yaml_reader import Path

# Kinds whose Structs carry every field of their CRD: what is unknown there does nothing anywhere.
_COMPLETE: Final = (karpenter.NodePool, karpenter.NodeClaim, karpenter.LinodeNodeClass)
_SHORTEST_TYPO: Final = 5
_TYPO_DISTANCE: Final = 2


def unknown_fields(plain: dict[str, Any], kind: type[KubeObject]) -> Iterator[tuple[Path, str]]:
    """Unknown fields worth a warning.

    The Structs are trimmed to the fields in use, so most unknown fields of a pod are simply none of our business; only
    those within two letters of a known one are told. Of Karpenter's and Linode's own kinds every unknown field is.

    Args:
        plain: the object as read.
        kind: its class.

    Returns:
        Path and message of each.
    """
    body = {name: value for name, value in plain.items() if name not in ("apiVersion", "kind")}
    yield from _walk(body, kind, (), complete=kind in _COMPLETE)


def _walk(plain: Any, hint: Any, path: Path, *, complete: bool) -> Iterator[tuple[Path, str]]:
    struct, item = _struct_of(hint), _item_of(hint)
    if struct is not None and isinstance(plain, dict):
        fields = _fields(struct)
        for name, value in plain.items():
            if name in fields:
                yield from _walk(value, fields[name], (*path, name), complete=complete)
                continue
            near = _nearest(name, tuple(fields))
            if near is not None:
                yield (*path, name), f"unknown field {name!r} is ignored; is {near!r} meant?"
            elif complete and struct is not ObjectMeta:
                yield (*path, name), f"unknown field {name!r} is ignored; known here: {', '.join(sorted(fields))}"
    elif item is not None and isinstance(plain, list):
        for index, value in enumerate(plain):
            yield from _walk(value, item, (*path, index), complete=complete)
    elif item is not None and isinstance(plain, dict):
        for name, value in plain.items():
            yield from _walk(value, item, (*path, name), complete=complete)


@cache
def _fields(struct: type[msgspec.Struct]) -> dict[str, Any]:
    hints = get_type_hints(struct)
    return {field.encode_name: hints[field.name] for field in msgspec.structs.fields(struct)}


@cache
def _struct_of(hint: Any) -> type[msgspec.Struct] | None:
    options = (hint, *get_args(hint)) if get_origin(hint) not in (tuple, dict) else (hint,)
    return next((option for option in options if isinstance(option, type) and issubclass(option, msgspec.Struct)), None)


@cache
def _item_of(hint: Any) -> Any:
    """Of ``tuple[X, ...]`` and ``dict[str, X]``: X. Also within ``... | None``."""
    for option in (hint, *get_args(hint)):
        if get_origin(option) is tuple:
            return get_args(option)[0]
        if get_origin(option) is dict:
            return get_args(option)[1]
    return None


@lru_cache(maxsize=4096)  # names come from the input
def _nearest(name: str, known: tuple[str, ...]) -> str | None:
    flat = name.lower().replace("_", "").replace("-", "")
    for candidate in known:
        if candidate.lower() == flat:
            return candidate
    if len(name) < _SHORTEST_TYPO:
        return None
    best = min(known, key=lambda candidate: (_distance(name, candidate), candidate), default=None)
    return best if best is not None and _distance(name, best) <= _TYPO_DISTANCE else None


def _distance(left: str, right: str) -> int:
    """Levenshtein distance, given up above the typo distance."""
    if abs(len(left) - len(right)) > _TYPO_DISTANCE:
        return _TYPO_DISTANCE + 1
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]
