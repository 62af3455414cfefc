"""The store's semantics: what Kubernetes promises to controllers, and what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.karpenter import NodeClaim, NodePool
from karpenter_linode.ports import AlreadyExistsError, ConflictError, InvalidError, KubeError, NotFoundError
from karpenter_linode.sim.resource_types import type_of

if TYPE_CHECKING:
    from karpenter_linode.sim.store import Store
    from karpenter_linode.sim.watches import Change

NODE, POD, POOL, CLAIM = type_of(Node), type_of(Pod), type_of(NodePool), type_of(NodeClaim)
REFERENCE = {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"}


def pool(name: str = "gpu", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"nodeClassRef": REFERENCE, "requirements": []}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def node(name: str = "n", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}, "spec": {}}


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c"}], **spec},
    }


def heard(store: Store, kind: type[Any]) -> list[str]:
    changes: list[str] = []

    def listen(change: Change) -> None:
        changes.append(change.type)

    store.listen(kind, listen)
    return changes


class TestCreate:
    def test_the_server_fills_in_identity(self, store: Store) -> None:
        metadata = store.create(pool()).metadata
        assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
        assert metadata["generation"] == 1
        assert len(metadata["uid"]) == 36
        assert metadata["resourceVersion"] == store.resource_version

    def test_unknown_fields_survive(self, store: Store) -> None:
        stored = store.create({**node(), "spec": {"podCIDR": "10.0.0.0/24", "novelty": {"a": [1]}}})
        assert stored.plain["spec"]["novelty"] == {"a": [1]}

    def test_a_taken_name_is_refused(self, store: Store) -> None:
        store.create(node())
        with pytest.raises(AlreadyExistsError, match='nodes "n" already exists'):
            store.create(node())

    def test_generated_names_differ(self, store: Store) -> None:
        names = {
            store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"generateName": "n-"}}).name
            for _ in range(5)
        }
        assert len(names) == 5
        assert all(name.startswith("n-") and len(name) == 7 for name in names)

    def test_a_namespace_must_exist(self, store: Store) -> None:
        manifest = pod()
        manifest["metadata"]["namespace"] = "elsewhere"
        with pytest.raises(NotFoundError, match='namespaces "elsewhere" not found'):
            store.create(manifest)

    def test_kinds_that_nobody_serves_are_refused(self, store: Store) -> None:
        with pytest.raises(NotFoundError, match='no matches for kind "Gadget" in version "v1"'):
            store.create({"apiVersion": "v1", "kind": "Gadget", "metadata": {"name": "g"}})

    @pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "a" * 254, ""])
    def test_names_follow_dns(self, store: Store, name: str) -> None:
        with pytest.raises(InvalidError, match=r"metadata\.name"):
            store.create(node(name))

    def test_status_is_dropped_where_it_is_a_subresource(self, store: Store) -> None:
        assert "status" not in store.create({**pool(), "status": {"nodes": 3}}).plain

    def test_a_kubelet_registers_with_its_status(self, store: Store) -> None:
        stored = store.create({**node(), "status": {"capacity": {"cpu": "4"}}})
        assert stored.decode(Node).status.capacity["cpu"].units == 4


class TestWrite:
    def test_every_write_has_the_next_number(self, store: Store) -> None:
        first = int(store.create(node("a")).metadata["resourceVersion"])
        second = int(store.create(pool()).metadata["resourceVersion"])
        assert second == first + 1

    def test_a_write_that_changes_nothing_is_none(self, store: Store) -> None:
        before = store.create(pool())
        changes = heard(store, NodePool)
        after = store.patch(POOL, "gpu", {"metadata": {"labels": None}, "spec": {"weight": None}})
        assert after is before
        assert changes == []

    def test_only_spec_changes_raise_the_generation(self, store: Store) -> None:
        store.create(pool())
        labelled = store.patch(POOL, "gpu", {"metadata": {"labels": {"a": "b"}}})
        assert labelled.metadata["generation"] == 1
        assert store.patch(POOL, "gpu", {"spec": {"weight": 5}}).metadata["generation"] == 2

    def test_main_and_status_writes_leave_each_other_alone(self, store: Store) -> None:
        store.create(pool())
        both = {"spec": {"weight": 5}, "status": {"nodes": 3}, "metadata": {"labels": {"a": "b"}}}
        stored = store.patch(POOL, "gpu", both, subresource="status")
        assert stored.plain["status"] == {"nodes": 3}
        assert "weight" not in stored.plain["spec"]
        assert "labels" not in stored.metadata
        stored = store.patch(POOL, "gpu", {"spec": {"weight": 5}, "status": {"nodes": 9}})
        assert stored.plain["status"] == {"nodes": 3}
        assert stored.plain["spec"]["weight"] == 5

    def test_an_old_resource_version_conflicts(self, store: Store) -> None:
        old = store.create(node()).metadata["resourceVersion"]
        store.patch(NODE, "n", {"metadata": {"labels": {"a": "b"}}})
        with pytest.raises(ConflictError, match="the object has been modified"):
            store.patch(NODE, "n", {"metadata": {"resourceVersion": old, "labels": {"c": "d"}}})
        current = store.get(NODE, "n").metadata["resourceVersion"]
        store.patch(NODE, "n", {"metadata": {"resourceVersion": current, "labels": {"c": "d"}}})

    def test_a_patch_for_another_uid_conflicts(self, store: Store) -> None:
        store.create(node())
        with pytest.raises(ConflictError, match="Precondition failed"):
            store.patch(NODE, "n", {"metadata": {"uid": "other", "labels": {"a": "b"}}})

    def test_identity_cannot_be_written(self, store: Store) -> None:
        before = store.create(node())
        patch = {
            "metadata": {
                "name": "x",
                "creationTimestamp": "2020-01-01T00:00:00Z",
                "generation": 9,
                "labels": {"a": "b"},
            }
        }
        after = store.patch(NODE, "n", patch)
        assert after.name == "n"
        assert after.metadata["creationTimestamp"] == before.metadata["creationTimestamp"]

    def test_custom_resources_take_no_strategic_patch(self, store: Store) -> None:
        store.create(pool())
        with pytest.raises(KubeError, match="unknown format") as refused:
            store.patch(POOL, "gpu", {"spec": {}}, patch_kind="strategic")
        assert refused.value.status == 415

    def test_all_listeners_hear_in_one_order_even_if_one_of_them_writes(self, store: Store) -> None:
        heard_versions: list[int] = []

        def writes(change: Change) -> None:
            if change.type == "ADDED":
                store.patch(NODE, "n", {"metadata": {"labels": {"a": "b"}}})

        store.listen(Node, writes)
        store.listen(Node, lambda change: heard_versions.append(change.version))
        store.create(node())
        assert heard_versions == sorted(heard_versions)
        assert len(heard_versions) == 2

    def test_fields_of_the_wrong_type_are_refused_before_anybody_reads_them(self, store: Store) -> None:
        container = {"name": "c", "resources": {"requests": {"cpu": "lots"}}}
        with pytest.raises(
            InvalidError, match='Pod in version "v1" cannot be handled as a Pod: default/p: '
        ) as refused:
            store.create(pod(containers=[container]))
        assert refused.value.status == 400
        assert store.find(Pod, "p", "default") is None
        store.create(pod())
        with pytest.raises(InvalidError, match="cannot be handled"):
            store.patch(POD, "p", {"status": {"phase": 7}}, namespace="default", subresource="status")
        assert store.get(POD, "p", "default").plain["status"] == {"phase": "Pending"}

    def test_the_stored_object_is_never_changed_in_place(self, store: Store) -> None:
        before = store.create(node())
        store.patch(NODE, "n", {"metadata": {"labels": {"a": "b"}}})
        assert "labels" not in before.metadata

    def test_a_replaced_object_keeps_its_identity(self, store: Store) -> None:
        before = store.create(node())
        after = store.replace({**node(), "spec": {"unschedulable": True}})
        assert after.uid == before.uid
        assert after.decode(Node).spec.unschedulable


class TestDelete:
    def test_without_finalizers_an_object_goes_at_once(self, store: Store) -> None:
        store.create(node())
        changes = heard(store, Node)
        store.delete(NODE, "n")
        assert changes == ["DELETED"]
        with pytest.raises(NotFoundError, match='nodes "n" not found'):
            store.get(NODE, "n")

    def test_finalizers_hold_an_object(self, store: Store) -> None:
        store.create(node(finalizers=["karpenter.sh/termination"]))
        store.delete(NODE, "n")
        assert store.get(NODE, "n").metadata["deletionTimestamp"] == "2026-01-01T00:00:00Z"
        changes = heard(store, Node)
        store.patch(NODE, "n", {"metadata": {"finalizers": None}})
        assert changes == ["DELETED"]

    def test_deletion_raises_the_generation(self, store: Store) -> None:
        manifest = pool()
        manifest["metadata"]["finalizers"] = ["x/y"]
        store.create(manifest)
        store.delete(POOL, "gpu")
        assert store.get(POOL, "gpu").metadata["generation"] == 2

    def test_deleting_twice_changes_nothing(self, store: Store) -> None:
        store.create(node(finalizers=["x/y"]))
        store.delete(NODE, "n")
        changes = heard(store, Node)
        store.delete(NODE, "n")
        assert changes == []

    def test_no_finalizer_can_be_added_while_deleting(self, store: Store) -> None:
        store.create(node(finalizers=["x/y"]))
        store.delete(NODE, "n")
        with pytest.raises(InvalidError, match="no new finalizers can be added"):
            store.patch(NODE, "n", {"metadata": {"finalizers": ["x/y", "x/z"]}})

    def test_a_uid_precondition_protects_the_successor(self, store: Store) -> None:
        old = store.create(node()).uid
        store.delete(NODE, "n")
        store.create(node())
        with pytest.raises(ConflictError, match="UID in precondition"):
            store.delete(NODE, "n", uid=old)

    def test_an_unbound_pod_goes_at_once(self, store: Store) -> None:
        store.create(pod())
        store.delete(POD, "p", "default")
        assert store.find(Pod, "p", "default") is None

    def test_a_bound_pod_waits_for_its_kubelet(self, store: Store) -> None:
        store.create(pod())
        store.bind("p", "default", "n")
        store.delete(POD, "p", "default")
        metadata = store.get(POD, "p", "default").metadata
        assert metadata["deletionGracePeriodSeconds"] == 30
        assert metadata["deletionTimestamp"] == "2026-01-01T00:00:30Z"
        store.delete(POD, "p", "default", grace_period_seconds=0)
        assert store.find(Pod, "p", "default") is None

    def test_a_later_request_can_only_shorten_the_grace(self, store: Store) -> None:
        store.create(pod())
        store.bind("p", "default", "n")
        store.delete(POD, "p", "default")
        store.delete(POD, "p", "default", grace_period_seconds=60)
        assert store.get(POD, "p", "default").metadata["deletionGracePeriodSeconds"] == 30
        store.delete(POD, "p", "default", grace_period_seconds=5)
        assert store.get(POD, "p", "default").metadata["deletionTimestamp"] == "2026-01-01T00:00:05Z"

    def test_a_finished_pod_goes_at_once(self, store: Store) -> None:
        store.create(pod())
        store.bind("p", "default", "n")
        store.patch(POD, "p", {"status": {"phase": "Succeeded"}}, namespace="default", subresource="status")
        store.delete(POD, "p", "default")
        assert store.find(Pod, "p", "default") is None

    def test_a_pod_without_finalizers_still_waits_for_its_grace(self, store: Store) -> None:
        manifest = pod()
        manifest["metadata"]["finalizers"] = ["x/y"]
        store.create(manifest)
        store.bind("p", "default", "n")
        store.delete(POD, "p", "default")
        store.patch(POD, "p", {"metadata": {"finalizers": None}}, namespace="default")
        assert store.find(Pod, "p", "default") is not None


class TestBinding:
    def test_binding_sets_node_and_condition(self, store: Store) -> None:
        store.create(pod())
        bound = store.bind("p", "default", "n").decode(Pod)
        assert bound.spec.node_name == "n"
        assert [(c.type, c.status) for c in bound.status.conditions] == [("PodScheduled", "True")]

    def test_a_pod_is_bound_once(self, store: Store) -> None:
        store.create(pod())
        store.bind("p", "default", "n")
        with pytest.raises(ConflictError, match='already assigned to node "n"'):
            store.bind("p", "default", "m")

    def test_a_leaving_pod_is_not_bound(self, store: Store) -> None:
        manifest = pod()
        manifest["metadata"]["finalizers"] = ["x/y"]
        store.create(manifest)
        store.delete(POD, "p", "default")
        with pytest.raises(ConflictError, match="is being deleted"):
            store.bind("p", "default", "n")


class TestDefaults:
    def test_pods(self, store: Store) -> None:
        store.create(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "high"},
                "value": 1000,
            }
        )
        container = {"name": "c", "resources": {"limits": {"cpu": "2"}, "requests": {"memory": "1Gi"}}}
        stored = store.create(pod(containers=[container], priorityClassName="high")).plain
        spec = stored["spec"]
        assert (spec["restartPolicy"], spec["schedulerName"], spec["priority"]) == ("Always", "default-scheduler", 1000)
        assert spec["terminationGracePeriodSeconds"] == 30
        assert spec["containers"][0]["resources"]["requests"] == {"cpu": "2", "memory": "1Gi"}
        assert [t["tolerationSeconds"] for t in spec["tolerations"]] == [300, 300]
        assert stored["status"] == {"phase": "Pending"}

    def test_a_pod_that_tolerates_everything_gets_no_timed_toleration(self, store: Store) -> None:
        spec = store.create(pod(tolerations=[{"operator": "Exists"}])).plain["spec"]
        assert spec["tolerations"] == [{"operator": "Exists"}]

    def test_system_priorities(self, store: Store) -> None:
        assert store.create(pod(priorityClassName="system-node-critical")).plain["spec"]["priority"] == 2_000_001_000

    def test_claims(self, store: Store) -> None:
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
        all_of_them = {"name": "rest", "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"}}
        claim = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c"},
            "spec": {"devices": {"requests": [request, all_of_them]}},
        }
        requests = store.create(claim).plain["spec"]["devices"]["requests"]
        assert (requests[0]["exactly"]["allocationMode"], requests[0]["exactly"]["count"]) == ("ExactCount", 1)
        assert "count" not in requests[1]["exactly"]

    def test_node_pools_and_claims(self, store: Store) -> None:
        spec = store.create(pool(disruption={"budgets": [{"reasons": ["Empty"]}]})).plain["spec"]
        assert spec["template"]["spec"]["expireAfter"] == "720h"
        assert spec["disruption"] == {
            "consolidateAfter": "0s",
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "budgets": [{"nodes": "10%", "reasons": ["Empty"]}],
        }
        claim = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": "c"},
            "spec": {"nodeClassRef": REFERENCE, "requirements": [], "expireAfter": "Never"},
        }
        assert store.create(claim).plain["spec"]["expireAfter"] == "Never"


class TestSelectors:
    @pytest.fixture
    def labelled(self, store: Store) -> Store:
        store.create(node("a", labels={"zone": "x", "gpu": "true"}))
        store.create(node("b", labels={"zone": "y"}))
        store.create(node("c"))
        return store

    @pytest.mark.parametrize(
        ("selector", "expected"),
        [
            ("zone=x", ["a"]),
            ("zone==x", ["a"]),
            ("zone!=x", ["b", "c"]),
            ("zone", ["a", "b"]),
            ("!zone", ["c"]),
            ("zone in (x,y),gpu", ["a"]),
            ("zone notin (x)", ["b", "c"]),
            ("zone in (x, y)", ["a", "b"]),
        ],
    )
    def test_labels(self, labelled: Store, selector: str, expected: list[str]) -> None:
        assert [stored.name for stored in labelled.list(NODE, labels=selector)] == expected

    @pytest.mark.parametrize("selector", ["zone=x y", "=x", "zone in x", "a,,b"])
    def test_nonsense_is_refused(self, labelled: Store, selector: str) -> None:
        with pytest.raises(InvalidError, match="unable to parse"):
            labelled.list(NODE, labels=selector)

    def test_fields(self, labelled: Store) -> None:
        assert [stored.name for stored in labelled.list(NODE, fields="metadata.name=b")] == ["b"]
        assert [stored.name for stored in labelled.list(NODE, fields="metadata.name!=b")] == ["a", "c"]
        labelled.create(pod("p"))
        labelled.bind("p", "default", "a")
        assert [stored.name for stored in labelled.list(POD, fields="spec.nodeName=a")] == ["p"]
        assert labelled.list(POD, fields="spec.nodeName=") == ()

    def test_lists_are_in_key_order(self, store: Store) -> None:
        for name in ("c", "a", "b"):
            store.create(node(name))
        assert [stored.name for stored in store.list(NODE)] == ["a", "b", "c"]
