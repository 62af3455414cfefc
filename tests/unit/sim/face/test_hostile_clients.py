"""Whatever a client sends, the face answers, never with a 5xx, and the world lives on."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karpenter_linode.sim.face.served import resources
from karpenter_linode.sim.schemas import resolved, schema_of

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = st.sampled_from(["a", "default", "kube-system", "pod", "x%2Fy", "..", "%00", "A_b", "é", "status", "9" * 300])
PLURALS = st.sampled_from([resource.type.plural for resource in resources()])
BASES = st.sampled_from(
    ["/api/v1", "/apis/apps/v1", "/apis/karpenter.sh/v1", "/apis/resource.k8s.io/v1", "/apis", "/openapi/v3", "/nope"]
)
METHODS = st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
TYPES = st.sampled_from(
    [
        *("application/json", "application/yaml", "application/merge-patch+json", "application/json-patch+json"),
        *("application/strategic-merge-patch+json", "application/apply-patch+yaml", "text/plain", ""),
        "application/vnd.kubernetes.protobuf",
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.text(max_size=8),
    st.floats(allow_nan=False, allow_infinity=False),
)
FIELDS = st.sampled_from(
    [
        *("metadata", "spec", "status", "name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"),
        *("managedFields", "containers", "resources", "requests", "limits", "tolerations", "replicas", "template"),
        *("nodeName", "devices", "$patch", "$retainKeys", "$setElementOrder/containers", "resourceVersion", "uid"),
        *("selector", "matchLabels", "op", "path", "value", "from", "apiVersion", "kind", "cpu", "fieldsV1", "items"),
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(FIELDS, inner, max_size=5)),
    max_leaves=20,
)
QUERIES = st.dictionaries(
    st.sampled_from(
        [
            *(
                "watch",
                "limit",
                "continue",
                "resourceVersion",
                "resourceVersionMatch",
                "labelSelector",
                "fieldSelector",
            ),
            *("fieldManager", "force", "dryRun", "fieldValidation", "sendInitialEvents", "gracePeriodSeconds"),
            *("propagationPolicy", "includeObject"),
        ]
    ),
    st.one_of(
        st.sampled_from(["true", "1", "All", "Strict", "NotOlderThan", "a=b", "!x", "-1", "WyIxIl0="]),
        st.text(max_size=6),
    ),
    max_size=3,
)
PARTS: dict[str, Any] = {
    "metadata": st.dictionaries(FIELDS, VALUES, max_size=3),
    "spec": VALUES,
    "status": VALUES,
}


TEXTS = st.sampled_from(
    ["", "a", "default", "Exists", "In", "NoExecute", "10%", "1h", "-1", "x/y", "node-a", "é", "Always"]
)
QUANTITIES = st.sampled_from([1, "1", "100m", "5Gi", "1e3", "-2", "zz", ""])


def _shaped(schema: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """Values of the types that a schema asks for, with whatever content."""
    schema = resolved(schema)
    if "oneOf" in schema or "anyOf" in schema:
        return QUANTITIES
    match schema.get("type"):
        case "object" if depth < 9 and schema.get("properties"):
            members = {name: st.deferred(lambda s=s: _shaped(s, depth + 1)) for name, s in schema["properties"].items()}
            needed = [
                name for name in (*schema.get("required", ()), *(["spec"] if depth == 0 else [])) if name in members
            ]
            chosen = st.lists(st.sampled_from(sorted(members)), max_size=4, unique=True)
            return chosen.flatmap(
                lambda names: st.fixed_dictionaries({name: members[name] for name in (*needed, *names)})
            )
        case "object" if depth < 9 and isinstance(schema.get("additionalProperties"), dict):
            return st.dictionaries(TEXTS, _shaped(schema["additionalProperties"], depth + 1), max_size=2)
        case "object":
            return st.just({})
        case "array":
            return (
                st.lists(_shaped(schema["items"], depth + 1), min_size=depth < 3, max_size=2)
                if depth < 9
                else st.just([])
            )
        case "integer":
            return st.sampled_from([0, 1, -1, 3, 2**31 - 1, -(2**31)])
        case "number":
            return st.sampled_from([0, 1.5])
        case "boolean":
            return st.booleans()
        case _:
            return TEXTS


async def _fits(client: Any, method: str, path: str, body: Any, kind: str, query: dict[str, str]) -> None:
    answer = await client.ask(method, path, body, kind=kind, timeoutSeconds="1", **query)
    assert answer.status_code < 500 or answer.status_code == 504, (method, path, body, answer.text)
    if answer.status_code >= 400 and method != "HEAD":
        status = answer.json()
        assert (status["kind"], status["code"]) == ("Status", answer.status_code)
        assert status["message"]


@SETTINGS
@given(
    METHODS,
    BASES,
    st.lists(st.one_of(NAMES, PLURALS), max_size=5),
    st.one_of(st.none(), VALUES, st.binary(max_size=40)),
    TYPES,
    QUERIES,
)
def test_any_request_gets_an_answer(
    talk: Callable[..., None], method: str, base: str, steps: list[str], body: Any, kind: str, query: dict[str, str]
) -> None:
    async def story(client: Any) -> None:
        await _fits(client, method, "/".join([base, *steps]), body, kind, query)

    talk(story)


@SETTINGS
@given(
    st.sampled_from(resources()),
    st.fixed_dictionaries({}, optional=PARTS),
    st.sampled_from(["merge", "strategic", "json", "apply"]),
    VALUES,
)
def test_objects_of_any_shape_are_taken_or_refused(
    talk: Callable[..., None], resource: Any, parts: dict[str, Any], patch: str, change: Any
) -> None:
    kind = resource.type
    place = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    base = f"{place}{'/namespaces/default' if kind.namespaced else ''}/{kind.plural}"
    manifest = {"apiVersion": kind.api_version, "kind": kind.kind, **parts}
    metadata = parts.get("metadata", {})
    manifest["metadata"] = (
        {**metadata, "name": "thing", "namespace": "default"} if kind.namespaced else {**metadata, "name": "thing"}
    )

    async def story(client: Any) -> None:
        await _fits(client, "POST", base, manifest, "application/json", {})
        types = {"merge": "merge-patch+json", "strategic": "strategic-merge-patch+json", "json": "json-patch+json"}
        content = f"application/{types.get(patch, 'apply-patch+yaml')}"
        await _fits(client, "PATCH", f"{base}/thing", change, content, {"fieldManager": "m"})
        await _fits(client, "PUT", f"{base}/thing", manifest, "application/json", {})
        await client.cluster.clock.sleep(60)
        await _fits(client, "GET", base, None, "", {})
        table = await client.ask("GET", base, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        assert table.status_code == 200
        await _fits(client, "DELETE", f"{base}/thing", None, "", {})

    talk(story)


@SETTINGS
@given(st.data())
def test_objects_of_the_right_shape_and_any_content_do_not_end_the_world(talk: Callable[..., None], data: Any) -> None:
    kinds = st.sampled_from([resource.type for resource in resources()])
    objects = []
    for kind in data.draw(st.lists(kinds, min_size=1, max_size=3)):
        drawn = data.draw(_shaped(schema_of(kind)))
        metadata = {"name": "node-a" if kind.kind == "Node" else "a"}
        objects.append((kind, {**drawn, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}))

    async def story(client: Any) -> None:
        for kind, manifest in objects:
            place = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
            base = f"{place}{'/namespaces/default' if kind.namespaced else ''}/{kind.plural}"
            await _fits(client, "POST", base, manifest, "application/json", {})
            await _fits(client, "PUT", f"{base}/{manifest['metadata']['name']}", manifest, "application/json", {})
            if kind.status:
                path = f"{base}/{manifest['metadata']['name']}/status"
                await _fits(client, "PUT", path, manifest, "application/json", {})
            await client.cluster.clock.sleep(400)
            assert client.cluster.agenda.failure is None
            table = await client.ask("GET", base, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
            assert table.status_code == 200

    talk(story)


@SETTINGS
@given(st.binary(max_size=200))
def test_any_bytes_as_protobuf_are_taken_or_refused(talk: Callable[..., None], data: bytes) -> None:
    async def story(client: Any) -> None:
        body = b"k8s\x00\x0a\x07\x0a\x02v1\x12\x03Pod" + data
        await _fits(client, "POST", "/api/v1/namespaces/default/pods", body, "application/vnd.kubernetes.protobuf", {})

    talk(story)


def test_copies_of_copies_in_a_json_patch_are_refused_before_they_fill_the_memory(talk: Callable[..., None]) -> None:
    async def story(client: Any) -> None:
        await client.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}, "data": {"a": "b"}})
        doubling = [{"op": "copy", "from": "/data", "path": f"/data/{index}"} for index in range(40)]
        answer = await client.patch("/api/v1/namespaces/default/configmaps/c", doubling, "json")
        assert answer.status_code == 413

    talk(story)


def test_long_lists_in_a_strategic_merge_do_not_hold_up_the_world(talk: Callable[..., None]) -> None:
    async def story(client: Any) -> None:
        many = {name: [f"{name}.example/{index}" for index in range(40_000)] for name in "abc"}
        await client.create(
            "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c", "finalizers": many["a"]}}
        )
        change = {"finalizers": many["b"], "$deleteFromPrimitiveList/finalizers": many["a"]}
        patch = {"metadata": {**change, "$setElementOrder/finalizers": many["c"]}}
        answer = await client.patch("/api/v1/namespaces/default/configmaps/c", patch, "strategic")
        assert answer.status_code == 200
        assert answer.json()["metadata"]["finalizers"] == many["b"]

    talk(story)


def test_continue_tokens_of_ones_own_making_are_refused(talk: Callable[..., None]) -> None:
    async def story(client: Any) -> None:
        for version in ("9" * 5000, "-1", "²", ""):
            token = base64.urlsafe_b64encode(json.dumps([version, "", ""]).encode()).decode()
            answer = await client.ask("GET", "/api/v1/pods", **{"continue": token})
            assert answer.status_code == 400

    talk(story)


def test_depth_that_is_hidden_in_protobuf_is_refused(talk: Callable[..., None]) -> None:
    def field(number: int, content: bytes) -> bytes:
        head, size = bytes([number << 3 & 0x7F | 2 | (0x80 if number > 15 else 0)]), len(content)
        high = bytes([number >> 4]) if number > 15 else b""
        return head + high + bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + content

    async def story(client: Any) -> None:
        deep = b'{"f:a":' * 900 + b"{}" + b"}" * 900
        metadata = field(1, b"deep") + field(17, field(1, b"me") + field(7, field(1, deep)))
        body = b"k8s\x00" + field(1, field(1, b"v1") + field(2, b"Pod")) + field(2, field(1, metadata))
        kind = "application/vnd.kubernetes.protobuf"
        answer = await client.ask("POST", "/api/v1/namespaces/default/pods", body, kind=kind)
        assert (answer.status_code, "nested deeper" in answer.json()["message"]) == (400, True)

    talk(story)


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        (b"[" * 100_000, "application/json", 400),
        (b'{"a":' * 100 + b"1" + b"}" * 100, "application/json", 400),
        (b" " * (4 << 20), "application/json", 413),
        (b"a: &a [x]\nb: *a\n", "application/yaml", 400),
        (b"a" * (300 << 10), "application/yaml", 413),
        (b"a: 2026-01-01\nkind: 'no", "application/yaml", 400),
        (b"{}", "application/cbor", 415),
    ],
)
def test_bodies_that_nobody_should_read_are_refused(
    talk: Callable[..., None], body: bytes, kind: str, code: int
) -> None:
    async def story(client: Any) -> None:
        answer = await client.ask("POST", "/api/v1/namespaces/default/pods", body, kind=kind)
        assert answer.status_code == code

    talk(story)


@pytest.mark.parametrize(
    ("headers", "path", "code"),
    [
        ({"Host": "evil.example"}, "/s3/api", 403),
        ({"Host": "world", "Origin": "http://world"}, "/s3/api", 403),
        ({"Host": "world"}, "/other/api", 401),
        ({"Host": "world"}, "/api", 401),
        ({"Host": "world"}, "/s3/api", 200),
        ({"Host": "world"}, "/s3/healthz", 200),
    ],
)
def test_only_who_knows_the_secret_and_is_no_web_page_comes_in(
    talk: Callable[..., None], headers: dict[str, str], path: str, code: int
) -> None:
    async def story(client: Any) -> None:
        assert (await client.http.get(path, headers=headers)).status_code == code

    talk(story)
