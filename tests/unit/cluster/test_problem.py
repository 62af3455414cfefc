from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.cluster.assumed import Launches
from karpenter_linode.cluster.pending import NOT_FOR_KARPENTER, pending_pods, refusal
from karpenter_linode.cluster.problem import build_problem
from karpenter_linode.cluster.state import ClusterState
from karpenter_linode.model import codec
from karpenter_linode.model.instance_type import InstanceType
from karpenter_linode.scheduling.problem import SchedulingOptions
from karpenter_linode.scheduling.volumes import VolumeIndex

UNSCHEDULABLE = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
REF = {"nodeClassRef": {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"}}
NOT_OURS = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]}]
    }
}


def plan(name: str, price: int, cpu: str = "4", *, available: bool = True) -> InstanceType:
    where = [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-ord"]}]
    return codec.convert(
        {
            "name": name,
            "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [name]}],
            "capacity": {"cpu": cpu},
            "overhead": {"kubeReserved": {"cpu": "100m"}},
            "offerings": [{"requirements": where, "price": price, "available": available}],
        },
        InstanceType,
    )


@pytest.fixture
def claim(make: Any) -> Any:
    def build(plans: list[str], cpu: str = "1", **content: Any) -> Any:
        wanted = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": plans}]
        spec = {**REF, "requirements": wanted, "resources": {"requests": {"cpu": cpu}}}
        metadata = {"labels": {"karpenter.sh/nodepool": "p"}}
        return make("NodeClaim", "c", spec=spec, metadata=metadata, **content)

    return build


def test_an_unlaunched_claim_counts_as_the_plan_the_launch_would_choose(claim: Any) -> None:
    plans = (plan("dear", 9), plan("cheap", 5), plan("cheaper", 3, available=False), plan("tiny", 1, "1"))
    assumed = Launches({"p": plans}).assume(claim(["dear", "cheap", "cheaper", "tiny"]))
    assert assumed.metadata.labels["node.kubernetes.io/instance-type"] == "cheap"
    assert assumed.metadata.labels["topology.kubernetes.io/zone"] == "us-ord"
    assert {name: str(amount) for name, amount in assumed.status.allocatable.items()} == {"cpu": "3900m"}


def test_ties_go_to_the_first_name(claim: Any) -> None:
    assumed = Launches({"p": (plan("b", 5), plan("a", 5))}).assume(claim(["b", "a"]))
    assert assumed.metadata.labels["node.kubernetes.io/instance-type"] == "a"


def test_a_claim_that_nothing_can_serve_offers_no_room(claim: Any) -> None:
    made = claim(["gone"])
    assert Launches({"p": (plan("other", 5),)}).assume(made) is made
    assert Launches({}).assume(made) is made


def test_a_claim_that_cannot_be_read_offers_no_room(make: Any) -> None:
    wanted = [{"key": "cpu", "operator": "Near", "values": ["4"]}]
    made = make(
        "NodeClaim", "c", spec={**REF, "requirements": wanted}, metadata={"labels": {"karpenter.sh/nodepool": "p"}}
    )
    assert Launches({"p": (plan("any", 5),)}).assume(made) is made


def test_a_problem_holds_pending_pods_in_flight_claims_and_bound_pods(make: Any, claim: Any, now: Any) -> None:
    state = ClusterState()
    state.observe(make("Pod", "waits", status=UNSCHEDULABLE))
    state.observe(make("Pod", "new"))
    state.observe(make("Pod", "bound", spec={"nodeName": "n"}))
    state.observe(claim(["cheap"]))
    problem = build_problem(state.snapshot(), pending_pods(state), {"p": (plan("cheap", 5),)}, SchedulingOptions(), now)
    assert [pod.name for pod in problem.pods] == ["waits"]
    assert [pod.name for pod in problem.bound_pods] == ["bound"]
    assert problem.nodes[0].node_claim.status.allocatable
    assert problem.now == now


def test_pods_of_leaving_nodes_are_placed_anew(make: Any, now: Any) -> None:
    state = ClusterState()
    state.observe(make("Node", "n"))
    protected = {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}
    for name, metadata in (("moves", {}), ("protected", protected)):
        state.observe(make("Pod", name, metadata=metadata, spec={"nodeName": "n"}, status={"phase": "Running"}))
    assert build_problem(state, pending_pods(state), {}, SchedulingOptions(), now).pods == ()
    state.mark_for_deletion("node/n")
    problem = build_problem(state, pending_pods(state), {}, SchedulingOptions(), now)
    assert [pod.name for pod in problem.pods] == ["moves"]
    assert problem.deleting_pod_uids == {"uid-Pod-moves"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"affinity": {"nodeAffinity": NOT_OURS}}, "configured to not run on a Karpenter provisioned node"),
        ({"nodeSelector": {"karpenter.sh/custom": "x"}}, "using label karpenter.sh/custom is not allowed"),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
                            ]
                        }
                    }
                }
            },
            "node selector term with matchFields is not supported",
        ),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]}, "(PersistentVolumeClaim=none)"),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "leaving"}}]},
            "persistentvolumeclaim is being deleted",
        ),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "lost"}}]},
            "bound to non-existent persistentvolume",
        ),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "classless"}}]},
            "unbound pvc must define a storage class",
        ),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "unknown-class"}}]},
            "failed to get storage class",
        ),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "immediate"}}]},
            "immediate volume binding mode must be bound",
        ),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "no-volume"}}]},
            'persistentvolumes "missing" not found',
        ),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "unbound"}}]}, "pvc is considered unbound"),
        ({"volumes": [{"name": "v", "ephemeral": {}}]}, "(PersistentVolumeClaim=p-v)"),
    ],
)
def test_pods_that_no_node_can_serve_are_left_out_with_the_reason(make: Any, content: Any, message: str) -> None:
    state = ClusterState()
    for name, spec, status, metadata in (
        ("leaving", {}, {}, {"deletionTimestamp": "2026-01-01T12:00:00Z"}),
        ("lost", {"volumeName": "x"}, {"phase": "Lost"}, {}),
        ("classless", {}, {}, {}),
        ("unknown-class", {"storageClassName": "none"}, {}, {}),
        ("immediate", {"storageClassName": "now"}, {}, {}),
        ("no-volume", {"volumeName": "missing"}, {}, {}),
        ("unbound", {"volumeName": "vol"}, {}, {}),
    ):
        state.observe(make("PersistentVolumeClaim", name, spec=spec, status=status, metadata=metadata))
    state.observe(make("StorageClass", "now", provisioner="x", volumeBindingMode="Immediate"))
    state.observe(make("PersistentVolume", "vol"))
    pod = make("Pod", "p", spec=content, status=UNSCHEDULABLE)
    state.observe(pod)
    pending = pending_pods(state)
    assert pending.pods == ()
    ((_, reason),) = pending.ignored
    assert message in reason.message


def test_opting_out_is_told_apart_from_a_mistake(make: Any) -> None:
    opted_out = make("Pod", "p", spec={"affinity": {"nodeAffinity": NOT_OURS}})
    assert refusal(opted_out, VolumeIndex((), (), ())).code == NOT_FOR_KARPENTER


def test_a_bound_and_a_late_binding_volume_pass(make: Any) -> None:
    state = ClusterState()
    done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    state.observe(make("PersistentVolumeClaim", "bound", metadata=done, spec={"volumeName": "vol"}))
    state.observe(make("PersistentVolumeClaim", "late", spec={"storageClassName": "wait"}))
    state.observe(make("PersistentVolume", "vol"))
    state.observe(make("StorageClass", "wait", provisioner="x", volumeBindingMode="WaitForFirstConsumer"))
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("bound", "late")]
    state.observe(make("Pod", "p", spec={"volumes": volumes}, status=UNSCHEDULABLE))
    assert [pod.name for pod in pending_pods(state).pods] == ["p"]


def test_a_claim_that_names_no_class_gets_the_default_one(make: Any) -> None:
    state = ClusterState()
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    waits = {"provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}
    state.observe(make("StorageClass", "standard", metadata=default, **waits))
    state.observe(make("PersistentVolumeClaim", "data"))
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    state.observe(make("Pod", "p", spec={"volumes": volumes}, status=UNSCHEDULABLE))
    assert pending_pods(state).ignored == ()
