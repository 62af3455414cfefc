"""Deletion, eviction, binding, scale, logs and reviews; and the binary form in which kubectl sends some of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from karpenter_linode.sim.face.protobuf import CONTENT_TYPE, parse_protobuf

Make = Callable[..., dict[str, Any]]
Talk = Callable[..., None]
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
POOLS = "/apis/karpenter.sh/v1/nodepools"


def field(number: int, value: str | bytes | int) -> bytes:
    """A field of a protobuf message."""
    if isinstance(value, int):
        return bytes([number << 3]) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def packed(api_version: str, kind: str, message: bytes) -> bytes:
    """An object in Kubernetes' envelope."""
    return b"k8s\x00" + field(1, field(1, api_version) + field(2, kind)) + field(2, message)


def test_deleting_a_pod_on_a_node_takes_its_grace(talk: Talk, pod: Make) -> None:
    async def story(client: Any) -> None:
        await client.create(PODS, pod("a", nodeName="nowhere"))
        marked = (await client.ask("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 7})).json()
        assert marked["metadata"]["deletionGracePeriodSeconds"] == 7
        _, (row,) = await client.table(PODS)
        assert row[2] == "Terminating"
        await client.ask("DELETE", f"{PODS}/a", gracePeriodSeconds="0")
        assert (await client.ask("GET", f"{PODS}/a")).status_code == 404

    talk(story)


def test_preconditions_and_finalizers_hold_a_deletion(talk: Talk) -> None:
    async def story(client: Any) -> None:
        manifest = {"metadata": {"name": "c", "finalizers": ["x.example/hold"]}}
        stored = (await client.create(MAPS, manifest)).json()
        for wrong in ({"uid": "other"}, {"resourceVersion": "1"}):
            assert (await client.ask("DELETE", f"{MAPS}/c", {"preconditions": wrong})).status_code == 409
        right = {"preconditions": {"uid": stored["metadata"]["uid"]}}
        waiting = (await client.ask("DELETE", f"{MAPS}/c", right)).json()
        assert waiting["metadata"]["deletionTimestamp"]
        await client.patch(f"{MAPS}/c", {"metadata": {"finalizers": None}})
        assert (await client.ask("GET", f"{MAPS}/c")).status_code == 404
        assert (await client.ask("DELETE", f"{MAPS}/c")).status_code == 404

    talk(story)


def test_a_collection_is_deleted_by_selector(talk: Talk) -> None:
    async def story(client: Any) -> None:
        for name in "abc":
            await client.create(MAPS, {"metadata": {"name": name, "labels": {"n": name}}})
        gone = (await client.ask("DELETE", MAPS, labelSelector="n!=b")).json()
        assert [item["metadata"]["name"] for item in gone["items"]] == ["a", "c"]
        assert [item["metadata"]["name"] for item in (await client.get(MAPS))["items"]] == ["b"]

    talk(story)


def test_orphans_stay_and_other_dependents_go(talk: Talk) -> None:
    async def story(client: Any) -> None:
        for policy, stays in (("Orphan", True), ("Background", False)):
            owner = (await client.create(MAPS, {"metadata": {"name": "owner"}})).json()
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
            child = {"metadata": {"name": policy.lower(), "ownerReferences": [reference]}}
            await client.create(MAPS, child)
            done = (await client.ask("DELETE", f"{MAPS}/owner", propagationPolicy=policy)).json()
            assert (done["kind"], done["status"], done["details"]["name"]) == ("Status", "Success", "owner")
            await client.cluster.clock.sleep(60)
            assert (await client.ask("GET", f"{MAPS}/{policy.lower()}")).status_code == (200 if stays else 404)
        assert (await client.ask("DELETE", MAPS, propagationPolicy="Never")).status_code == 400

    talk(story)


def test_a_namespace_goes_with_what_is_in_it(talk: Talk) -> None:
    async def story(client: Any) -> None:
        await client.create("/api/v1/namespaces", {"metadata": {"name": "x"}})
        await client.create("/api/v1/namespaces/x/configmaps", {"metadata": {"name": "c"}})
        await client.ask("DELETE", "/api/v1/namespaces/x")
        assert (await client.get("/api/v1/configmaps"))["items"] == []

    talk(story)


def test_eviction_asks_the_budget(talk: Talk, pod: Make) -> None:
    async def story(client: Any) -> None:
        manifest = pod("a", nodeName="nowhere")
        manifest["metadata"]["labels"] = {"app": "x"}
        await client.create(PODS, manifest)
        budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
        await client.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
        await client.cluster.clock.sleep(5)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
        refused = await client.create(f"{PODS}/a/eviction", eviction)
        assert refused.status_code == 429
        assert refused.json()["details"]["causes"][0]["reason"] == "DisruptionBudget"
        await client.ask("DELETE", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b")
        body = packed("policy/v1", "Eviction", field(1, field(1, "a")) + field(2, field(1, 5)))
        done = await client.ask("POST", f"{PODS}/a/eviction", body, kind=CONTENT_TYPE)
        assert done.status_code == 201
        assert (await client.get(f"{PODS}/a"))["metadata"]["deletionGracePeriodSeconds"] == 5

    talk(story)


def test_binding_assigns_a_pod_once(talk: Talk, pod: Make) -> None:
    async def story(client: Any) -> None:
        await client.create(PODS, pod("a", schedulerName="mine"))
        binding = {"target": {"kind": "Node", "name": "n"}}
        assert (await client.create(f"{PODS}/a/binding", binding)).status_code == 201
        assert (await client.get(f"{PODS}/a"))["spec"]["nodeName"] == "n"
        assert (await client.create(f"{PODS}/a/binding", binding)).status_code == 409
        assert (await client.create(f"{PODS}/a/binding", {})).status_code == 400

    talk(story)


def test_scale_reads_and_writes_the_replicas_of_a_pool(talk: Talk, pool: Make) -> None:
    async def story(client: Any) -> None:
        await client.create(POOLS, pool("p", replicas=1))
        scale = await client.get(f"{POOLS}/p/scale")
        assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 1)
        scale["spec"]["replicas"] = 3
        assert (await client.ask("PUT", f"{POOLS}/p/scale", scale)).json()["spec"]["replicas"] == 3
        assert (await client.get(f"{POOLS}/p"))["spec"]["replicas"] == 3
        assert (await client.ask("PUT", f"{POOLS}/p/scale", scale)).status_code == 409, "it was read before the write"
        assert (await client.patch(f"{POOLS}/p/scale", {"spec": {"replicas": 0}})).json()["spec"]["replicas"] == 0
        assert (await client.patch(f"{POOLS}/p/scale", {"spec": {"replicas": -1}})).status_code == 400
        assert (await client.ask("GET", f"{MAPS}/c/scale")).status_code == 404

    talk(story)


def test_there_are_no_logs_and_that_is_said(talk: Talk, pod: Make) -> None:
    async def story(client: Any) -> None:
        await client.create(PODS, pod("a"))
        answer = await client.ask("GET", f"{PODS}/a/log")
        assert answer.status_code == 400
        assert "run nothing" in answer.json()["message"]

    talk(story)


@pytest.mark.parametrize("way", ["exec", "attach", "portforward"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nobody_connects_to_a_container_and_that_is_said(talk: Talk, pod: Make, method: str, way: str) -> None:
    async def story(client: Any) -> None:
        await client.create(PODS, pod("a"))
        answer = await client.ask(method, f"{PODS}/a/{way}")
        assert answer.status_code == 400
        assert "nothing to connect to" in answer.json()["message"]

    talk(story)


@pytest.mark.parametrize(
    ("group", "plural", "kind"),
    [
        ("authentication", "selfsubjectreviews", "SelfSubjectReview"),
        ("authorization", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
        ("authorization", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    ],
)
def test_the_owner_of_the_kubeconfig_may_do_everything(talk: Talk, group: str, plural: str, kind: str) -> None:
    async def story(client: Any) -> None:
        api_version = f"{group}.k8s.io/v1"
        bodies = (({"spec": {}}, ""), (packed(api_version, kind, b""), CONTENT_TYPE))
        for body, content_type in bodies:
            answer = await client.ask("POST", f"/apis/{api_version}/{plural}", body, kind=content_type)
            assert answer.status_code == 201
            assert answer.json()["kind"] == kind
        status = answer.json()["status"]
        assert status.get("allowed", True)
        assert status.get("userInfo", {"username": "kubernetes-admin"})["username"] == "kubernetes-admin"

    talk(story)


def test_protobuf_becomes_what_json_would_say() -> None:
    volume = field(1, "v") + field(2, field(2, b""))
    probe = field(1, field(2, field(1, "/ok") + field(2, field(1, 1) + field(3, "web")))) + field(3, 9)
    resources = field(2, field(1, "cpu") + field(2, field(1, "100m")))
    container = field(1, "app") + field(2, "") + field(8, resources) + field(10, probe)
    metadata = field(1, "a") + field(8, field(1, 86_400)) + field(11, field(1, "k") + field(2, "v"))
    spec = field(1, volume) + field(2, container) + field(4, 2**64 - 1)
    assert parse_protobuf(packed("v1", "Pod", field(1, metadata) + field(2, spec))) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "creationTimestamp": "1970-01-02T00:00:00Z", "labels": {"k": "v"}},
        "spec": {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [
                {
                    "name": "app",
                    "resources": {"requests": {"cpu": "100m"}},
                    "livenessProbe": {"httpGet": {"path": "/ok", "port": "web"}, "timeoutSeconds": 9},
                }
            ],
            "terminationGracePeriodSeconds": -1,
        },
    }
