"""The description's example and its neighbours, from the pending pod to the emptied pool."""

from __future__ import annotations

from typing import Any

from karpenter_linode.model import codec
from karpenter_linode.operator.options import Options

PLAN = "g2-gpu-rtx4000a1-s"


def test_one_gpu_pod_gets_one_node_and_nothing_is_left(described: Any, job: Any, simulate: Any) -> None:
    outcome = simulate([*described, job()])
    (claim,) = outcome.node_claims
    assert claim.instance_types == (PLAN,)
    assert (claim.instance_type, claim.price) == (PLAN, 520_000_000)
    assert claim.created <= claim.launched < claim.registered < claim.initialized < claim.deleting <= claim.deleted
    (pod,) = outcome.pods
    assert pod.phase == "Succeeded"
    (device,) = outcome.devices
    assert (device.device, device.pods) == ("gpu-0", ("default/gpu-job",))
    assert device.pool == pod.node
    assert outcome.quiet
    assert outcome.left == ()
    assert (len(outcome.bill), outcome.billed_hours, outcome.nano_dollars) == (1, 1, 520_000_000)


def test_the_pod_starts_only_once_its_node_is_initialized(described: Any, job: Any, simulate: Any) -> None:
    outcome = simulate([*described, job()])
    assert outcome.pods[0].scheduled >= outcome.node_claims[0].initialized


def test_equal_runs_give_equal_bytes(described: Any, job: Any, simulate: Any) -> None:
    manifests = [*described, job(), job("other")]
    assert codec.encode(simulate(manifests)) == codec.encode(simulate(manifests))


def test_another_seed_tells_another_story(described: Any, job: Any, simulate: Any) -> None:
    assert simulate([*described, job()]).node_claims != simulate([*described, job()], seed=8).node_claims


def test_five_pods_under_a_limit_of_sixteen_cpus_get_four_nodes(described: Any, job: Any, simulate: Any) -> None:
    outcome = simulate([*described, *(job(f"job-{number}", runtime=None) for number in range(5))])
    assert len(outcome.node_claims) == 4
    assert [pod.scheduled is not None for pod in outcome.pods].count(True) == 4
    (unplaced,) = outcome.unplaced
    messages = [reason.message for reason in unplaced.reason.walk()]
    assert any("all available instance types exceed limits for nodepool" in message for message in messages)
    assert len(outcome.left) == 4


def test_two_pods_share_a_claim_and_a_node(described: Any, job: Any, simulate: Any) -> None:
    shared = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "shared"},
        "spec": described[2]["spec"]["spec"],
    }
    claims = [{"name": "gpu", "resourceClaimName": "shared"}]
    outcome = simulate([*described, shared, job("a", resourceClaims=claims), job("b", resourceClaims=claims)])
    assert len(outcome.node_claims) == 1
    assert {pod.node for pod in outcome.pods} == {outcome.node_claims[0].node}
    assert outcome.devices[0].pods == ("default/a", "default/b")
    assert outcome.left == ()


def test_with_dra_off_the_pod_is_refused_in_the_contracts_words(described: Any, job: Any, simulate: Any) -> None:
    outcome = simulate([*described, job()], options=Options(ignore_dra_requests=True), limit_seconds=600)
    assert outcome.node_claims == ()
    assert outcome.bill == ()
    (unplaced,) = outcome.unplaced
    text = "pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter"
    assert unplaced.reason.message == text
    told = [entry.text for entry in outcome.journal]
    assert any(text in line for line in told if line.startswith("FailedScheduling: "))
    log = "skipping pod with Dynamic Resource Allocation requirements, not yet supported by Karpenter"
    assert any(line.startswith(log) for line in told)


def test_two_gpus_of_a_one_gpu_plan_are_refused_and_nothing_is_bought(described: Any, job: Any, simulate: Any) -> None:
    described[2]["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    outcome = simulate([*described, job()])
    assert outcome.bill == ()
    messages = [reason.message for reason in outcome.unplaced[0].reason.walk()]
    assert any("no instance type can satisfy the allocation" in message for message in messages)
    assert any("1 device, 2 asked" in message for message in messages)


def test_without_requirements_the_cheapest_matching_plan_is_bought(described: Any, job: Any, simulate: Any) -> None:
    described[1]["spec"]["template"]["spec"]["requirements"] = []
    outcome = simulate([*described, job()])
    (claim,) = outcome.node_claims
    assert claim.instance_type == PLAN
    assert len(claim.instance_types) > 1
    assert all("gpu" in name for name in claim.instance_types)


def test_a_pod_that_does_not_tolerate_the_taint_buys_nothing(described: Any, job: Any, simulate: Any) -> None:
    outcome = simulate([*described, job(tolerations=[])])
    assert outcome.bill == ()
    assert "nvidia.com/gpu=true:NoSchedule" in outcome.unplaced[0].reason.message
