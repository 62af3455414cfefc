"""YAML text to plain data that remembers where each value stood.

Follows what ``kubectl`` reads (YAML 1.1 as the Go library of Kubernetes resolves it), not what PyYAML's loaders make of
it: times stay text, ``1:30`` is text, keys become text, a key written twice is an error. Works on the event stream with
a stack of its own, so neither deep nesting nor aliases that multiply ("billion laughs") can hurt: both have bounds.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import yaml

from karpenter_linode.cli.errors import InputError, Place, input_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_DEPTH: Final = 100
MAX_VALUES: Final = 5_000_000
MAX_ALIASED: Final = 100_000

Path = tuple[str | int, ...]

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BOOLEANS: Final = {
    form: truth
    for truth, words in ((True, ("y", "yes", "on", "true")), (False, ("n", "no", "off", "false")))
    for word in words
    for form in (word, word.capitalize(), word.upper())
}
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_INTEGER: Final = re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]*|0)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_TAG: Final = "tag:yaml.org,2002:"
_MAX_DIGITS: Final = 1000


class Value:
    """A value with its position: a mapping of Values, a list of Values or a plain scalar in ``content``."""

    __slots__ = ("column", "content", "keys", "line", "size")

    def __init__(self, content: Any, line: int, column: int, size: int = 1) -> None:
        self.content = content
        self.line = line
        self.column = column
        self.size = size
        self.keys: dict[str, tuple[int, int]] = {}

    def plain(self) -> Any:
        """Dicts, lists and scalars."""
        if isinstance(self.content, dict):
            return {key: value.plain() for key, value in self.content.items()}
        if isinstance(self.content, list):
            return [value.plain() for value in self.content]
        return self.content

    def find(self, path: Path) -> Value:
        """The Value at a path, or the nearest one above it that exists."""
        here = self
        for step in path:
            inside = here.content
            keys = inside if isinstance(inside, dict) else range(len(inside)) if isinstance(inside, list) else ()
            if step not in keys:
                break
            here = inside[step]
        return here


class Document:
    """One YAML document of a file; ``number`` counts from 1."""

    def __init__(self, file: str, number: int, root: Value) -> None:
        self.file, self.number, self.root = file, number, root

    def plain(self) -> Any:
        """The document as dicts, lists and scalars."""
        return self.root.plain()

    def place(self, path: Path = (), *, key: bool = False) -> Place:
        """Where a path stands: its value, or with ``key`` the name of its last step."""
        parent = self.root.find(path[:-1])
        if key and path and path[-1] in parent.keys:
            line, column = parent.keys[str(path[-1])]
            return Place(self.file, line, column, self.number)
        value = self.root.find(path)
        return Place(self.file, value.line, value.column, self.number)


def read_yaml(text: str, file: str) -> list[Document]:
    """All documents of a YAML text; empty ones are left out.

    Args:
        text: the whole text.
        file: its name, for messages.

    Raises:
        InputError: malformed YAML, a key written twice, nesting or aliases beyond the bounds; names line and column.
    """
    try:
        return list(_Builder(file).documents(text))
    except yaml.MarkedYAMLError as error:
        mark, begin = error.problem_mark or error.context_mark, error.context_mark
        place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)
        started = f" that starts at {begin.line + 1}:{begin.column + 1}" if begin else ""
        context = f"{error.context}{started}" if error.context else ""
        what = ", ".join(part for part in (context, error.problem) if part)
        raise input_error(place, f"malformed YAML: {what or 'cannot be read'}") from None
    except yaml.YAMLError as error:
        raise input_error(Place(file), f"malformed YAML: {' '.join(str(error).split())}") from None


class _Frame:
    """A collection that is still open."""

    __slots__ = ("anchor", "key", "merges", "value")

    def __init__(self, value: Value, anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.key: tuple[str, int, int] | None = None
        self.merges: list[Value] = []


class _Builder:
    """Turns parser events into Values."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.stack: list[_Frame] = []
        self.anchors: dict[str, Value] = {}
        self.root: Value | None = None
        self.values = 0
        self.aliased = 0

    def documents(self, text: str) -> Iterator[Document]:
        number = 0
        for event in yaml.parse(text, Loader=_LOADER):
            self.take(event)
            if isinstance(event, yaml.DocumentStartEvent):
                number += 1
                self.root, self.anchors = None, {}
            elif isinstance(event, yaml.DocumentEndEvent) and self.root is not None and self.root.content is not None:
                yield Document(self.file, number, self.root)

    def take(self, event: Any) -> None:
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)

    def fail(self, event: Any, message: str) -> InputError:
        return input_error(Place(self.file, event.start_mark.line + 1, event.start_mark.column + 1), message)

    def open(self, event: Any) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise self.fail(event, f"nested deeper than {MAX_DEPTH} levels")
        self.check_tag(event, "map" if isinstance(event, yaml.MappingStartEvent) else "seq")
        content: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        value = Value(content, event.start_mark.line + 1, event.start_mark.column + 1)
        self.stack.append(_Frame(value, event.anchor))

    def check_tag(self, event: Any, expected: str) -> None:
        if event.tag not in (None, "!", _TAG + expected):
            raise self.fail(event, f"YAML tag {event.tag} is not supported here")

    def close(self, event: Any) -> None:
        frame = self.stack.pop()
        for merged in frame.merges:
            for key, value in merged.content.items():
                if key not in frame.value.content:
                    frame.value.content[key] = value
                    frame.value.keys[key] = merged.keys[key]
                    frame.value.size += value.size
        self.add(event, frame.value, frame.anchor)

    def scalar(self, event: Any) -> None:
        content = self.resolve(event)
        self.add(event, Value(content, event.start_mark.line + 1, event.start_mark.column + 1), event.anchor)

    def alias(self, event: Any) -> None:
        value = self.anchors.get(event.anchor)
        if value is None:
            raise self.fail(event, f"alias *{event.anchor} names no finished anchor")
        self.aliased += value.size
        if self.aliased > MAX_ALIASED:
            raise self.fail(event, f"aliases stand for more than {MAX_ALIASED} values")
        self.add(event, value, None)

    def add(self, event: Any, value: Value, anchor: str | None) -> None:
        self.values += 1
        if self.values > MAX_VALUES:
            raise self.fail(event, f"more than {MAX_VALUES} values in one file")
        if anchor:
            self.anchors[anchor] = value
        if not self.stack:
            self.root = value
            return
        frame = self.stack[-1]
        if isinstance(frame.value.content, list):
            frame.value.content.append(value)
            frame.value.size += value.size
        elif frame.key is None:
            frame.key = (self.key_text(event, value), value.line, value.column)
        else:
            self.add_entry(event, frame, value)

    def add_entry(self, event: Any, frame: _Frame, value: Value) -> None:
        key, line, column = frame.key or ("", 0, 0)
        frame.key = None
        if key == "<<":
            frame.merges += self.merged(event, value)
            return
        if key in frame.value.content:
            first, _ = frame.value.keys[key]
            place = Place(self.file, line, column)
            raise input_error(place, f"key {key!r} is written twice in one mapping, first in line {first}")
        frame.value.content[key] = value
        frame.value.keys[key] = (line, column)
        frame.value.size += value.size

    def merged(self, event: Any, value: Value) -> list[Value]:
        sources = value.content if isinstance(value.content, list) else [value]
        if not all(isinstance(source.content, dict) for source in sources):
            raise self.fail(event, "the merge key << takes a mapping or a list of mappings")
        return sources

    def key_text(self, event: Any, value: Value) -> str:
        content = value.content
        if isinstance(content, dict | list) or content is None:
            raise self.fail(event, "a mapping key must be text")
        return str(content).lower() if isinstance(content, bool) else str(content)

    def resolve(self, event: Any) -> Any:
        """The plain value of a scalar event."""
        text, tag = event.value, event.tag
        if tag in (None, "!"):
            plain = not event.style and tag is None
            return self.plain_scalar(event, text) if plain else text
        convert = _TAGGED.get(tag.removeprefix(_TAG)) if tag.startswith(_TAG) else None
        if convert is None:
            raise self.fail(event, f"YAML tag {tag} is not supported here")
        try:
            return convert(text)
        except (ValueError, KeyError):
            raise self.fail(event, f"{text[:80]!r} does not fit the tag {tag}") from None

    def plain_scalar(self, event: Any, text: str) -> Any:
        if text in _NULLS:
            return None
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        if text[0] not in "+-.0123456789":
            return text
        if len(text) > _MAX_DIGITS:
            return text
        if _INTEGER.fullmatch(text):
            return _integer(text)
        if _FLOAT.fullmatch(text):
            number = float(text)
            return number if isfinite(number) else text
        if _NOT_FINITE.fullmatch(text):
            raise self.fail(event, f"{text} has no place in a Kubernetes object: JSON cannot carry it")
        return text


def _integer(text: str) -> int:
    digits = text.replace("_", "").lstrip("+-")
    sign = -1 if text.startswith("-") else 1
    octal = len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567"
    return sign * (int(digits, 8) if octal else int(digits, 0))


_TAGGED: Final[dict[str, Callable[[str], Any]]] = {
    "str": str,
    "int": _integer,
    "float": float,
    "bool": lambda text: _BOOLEANS[text],
    "null": lambda _text: None,
    "binary": str,
    "timestamp": str,
}
_HANDLERS: Final[dict[type, Callable[[_Builder, Any], None]]] = {
    yaml.ScalarEvent: _Builder.scalar,
    yaml.AliasEvent: _Builder.alias,
    yaml.SequenceStartEvent: _Builder.open,
    yaml.MappingStartEvent: _Builder.open,
    yaml.SequenceEndEvent: _Builder.close,
    yaml.MappingEndEvent: _Builder.close,
}
