"""Pods with ResourceClaims: predicted devices narrow the plans, and every refusal says why."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.model import codec
from karpenter_linode.model.resource import DeviceClass, ResourceClaim, ResourceSlice
from karpenter_linode.scheduling import solve
from karpenter_linode.scheduling.pods import DRA_IGNORED

DRA_ON = {"ignore_dra_requests": False}
TAINT = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
TOLERATIONS = [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"}]
INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def plans(make: Any) -> list[Any]:
    product = {"productName": {"string": "Ada"}}
    return [
        make.plan("a1", price=0.52, devices=1, attributes=product, capacity={"pods": "110"}),
        make.plan("a2", price=1.05, devices=2, attributes=product, capacity={"pods": "110", "cpu": "8"}),
        make.plan("bare", price=0.4, devices=1, capacity={"pods": "110"}),
        make.plan("cpu", price=0.1, capacity={"pods": "110"}),
    ]


def gpu_pool(make: Any, *names: str, **given: Any) -> Any:
    requirements = [(INSTANCE_TYPE, "In", *names)] if names else []
    return make.pool("gpu", requirements=requirements, taints=[TAINT], **given)


def solved(make: Any, pods: list[Any], pool: Any, claims: list[Any], **given: Any) -> Any:
    given = {"options": DRA_ON, **given}
    given.setdefault("device_classes", [make.gpu_class()])
    return make.solve(pods, [pool], plans(make), resource_claims=claims, **given)


def test_a_claim_narrows_the_plans_to_those_with_devices(make: Any) -> None:
    pod = make.claim_pod("c", tolerations=TOLERATIONS)
    solution = solved(make, [pod], gpu_pool(make), [make.claim("c")])
    (claim,) = solution.new_node_claims
    assert claim.instance_types == ("bare", "a1", "a2")
    assert claim.node_claim.metadata.annotations["karpenter.sh/requested-dra-drivers"] == "gpu.nvidia.com"
    assert [reason.subject for reason in claim.rejected] == ["plan cpu"]
    (placement,) = solution.claims
    assert (placement.claim, placement.target) == ("default/c", "gpu-1")
    assert {choice.instance_type for choice in placement.devices} == {"bare", "a1", "a2"}


def test_drivers_of_published_devices_are_not_waited_for(make: Any) -> None:
    wire = codec.convert(
        {
            "metadata": {"name": "wire", "uid": "wire"},
            "spec": {
                "driver": "net.example.com",
                "pool": {"name": "wire", "generation": 1, "resourceSliceCount": 1},
                "allNodes": True,
                "devices": [{"name": "net-0"}],
            },
        },
        ResourceSlice,
    )
    wires = codec.convert(
        {
            "metadata": {"name": "wire"},
            "spec": {"selectors": [{"cel": {"expression": "device.driver == 'net.example.com'"}}]},
        },
        DeviceClass,
    )
    wanted = codec.to_plain(make.claim("c"))
    wanted["spec"]["devices"]["requests"].append({"name": "net", "exactly": {"deviceClassName": "wire", "count": 1}})
    both = codec.convert(wanted, ResourceClaim)
    pod = make.claim_pod("c", tolerations=TOLERATIONS)
    classes = [make.gpu_class(), wires]
    solution = solved(make, [pod], gpu_pool(make), [both], device_classes=classes, resource_slices=[wire])
    (claim,) = solution.new_node_claims
    (placement,) = solution.claims
    assert {choice.request for choice in placement.devices} == {"gpu", "net"}
    assert claim.node_claim.metadata.annotations["karpenter.sh/requested-dra-drivers"] == "gpu.nvidia.com"


def test_more_devices_than_a_plan_predicts(make: Any) -> None:
    pod = make.claim_pod("c", tolerations=TOLERATIONS)
    solution = solved(make, [pod], gpu_pool(make, "a1"), [make.claim("c", count=2)])
    (unplaced,) = solution.unplaced
    assert unplaced.reason.message == "allocating dynamic resources, no instance type can satisfy the allocation"
    messages = [reason.message for reason in unplaced.reason.walk()]
    assert "predicts 1 device, 2 asked" in messages


def test_five_pods_four_within_the_limit(make: Any) -> None:
    claims = [make.claim(f"c{index}") for index in range(5)]
    pods = [make.claim_pod(claim.name, tolerations=TOLERATIONS) for claim in claims]
    solution = solved(make, pods, gpu_pool(make, "a1", limits={"cpu": "16"}), claims)
    assert [len(claim.pods) for claim in solution.new_node_claims] == [1, 1, 1, 1]
    (unplaced,) = solution.unplaced
    assert unplaced.reason.message == "all available instance types exceed limits for nodepool (NodePool=gpu)"


def test_with_dra_ignored_the_pod_is_refused_at_once(make: Any) -> None:
    pod = make.claim_pod("c", tolerations=TOLERATIONS)
    solution = solved(make, [pod], gpu_pool(make), [make.claim("c")], options={})
    assert solution.new_node_claims == ()
    assert [(item.reason.code, item.reason.message) for item in solution.unplaced] == [("dra-ignored", DRA_IGNORED)]


def test_with_dra_ignored_other_pods_are_not_hurt(make: Any) -> None:
    pods = [make.claim_pod("c"), make.pod("plain", tolerations=TOLERATIONS)]
    solution = solved(make, pods, gpu_pool(make), [make.claim("c")], options={})
    assert [pod.name for claim in solution.new_node_claims for pod in claim.pods] == ["plain"]


def test_a_selector_without_a_guard_rules_out_plans_that_lack_the_key(make: Any) -> None:
    expression = "device.attributes['gpu.nvidia.com'].productName == 'Ada'"
    pod = make.claim_pod("c", tolerations=TOLERATIONS)
    (claim,) = solved(make, [pod], gpu_pool(make), [make.claim("c", selector=expression)]).new_node_claims
    assert claim.instance_types == ("a1", "a2")
    assert any("productName" in reason.message for item in claim.rejected for reason in item.walk())


def test_two_pods_share_a_claim_on_one_node(make: Any) -> None:
    pods = [make.claim_pod("c", tolerations=TOLERATIONS) for _ in range(2)]
    (claim,) = solved(make, pods, gpu_pool(make), [make.claim("c")]).new_node_claims
    assert len(claim.pods) == 2


def test_a_missing_toleration_is_named(make: Any) -> None:
    (unplaced,) = solved(make, [make.claim_pod("c")], gpu_pool(make), [make.claim("c")]).unplaced
    assert unplaced.reason.message == "did not tolerate taint (taint=nvidia.com/gpu=true:NoSchedule)"


def test_a_claim_that_is_not_there_yet_defers_the_pod(make: Any) -> None:
    pod = make.claim_pod("c", tolerations=TOLERATIONS)
    (unplaced,) = solved(make, [pod], gpu_pool(make), []).unplaced
    assert unplaced.reason.message == 'resourceclaim "default/c" not found'


def test_a_claim_that_its_template_has_not_made_yet_defers_the_pod(make: Any) -> None:
    pod = make.pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}], tolerations=TOLERATIONS)
    (unplaced,) = solved(make, [pod], gpu_pool(make), []).unplaced
    assert unplaced.reason.code == "dra-claim-not-created"


def test_pods_of_a_shape_share_a_plan_with_two_devices(make: Any) -> None:
    claims = [make.claim(f"c{index}") for index in range(4)]
    pods = [make.claim_pod(claim.name, tolerations=TOLERATIONS) for claim in claims]
    solution = solved(make, pods, gpu_pool(make, "a2"), claims)
    assert [len(claim.pods) for claim in solution.new_node_claims] == [2, 2]


def test_a_small_pod_without_claims_joins_a_claim_for_gpus(make: Any) -> None:
    pods = [make.claim_pod("c", requests={"cpu": "1"}, tolerations=TOLERATIONS), make.pod(tolerations=TOLERATIONS)]
    (claim,) = solved(make, pods, gpu_pool(make), [make.claim("c")]).new_node_claims
    assert len(claim.pods) == 2


def test_a_narrower_claim_gives_back_devices_of_plans_it_cannot_become(make: Any) -> None:
    claims = [make.claim("c"), make.claim("d")]
    pods = [
        make.claim_pod("c", requests={"cpu": "2"}, tolerations=TOLERATIONS),
        make.pod(requests={"cpu": "3500m"}, tolerations=TOLERATIONS),
        make.claim_pod("d", requests={"cpu": "1"}, tolerations=TOLERATIONS),
    ]
    solution = solved(make, pods, gpu_pool(make), claims)
    (claim,) = solution.new_node_claims
    assert claim.instance_types == ("a2",)
    assert {choice.instance_type for item in solution.claims for choice in item.devices} == {"a2"}


def test_the_legacy_resource_is_refused_while_dra_owns_the_gpus(make: Any) -> None:
    pod = make.pod(limits={"nvidia.com/gpu": "1"}, tolerations=TOLERATIONS)
    (unplaced,) = solved(make, [pod], gpu_pool(make), []).unplaced
    assert unplaced.reason.code == "dra-owns-gpus"
    assert unplaced.reason.message.startswith("nvidia.com/gpu is not offered by any plan while Dynamic Resource")


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "deviceclass.resource.kubernetes.io/gpu.nvidia.com"])
def test_an_extended_resource_that_a_class_serves_becomes_a_claim(make: Any, resource: str) -> None:
    plain = codec.to_plain(make.gpu_class())
    plain["spec"]["extendedResourceName"] = "nvidia.com/gpu"
    serving = codec.convert(plain, type(make.gpu_class()))
    pods = [make.pod(limits={resource: "2"}, tolerations=TOLERATIONS) for _ in range(2)]
    solution = make.solve(pods, [gpu_pool(make)], plans(make), device_classes=[serving], options=DRA_ON)
    assert [claim.instance_types for claim in solution.new_node_claims] == [("a2",), ("a2",)]
    assert [item.claim for item in solution.claims] == sorted(f"default/{pod.name}-extended-resources" for pod in pods)
    assert resource not in solution.new_node_claims[0].node_claim.spec.resources.requests


def test_daemons_with_claims_count_only_while_dra_is_on(make: Any) -> None:
    daemon = make.daemon_set("ds", requests={"cpu": "1"}, resourceClaims=[{"name": "gpu"}])
    pod = make.pod(requests={"cpu": "1"})
    for ignored, expected in ((True, "1"), (False, "2")):
        solution = make.solve([pod], daemon_sets=[daemon], options={"ignore_dra_requests": ignored})
        assert str(solution.new_node_claims[0].node_claim.spec.resources.requests["cpu"]) == expected


def published(node: str, devices: int) -> Any:
    from karpenter_linode.model.resource import ResourceSlice  # noqa: PLC0415 - only here

    names = [{"name": f"gpu-{index}", "attributes": {"type": {"string": "gpu"}}} for index in range(devices)]
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node}
    return codec.convert(
        {
            "metadata": {"name": f"{node}-gpu", "ownerReferences": [owner]},
            "spec": {
                "driver": "gpu.nvidia.com",
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": names,
            },
        },
        ResourceSlice,
    )


def test_published_devices_of_an_existing_node_come_first(make: Any) -> None:
    pod = make.claim_pod("c", "p", tolerations=TOLERATIONS)
    node = make.node("n", pool="gpu", allocatable={"pods": "110"})
    solution = solved(make, [pod], gpu_pool(make), [make.claim("c")], nodes=[node], resource_slices=[published("n", 1)])
    assert [(item.node, item.pods[0].name) for item in solution.existing] == [("n", "p")]
    assert [choice.device for choice in solution.claims[0].devices] == ["gpu.nvidia.com/n/gpu-0"]


def test_a_device_in_use_is_not_given_again(make: Any) -> None:
    pods = [make.claim_pod(name, tolerations=TOLERATIONS) for name in ("c", "d")]
    node = make.node("n", pool="gpu", allocatable={"pods": "110"})
    claims = [make.claim("c"), make.claim("d")]
    solution = solved(make, pods, gpu_pool(make), claims, nodes=[node], resource_slices=[published("n", 1)])
    assert [len(item.pods) for item in solution.existing] == [1]
    assert len(solution.new_node_claims) == 1


def test_until_a_node_is_initialized_its_plan_predicts_the_devices(make: Any) -> None:
    pod = make.claim_pod("c", "p", tolerations=TOLERATIONS)
    labels = {INSTANCE_TYPE: "a1"}
    node = make.node("n", pool="gpu", initialized=False, labels=labels, allocatable={"pods": "110"})
    solution = solved(make, [pod], gpu_pool(make), [make.claim("c")], nodes=[node])
    assert [item.node for item in solution.existing] == ["n"]
    assert solution.new_node_claims == ()


def made_for(pod: Any, node: str) -> Any:
    """The claim that kube-scheduler has made for a pod's extended resource, with its device on a node."""
    result = {"request": "container-0-request-0", "driver": "gpu.nvidia.com", "pool": node, "device": "gpu-0"}
    name = {"key": "metadata.name", "operator": "In", "values": [node]}
    request = {"name": "container-0-request-0", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 1}}
    return codec.convert(
        {
            "metadata": {
                "name": f"{pod.name}-extended-resources-x",
                "namespace": pod.namespace,
                "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
                ],
            },
            "spec": {"devices": {"requests": [request]}},
            "status": {
                "allocation": {
                    "devices": {"results": [result]},
                    "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [name]}]},
                },
                "reservedFor": [{"resource": "pods", "name": pod.name, "uid": pod.uid}],
            },
        },
        ResourceClaim,
    )


@pytest.mark.parametrize("deleting", [False, True])
def test_the_claim_of_a_pod_about_to_be_bound_holds_its_device_for_it(make: Any, deleting: bool) -> None:
    plain = codec.to_plain(make.gpu_class())
    plain["spec"]["extendedResourceName"] = "nvidia.com/gpu"
    serving = codec.convert(plain, type(make.gpu_class()))
    pods = [make.pod(name, limits={"nvidia.com/gpu": "1"}, tolerations=TOLERATIONS) for name in ("first", "other")]
    solution = solved(
        make,
        pods,
        gpu_pool(make, "a1"),
        [made_for(pods[0], "n")],
        device_classes=[serving],
        nodes=[] if deleting else [make.node("n", pool="gpu", allocatable={"pods": "110"})],
        resource_slices=[] if deleting else [published("n", 1)],
        deleting_pod_uids=frozenset({pods[0].uid}) if deleting else frozenset(),
    )
    assert solution.unplaced == ()
    assert [[pod.name for pod in item.pods] for item in solution.existing] == ([] if deleting else [["first"]])
    assert len(solution.new_node_claims) == (2 if deleting else 1)


@pytest.mark.timeout(60)
def test_a_thousand_claims_are_placed_in_linear_time(make: Any) -> None:
    claims = [make.claim(f"c{index:04}") for index in range(1000)]
    pods = [make.claim_pod(claim.name, tolerations=TOLERATIONS) for claim in claims]
    problem = make.problem(
        pods,
        [gpu_pool(make, "a1")],
        plans(make),
        resource_claims=claims,
        device_classes=[make.gpu_class()],
        options={**DRA_ON, "scheduling_steps": 4_000},
    )
    assert len(solve(problem).new_node_claims) == 1000
