"""From manifests to the problem that the controllers would pose."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from karpenter_linode.cli.manifests import load
from karpenter_linode.cli.offline import EPOCH, Market, Offline, pose
from karpenter_linode.linode.tables import DEFAULT_REGION, bundled_types
from karpenter_linode.operator.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Pose = Callable[..., Offline]

POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.linode, kind: LinodeNodeClass, name: default}
      requirements: []
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {containers: [{name: c}]}
"""
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec:
  metadata: {labels: {team: a}}
  spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
"""
CLAIMING = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
  containers: [{name: c}]
"""


@pytest.fixture
def posed(tmp_path: Path) -> Pose:
    def pose_texts(*texts: str, ignore_dra_requests: bool = False) -> Offline:
        (tmp_path / "in.yaml").write_text("---".join(texts))
        market = Market(DEFAULT_REGION, bundled_types())
        return pose(load([str(tmp_path)]), market, Options(ignore_dra_requests=ignore_dra_requests).scheduling())

    return pose_texts


def test_pods_are_pending_and_numbered_in_the_order_of_the_input(posed: Pose) -> None:
    problem = posed(POOL, POD % "z", POD % "a").problem
    by_uid = sorted(problem.pods, key=lambda pod: pod.uid)
    assert [pod.name for pod in by_uid] == ["z", "a"]
    assert all(pod.status.conditions[-1].reason == "Unschedulable" for pod in problem.pods)


def test_claims_are_made_from_templates(posed: Pose) -> None:
    problem = posed(POOL, TEMPLATE, CLAIMING).problem
    (claim,) = problem.resource_claims
    assert claim.key == "default/p-gpu"
    assert claim.metadata.labels == {"team": "a"}
    assert claim.metadata.owner_references[0].name == "p"
    assert claim.spec.devices.requests[0].exactly.count == 1  # type: ignore[union-attr]
    assert problem.pods[0].status.resource_claim_statuses[0].resource_claim_name == "p-gpu"


def test_a_made_claim_never_takes_the_name_of_another(posed: Pose) -> None:
    existing = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: p-gpu}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
"""
    names = {claim.name for claim in posed(POOL, existing, TEMPLATE, CLAIMING).problem.resource_claims}
    assert names == {"p-gpu", "p-gpu-x"}


def test_finished_gated_and_bound_pods_are_not_planned_for(posed: Pose) -> None:
    finished = POD % "done" + "status: {phase: Succeeded}\n"
    gated = (POD % "gated").replace("spec: {", "spec: {schedulingGates: [{name: example.com/wait}], ")
    bound = (POD % "bound").replace("spec: {", "spec: {nodeName: n1, ")
    offline = posed(POOL, finished, gated, bound)
    assert offline.problem.pods == ()
    assert [pod.name for pod in offline.problem.bound_pods] == ["bound"]
    assert any("held back by scheduling gate example.com/wait" in note for note in offline.notes)


def test_pools_are_taken_to_be_ready_and_that_is_said(posed: Pose) -> None:
    stated = POOL + "status: {conditions: [{type: Ready, status: 'False'}, {type: Other, status: 'False'}]}\n"
    offline = posed(stated)
    (pool,) = offline.problem.node_pools
    assert {item.type: item.status for item in pool.status.conditions} == {
        "ValidationSucceeded": "True",
        "NodeClassReady": "True",
        "Ready": "True",
        "Other": "False",
    }
    assert "NodePool gpu says Ready=False; it is taken to be ready here" in offline.notes


def test_pods_without_any_node_pool_get_a_note(posed: Pose) -> None:
    note = "the input holds no NodePool: no node can be built"
    assert note in posed(POD % "alone").notes
    assert note not in posed(POD % "alone", POOL).notes


def test_a_missing_node_class_is_an_empty_one(posed: Pose) -> None:
    offline = posed(POOL)
    assert offline.problem.instance_types["gpu"]
    assert "LinodeNodeClass default of NodePool gpu is not in the input: an empty one is assumed" in offline.notes


def test_a_pool_of_another_provider_builds_nothing(posed: Pose) -> None:
    offline = posed(POOL.replace("karpenter.k8s.linode", "karpenter.k8s.aws"))
    assert offline.problem.instance_types == {"gpu": ()}
    assert any("not a class of this provider" in note for note in offline.notes)


def test_kubelet_settings_of_the_node_class_shape_the_plans(posed: Pose) -> None:
    node_class = """
apiVersion: karpenter.k8s.linode/v1alpha1
kind: LinodeNodeClass
metadata: {name: default}
spec: {kubelet: {maxPods: 7}}
"""
    offline = posed(POOL, node_class)
    assert {str(kind.capacity["pods"]) for kind in offline.problem.instance_types["gpu"]} == {"7"}
    assert offline.notes == []


def test_devices_are_predicted_or_gpus_counted_but_never_both(posed: Pose) -> None:
    def gpu_plan(*, ignore: bool) -> tuple[bool, bool]:
        kinds = posed(POOL, ignore_dra_requests=ignore).problem.instance_types["gpu"]
        plan = next(kind for kind in kinds if kind.name == "g2-gpu-rtx4000a1-s")
        return "nvidia.com/gpu" in plan.capacity, bool(plan.dynamic_resources.slice_templates)

    assert gpu_plan(ignore=False) == (False, True)
    assert gpu_plan(ignore=True) == (True, False)


def test_namespaces_that_are_used_exist(posed: Pose) -> None:
    (namespace,) = posed(POD % "a").problem.namespaces
    assert (namespace.name, namespace.metadata.labels) == ("default", {"kubernetes.io/metadata.name": "default"})


def test_the_time_of_the_decision_is_the_newest_in_the_input(posed: Pose) -> None:
    assert posed(POD % "a").problem.now == EPOCH
    dated = (POD % "a").replace("{name: a}", "{name: a, creationTimestamp: '2027-03-04T05:06:07Z'}")
    assert posed(dated).problem.now == datetime(2027, 3, 4, 5, 6, 7, tzinfo=UTC)


def test_nodes_and_their_claims_are_joined(posed: Pose) -> None:
    node = """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {karpenter.sh/nodepool: gpu, karpenter.sh/initialized: "true"}}
spec: {providerID: "linode://1"}
status: {allocatable: {cpu: "4"}}
"""
    claim = """
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: gpu-abc, labels: {karpenter.sh/nodepool: gpu}}
spec: {nodeClassRef: {group: karpenter.k8s.linode, kind: LinodeNodeClass, name: default}, requirements: []}
status: {providerID: "linode://1"}
"""
    (state,) = posed(POOL, node, claim).problem.nodes
    assert state.node is not None
    assert state.node_claim is not None
    assert (state.node.name, state.node_claim.name) == ("n1", "gpu-abc")


def test_pods_that_can_never_be_served_are_left_out_with_the_reason(posed: Pose) -> None:
    bad = (POD % "bad").replace("spec: {", "spec: {nodeSelector: {kubernetes.io/hostname: n1}, ")
    offline = posed(POOL, bad)
    ((pod, reason),) = offline.ignored
    assert pod.name == "bad"
    assert "kubernetes.io/hostname" in reason.message


MADE = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  %s
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
  containers: [{name: c}]
status: {phase: %s, resourceClaimStatuses: [{name: gpu, resourceClaimName: %s-gpu-abcde}]}
"""


def test_a_claim_that_a_live_pod_names_is_made_again_from_its_template(posed: Pose) -> None:
    found = posed(POOL, TEMPLATE, MADE % ("p", "", "Pending", "p"))
    assert [claim.key for claim in found.problem.resource_claims] == ["default/p-gpu-abcde"]
    assert any("made again from their templates" in note and "default/p-gpu-abcde" in note for note in found.notes)


def test_nodes_and_claims_of_running_pods_that_are_not_in_the_input_are_missed(posed: Pose) -> None:
    notes = posed(POOL, TEMPLATE, MADE % ("p", "nodeName: lke-9", "Running", "p")).notes
    assert any(note.startswith("1 running pod on nodes that are not in the input (lke-9)") for note in notes)
    assert any("default/p-gpu-abcde" in note and "count as free" in note for note in notes)


def test_finished_pods_miss_nothing(posed: Pose) -> None:
    notes = posed(POOL, TEMPLATE, MADE % ("p", "nodeName: lke-9", "Succeeded", "p")).notes
    assert not any("not in the input (" in note for note in notes)
