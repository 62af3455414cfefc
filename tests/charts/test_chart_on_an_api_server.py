"""A real API server takes every object of the chart, with no field that it does not know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rendering import TOKEN, Helm

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("api-server")]

EVERY_VALUE = ("--values", str(Path(__file__).with_name("every-value.yaml")))


@pytest.fixture
def namespace(api_server: httpx2.Client) -> Iterator[str]:
    answer = api_server.post("/api/v1/namespaces", json={"metadata": {"generateName": "karpenter-"}})
    assert answer.is_success, answer.text
    name = answer.json()["metadata"]["name"]
    yield name
    api_server.delete(f"/api/v1/namespaces/{name}")


@pytest.mark.parametrize("values", [TOKEN, EVERY_VALUE], ids=["token-alone", "every-value"])
def test_every_object_is_accepted(
    api_server: httpx2.Client, newest_helm: Helm, namespace: str, values: tuple[str, ...]
) -> None:
    for (kind, name), item in newest_helm.render(*values, "--namespace", namespace).items():
        if kind == "ServiceMonitor":  # its CRD belongs to the Prometheus operator
            continue
        parameters = {"dryRun": "All", "fieldValidation": "Strict"}
        answer = api_server.post(path_of(api_server, item, namespace), json=item, params=parameters)
        assert answer.status_code == 201, f"{kind} {name}: {answer.text}"
        assert "warning" not in answer.headers, f"{kind} {name}: {answer.headers['warning']}"


def path_of(api_server: httpx2.Client, item: dict[str, Any], namespace: str) -> str:
    """Where objects of its kind are made."""
    version = item["apiVersion"]
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    resources = api_server.get(group).json()["resources"]
    (served,) = [each for each in resources if each["kind"] == item["kind"] and "/" not in each["name"]]
    return f"{group}/namespaces/{namespace}/{served['name']}" if served["namespaced"] else f"{group}/{served['name']}"
