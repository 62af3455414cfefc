"""Strategic merge patches, led by the schemas: which lists merge, and by which key."""

from __future__ import annotations

import json
from typing import Any, Final

from karpenter_linode.ports import KubeError
from karpenter_linode.sim.schemas import Schema, field_schema, item_schema, resolved

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"


class PatchError(KubeError):
    """A strategic merge patch that makes no sense (400)."""

    status = 400


def strategic_merge(schema: Schema, current: Any, patch: Any) -> Any:
    """The current value with a strategic merge patch applied; neither is changed.

    Raises:
        PatchError: a directive of the wrong type.
    """
    if not isinstance(patch, dict):
        return patch
    schema = resolved(schema)
    directive = patch.get(_DIRECTIVE, "merge")
    if directive == "delete":
        return {}
    if directive not in ("merge", "replace"):
        raise PatchError(f"unknown patch type: {directive!r}")
    result = dict(current) if isinstance(current, dict) and directive == "merge" else {}
    if _RETAIN in patch:
        kept = _list(patch[_RETAIN], _RETAIN)
        result = {name: value for name, value in result.items() if name in kept}
    for name, value in patch.items():
        if name not in (_DIRECTIVE, _RETAIN) and not name.startswith(_ORDER):
            _merge_member(schema, result, name, value)
    for name, order in patch.items():
        field = name.removeprefix(_ORDER)
        if name.startswith(_ORDER) and isinstance(result.get(field), list):
            key = _merge_key(field_schema(schema, field) or {})
            result[field] = _ordered(result[field], _list(order, name), key)
    return result


def _merge_member(schema: Schema, result: dict[str, Any], name: str, value: Any) -> None:
    if name.startswith(_DELETE):
        field, gone = name.removeprefix(_DELETE), {_identity(item) for item in _list(value, name)}
        if isinstance(result.get(field), list):
            result[field] = [item for item in result[field] if _identity(item) not in gone]
        return
    child = field_schema(schema, name) or {}
    if value is None:
        result.pop(name, None)
    elif isinstance(value, list):
        current = result.get(name)
        result[name] = _merged_list(child, current if isinstance(current, list) else [], value)
    else:
        result[name] = strategic_merge(child, result.get(name), value)


def _merged_list(schema: Schema, current: list[Any], patch: list[Any]) -> list[Any]:
    if "merge" not in schema.get("x-kubernetes-patch-strategy", "").split(","):
        return patch
    key = _merge_key(schema)
    if not key:
        there = {_identity(item) for item in current}
        return [*current, *(item for item in patch if _identity(item) not in there)]
    if any(not isinstance(item, dict) for item in (*patch, *current)):
        raise PatchError(f"a list that merges by {key!r} must hold mappings")
    if any(item.get(_DIRECTIVE) == "replace" for item in patch):
        return [item for item in patch if item.get(_DIRECTIVE) != "replace"]
    return _merged_by_key(item_schema(schema), key, current, patch)


def _merged_by_key(items: Schema, key: str, current: list[Any], patch: list[Any]) -> list[Any]:
    result = dict(enumerate(current))
    places: dict[str, list[int]] = {}
    for place, item in result.items():
        places.setdefault(_identity(item.get(key)), []).append(place)
    for place, item in enumerate(patch, len(current)):
        if key not in item:
            raise PatchError(f"map: {item} does not contain declared merge key: {key}")
        same = places.setdefault(_identity(item[key]), [])
        if item.get(_DIRECTIVE) == "delete":
            for gone in same:
                del result[gone]
            same.clear()
        elif same:
            result[same[0]] = strategic_merge(items, result[same[0]], item)
        else:
            same.append(place)
            result[place] = strategic_merge(items, {}, item)
    return list(result.values())


def _identity(value: Any) -> str:
    """Equal for equal values; lists may be long, so what is in them is looked up rather than looked for."""
    return json.dumps(value, sort_keys=True)


def _merge_key(schema: Schema) -> str:
    return str(schema.get("x-kubernetes-patch-merge-key", ""))


def _ordered(items: list[Any], order: list[Any], key: str) -> list[Any]:
    """The items in the order that the client saw them; those that it did not see come last."""

    def identity(item: Any) -> str:
        return _identity(item.get(key) if key and isinstance(item, dict) else item)

    ranks: dict[str, int] = {}
    for rank, item in enumerate(order):
        ranks.setdefault(identity(item), rank)
    return sorted(items, key=lambda item: ranks.get(identity(item), len(order)))


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise PatchError(f"{name}: found {type(value).__name__}, expected a list")
    return value
