"""Reading: discovery, lists, pages, selectors, tables, OpenAPI."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from karpenter_linode.sim.face.ages import age, human_duration
from karpenter_linode.sim.face.columns_custom import parse_path
from karpenter_linode.sim.face.discovery import AGGREGATED
from karpenter_linode.sim.face.openapi import V2_PROTOBUF, V2_PROTOBUF_ASKED
from karpenter_linode.sim.face.served import resources
from karpenter_linode.sim.face.tables import columns_of
from karpenter_linode.sim.schemas import schema_of

Talk = Callable[..., None]
PODS = "/api/v1/namespaces/default/pods"


def test_discovery_names_the_same_resources_in_both_forms(talk: Talk) -> None:
    async def story(client: Any) -> None:
        groups = await client.get("/apis")
        versions = ["/api/v1", *(f"/apis/{item['preferredVersion']['groupVersion']}" for item in groups["groups"])]
        old = set()
        for place in versions:
            listed = await client.get(place)
            old |= {(listed["groupVersion"], item["name"]) for item in listed["resources"]}
        new = set()
        for place in ("/api", "/apis"):
            answer = await client.ask("GET", place, accept=f"{AGGREGATED},application/json")
            assert answer.headers["content-type"] == AGGREGATED, "clients take nothing else for the new form"
            for group in answer.json()["items"]:
                for version in group["versions"]:
                    name = group["metadata"].get("name")
                    served = f"{name}/{version['version']}" if name else version["version"]
                    for item in version["resources"]:
                        new.add((served, item["resource"]))
                        new |= {
                            (served, f"{item['resource']}/{sub['subresource']}") for sub in item.get("subresources", ())
                        }
        assert old == new
        assert ("karpenter.sh/v1", "nodepools/scale") in new
        assert ("v1", "pods/eviction") in new
        pools = next(
            item for item in (await client.get("/apis/karpenter.sh/v1"))["resources"] if item["kind"] == "NodePool"
        )
        assert pools["categories"] == ["karpenter"]
        assert (await client.ask("GET", "/apis/nobody.example")).status_code == 404

    talk(story)


def test_every_kind_has_a_schema_columns_and_a_place_in_openapi(talk: Talk) -> None:
    async def story(client: Any) -> None:
        index = (await client.get("/openapi/v3"))["paths"]
        for resource in resources():
            kind = resource.type
            assert schema_of(kind)["properties"]["metadata"]
            assert columns_of(kind)
            place = f"apis/{kind.api_version}" if kind.group else f"api/{kind.api_version}"
            document = await client.get(index[place]["serverRelativeURL"])
            found = [
                schema
                for schema in document["components"]["schemas"].values()
                if any(item["kind"] == kind.kind for item in schema.get("x-kubernetes-group-version-kind", ()))
            ]
            assert len(found) == 1, kind.kind
            scope = "namespaces/{namespace}/" if kind.namespaced else ""
            change = document["paths"][f"/{place}/{scope}{kind.plural}/{{name}}"]["patch"]
            names = {item["name"] for item in change["parameters"]}
            assert "fieldValidation" in names, "else kubectl wants to validate by itself, with a document of version 2"

    talk(story)


def test_the_old_openapi_document_is_there_and_empty(talk: Talk) -> None:
    async def story(client: Any) -> None:
        assert (await client.get("/openapi/v2"))["paths"] == {}
        binary = await client.ask("GET", "/openapi/v2", accept=f"{V2_PROTOBUF_ASKED},application/json")
        assert (binary.content, binary.headers["content-type"]) == (b"", V2_PROTOBUF)

    talk(story)


def test_lists_come_in_pages_that_together_are_the_list(talk: Talk, pod: Callable[..., Any]) -> None:
    async def story(client: Any) -> None:
        for number in range(5):
            await client.create(PODS, pod(f"p{number}"))
        names: list[str] = []
        token = ""
        for rest in (3, 1, None):
            page = await client.get(PODS, limit=2, **({"continue": token} if token else {}))
            names += [item["metadata"]["name"] for item in page["items"]]
            assert page["metadata"].get("remainingItemCount") == rest
            token = page["metadata"].get("continue", "")
        assert names == [f"p{number}" for number in range(5)]
        assert (page["kind"], page["apiVersion"]) == ("PodList", "v1")
        assert (await client.ask("GET", PODS, **{"continue": "rubbish"})).status_code == 400

    talk(story)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"labelSelector": "app=a"}, ["a"]),
        ({"labelSelector": "app in (a,b),!x"}, ["a", "b"]),
        ({"labelSelector": "app notin (a)"}, ["b", "c"]),
        ({"fieldSelector": "metadata.name=b"}, ["b"]),
        ({"fieldSelector": "metadata.name!=b,status.phase=Pending"}, ["a", "c"]),
        ({"fieldSelector": "spec.nodeName="}, ["a", "b", "c"]),
    ],
)
def test_selectors(talk: Talk, pod: Callable[..., Any], query: dict[str, str], names: list[str]) -> None:
    async def story(client: Any) -> None:
        for name in "abc":
            manifest = pod(name)
            manifest["metadata"]["labels"] = {} if name == "c" else {"app": name}
            await client.create(PODS, manifest)
        found = await client.get("/api/v1/pods", **query)
        assert [item["metadata"]["name"] for item in found["items"]] == names

    talk(story)


@pytest.mark.parametrize(
    "query", [{"labelSelector": "a=(("}, {"fieldSelector": "spec.containers=x"}, {"limit": "many"}]
)
def test_selectors_that_a_server_does_not_know_are_refused(talk: Talk, query: dict[str, str]) -> None:
    async def story(client: Any) -> None:
        answer = await client.ask("GET", PODS, **query)
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")

    talk(story)


def test_a_pods_row_tells_what_its_containers_do(talk: Talk, pod: Callable[..., Any]) -> None:
    async def story(client: Any) -> None:
        await client.create(PODS, pod("a"))
        columns, (row,) = await client.table(PODS)
        assert columns[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
        assert row == ["a", "0/1", "Pending", "0", "0s", "<none>", "<none>", "<none>", "<none>"]
        state = {"name": "app", "ready": True, "restartCount": 2, "state": {"running": {}}}
        await client.patch(f"{PODS}/a/status", {"status": {"phase": "Running", "containerStatuses": [state]}})
        await client.cluster.clock.sleep(130)
        _, (row,) = await client.table(f"{PODS}/a")
        assert row[:5] == ["a", "1/1", "Running", "2", "2m10s"]
        ended = {"name": "app", "ready": False, "restartCount": 0, "state": {"terminated": {"exitCode": 3}}}
        await client.patch(f"{PODS}/a/status", {"status": {"phase": "Failed", "containerStatuses": [ended]}})
        answer = await client.get(f"{PODS}/a", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        assert answer["rows"][0]["cells"][2] == "ExitCode:3"
        assert answer["rows"][0]["conditions"][0]["reason"] == "Failed"
        assert answer["rows"][0]["object"]["kind"] == "PartialObjectMetadata"

    talk(story)


def test_rows_of_our_own_kinds_follow_their_crds(talk: Talk, pool: Callable[..., Any]) -> None:
    async def story(client: Any) -> None:
        base = "/apis/karpenter.sh/v1/nodepools"
        await client.create(base, pool("p", weight=7))
        then = {"reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        conditions = [{"type": "Other", "status": "Unknown", **then}, {"type": "Ready", "status": "True", **then}]
        ready = {"conditions": conditions, "nodes": 2}
        assert (await client.patch(f"{base}/p/status", {"status": ready})).status_code == 200
        columns, rows = await client.table(base)
        assert columns == ["Name", "NodeClass", "Nodes", "Ready", "Age", "Weight", "CPU", "Memory"]
        assert rows == [["p", "default", "2", "True", "0s", 7, None, None]]

    talk(story)


def test_metadata_alone_and_formats_that_nobody_can_give(talk: Talk, pod: Callable[..., Any]) -> None:
    async def story(client: Any) -> None:
        await client.create(PODS, pod("a"))
        partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        found = await client.get(PODS, accept=partial)
        assert set(found["items"][0]) == {"kind", "apiVersion", "metadata"}
        assert (await client.ask("GET", PODS, accept="text/html")).status_code == 406
        protobuf = "application/vnd.kubernetes.protobuf,application/json"
        assert (await client.get(PODS, accept=protobuf))["kind"] == "PodList"

    talk(story)


def test_versions_that_are_not_there(talk: Talk) -> None:
    async def story(client: Any) -> None:
        assert (await client.ask("GET", PODS, resourceVersion="99999")).status_code == 504
        assert (await client.ask("GET", PODS, resourceVersion="1", resourceVersionMatch="Exact")).status_code == 410
        assert (
            await client.ask("GET", PODS, resourceVersion="1", resourceVersionMatch="NotOlderThan")
        ).status_code == 200

    talk(story)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (11_000, "3h3m"),
        (8 * 3600 + 60, "8h"),
        (2 * 86_400, "2d"),
        (2 * 86_400 + 3_700, "2d1h"),
        (30 * 86_400, "30d"),
        (3 * 365 * 86_400 + 86_400, "3y1d"),
        (9 * 365 * 86_400, "9y"),
    ],
)
def test_durations_as_kubectl_writes_them(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text


def test_an_age_of_no_time_is_unknown() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert [age(text, now) for text in (None, "", "yesterday")] == ["<unknown>"] * 3


def test_json_paths_of_columns() -> None:
    assert parse_path(r".metadata.labels.karpenter\.sh/nodepool") == (
        ("metadata",),
        ("labels",),
        ("karpenter.sh/nodepool",),
    )
    assert parse_path('.status.conditions[?(@.type=="Ready")].status')[2] == ("type", "Ready")
    with pytest.raises(ValueError, match="position 7"):
        parse_path(".status[0:2]")
