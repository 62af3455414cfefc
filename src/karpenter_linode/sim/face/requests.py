"""Requests as the API server understands them: what a path means, what its query asks, what its body holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec
import yaml
from msgspec import Struct

from karpenter_linode.model.codec import without_nulls
from karpenter_linode.sim.face.errors import RequestError, bad_request, no_such_path
from karpenter_linode.sim.face.protobuf import CONTENT_TYPE, parse_protobuf
from karpenter_linode.sim.face.served import OF_CONTAINERS, Resource, find_resource

if TYPE_CHECKING:
    from karpenter_linode.sim.resource_types import ResourceType

MAX_BODY: Final = 3 << 20
"""Bytes of a request's body, as at a real API server."""
MAX_YAML: Final = 256 << 10
MAX_DEPTH: Final = 64
MAX_VALUES: Final = 200_000
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
_MAX_MANAGER: Final = 128
_MOST_STEPS: Final = 3  # resource, name, subresource
_OF_NAMESPACES: Final = frozenset({"status", "finalize"})
_TRUE: Final = frozenset({"true", "1", "t", "T", "TRUE", "True"})
_VALIDATION: Final = ("Strict", "Warn", "Ignore")


class Target(Struct, frozen=True):
    """What a path below ``/api`` or ``/apis`` names: a resource, perhaps one object or its subresource."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def type(self) -> ResourceType:
        """The kind."""
        return self.resource.type


class ApiRequest(Struct, frozen=True):
    """A request about a resource.

    Args:
        method: GET, POST, PUT, PATCH or DELETE.
        target: what its path names.
        query: parameters; of repeated ones the first.
        content_type: of the body, without parameters.
        accept: the header.
        user_agent: the header.
        body: its bytes.
    """

    method: str
    target: Target
    query: Mapping[str, str]
    content_type: str = ""
    accept: str = ""
    user_agent: str = ""
    body: bytes = b""

    def flag(self, name: str) -> bool:
        """A parameter that is true or false."""
        return self.query.get(name, "") in _TRUE

    def number(self, name: str, default: int = 0) -> int:
        """A parameter that counts something.

        Raises:
            RequestError: it is no whole number from 0 (400).
        """
        text = self.query.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 20):  # noqa: PLR2004  # longer than any 64 bits
            raise bad_request(f"{name}: found {text!r}, expected a whole number")
        return int(text)

    @property
    def dry_run(self) -> bool:
        """Whether nothing may be kept.

        Raises:
            RequestError: another value than ``All`` (400).
        """
        value = self.query.get("dryRun", "")
        if value not in ("", "All"):
            raise bad_request(f'dryRun: Unsupported value: "{value}": supported values: "All"')
        return value == "All"

    @property
    def field_validation(self) -> str:
        """What happens with unknown fields: ``Strict``, ``Warn`` (the default) or ``Ignore``.

        Raises:
            RequestError: another value (400).
        """
        value = self.query.get("fieldValidation") or "Warn"
        if value not in _VALIDATION:
            raise bad_request(
                f'fieldValidation: Unsupported value: "{value}": supported values: "Ignore", "Strict", "Warn"'
            )
        return value

    @property
    def manager(self) -> str:
        """The field manager: as asked, else the program that asks."""
        return (self.query.get("fieldManager") or self.user_agent.partition("/")[0] or "unknown")[:_MAX_MANAGER]

    def json(self) -> Any:
        """The body as plain data; None where there is none.

        Raises:
            RequestError: not JSON, or nested too deep (400); another format (415).
        """
        return parse_body(self.body, self.content_type)


def parse_body(body: bytes, content_type: str) -> Any:
    """Plain data from a body; None where there is none.

    Raises:
        RequestError: malformed, or nested too deep (400); another format (415); too much (413).
    """
    if not body:
        return None
    if content_type == CONTENT_TYPE:
        value = parse_protobuf(body)
        check_bounds(value)
        return value
    if content_type in ("", "application/json", MERGE_PATCH, STRATEGIC_PATCH, JSON_PATCH):
        return parse_json(body)
    return parse_yaml(body, content_type)


def parse_path(path: str) -> Target:
    """What a path names.

    Args:
        path: still percent-encoded, so that an encoded slash stays part of a name.

    Raises:
        RequestError: nothing that is served (404).
    """
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:  # noqa: PLR2004  # /api/v1/...
        api_version, rest = parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:  # noqa: PLR2004  # /apis/group/version/...
        api_version, rest = f"{parts[1]}/{parts[2]}", parts[3:]
    else:
        raise no_such_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _OF_NAMESPACES:  # noqa: PLR2004  # .../ns/resource
        namespace, rest = rest[1], rest[2:]
    resource = find_resource(api_version, rest[0])
    if resource is None or len(rest) > _MOST_STEPS or "" in rest[1:]:
        raise no_such_path()
    name, subresource = (*rest[1:], "", "")[:2]
    known = {item.name for item in resource.subresources} | ({""} | OF_CONTAINERS if rest[0] == "pods" else {""})
    wrong_scope = bool(namespace) and not resource.type.namespaced
    homeless = resource.type.namespaced and not namespace and bool(name)
    if wrong_scope or homeless or subresource not in known:
        raise no_such_path()
    return Target(resource, namespace, name, subresource)


def parse_json(body: bytes) -> Any:
    """Plain data from JSON.

    Raises:
        RequestError: malformed, or nested too deep (400).
    """
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise bad_request(f"the body is not JSON: {error}") from None
    check_bounds(value)
    return value


def parse_yaml(body: bytes, content_type: str) -> Any:
    """Plain data from YAML or JSON, without aliases.

    Raises:
        RequestError: another format (415), too large (413), malformed or nested too deep (400).
    """
    if content_type not in (APPLY_PATCH, "application/yaml"):
        raise RequestError(
            415,
            "the body of the request was in an unknown format - accepted media types include: application/json, "
            "application/yaml",
        )
    try:
        return parse_json(body)
    except RequestError:
        if len(body) > MAX_YAML:
            raise RequestError(
                413, f"YAML of {len(body)} bytes: expected at most {MAX_YAML}; JSON may be larger"
            ) from None
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(body, Loader=yaml.CSafeLoader)):
            raise bad_request("the body is not usable YAML: aliases are not accepted")
        value = msgspec.json.decode(msgspec.json.encode(yaml.load(body, Loader=_PlainLoader)))  # noqa: S506  # a safe loader
    except (yaml.YAMLError, msgspec.MsgspecError, RecursionError, ValueError, TypeError) as error:
        raise bad_request(f"the body is neither JSON nor YAML: {error}") from None
    check_bounds(value)
    return value


class _PlainLoader(yaml.CSafeLoader):
    """YAML without timestamps: JSON has none."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # the base class reads it so
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def object_in(value: Any, target: Target) -> dict[str, Any]:
    """The object that a body holds, of the kind and at the place that the path names; nulls count as absent.

    Raises:
        RequestError: no object, or one of another kind, name or namespace (400).
    """
    if not isinstance(value, dict):
        raise bad_request(f"found {type(value).__name__}, expected an object of kind {target.type.kind}")
    plain: dict[str, Any] = without_nulls(value)
    expected = {"apiVersion": target.type.api_version, "kind": target.type.kind}
    for key, wanted in expected.items():
        found = plain.get(key, wanted)
        if found != wanted:
            raise bad_request(f"the {key} of the object ({found}) does not match that of the request ({wanted})")
    metadata = plain.get("metadata", {})
    if not isinstance(metadata, dict):
        raise bad_request(f"metadata: found {type(metadata).__name__}, expected object")
    if target.name and metadata.get("name", target.name) != target.name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
        )
    if metadata.get("namespace", target.namespace) != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request "
            f"({metadata['namespace']}, {target.namespace})"
        )
    placed = {**metadata, **({"namespace": target.namespace} if target.namespace else {})}
    return {**plain, **expected, "metadata": {**placed, **({"name": target.name} if target.name else {})}}


def check_bounds(value: Any) -> None:
    """Whether plain data is of a size and depth that one may walk through.

    Raises:
        RequestError: nested too deep (400), or too large (413).
    """
    waiting: list[tuple[Any, int]] = [([value], 0)]
    seen = 0
    while waiting:
        holder, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise bad_request(f"the body is nested deeper than {MAX_DEPTH} levels")
        members = holder.values() if isinstance(holder, dict) else holder
        seen += len(members)
        if seen > MAX_VALUES:
            raise RequestError(413, f"the object holds more than {MAX_VALUES} values")
        waiting += [(member, depth + 1) for member in members if isinstance(member, dict | list)]
