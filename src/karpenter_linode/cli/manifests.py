"""Files to objects: reads YAML and JSON manifests, and says file, line, object and field when something is wrong."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from karpenter_linode.cli.errors import Finding, InputError, Place, input_error
from karpenter_linode.cli.field_errors import described, explain_decode_error, field_text
from karpenter_linode.cli.json_reader import read_json
from karpenter_linode.cli.schema import unknown_fields
from karpenter_linode.cli.workloads import WORKLOADS
from karpenter_linode.cli.yaml_reader import Document, Path, read_yaml
from karpenter_linode.model import codec, kinds
from karpenter_linode.model.meta import KubeObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_FILE_BYTES: Final = 128 * 1024 * 1024
SUFFIXES: Final = (".yaml", ".yml", ".json")
STDIN: Final = "-"

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")

K = TypeVar("K", bound=KubeObject)


@dataclass(frozen=True, slots=True)
class Source:
    """Where an object was read: a document, and for members of a ``List`` the path to it."""

    document: Document
    prefix: Path = ()

    def place(self, path: Path = (), *, key: bool = False) -> Place:
        """The position of a field of the object."""
        return self.document.place(self.prefix + path, key=key)


@dataclass(frozen=True, slots=True)
class Loaded:
    """An object and its source."""

    obj: KubeObject
    source: Source

    @property
    def subject(self) -> str:
        """``Kind namespace/name``."""
        return subject_of(self.obj)

    def finding(self, path: Path, message: str) -> Finding:
        """A finding about one field of this object."""
        return Finding(self.source.place(path), message, self.subject, field_text(path))


@dataclass(slots=True)
class Manifests:
    """Everything that was read.

    Args:
        objects: in the order of the input.
        warnings: odd but usable.
        ignored: kinds that have no say here, with how often they came.
    """

    objects: list[Loaded] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    ignored: dict[str, int] = field(default_factory=dict)

    def of(self, kind: type[K]) -> Iterator[tuple[K, Loaded]]:
        """Objects of one kind, in the order of the input."""
        for loaded in self.objects:
            if isinstance(loaded.obj, kind):
                yield loaded.obj, loaded


def subject_of(obj: KubeObject) -> str:
    """How messages name an object: ``Kind namespace/name``."""
    return f"{obj.KIND} {obj.key}"


def load(paths: Iterable[str]) -> Manifests:
    """Read files, directories (not their sub-directories) and ``-``, the standard input.

    Raises:
        InputError: something cannot be read, or an object is not what its kind asks for; holds all findings.
    """
    reader = _Reader()
    for path in paths:
        for file, text in _texts(path):
            reader.read(file, text)
    if reader.errors:
        raise InputError(reader.errors)
    return reader.result


def _texts(path: str) -> Iterator[tuple[str, str]]:
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
            message = f"no manifests in this directory: expected files ending in {', '.join(SUFFIXES)}"
            raise input_error(Place(path), message)
    for file in files:
        try:
            with file.open("rb") as stream:
                data = stream.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise input_error(Place(str(file)), f"cannot be read: {error.strerror}") from None
        yield str(file), _decoded(str(file), data)


def _decoded(file: str, data: bytes) -> str:
    if len(data) > MAX_FILE_BYTES:
        raise input_error(Place(file), f"larger than {MAX_FILE_BYTES // (1024 * 1024)} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise input_error(Place(file, line, column), f"not UTF-8 text: byte 0x{data[error.start]:02x}") from None


class _Reader:
    """Collects objects and findings over all files."""

    def __init__(self) -> None:
        self.result = Manifests()
        self.errors: list[Finding] = []
        self.seen: dict[tuple[str, str, str], Source] = {}

    def read(self, file: str, text: str) -> None:
        try:
            for document in _documents(file, text):
                self.take(document.plain(), Source(document), ("", ""))
        except InputError as error:
            self.errors += error.findings

    def take(self, plain: Any, source: Source, default_kind: tuple[str, str]) -> None:
        """One object, or a list of them."""
        if not isinstance(plain, dict):
            message = f"found {described(plain)}, expected an object with apiVersion and kind"
            self.errors.append(Finding(source.place(), message))
            return
        api_version = plain.get("apiVersion") or default_kind[0]
        kind = plain.get("kind") or default_kind[1]
        missing = [name for name, found in (("apiVersion", api_version), ("kind", kind)) if not _is_name(found)]
        if missing:
            message = f"{' and '.join(missing)} missing: every object names its apiVersion and kind"
            self.errors.append(Finding(source.place(), message))
        elif kind.endswith("List") and isinstance(plain.get("items"), list):
            member = (api_version, kind.removesuffix("List")) if kind != "List" else ("", "")
            for index, item in enumerate(plain["items"]):
                at = (*source.prefix, "items", index)
                self.take(item, Source(source.document, at), member)
        else:
            self.take_object({**plain, "apiVersion": api_version, "kind": kind}, source)

    def take_object(self, plain: dict[str, Any], source: Source) -> None:
        identity = (plain["apiVersion"], plain["kind"])
        known = kinds.find_kind(*identity) or WORKLOADS.get(identity)
        if known is None:
            self.ignore(plain, source)
            return
        subject = _raw_subject(plain)
        try:
            obj = codec.convert(plain, known)
        except codec.DecodeError as error:
            path, message = explain_decode_error(error, plain, known)
            self.errors.append(Finding(source.place(path), message, subject, field_text(path)))
            return
        except RecursionError:
            self.errors.append(Finding(source.place(), "nested too deep", subject))
            return
        self.warn_about_fields(plain, known, source, subject)
        named = self.named(obj, source)
        if named is not None:
            self.result.objects.append(Loaded(named, source))

    def warn_about_fields(self, plain: dict[str, Any], kind: type[KubeObject], source: Source, subject: str) -> None:
        for path, message in unknown_fields(plain, kind):
            self.result.warnings.append(Finding(source.place(path, key=True), message, subject, field_text(path)))

    def named(self, obj: KubeObject, source: Source) -> KubeObject | None:
        """The object with its namespace and name settled, or None with an error noted."""
        meta = obj.metadata
        namespace = (meta.namespace or "default") if obj.NAMESPACED else ""
        name = meta.name
        if not name and meta.generate_name:
            number = 1
            while (obj.KIND, namespace, f"{meta.generate_name}{number}") in self.seen:
                number += 1
            name = f"{meta.generate_name}{number}"
        settled = msgspec.structs.replace(obj, metadata=msgspec.structs.replace(meta, name=name, namespace=namespace))
        for part, text in (("name", name), ("namespace", namespace or "default")):
            if not _NAME.fullmatch(text):
                self.errors.append(_bad_name(obj, source, part, text))
                return None
        identity = (obj.KIND, namespace, name)
        first = self.seen.setdefault(identity, source)
        if first is not source:
            message = f"defined twice, first at {first.place()}; keep one of them"
            self.errors.append(Finding(source.place(), message, subject_of(settled)))
            return None
        return settled

    def ignore(self, plain: dict[str, Any], source: Source) -> None:
        api_version, kind = plain["apiVersion"], plain["kind"]
        label = f"{api_version} {kind}"
        self.result.ignored[label] = self.result.ignored.get(label, 0) + 1
        group = api_version.rpartition("/")[0]
        for known in kinds.KINDS:
            if kind == known.KIND and known.API_VERSION.rpartition("/")[0] == group:
                message = f"apiVersion {api_version} is not read, the {kind} is ignored: write {known.API_VERSION}"
                self.result.warnings.append(Finding(source.place(("apiVersion",)), message, _raw_subject(plain)))


def _documents(file: str, text: str) -> Iterable[Document]:
    if file.endswith(".json"):
        return [read_json(text, file)]
    if text.lstrip()[:1] in ("{", "["):
        try:
            return [read_json(text, file)]
        except InputError:
            return read_yaml(text, file)  # YAML's flow style starts like JSON; its message is the better one
    return read_yaml(text, file)


def _bad_name(obj: KubeObject, source: Source, part: str, text: str) -> Finding:
    path: Path = ("metadata", part)
    if not text:
        return Finding(source.place(("metadata",)), "missing: every object has a name", obj.KIND, field_text(path))
    expected = "lower-case letters, digits, '-' and '.', starting and ending with a letter or digit"
    message = f"found {text[:80]!r}, expected {expected}"
    return Finding(source.place(path), message, obj.KIND, field_text(path))


def _is_name(found: Any) -> bool:
    return isinstance(found, str) and bool(found)


def _raw_subject(plain: dict[str, Any]) -> str:
    meta = plain.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    name, namespace = str(meta.get("name") or meta.get("generateName") or ""), str(meta.get("namespace") or "")
    return " ".join(part for part in (str(plain["kind"]), f"{namespace}/{name}" if namespace else name) if part)
