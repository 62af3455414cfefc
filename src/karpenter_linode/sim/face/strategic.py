"""Strategic merge patches, led by the schemas: which lists merge, and by which key."""

from __future__ import annotations

from typing import Any, Final

from karpenter_linode.sim.face.errors import bad_request
from karpenter_linode.sim.face.schemas import Schema, field_schema, item_schema, resolved

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"


def strategic_merge(schema: Schema, current: Any, patch: Any) -> Any:
    """The current value with a strategic merge patch applied; neither is changed.

    Raises:
        RequestError: a directive of the wrong type (400).
    """
    if not isinstance(patch, dict):
        return patch
    schema = resolved(schema)
    directive = patch.get(_DIRECTIVE, "merge")
    if directive == "delete":
        return {}
    if directive not in ("merge", "replace"):
        raise bad_request(f"unknown patch type: {directive!r}")
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
        field, gone = name.removeprefix(_DELETE), _list(value, name)
        if isinstance(result.get(field), list):
            result[field] = [item for item in result[field] if item not in gone]
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
        return [*current, *(item for item in patch if item not in current)]
    if any(not isinstance(item, dict) for item in (*patch, *current)):
        raise bad_request(f"a list that merges by {key!r} must hold mappings")
    if any(item.get(_DIRECTIVE) == "replace" for item in patch):
        return [item for item in patch if item.get(_DIRECTIVE) != "replace"]
    result = list(current)
    for item in patch:
        if key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        place = next((index for index, old in enumerate(result) if old.get(key) == item[key]), None)
        if item.get(_DIRECTIVE) == "delete":
            result = [old for old in result if old.get(key) != item[key]]
        elif place is None:
            result.append(strategic_merge(item_schema(schema), {}, item))
        else:
            result[place] = strategic_merge(item_schema(schema), result[place], item)
    return result


def _merge_key(schema: Schema) -> str:
    return str(schema.get("x-kubernetes-patch-merge-key", ""))


def _ordered(items: list[Any], order: list[Any], key: str) -> list[Any]:
    """The items in the order that the client saw them; those that it did not see come last."""

    def identity(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    wanted = [identity(item) for item in order]
    return sorted(items, key=lambda item: wanted.index(identity(item)) if identity(item) in wanted else len(wanted))


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise bad_request(f"{name}: found {type(value).__name__}, expected a list")
    return value
