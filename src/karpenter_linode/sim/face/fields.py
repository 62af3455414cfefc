"""Sets of fields, as ``metadata.managedFields`` keeps them: which fields of an object somebody has set.

A path is a tuple of steps: ``f:name`` for a member of a mapping, ``k:{...}`` for an item of a list with keys, ``v:...``
for an item of a set. Lists without keys and atomic mappings count as one value.
Source: KEP-555 (server-side apply), the merge types of the OpenAPI extensions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.sim.schemas import Schema, field_schema, item_schema, resolved

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Path = tuple[str, ...]
_SELF: Final = "."
_SERVER_METADATA: Final = frozenset(
    {
        *("name", "namespace", "generateName", "uid", "creationTimestamp", "deletionTimestamp", "selfLink"),
        *("deletionGracePeriodSeconds", "generation", "resourceVersion", "managedFields"),
    }
)


def paths_of(schema: Schema, value: Any, prefix: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The fields that a value sets, each with its own value."""
    schema = resolved(schema)
    if isinstance(value, dict) and value and not _is_atomic_map(schema):
        for name, member in value.items():
            yield from paths_of(field_schema(schema, name) or {}, member, (*prefix, f"f:{name}"))
    elif isinstance(value, list) and value and _list_type(schema) != "atomic":
        items = item_schema(schema)
        for item in value:
            step = step_of(schema, item)
            yield (*prefix, step), item
            if step.startswith("k:"):
                yield from paths_of(items, item, (*prefix, step))
    elif prefix:
        yield prefix, value


def owned_part(plain: Mapping[str, Any], *, status: bool) -> dict[str, Any]:
    """The part of an object whose fields have owners.

    Args:
        plain: the object.
        status: its status alone; else everything but what the server sets and the status.
    """
    if status:
        return {"status": plain["status"]} if "status" in plain else {}
    metadata = {key: value for key, value in (plain.get("metadata") or {}).items() if key not in _SERVER_METADATA}
    rest = {key: value for key, value in plain.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    return {**({"metadata": metadata} if metadata else {}), **rest}


def merged(schema: Schema, live: Any, config: Any) -> Any:
    """The live value with an applied configuration laid over it."""
    schema = resolved(schema)
    if isinstance(config, dict) and isinstance(live, dict) and not _is_atomic_map(schema):
        laid = {
            name: merged(field_schema(schema, name) or {}, live[name], member) if name in live else member
            for name, member in config.items()
        }
        return {**live, **laid}
    if isinstance(config, list) and isinstance(live, list) and _list_type(schema) != "atomic":
        result = {step_of(schema, item): item for item in live}
        for item in config:
            step = step_of(schema, item)
            result[step] = merged(item_schema(schema), result[step], item) if step in result else item
        return list(result.values())
    return config


def without(schema: Schema, value: Any, paths: Iterable[Path]) -> Any:
    """The value without the fields at some paths; containers that become empty go with them."""
    tree: dict[str, Any] = {}
    for path in paths:
        node = tree
        for step in path:
            node = node.setdefault(step, {})
        node[_SELF] = {}
    return _pruned(resolved(schema), value, tree)


def _pruned(schema: Schema, value: Any, tree: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        result = {}
        for name, member in value.items():
            below = tree.get(f"f:{name}")
            if below is None:
                result[name] = member
            elif _SELF not in below:
                left = _pruned(resolved(field_schema(schema, name)), member, below)
                if left or left == member:
                    result[name] = left
        return result
    if isinstance(value, list):
        kept = []
        for item in value:
            below = tree.get(step_of(schema, item))
            if below is None:
                kept.append(item)
            elif _SELF not in below:
                kept.append(_pruned(item_schema(schema), item, below))
        return kept
    return value


def to_fields(paths: Iterable[Path]) -> dict[str, Any]:
    """``fieldsV1`` of a set of paths."""
    tree: dict[str, Any] = {}
    ordered = sorted(paths)
    inner = {path[:length] for path in ordered for length in range(1, len(path))}
    for path in ordered:
        node = tree
        for step in path:
            node = node.setdefault(step, {})
        if path in inner:
            node[_SELF] = {}
    return tree


def from_fields(tree: Any, prefix: Path = ()) -> set[Path]:
    """The paths of a ``fieldsV1``; what is not understood is left out."""
    if not isinstance(tree, dict):
        return set()
    if not tree:
        return {prefix} if prefix else set()
    found: set[Path] = {prefix} if _SELF in tree and prefix else set()
    for step, below in tree.items():
        if _is_step(step):
            found |= from_fields(below, (*prefix, step))
    return found


def _is_step(text: str) -> bool:
    if text.startswith(("f:", "v:")):
        return True
    try:
        return text.startswith("k:") and isinstance(json.loads(text[2:]), dict)
    except (ValueError, RecursionError):
        return False


def shown(path: Path) -> str:
    """A path as conflicts name it: ``.spec.containers[name="app"].image``."""
    text = ""
    for step in path:
        kind, _, rest = step.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "k":
            text += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in json.loads(rest).items()) + "]"
        else:
            text += f"[={rest}]"
    return text


def step_of(schema: Schema, item: Any) -> str:
    """The step that stands for an item of a list."""
    keys = schema.get("x-kubernetes-list-map-keys", ())
    if _list_type(schema) == "map" and isinstance(item, dict):
        items = item_schema(schema)
        named = {key: item.get(key, (field_schema(items, key) or {}).get("default")) for key in sorted(keys)}
        return "k:" + json.dumps({key: value for key, value in named.items() if value is not None}, sort_keys=True)
    return "v:" + json.dumps(item, sort_keys=True)


def _is_atomic_map(schema: Schema) -> bool:
    return schema.get("x-kubernetes-map-type") == "atomic"


def _list_type(schema: Schema) -> str:
    return str(schema.get("x-kubernetes-list-type", "atomic"))
