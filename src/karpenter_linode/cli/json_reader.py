"""JSON text to plain data; positions are looked up only when a message needs one."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from karpenter_linode.cli.errors import InputError, Place, input_error
from karpenter_linode.cli.yaml_reader import MAX_DEPTH, Document, Path, Value, read_yaml

_BYTE: Final = re.compile(r"\(byte (\d+)\)")


def read_json(text: str, file: str) -> JsonDocument:
    """Decode one JSON text.

    Raises:
        InputError: malformed JSON, or nesting beyond the bound; names line and column.
    """
    try:
        plain = msgspec.json.decode(text)
    except RecursionError:
        raise input_error(Place(file), "malformed JSON: nested too deep") from None
    except msgspec.MsgspecError as error:
        raise _malformed(text, file, str(error)) from None
    if _is_too_deep(plain):
        raise input_error(Place(file), f"nested deeper than {MAX_DEPTH} levels")
    return JsonDocument(text, file, plain)


def _is_too_deep(plain: Any) -> bool:
    """Whether collections stand in collections further than YAML may nest them here."""
    level = [plain]
    for _ in range(MAX_DEPTH):
        inside = (
            value.values() if isinstance(value, dict) else value for value in level if isinstance(value, dict | list)
        )
        level = [value for values in inside for value in values if isinstance(value, dict | list)]
        if not level:
            return False
    return True


class JsonDocument(Document):
    """A JSON text as the only document of its file."""

    def __init__(self, text: str, file: str, plain: Any) -> None:
        super().__init__(file, 1, Value(plain, 0, 0))
        self._text = text
        self._positions: Document | None = None

    def plain(self) -> Any:
        """The decoded text."""
        return self.root.content

    def place(self, path: Path = (), *, key: bool = False) -> Place:
        """Where a path stands: the text is read again, as the YAML that every JSON text is."""
        if self._positions is None:
            try:
                self._positions = read_yaml(self._text, self.file)[0]
            except (InputError, IndexError):
                return Place(self.file)
        return self._positions.place(path, key=key)


def _malformed(text: str, file: str, message: str) -> InputError:
    at = _BYTE.search(message)
    before = text.encode()[: int(at[1])].decode(errors="ignore") if at else text
    column = len(before) - (before.rfind("\n") + 1) + 1
    reason = _BYTE.sub("", message).removeprefix("JSON is malformed: ").strip()
    return input_error(Place(file, before.count("\n") + 1, column), f"malformed JSON: {reason}")
