"""``nvidia.com/gpu: 1`` without any claim, served by devices (spec/user-cases.md U09)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.model.karpenter import NodeClaim

PLAN = "g2-gpu-rtx4000a1-s"
EXPRESSION = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"


@pytest.fixture
def plain(job: Any) -> Any:
    """A pod that asks for the resource as one would with a device plug-in."""

    def make(name: str = "gpu-job", **more: Any) -> dict[str, Any]:
        pod: dict[str, Any] = job(name, **more)
        del pod["spec"]["resourceClaims"]
        amounts = {"nvidia.com/gpu": "1"}
        pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
        return pod

    return make


def gpu_class(**more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu.nvidia.com"},
        "spec": {"selectors": [{"cel": {"expression": EXPRESSION}}], **more},
    }


def test_a_plain_gpu_pod_gets_one_node_and_nothing_is_left(described: Any, plain: Any, simulate: Any) -> None:
    outcome = simulate([*described, gpu_class(extendedResourceName="nvidia.com/gpu"), plain()])
    (claim,) = outcome.node_claims
    assert claim.instance_type == PLAN
    (pod,) = outcome.pods
    assert (pod.phase, pod.node) == ("Succeeded", claim.node)
    assert pod.scheduled >= claim.initialized
    (device,) = outcome.devices
    assert (device.device, device.pool, device.pods) == ("gpu-0", pod.node, ("default/gpu-job",))
    assert outcome.quiet
    assert outcome.left == ()
    assert (len(outcome.bill), outcome.billed_hours, outcome.nano_dollars) == (1, 1, 520_000_000)


def test_plain_pods_and_pods_with_claims_share_no_gpu(described: Any, plain: Any, job: Any, simulate: Any) -> None:
    outcome = simulate([*described, plain("a"), job("b"), plain("c")])
    assert len(outcome.node_claims) == 3
    assert len({pod.node for pod in outcome.pods}) == 3
    assert outcome.left == ()


def test_without_a_class_the_pod_is_refused_and_nothing_is_bought(described: Any, plain: Any, simulate: Any) -> None:
    outcome = simulate([*described, gpu_class(), plain()], limit_seconds=600)
    assert outcome.node_claims == ()
    assert outcome.bill == ()
    (unplaced,) = outcome.unplaced
    messages = [reason.message for reason in unplaced.reason.walk()]
    assert any(text.startswith("nvidia.com/gpu is not offered by any plan while Dynamic Resource") for text in messages)


def test_nothing_more_is_bought_while_the_pod_waits_for_its_node(described: Any, plain: Any, play: Any) -> None:
    async def story(world: Any) -> None:
        for _ in range(60):
            await world.clock.sleep(10)
            assert len(list(world.cluster.store.all(NodeClaim))) == 1
        assert len(world.history.node_claims()) == 1
        (device,) = world.history.devices()
        assert device.device == "gpu-0"

    play([*described, plain(runtime=None)], story)
