"""Files to objects: reads YAML and JSON manifests, and says file, line, object and field when something is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import count
from os.path import realpath
from typing import TYPE_CHECKING, Any, Final, TypeVar

from karpenter_linode.cli.errors import Finding, InputError, Place
from karpenter_linode.cli.field_errors import described, explain_decode_error, field_text, parse_problem
from karpenter_linode.cli.files import STDIN, documents, texts
from karpenter_linode.cli.schema import unknown_fields
from karpenter_linode.cli.workloads import WORKLOADS, WorkloadError, pods_of, with_selector
from karpenter_linode.cluster.view import SPREAD_KINDS
from karpenter_linode.model import codec, kinds
from karpenter_linode.model.meta import KubeObject
from karpenter_linode.model.validation import is_subdomain
from karpenter_linode.sim.defaults import fill_defaults
from karpenter_linode.sim.resource_types import served_type
from karpenter_linode.sim.validation import spec_problems

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from karpenter_linode.cli.yaml_reader import Document, Path

PRIORITY_CLASS: Final = ("scheduling.k8s.io/v1", "PriorityClass")
_MISSPELT: Final = 0.85  # a capital or a letter; ResourceClass, which there once was, is no misspelt ResourceClaim
_FOR_SPREAD: Final = frozenset((kind.API_VERSION, kind.KIND) for kind in SPREAD_KINDS)

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


def load(paths: Iterable[str], *, spread: bool = False) -> Manifests:
    """Read files, directories (not their sub-directories) and ``-``, the standard input.

    Args:
        paths: what to read.
        spread: keep what only a default topology spread asks for: Services, and workloads themselves.

    Raises:
        InputError: something cannot be read, or an object is not what its kind asks for; holds all findings.
    """
    reader = _Reader(spread=spread)
    known: set[str] = set()
    for path in paths:
        for file, text in texts(path):
            real = file if path == STDIN else realpath(file)
            if real in known:
                reader.result.warnings.append(Finding(Place(file), "given twice; it is read once"))
                continue
            known.add(real)
            reader.read(file, text)
    reader.settle()
    if reader.errors:
        raise InputError(reader.errors, reader.result.warnings)
    return reader.result


class _Reader:
    """Collects objects and findings over all files."""

    def __init__(self, *, spread: bool) -> None:
        self.spread = spread
        self.result = Manifests()
        self.errors: list[Finding] = []
        self.read_objects: list[tuple[dict[str, Any], Source]] = []
        self.seen: dict[tuple[str, str, str], Source] = {}
        self.numbers: dict[tuple[str, str, str], Iterator[int]] = {}
        self.priorities: dict[str, int] = {}
        self.warned: set[tuple[Place, str]] = set()
        self.owners: set[str] = set()  # UIDs of controllers of what the input holds

    def read(self, file: str, text: str) -> None:
        try:
            for document in documents(file, text):
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
            self.read_objects.append(({**plain, "apiVersion": api_version, "kind": kind}, source))

    def settle(self) -> None:
        """Turn what was read into objects; priority classes come first, since pods take their priority from them."""
        for plain, _ in self.read_objects:
            self.owners.update(_owner_uids(plain))
            if _identity(plain) == PRIORITY_CLASS and isinstance(plain.get("value"), int):
                self.priorities[_raw_name(plain)] = plain["value"]
        for plain, source in self.read_objects:
            if _identity(plain) != PRIORITY_CLASS:
                self.take_object(codec.without_nulls(plain), source)

    def take_object(self, plain: dict[str, Any], source: Source) -> None:
        identity = _identity(plain)
        if identity in WORKLOADS:
            self.take_workload(plain, source)
        elif kinds.find_kind(*identity) is None or (identity in _FOR_SPREAD and not self.spread):
            self.ignore(plain, source)
        else:
            self.take_known(plain, source)

    def take_workload(self, plain: dict[str, Any], source: Source) -> None:
        """The pods of a workload, unless it was read from a cluster together with them."""
        if not isinstance(plain.get("metadata"), dict):
            self.errors.append(Finding(source.place(), "metadata is missing", _raw_subject(plain)))
            return
        try:
            pods, at = pods_of(plain)
        except WorkloadError as error:
            place = source.place(error.path)
            self.errors.append(Finding(place, str(error), _raw_subject(plain), field_text(error.path)))
            return
        within = Source(source.document, (*source.prefix, *at))
        for pod in pods if plain["metadata"].get("uid") not in self.owners else ():
            self.take_known(pod, within)
        owner = with_selector(plain) if self.spread else None
        if owner is not None:
            self.take_known(owner, source)

    def take_known(self, plain: dict[str, Any], source: Source) -> None:
        """One object of a kind that has a Struct: shape, then defaults, then the API server's own rules."""
        kind, subject = kinds.find_kind(plain["apiVersion"], plain["kind"]), _raw_subject(plain)
        assert kind is not None  # noqa: S101 - take_object asked
        try:
            shaped = codec.convert(plain, kind)
        except codec.DecodeError as error:
            path, message = explain_decode_error(error, plain, kind)
            self.errors.append(Finding(source.place(path), message, subject, field_text(path)))
            return
        self.warn_about_fields(plain, kind, source, subject)
        metadata = self.settled_name(shaped, source)
        if metadata is None:
            return
        served = served_type(plain["apiVersion"], plain["kind"])
        filled = fill_defaults(served, {**plain, "metadata": metadata}, self.priorities.get)
        problems = [parse_problem(problem) for problem in spec_problems(served, filled)]
        subject = _raw_subject(filled)
        self.errors += [Finding(source.place(path), message, subject, field_text(path)) for path, message in problems]
        if not problems:
            self.result.objects.append(Loaded(codec.convert(filled, kind), source))

    def warn_about_fields(self, plain: dict[str, Any], kind: type[KubeObject], source: Source, subject: str) -> None:
        for path, message in unknown_fields(plain, kind):
            finding = Finding(source.place(path, key=True), message, subject, field_text(path))
            if (finding.place, message) not in self.warned:
                self.warned.add((finding.place, message))
                self.result.warnings.append(finding)

    def settled_name(self, obj: KubeObject, source: Source) -> dict[str, Any] | None:
        """Plain metadata with namespace and name settled, or None with an error noted."""
        meta = obj.metadata
        namespace = (meta.namespace or "default") if obj.NAMESPACED else ""
        name = meta.name or self.generated_name(obj.KIND, namespace, meta.generate_name)
        for part, text in (("name", name), ("namespace", namespace or "default")):
            if not is_subdomain(text):
                self.errors.append(_bad_name(obj, source, part, text))
                return None
        first = self.seen.setdefault((obj.KIND, namespace, name), source)
        if first is not source:
            message = f"defined twice, first at {first.place()}; keep one of them"
            subject = f"{obj.KIND} {namespace}/{name}" if namespace else f"{obj.KIND} {name}"
            self.errors.append(Finding(source.place(), message, subject))
            return None
        plain: dict[str, Any] = {**codec.to_plain(meta), "name": name}
        return {**plain, "namespace": namespace} if namespace else plain

    def generated_name(self, kind: str, namespace: str, prefix: str) -> str:
        """What stands in for the random suffix of the API server: the first free number."""
        if not prefix:
            return ""
        numbers = self.numbers.setdefault((kind, namespace, prefix), count(1))
        return next(name for number in numbers if (kind, namespace, name := f"{prefix}{number}") not in self.seen)

    def ignore(self, plain: dict[str, Any], source: Source) -> None:
        api_version, kind = plain["apiVersion"], plain["kind"]
        label = f"{api_version} {kind}"
        self.result.ignored[label] = self.result.ignored.get(label, 0) + 1
        group = api_version.rpartition("/")[0]
        others = [known for known in kinds.KINDS if api_version != known.API_VERSION]
        for known in others:
            if kind == known.KIND and known.API_VERSION.rpartition("/")[0] == group:
                message = f"apiVersion {api_version} is not read, the {kind} is ignored: write {known.API_VERSION}"
                self.result.warnings.append(Finding(source.place(("apiVersion",)), message, _raw_subject(plain)))
        meant = _kind_meant(api_version, kind)
        if meant:
            message = f"there is no kind {kind!r} in {api_version}, the object is ignored; is {meant!r} meant?"
            self.result.warnings.append(Finding(source.place(("kind",)), message, _raw_subject(plain)))


def _bad_name(obj: KubeObject, source: Source, part: str, text: str) -> Finding:
    path: Path = ("metadata", part)
    if not text:
        return Finding(source.place(("metadata",)), "missing: every object has a name", obj.KIND, field_text(path))
    expected = "lower-case letters, digits, '-' and '.', starting and ending with a letter or digit"
    message = f"found {text[:80]!r}, expected {expected}"
    return Finding(source.place(path), message, obj.KIND, field_text(path))


def _kind_meant(api_version: str, kind: str) -> str:
    """The kind that an unknown one is a misspelling of, such as ``Nodepool`` or ``Pods``, or ""."""
    identities = {*((known.API_VERSION, known.KIND) for known in kinds.KINDS), *WORKLOADS}
    names = {name.lower(): name for version, name in sorted(identities) if version == api_version}
    near = get_close_matches(kind.lower(), list(names), n=1, cutoff=_MISSPELT)
    return names[near[0]] if near and names[near[0]] != kind else ""


def _is_name(found: Any) -> bool:
    return isinstance(found, str) and bool(found)


def _identity(plain: dict[str, Any]) -> tuple[str, str]:
    return plain["apiVersion"], plain["kind"]


def _owner_uids(plain: dict[str, Any]) -> Iterator[str]:
    meta = plain.get("metadata")
    owners = meta.get("ownerReferences") if isinstance(meta, dict) else None
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller") is True and _is_name(owner.get("uid")):
            yield owner["uid"]


def _raw_name(plain: dict[str, Any]) -> str:
    meta = plain.get("metadata")
    return str(meta.get("name", "")) if isinstance(meta, dict) else ""


def _raw_subject(plain: dict[str, Any]) -> str:
    meta = plain.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    name, namespace = str(meta.get("name") or meta.get("generateName") or ""), str(meta.get("namespace") or "")
    return " ".join(part for part in (str(plain["kind"]), f"{namespace}/{name}" if namespace else name) if part)
