"""A decoder's complaint in words: which field, what was found, what was expected."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model import codec

if TYPE_CHECKING:
    from msgspec import Struct

    from karpenter_linode.cli.yaml_reader import Path

_WHERE: Final = re.compile(r"(?P<what>.*?)(?: - at (?:`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[(\.\.\.)\]")
_FIELD_STEP: Final = re.compile(r"([^.\[\]]+)(?=[.\[]|$)|\[(\d+)\]|\[([^\[\]]+)\]")
_TYPES: Final = re.compile(r"Expected `(?P<expected>[^`]*)`, got `(?P<got>[^`]*)`")
_REQUIRED: Final = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_WORDS: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
}
_ANY_ENTRY: Final = "..."
_SHOWN: Final = 80


def field_text(path: Path) -> str:
    """A path as people write it: ``spec.devices.requests[0].name``, ``metadata.labels['a/b']``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(r"[A-Za-z0-9_]+", step):
            text += f".{step}" if text else step
        else:
            text += f"[{step!r}]"
    return text


def parse_problem(problem: str) -> tuple[Path, str]:
    """A line of the API server's validation (``spec.requests[0].count: Invalid value: ...``) as path and message."""
    field, _, message = problem.partition(": ")
    return path_of(field), message[:1].lower() + message[1:]


def path_of(field: str) -> Path:
    """The path of a field text such as ``spec.requests[0].count`` or ``spec.attributes[vendor.com/name]``."""
    return tuple(int(index) if index else name or key for name, index, key in _FIELD_STEP.findall(field))


def described(plain: Any) -> str:
    """What a plain value is, in words."""
    if plain is None:
        return "nothing"
    if isinstance(plain, bool):
        return str(plain).lower()
    if isinstance(plain, dict):
        return "a mapping"
    if isinstance(plain, list):
        return "a list"
    return f"the text {plain[:_SHOWN]!r}" if isinstance(plain, str) else f"the number {str(plain)[:_SHOWN]}"


def explain_decode_error(error: codec.DecodeError, plain: dict[str, Any], kind: type[Struct]) -> tuple[Path, str]:
    """Where an object does not fit its kind, and how.

    Args:
        error: what ``codec.convert`` raised for ``plain`` and ``kind``.
        plain: the object as read.
        kind: its class.

    Returns:
        The path of the field (for an entry of a mapping: with its key) and a message in words.
    """
    match = _WHERE.fullmatch(str(error))
    what, raw_path = (match["what"], match["path"] or "") if match else (str(error), "")
    path = _resolve(_steps(raw_path), what, plain, kind)
    found = _at(plain, path)
    required = _REQUIRED.search(what)
    if required:
        return path, f"field {required['name']} is missing"
    types = _TYPES.search(what)
    if types is None:
        return path, what if repr(found) in what else f"found {described(found)}: {what[:1].lower()}{what[1:]}"
    expected = " or ".join(_WORDS.get(word, word) for word in types["expected"].split(" | ") if word != "null")
    hint = "; put it in quotes to make it text" if expected == "text" and _is_scalar(found) else ""
    return path, f"found {described(found)}, expected {expected}{hint}"


def _is_scalar(found: Any) -> bool:
    return found is not None and not isinstance(found, dict | list)


def _steps(text: str) -> list[str | int]:
    parts = (match.groups() for match in _STEP.finditer(text))
    return [int(index) if index else (name or _ANY_ENTRY) for name, index, _any in parts]


def _at(plain: Any, path: Path) -> Any:
    for step in path:
        try:
            plain = plain[step]
        except (KeyError, IndexError, TypeError):
            return None
    return plain


def _resolve(steps: list[str | int], what: str, plain: dict[str, Any], kind: type[Struct]) -> Path:
    """The decoder says ``[...]`` for "some entry of this mapping": find which, by leaving one entry at a time."""
    path: tuple[str | int, ...] = ()
    for step in steps:
        if step != _ANY_ENTRY:
            path = (*path, step)
            continue
        mapping = _at(plain, path)
        keys = [str(key) for key in mapping] if isinstance(mapping, dict) else []
        guilty = next((key for key in keys if _fails_alike(_with_only(plain, path, key), what, kind)), None)
        if guilty is None:
            break
        path = (*path, guilty)
    return path


def _with_only(plain: Any, path: Path, key: str) -> Any:
    """A copy of plain data in which the mapping at ``path`` keeps one key."""
    if not path:
        return {key: plain[key]}
    step, rest = path[0], path[1:]
    if isinstance(plain, list):
        return [_with_only(item, rest, key) if index == step else item for index, item in enumerate(plain)]
    return {name: _with_only(item, rest, key) if name == step else item for name, item in plain.items()}


def _fails_alike(plain: Any, what: str, kind: type[Struct]) -> bool:
    try:
        codec.convert(plain, kind)
    except codec.DecodeError as error:
        return str(error).startswith(what)
    return False
