"""Merge patches and JSON patches, as pure functions on JSON values: nothing that is passed in is changed.

Sources: RFC 7386 (merge), RFC 6902 (JSON patch). Strategic merge patches need schemas: ``sim.strategic``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.ports import InvalidError

if TYPE_CHECKING:
    from collections.abc import Sequence

_INDEX_DIGITS: Final = 9


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch: null removes, mappings merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(target: Any, operations: Sequence[Any]) -> Any:
    """Apply a JSON patch.

    Raises:
        InvalidError: a path that does not exist, a failed ``test`` or an unknown operation; the message quotes it.
    """
    result = target
    for operation in operations:
        kind, path = str(operation.get("op")), str(operation.get("path", ""))
        match kind:
            case "add" | "replace":
                result = _put(result, _parts(path), operation.get("value"), insert=kind == "add", path=path)
            case "remove":
                result = _remove(result, _parts(path), path)
            case "test":
                if _read(result, _parts(path), path) != operation.get("value"):
                    raise InvalidError(f"the server rejected our request: test operation failed at {path}")
            case "copy" | "move":
                source = str(operation.get("from", ""))
                value = _read(result, _parts(source), source)
                moved = _remove(result, _parts(source), source) if kind == "move" else result
                result = _put(moved, _parts(path), value, insert=True, path=path)
            case _:
                raise InvalidError(f"unexpected kind of JSON patch operation: {kind}")
    return result


def _parts(path: str) -> list[str]:
    if path and not path.startswith("/"):
        raise InvalidError(
            f"the server rejected our request: {path!r} is no JSON pointer: it does not begin with a slash"
        )
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _missing(path: str) -> InvalidError:
    return InvalidError(f"the server rejected our request: no value at {path}")


def _is_index(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) <= _INDEX_DIGITS


def _is_place(part: str, length: int, *, insert: bool) -> bool:
    """Whether a list of that length has the place, or gets it when something is inserted there."""
    if part == "-":
        return insert
    return _is_index(part) and int(part) <= length - (not insert)


def _child(value: Any, part: str, path: str) -> Any:
    if isinstance(value, dict) and part in value:
        return value[part]
    if isinstance(value, list) and _is_index(part) and int(part) < len(value):
        return value[int(part)]
    raise _missing(path)


def _read(value: Any, parts: list[str], path: str) -> Any:
    for part in parts:
        value = _child(value, part, path)
    return value


def _put(value: Any, parts: list[str], new: Any, *, insert: bool, path: str) -> Any:
    if not parts:
        return new
    head, rest = parts[0], parts[1:]
    if rest:
        return _with(value, head, _put(_child(value, head, path), rest, new, insert=insert, path=path))
    if isinstance(value, dict):
        if not insert and head not in value:
            raise _missing(path)
        return {**value, head: new}
    if isinstance(value, list) and _is_place(head, len(value), insert=insert):
        index = len(value) if head == "-" else int(head)
        return [*value[:index], new, *value[index + (not insert) :]]
    raise _missing(path)


def _remove(value: Any, parts: list[str], path: str) -> Any:
    if not parts:
        raise _missing(path)
    head, rest = parts[0], parts[1:]
    child = _child(value, head, path)
    if rest:
        return _with(value, head, _remove(child, rest, path))
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if key != head}
    return [item for index, item in enumerate(value) if index != int(head)]


def _with(value: Any, part: str, child: Any) -> Any:
    """The container with one member replaced."""
    if isinstance(value, dict):
        return {**value, part: child}
    return [child if index == int(part) else item for index, item in enumerate(value)]
