"""The CRDs say what the model, the embedded API server and the specifications say."""

from __future__ import annotations

import copy
import types
import typing
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from crd_cases import ACCEPTED, CHANGES, REFERENCE, REFUSED, node_claim, node_pool, pool_with

from karpenter_linode.model.karpenter import LinodeNodeClass, NodeClaim, NodePool
from karpenter_linode.model.kinds import from_manifest, to_manifest
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.sim.defaults import fill_defaults
from karpenter_linode.sim.resource_types import RESOURCE_TYPES

ROOT = Path(__file__).parents[3]
MODEL = {kind.KIND: kind for kind in (NodePool, NodeClaim, LinodeNodeClass)}
# A field that nothing reads or writes; upstream serves it, so clients may send it.
UNREAD = {"LinodeNodeClass.status.linodeImages"}


def examples() -> list[Any]:
    found = []
    for path in sorted((ROOT / "examples").rglob("*.yaml")):
        try:
            documents = list(yaml.safe_load_all(path.read_text()))
        except yaml.YAMLError:
            continue  # an example of a broken file
        name = str(path.relative_to(ROOT))
        found += [
            pytest.param(item, id=f"{name}:{item['kind']}")
            for item in documents
            if isinstance(item, dict) and str(item.get("apiVersion", "")).startswith("karpenter.")
        ]
    return found


@pytest.mark.parametrize("manifest", examples())
def test_every_example_is_accepted_and_comes_back_as_it_went(crds: Any, manifest: dict[str, Any]) -> None:
    crd = crds[manifest["kind"]]
    assert manifest["apiVersion"] == crd.api_version
    assert crd.problems(manifest) == []
    again = to_manifest(from_manifest(manifest))
    assert crd.problems(again) == []
    assert from_manifest(again) == from_manifest(manifest)


@pytest.mark.parametrize("kind", MODEL)
def test_the_model_reads_every_field_and_no_other(crds: Any, kind: str) -> None:
    missing, unread = compare(MODEL[kind], crds[kind].schema, kind, skip=("metadata", "apiVersion", "kind"))
    assert missing == []
    assert set(unread) == {path for path in UNREAD if path.startswith(f"{kind}.")}


def compare(model: Any, schema: dict[str, Any], path: str, skip: tuple[str, ...] = ()) -> tuple[list[str], list[str]]:
    """Fields of the model that the schema lacks or types otherwise, and fields of the schema that the model lacks."""
    model = _stripped(model)
    origin, arguments = typing.get_origin(model), typing.get_args(model)
    if isinstance(model, type) and issubclass(model, msgspec.Struct):
        hints = typing.get_type_hints(model)
        fields = {item.encode_name: hints[item.name] for item in msgspec.structs.fields(model)}
        properties = schema.get("properties", {})
        missing = [f"{path}.{name}" for name in fields if name not in properties and name not in skip]
        unread = [f"{path}.{name}" for name in properties if name not in fields and name not in skip]
        parts = [(fields[name], properties[name], f"{path}.{name}") for name in fields if name in properties]
        below = [compare(*part) for part in parts if part[2].rpartition(".")[2] not in skip]
    elif origin is tuple:
        below = [compare(arguments[0], schema["items"], f"{path}[]")]
        missing, unread = [], []
    elif origin is dict:
        # A mapping of the model may be an object with fixed keys in the schema.
        parts_of_map = schema.get("properties") or {"*": schema.get("additionalProperties")}
        below = [compare(arguments[1], part, f"{path}.{name}") for name, part in parts_of_map.items()]
        missing, unread = [], []
    else:
        return ([] if _fits(model, schema) else [f"{path}: {model} is not {schema}"]), []
    return [*missing, *(x for part in below for x in part[0])], [*unread, *(x for part in below for x in part[1])]


def _stripped(model: Any) -> Any:
    if typing.get_origin(model) in {typing.Union, types.UnionType}:
        (model,) = [item for item in typing.get_args(model) if item is not type(None)]
    return model


def _fits(model: Any, schema: dict[str, Any]) -> bool:
    if model is Quantity:
        return bool(schema.get("x-kubernetes-int-or-string"))
    if model is datetime:
        return schema.get("format") == "date-time"
    return bool(schema["type"] == {str: "string", int: "integer", bool: "boolean"}[model])


def test_the_embedded_api_server_fills_in_the_same_defaults(crds: Any) -> None:
    budgets = {"budgets": [{"reasons": ["Empty"]}], "consolidationPolicy": "WhenEmpty"}
    for written in (node_pool(), node_pool(disruption={}), node_pool(disruption=budgets), node_claim()):
        served = next(item for item in RESOURCE_TYPES if item.kind == written["kind"])
        filled = fill_defaults(served, copy.deepcopy(written), lambda _: None)
        assert filled == crds[written["kind"]].defaulted(written)


def test_the_model_has_the_same_defaults(crds: Any) -> None:
    written = node_pool()
    assert from_manifest(crds["NodePool"].defaulted(written)).spec.disruption == from_manifest(written).spec.disruption


def test_nothing_else_has_a_default(crds: Any) -> None:
    def defaults(schema: dict[str, Any], path: str) -> dict[str, Any]:
        found = {path: schema["default"]} if "default" in schema else {}
        for name, part in schema.get("properties", {}).items():
            found |= defaults(part, f"{path}.{name}")
        if "items" in schema:
            found |= defaults(schema["items"], f"{path}[]")
        return found

    assert {kind: defaults(crd.schema, "") for kind, crd in crds.items()} == {
        "NodePool": {
            ".spec.disruption": {"consolidateAfter": "0s"},
            ".spec.disruption.budgets": [{"nodes": "10%"}],
            ".spec.disruption.budgets[].nodes": "10%",
            ".spec.disruption.consolidateAfter": "0s",
            ".spec.disruption.consolidationPolicy": "WhenEmptyOrUnderutilized",
            ".spec.template.spec.expireAfter": "720h",
            ".status.nodes": 0,
        },
        "NodeClaim": {".spec.expireAfter": "720h"},
        "NodeOverlay": {},
        "LinodeNodeClass": {},
    }


def test_what_pools_and_claims_share_is_the_same(crds: Any) -> None:
    in_pool, in_claim = crds["NodePool"].at("spec", "template", "spec"), crds["NodeClaim"].at("spec")
    assert in_claim["properties"].keys() - in_pool["properties"].keys() == {"resources"}
    for name in ("taints", "startupTaints", "terminationGracePeriod", "expireAfter"):
        assert in_pool["properties"][name] == in_claim["properties"][name]
    pool_key = copy.deepcopy(crds["NodePool"].at("spec", "template", "spec", "requirements"))
    rules = pool_key["items"]["properties"]["key"]["x-kubernetes-validations"]
    rules[:] = [rule for rule in rules if rule["message"] != 'label "karpenter.sh/nodepool" is restricted']
    assert pool_key == in_claim["properties"]["requirements"]


def test_names_columns_and_subresources_are_those_of_upstream(crds: Any) -> None:
    def shown(crd: Any) -> tuple[Any, ...]:
        names, version = crd.document["spec"]["names"], crd.version
        columns = [item["name"] + ("*" if item.get("priority") else "") for item in version["additionalPrinterColumns"]]
        return crd.document["metadata"]["name"], names.get("shortNames", []), " ".join(columns), version["subresources"]

    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.nodes"}
    assert [shown(crd) for crd in crds.values()] == [
        ("linodenodeclasses.karpenter.k8s.linode", ["lnc", "lncs"], "Ready Age Role*", {"status": {}}),
        (
            "nodeclaims.karpenter.sh",
            [],
            "Type Capacity Zone Node Ready Age ImageID* ID* NodePool* NodeClass* Drifted*",
            {"status": {}},
        ),
        ("nodeoverlays.karpenter.sh", ["overlays"], "Ready Age Weight*", {"status": {}}),
        (
            "nodepools.karpenter.sh",
            [],
            "NodeClass Nodes Ready Age Weight* CPU* Memory*",
            {"status": {}, "scale": scale},
        ),
    ]
    for crd in crds.values():
        assert crd.document["spec"]["scope"] == "Cluster"
        assert crd.document["spec"]["names"]["categories"] == ["karpenter"]
        assert (crd.version["served"], crd.version["storage"]) == (True, True)


def test_uninstalling_the_chart_leaves_the_resources(crds: Any) -> None:
    for crd in crds.values():
        assert crd.document["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_the_files_are_plain_yaml_that_kubectl_can_apply() -> None:
    for path in (ROOT / "charts/karpenter-crd/templates").iterdir():
        assert "{{" not in path.read_text()


@pytest.mark.parametrize(("manifest", "message"), REFUSED, ids=[f"{i}-{row[1][:40]}" for i, row in enumerate(REFUSED)])
def test_refused(crds: Any, manifest: dict[str, Any], message: str) -> None:
    (problem,) = crds[manifest["kind"]].problems(manifest)
    assert message in problem


@pytest.mark.parametrize("manifest", ACCEPTED, ids=range(len(ACCEPTED)))
def test_accepted(crds: Any, manifest: dict[str, Any]) -> None:
    assert crds[manifest["kind"]].problems(manifest) == []


@pytest.mark.parametrize(("before", "after", "message"), CHANGES, ids=[row[2] for row in CHANGES])
def test_what_may_not_change(crds: Any, before: Any, after: Any, message: str) -> None:
    (problem,) = crds[after["kind"]].problems(after, before)
    assert problem.endswith(message)
    assert crds[after["kind"]].problems(before, before) == []


def test_the_name_of_the_node_class_may_change(crds: Any) -> None:
    assert crds["NodePool"].problems(pool_with(nodeClassRef={**REFERENCE, "name": "other"}), pool_with()) == []
