from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from karpenter_linode.cluster.state import ClusterState
from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.karpenter import NodeClaim

REF = {"nodeClassRef": {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"}}
OURS = {"karpenter.k8s.linode/linodenodeclass": "default", "node.kubernetes.io/instance-type": "g6"}


@pytest.fixture
def state() -> ClusterState:
    return ClusterState()


def test_an_object_is_found_by_key_and_index(state: ClusterState, make: Any) -> None:
    pod = make("Pod", "a", spec={"nodeName": "n1"})
    assert state.observe(pod) is None
    assert state.get(Pod, "default/a") is pod
    assert state.pods_on("n1") == (pod,)
    moved = make("Pod", "a", version=2, spec={"nodeName": "n2"})
    assert state.observe(moved) is pod
    assert (state.pods_on("n1"), state.pods_on("n2")) == ((), (moved,))


def test_empty_names_match_nothing(state: ClusterState, make: Any) -> None:
    state.observe(make("Pod", "a"))
    state.observe(make("NodeClaim", "c", spec=REF))
    assert state.pods_on("") == ()
    assert state.node_claims_of("") == ()


def test_old_news_changes_nothing(state: ClusterState, make: Any) -> None:
    new, old = make("Pod", "a", version=10), make("Pod", "a", version=9)
    state.observe(new)
    assert state.observe(old) is old
    assert state.get(Pod, "default/a") is new


def test_an_echo_of_an_own_write_is_no_news(state: ClusterState, make: Any) -> None:
    state.observe(make("Pod", "a", version=9))
    echo = make("Pod", "a", version=9)
    assert state.observe(echo) is echo


def test_an_object_that_was_deleted_does_not_come_back_by_a_late_answer(state: ClusterState, make: Any) -> None:
    claim = make("NodeClaim", "c", spec=REF)
    state.observe(claim)
    state.forget(make("NodeClaim", "c", version=5, spec=REF))
    late = make("NodeClaim", "c", version=4, spec=REF)
    assert state.observe(late) is late
    assert state.all(NodeClaim) == ()
    reborn = make("NodeClaim", "c", version=6, uid="new", spec=REF)
    assert state.observe(reborn) is None


def test_the_deletion_of_a_former_object_spares_its_namesake(state: ClusterState, make: Any) -> None:
    state.observe(make("Pod", "a", version=8, uid="new"))
    assert state.forget(make("Pod", "a", version=9, uid="old")) is None
    assert state.get(Pod, "default/a") is not None


def test_a_new_list_tells_what_changed_and_what_is_gone(state: ClusterState, make: Any) -> None:
    for name in ("kept", "changed", "gone"):
        state.observe(make("Pod", name))
    changed, gone = state.relist(
        Pod, [make("Pod", "kept"), make("Pod", "changed", version=7), make("Pod", "new", version=6)], "8"
    )
    assert [pod.name for pod in changed] == ["changed", "new"]
    assert [pod.name for pod in gone] == ["gone"]
    assert [pod.name for pod in state.all(Pod)] == ["changed", "kept", "new"]


def test_what_was_written_after_a_list_was_taken_survives_it(state: ClusterState, make: Any) -> None:
    state.observe(make("NodeClaim", "just-created", version=9, spec=REF))
    assert state.relist(NodeClaim, [], "8") == ([], [])
    assert len(state.all(NodeClaim)) == 1


def test_synced_means_that_every_kind_was_listed(make: Any) -> None:
    state = ClusterState(with_devices=False)
    for kind in state.kinds[:-1]:
        state.relist(kind, [], "1")
    assert not state.synced()
    assert state.unsynced_kinds() == ("volumeattachments",)
    state.relist(state.kinds[-1], [], "1")
    assert state.synced()


def test_a_snapshot_does_not_move(state: ClusterState, make: Any, now: Any) -> None:
    state.observe(make("Pod", "a", spec={"nodeName": "n1"}))
    view = state.snapshot()
    state.observe(make("Pod", "b", spec={"nodeName": "n1"}))
    state.mark_for_deletion("node/n1")
    state.nominate("node/n1", now + timedelta(seconds=20))
    assert [pod.name for pod in view.pods_on("n1")] == ["a"]
    assert [pod.name for pod in view.all(Pod)] == ["a"]
    assert not view.is_marked("node/n1")
    assert not view.is_nominated("node/n1", now)
    assert len(state.pods_on("n1")) == 2


def test_a_claim_counts_from_its_creation_and_takes_its_node_in(state: ClusterState, make: Any, now: Any) -> None:
    state.observe(make("NodeClaim", "c", spec=REF))
    (alone,) = state.state_nodes(now)
    assert (alone.node, alone.node_claim.name) == (None, "c")
    state.observe(make("NodeClaim", "c", version=2, spec=REF, status={"providerID": "linode://1"}))
    state.observe(make("Node", "n", metadata={"labels": OURS}, spec={"providerID": "linode://1"}))
    (joined,) = state.state_nodes(now)
    assert (joined.node.name, joined.node_claim.name) == ("n", "c")


def test_half_ready_nodes_of_ours_do_not_speak_for_themselves(state: ClusterState, make: Any, now: Any) -> None:
    bare = {"karpenter.k8s.linode/linodenodeclass": "default"}
    state.observe(make("Node", "no-id", metadata={"labels": OURS}))
    state.observe(make("Node", "no-plan", metadata={"labels": bare}, spec={"providerID": "linode://2"}))
    state.observe(make("Node", "foreign"))
    assert [item.node.name for item in state.state_nodes(now)] == ["foreign"]


@pytest.mark.parametrize(
    ("claim", "node", "marked"),
    [
        ({}, {}, False),
        ({"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z"}}, {}, True),
        ({"status": {"providerID": "p", "conditions": [{"type": "InstanceTerminating", "status": "True"}]}}, {}, True),
        ({}, {"deletionTimestamp": "2026-01-01T12:00:00Z"}, False),
    ],
)
def test_with_a_claim_only_the_claim_says_whether_a_node_leaves(
    state: ClusterState, make: Any, now: Any, claim: Any, node: Any, marked: Any
) -> None:
    content = {"spec": REF, "status": {"providerID": "p"}, **claim}
    state.observe(make("NodeClaim", "c", **content))
    state.observe(make("Node", "n", metadata={"labels": OURS, **node}, spec={"providerID": "p"}))
    assert state.state_nodes(now)[0].marked_for_deletion is marked


def test_a_node_without_claim_leaves_when_it_is_deleted(state: ClusterState, make: Any, now: Any) -> None:
    state.observe(make("Node", "n", metadata={"deletionTimestamp": "2026-01-01T12:00:00Z"}))
    assert state.state_nodes(now)[0].marked_for_deletion


def test_nominations_last_extend_and_survive_the_launch(state: ClusterState, make: Any, now: Any) -> None:
    state.observe(make("NodeClaim", "c", spec=REF))
    state.nominate("nodeclaim/c", now + timedelta(seconds=20))
    state.nominate("nodeclaim/c", now + timedelta(seconds=10))
    state.observe(make("NodeClaim", "c", version=2, spec=REF, status={"providerID": "p"}))
    state.observe(make("Node", "n", metadata={"labels": OURS}, spec={"providerID": "p"}))
    assert state.state_nodes(now + timedelta(seconds=19))[0].nominated
    assert not state.state_nodes(now + timedelta(seconds=20))[0].nominated


def test_marks_end_with_their_claim(state: ClusterState, make: Any, now: Any) -> None:
    claim = make("NodeClaim", "c", spec=REF)
    state.observe(claim)
    state.mark_for_deletion("nodeclaim/c")
    assert state.state_nodes(now)[0].marked_for_deletion
    state.unmark_for_deletion("nodeclaim/c")
    assert not state.state_nodes(now)[0].marked_for_deletion
    state.mark_for_deletion("nodeclaim/c")
    state.forget(claim)
    assert not state.is_marked("nodeclaim/c")


def test_duplicate_claims_of_one_node_count_as_none(state: ClusterState, make: Any) -> None:
    node = make("Node", "n", spec={"providerID": "p"})
    for name in ("a", "b"):
        state.observe(make("NodeClaim", name, spec=REF, status={"providerID": "p"}))
    assert state.node_claim_of(node) is None


def test_slices_belong_to_nodes_by_name_or_owner(state: ClusterState, make: Any) -> None:
    state.observe(make("ResourceSlice", "by-name", spec={"driver": "d", "nodeName": "n"}))
    owned = {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]}
    state.observe(make("ResourceSlice", "by-owner", metadata=owned, spec={"driver": "d"}))
    state.observe(make("ResourceSlice", "everywhere", spec={"driver": "d", "allNodes": True}))
    assert [item.name for item in state.slices_of("n")] == ["by-name", "by-owner"]


def test_order_of_arrival_does_not_matter(make: Any) -> None:
    nodes = [make("Node", name) for name in ("b", "a", "c")]
    first, second = ClusterState(), ClusterState()
    for node in nodes:
        first.observe(node)
    for node in reversed(nodes):
        second.observe(node)
    assert first.all(Node) == second.all(Node)
