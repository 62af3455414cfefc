"""Paths to documents: files, directories and the standard input, as YAML or JSON, within bounds."""

from __future__ import annotations

import sys
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final

from karpenter_linode.cli.errors import InputError, Place, input_error
from karpenter_linode.cli.json_reader import read_json
from karpenter_linode.cli.yaml_reader import Document, read_yaml
from karpenter_linode.explain.text import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_FILE_BYTES: Final = 128 * 1024 * 1024
SUFFIXES: Final = (".yaml", ".yml", ".json")
STDIN: Final = "-"
_NAMED: Final = 12


def texts(path: str) -> Iterator[tuple[str, str]]:
    """The files behind a path, each as (name for messages, text). A directory stands for the manifests right in it.

    Raises:
        InputError: no such path, a directory without manifests, not readable, too large, or not UTF-8.
    """
    if path == STDIN:
        yield "<stdin>", _decoded("<stdin>", sys.stdin.buffer.read(MAX_FILE_BYTES + 1))
        return
    where = FilePath(path)
    if not where.exists():
        raise input_error(Place(path), "no such file or directory")
    files = [where]
    if where.is_dir():
        files = sorted(child for child in where.iterdir() if child.suffix in SUFFIXES and child.is_file())
        if not files:
            raise input_error(Place(path), _nothing_in(where))
    for file in files:
        try:
            with file.open("rb") as stream:
                data = stream.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise input_error(Place(str(file)), f"cannot be read: {error.strerror}") from None
        yield str(file), _decoded(str(file), data)


def is_empty_directory(path: str) -> bool:
    """Whether a path is that of a directory with nothing in it."""
    where = FilePath(path)
    return where.is_dir() and not any(where.iterdir())


def _nothing_in(directory: FilePath) -> str:
    message = f"no manifests in this directory: expected files ending in {', '.join(SUFFIXES)}"
    inside = sorted(child.name for child in directory.iterdir() if child.is_dir())
    if not inside:
        return message
    return f"{message}; sub-directories are not read, name the one that is meant: {names(inside, _NAMED)}"


def _decoded(file: str, data: bytes) -> str:
    if len(data) > MAX_FILE_BYTES:
        raise input_error(Place(file), f"larger than {MAX_FILE_BYTES // (1024 * 1024)} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise input_error(Place(file, line, column), f"not UTF-8 text: byte 0x{data[error.start]:02x}") from None


def documents(file: str, text: str) -> Iterable[Document]:
    """The documents of a text.

    Raises:
        InputError: malformed.
    """
    if file.endswith(".json"):
        return [read_json(text, file)]
    if text.lstrip()[:1] in ("{", "["):
        try:
            return [read_json(text, file)]
        except InputError:
            return read_yaml(text, file)  # YAML's flow style starts like JSON; its message is the better one
    return read_yaml(text, file)
