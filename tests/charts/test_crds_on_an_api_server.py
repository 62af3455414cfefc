"""A real API server takes the CRDs, and judges objects as our own check does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from crd_cases import ACCEPTED, CHANGES, REFUSED
from kube_api import wait_for

if TYPE_CHECKING:
    import httpx2

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("api-server")]

ROOT = Path(__file__).parents[2]
CRDS = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "charts/karpenter-crd/templates").glob("*.yaml"))]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def client(api_server: httpx2.Client) -> httpx2.Client:
    """An API server that serves the CRDs."""
    for crd in CRDS:
        answer = api_server.post(DEFINITIONS, json=crd)
        assert answer.is_success, answer.text
        assert "warning" not in answer.headers
    for crd in CRDS:
        wait_for(f"{crd['metadata']['name']} to be served", lambda crd=crd: served(api_server, crd))
    return api_server


def served(http: httpx2.Client, crd: dict[str, Any]) -> bool:
    return http.get(path_of(example_of(crd))).is_success


def example_of(crd: dict[str, Any]) -> dict[str, Any]:
    spec = crd["spec"]
    return {"apiVersion": f"{spec['group']}/{spec['versions'][0]['name']}", "kind": spec["names"]["kind"]}


def path_of(manifest: dict[str, Any]) -> str:
    plural = next(crd["spec"]["names"]["plural"] for crd in CRDS if crd["spec"]["names"]["kind"] == manifest["kind"])
    return f"/apis/{manifest['apiVersion']}/{plural}"


def try_to_create(http: httpx2.Client, manifest: dict[str, Any]) -> httpx2.Response:
    return http.post(path_of(manifest), json=manifest, params={"dryRun": "All", "fieldValidation": "Strict"})


def test_the_schemas_are_structural_and_the_names_taken(client: httpx2.Client) -> None:
    for crd in CRDS:
        status = client.get(f"{DEFINITIONS}/{crd['metadata']['name']}").json()["status"]
        conditions = {item["type"]: item["status"] for item in status["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}
        assert status["acceptedNames"]["categories"] == ["karpenter"]


@pytest.mark.parametrize("manifest", ACCEPTED, ids=range(len(ACCEPTED)))
def test_accepted(client: httpx2.Client, manifest: dict[str, Any]) -> None:
    answer = try_to_create(client, manifest)
    assert answer.status_code == 201, answer.text


@pytest.mark.parametrize(("manifest", "message"), REFUSED, ids=[f"{i}-{row[1][:40]}" for i, row in enumerate(REFUSED)])
def test_refused(client: httpx2.Client, manifest: dict[str, Any], message: str) -> None:
    assert refusal(try_to_create(client, manifest), message)


@pytest.mark.parametrize(("before", "after", "message"), CHANGES, ids=[row[2] for row in CHANGES])
def test_what_may_not_change(client: httpx2.Client, before: Any, after: Any, message: str) -> None:
    created = client.post(path_of(before), json=before)
    assert created.status_code == 201, created.text
    path = f"{path_of(before)}/{before['metadata']['name']}"
    version = created.json()["metadata"]["resourceVersion"]
    body = {**after, "metadata": {**after["metadata"], "resourceVersion": version}}
    try:
        assert refusal(client.put(path, json=body), message)
    finally:
        client.delete(path)


# The API server's words where they are not those of the schema.
WORDS = {
    "out of bounds": ("should be greater than or equal to", "should be less than or equal to"),
    "unknown field": ("unknown field",),
    "Unsupported value: ": ("Unsupported value",),
}


def refusal(answer: httpx2.Response, message: str) -> bool:
    """Whether the answer is a refusal for the reason that is meant."""
    assert answer.status_code in {400, 422}, answer.text
    words = next((words for start, words in WORDS.items() if message.startswith(start)), (message,))
    text = answer.json()["message"]
    assert any(word in text for word in words), text
    return True


def test_defaults_are_filled_in(client: httpx2.Client) -> None:
    spec = try_to_create(client, ACCEPTED[0]).json()["spec"]
    assert spec["disruption"] == {
        "budgets": [{"nodes": "10%"}],
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
    }


def test_columns_are_printed(client: httpx2.Client) -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    shown = {}
    for crd in CRDS:
        answer = client.get(path_of(example_of(crd)), headers={"Accept": table}).json()
        shown[crd["spec"]["names"]["kind"]] = " ".join(
            column["name"] + ("*" if column["priority"] else "") for column in answer["columnDefinitions"]
        )
    assert shown == {
        "LinodeNodeClass": "Name Ready Age Role*",
        "NodeClaim": "Name Type Capacity Zone Node Ready Age ImageID* ID* NodePool* NodeClass* Drifted*",
        "NodeOverlay": "Name Ready Age Weight*",
        "NodePool": "Name NodeClass Nodes Ready Age Weight* CPU* Memory*",
    }
