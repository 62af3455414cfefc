"""What the store refuses, in the API server's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.karpenter import NodeClaim, NodePool
from karpenter_linode.ports import InvalidError
from karpenter_linode.sim.resource_types import served_type, type_of

if TYPE_CHECKING:
    from karpenter_linode.sim.store import Store

NODE, POD, POOL, CLAIM = type_of(Node), type_of(Pod), type_of(NodePool), type_of(NodeClaim)
REFERENCE = {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"}


def pool(**spec: Any) -> dict[str, Any]:
    template = {"spec": {"nodeClassRef": REFERENCE, "requirements": []}}
    whole = {"template": template, **spec}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": whole}


def pod(**spec: Any) -> dict[str, Any]:
    whole = {"containers": [{"name": "c"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": whole}


def refused(store: Store, manifest: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        store.create(manifest)


def test_node_claims_are_immutable(store: Store) -> None:
    store.create(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": "c"},
            "spec": {"nodeClassRef": REFERENCE, "requirements": []},
        }
    )
    with pytest.raises(InvalidError, match=r'NodeClaim\.karpenter\.sh "c" is invalid: .*spec is immutable'):
        store.patch(CLAIM, "c", {"spec": {"expireAfter": "1h"}})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"weight": 101}, "should be between 1 and 100"),
        ({"disruption": {"consolidateAfter": "soon"}}, "consolidateAfter"),
        ({"disruption": {"budgets": [{"nodes": "101%"}]}}, "nodes"),
        ({"disruption": {"budgets": [{"schedule": "@daily"}]}}, "'schedule' must be set with 'duration'"),
        ({"replicas": 1, "limits": {"cpu": "1"}}, "only 'limits.nodes' is supported on static NodePools"),
        ({"replicas": 1, "weight": 1}, "'weight' is not supported on static NodePools"),
    ],
)
def test_node_pools(store: Store, spec: dict[str, Any], message: str) -> None:
    refused(store, pool(**spec), message)


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        ({"key": "karpenter.sh/odd", "operator": "Exists"}, 'label domain "karpenter.sh" is restricted'),
        ({"key": "kubernetes.io/hostname", "operator": "Exists"}, "is restricted"),
        ({"key": "a", "operator": "In", "values": []}, "operator 'In' must have a value defined"),
        ({"key": "a", "operator": "Gt", "values": ["x"]}, "single positive integer value"),
        ({"key": "a", "operator": "In", "values": ["x"], "minValues": 2}, "'minValues'"),
        ({"key": "a", "operator": "Like", "values": ["x"]}, '"Like": supported values: "DoesNotExist"'),
    ],
)
def test_requirements(store: Store, requirement: dict[str, Any], message: str) -> None:
    template = {"spec": {"nodeClassRef": REFERENCE, "requirements": [requirement]}}
    refused(store, pool(template=template), message)


def test_a_pool_cannot_turn_static(store: Store) -> None:
    store.create(pool())
    with pytest.raises(InvalidError, match="Cannot transition NodePool"):
        store.patch(POOL, "gpu", {"spec": {"replicas": 2}})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "exactly one of `nodeName`"),
        ({"nodeName": "n", "allNodes": True}, "exactly one of `nodeName`"),
        ({"nodeName": "n", "pool": {"name": "n", "generation": 1}}, "resourceSliceCount"),
        ({"nodeName": "n", "devices": [{"name": "a"}, {"name": "a"}]}, "Duplicate value"),
        ({"nodeName": "n", "devices": [{"name": f"d{i}"} for i in range(129)]}, "at most 128"),
        ({"nodeName": "n", "devices": [{"name": "a", "attributes": {"x": {}}}]}, "exactly one value"),
        ({"nodeName": "n", "devices": [{"name": "a"}], "sharedCounters": [{"name": "c"}]}, "only one of"),
    ],
)
def test_slices(store: Store, spec: dict[str, Any], message: str) -> None:
    whole = {"driver": "d", "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}, **spec}
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": whole,
    }
    refused(store, manifest, message)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"name": "r"}, "exactly one of `exactly` or `firstAvailable` is required"),
        ({"name": "r", "exactly": {"deviceClassName": "c", "count": 0}}, "must be greater than zero"),
        (
            {"name": "r", "exactly": {"deviceClassName": "c", "count": 1, "allocationMode": "All"}},
            "must not be specified when allocationMode is 'All'",
        ),
        ({"name": "r", "exactly": {"count": 1}}, "deviceClassName: Required value"),
    ],
)
def test_claims(store: Store, request_: dict[str, Any], message: str) -> None:
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [request_]}},
    }
    refused(store, claim, message)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("device.driver ==", r"spec\.selectors\[0\]\.cel\.expression: .*compilation failed: ERROR: <input>:1:"),
        ("device.attributes['a'].b + 1 == 'x' || device.driver", "compilation failed"),
        ("'" + "x" * 10_240 + "' == device.driver", "Too long"),
    ],
)
def test_selectors_must_compile(store: Store, expression: str, message: str) -> None:
    selectors = [{"cel": {"expression": expression}}]
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "c"},
        "spec": {"selectors": selectors},
    }
    refused(store, manifest, message)
    request = {"name": "r", "exactly": {"deviceClassName": "c", "selectors": selectors}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [request]}},
    }
    refused(store, claim, r"spec\.devices\.requests\[0\]\.exactly\.selectors\[0\]\.cel\.expression")


def test_an_allocation_stays_until_it_is_cleared(store: Store) -> None:
    kind = served_type("resource.k8s.io/v1", "ResourceClaim")
    store.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
        }
    )

    def status(value: dict[str, Any]) -> None:
        store.patch(kind, "c", {"status": value}, namespace="default", subresource="status")

    with pytest.raises(InvalidError, match="may not be specified when `allocated` is not set"):
        status({"reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]})
    status({"allocation": {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "a"}]}}})
    with pytest.raises(InvalidError, match="field is immutable"):
        status({"allocation": {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "b"}]}}})
    status({"allocation": None})
    with pytest.raises(InvalidError, match="field is immutable"):
        store.patch(kind, "c", {"spec": {"devices": {"requests": []}}}, namespace="default")


def test_pods_are_fixed_at_creation(store: Store) -> None:
    store.create(pod())
    with pytest.raises(InvalidError, match="pod updates may not change fields"):
        store.patch(POD, "p", {"spec": {"nodeName": "n"}}, namespace="default")
    store.patch(POD, "p", {"spec": {"containers": [{"name": "c", "image": "new"}]}}, namespace="default")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"containers": []}, r"spec\.containers: Required value"),
        ({"resourceClaims": [{"name": "a"}]}, "must specify one of"),
        (
            {"resourceClaims": [{"name": "a", "resourceClaimName": "x"}, {"name": "a", "resourceClaimName": "y"}]},
            "Duplicate value",
        ),
        ({"containers": [{"name": "c", "resources": {"claims": [{"name": "a"}]}}]}, 'Not found: "a"'),
    ],
)
def test_pods(store: Store, spec: dict[str, Any], message: str) -> None:
    refused(store, pod(**spec), message)


def test_a_provider_id_is_set_once(store: Store) -> None:
    store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {}})
    store.patch(NODE, "n", {"spec": {"providerID": "linode://1"}})
    with pytest.raises(InvalidError, match="may not change providerID"):
        store.patch(NODE, "n", {"spec": {"providerID": "linode://2"}})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"maxUnavailable": "half"}, r"spec\.maxUnavailable: Invalid value: \"half\": .*percentage"),
        ({"minAvailable": "101%"}, r"spec\.minAvailable: Invalid value: \"101%\""),
        ({"minAvailable": -1}, "must be greater than or equal to 0"),
        ({"minAvailable": 1, "maxUnavailable": 1}, "cannot be both set"),
    ],
)
def test_a_disruption_budget_says_one_amount(store: Store, spec: dict[str, Any], message: str) -> None:
    metadata = {"name": "b", "namespace": "default"}
    with pytest.raises(InvalidError, match=message):
        store.create({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec})
