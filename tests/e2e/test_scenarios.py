"""What users and faults do, on the real control plane. Each test has a controller process of its own."""

from __future__ import annotations

import copy
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from karpenter_world import DRA_OFF, KarpenterWorld, example, is_true

from karpenter_linode.operator.permissions import permissions
from karpenter_linode.sim.kubelet import RUNTIME_ANNOTATION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from controlplane import ControlPlane
    from server_process import ServerProcess

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
LEASE = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/karpenter-leader-election"
TWO_GPUS = "g2-gpu-rtx4000a2-s"
Object = dict[str, Any]


@pytest.fixture
def start(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Callable[..., KarpenterWorld]]:
    worlds = []

    def build(environment: dict[str, str] | None = None, *, autostart: bool = True) -> KarpenterWorld:
        world = KarpenterWorld(control_plane, tmp_path, environment, autostart=autostart)
        worlds.append(world.__enter__())
        return world

    yield build
    for world in worlds:
        world.__exit__()


@pytest.fixture
def world(start: Callable[..., KarpenterWorld]) -> KarpenterWorld:
    return start()


def pods_of(pod: Object, count: int) -> list[Object]:
    """Copies of a pod with names of their own."""
    copies = [copy.deepcopy(pod) for _ in range(count)]
    for number, item in enumerate(copies):
        item["metadata"]["name"] = f"job-{number}"
    return copies


def bound(world: KarpenterWorld, *names: str) -> bool:
    return all(world.pod(name)["spec"].get("nodeName") for name in names)


def initialized(world: KarpenterWorld) -> bool:
    claims = world.claims()
    return bool(claims) and all(is_true(claim, "Initialized") for claim in claims)


def condition(obj: Object, kind: str) -> Object:
    return next((item for item in obj.get("status", {}).get("conditions", []) if item["type"] == kind), {})


def holder(world: KarpenterWorld) -> str:
    lease = world.api.find(LEASE.format(world.namespace)) or {}
    return str(lease.get("spec", {}).get("holderIdentity", ""))


def test_two_pods_share_a_claim_and_a_node(world: KarpenterWorld) -> None:
    objects = example("one-gpu")
    pod, template = objects.pop("Pod"), objects.pop("ResourceClaimTemplate")
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "shared"},
        "spec": template["spec"]["spec"],
    }
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
    world.apply(*objects.values(), claim, *pods_of(pod, 2))

    world.wait("both pods to be bound", lambda: bound(world, "job-0", "job-1"))
    assert len(world.claims()) == 1
    assert world.pod("job-0")["spec"]["nodeName"] == world.pod("job-1")["spec"]["nodeName"]
    assert world.cloud.bought() == 1


def test_five_pods_under_a_limit_of_sixteen_cpus_get_four_nodes(world: KarpenterWorld) -> None:
    objects = example("one-gpu")
    world.apply(*objects.values(), *pods_of(objects["Pod"], 4))

    names = ["gpu-job", *(f"job-{number}" for number in range(4))]
    world.wait("four pods to be bound", lambda: sum(bound(world, name) for name in names) == 4, 90)
    (left,) = [name for name in names if not bound(world, name)]
    told = world.wait(
        "the fifth to be refused",
        lambda: [
            event
            for event in world.events("FailedScheduling")
            if event["involvedObject"]["name"] == left and event["source"].get("component") == "karpenter"
        ],
    )
    assert any("limits" in event["message"] for event in told)
    assert world.cloud.bought() == 4


def test_with_dra_off_nothing_is_bought_and_the_pod_is_told_why(start: Callable[..., KarpenterWorld]) -> None:
    world = start(DRA_OFF)
    world.apply(*example("one-gpu").values())

    text = "pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter"
    world.wait("the event", lambda: [item for item in world.events("FailedScheduling") if text in item["message"]])
    assert world.claims() == []
    assert world.cloud.bought() == 0


def test_a_node_is_initialized_only_with_its_devices_and_no_second_one_is_bought(world: KarpenterWorld) -> None:
    world.nodes.driver_seconds = 12.0
    world.apply(*example("one-gpu").values())

    world.wait("the node to register", lambda: any(is_true(claim, "Registered") for claim in world.claims()))
    waiting = world.wait("a reason", lambda: condition(world.claims()[0], "Initialized"))
    assert waiting["status"] == "Unknown"
    time.sleep(5)
    waiting = condition(world.claims()[0], "Initialized")
    assert waiting["status"] == "Unknown"
    assert "gpu.nvidia.com" in waiting["message"] or "ResourceSlice" in waiting["reason"]
    world.wait("the node to be initialized", lambda: initialized(world))
    world.wait("the pod to be bound", lambda: bound(world, "gpu-job"))
    assert world.cloud.bought() == 1


def test_half_of_a_pool_of_devices_does_not_count(world: KarpenterWorld) -> None:
    world.nodes.parts, world.nodes.driver_seconds = 2, 5.0
    objects = example("one-gpu")
    objects["NodePool"]["spec"]["template"]["spec"]["requirements"][0]["values"] = [TWO_GPUS]
    objects["ResourceClaimTemplate"]["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    world.apply(*objects.values())

    published = "/apis/resource.k8s.io/v1/resourceslices"
    world.wait("the first slice", lambda: world.api.get(published)["items"])
    time.sleep(2)
    (claim,) = world.claims()
    assert condition(claim, "Initialized")["reason"] == "DRADriverPoolsNotPublished"
    world.wait("the node to be initialized", lambda: initialized(world))
    assert len(world.api.get(published)["items"]) == 2
    world.wait("the pod to be bound", lambda: bound(world, "gpu-job"))
    assert world.cloud.bought() == 1


def test_a_pod_deleted_while_its_node_boots_leaves_nothing(world: KarpenterWorld) -> None:
    world.apply(*example("one-gpu").values())
    world.wait("a NodeClaim", world.claims)
    world.api.delete(f"/api/v1/namespaces/{world.namespace}/pods/gpu-job")

    world.wait("the NodeClaim to go", lambda: not world.claims(), 120)
    world.wait("the Linode to go", lambda: world.cloud.machines() == 0)
    assert world.cloud.bought() <= 1
    assert world.api.get("/api/v1/nodes")["items"] == []


def test_a_controller_killed_after_buying_adopts_what_it_bought(world: KarpenterWorld) -> None:
    world.apply(*example("one-gpu").values())
    deadline = time.monotonic() + 60
    while not world.cloud.bought():
        assert time.monotonic() < deadline, world.report()
        time.sleep(0.002)
    world.controllers[0].kill()
    (claim,) = world.claims()
    assert not is_true(claim, "Launched")

    world.start_controller()
    world.wait("the node to be initialized", lambda: initialized(world), 90)
    assert [item["metadata"]["name"] for item in world.claims()] == [claim["metadata"]["name"]]
    assert world.cloud.bought() == 1


def test_a_deleted_node_is_drained_and_its_linode_deleted(world: KarpenterWorld) -> None:
    objects = example("one-gpu")
    world.apply(*objects.values())
    world.wait("the pod to be bound", lambda: bound(world, "gpu-job"))
    node = world.pod("gpu-job")["spec"]["nodeName"]
    world.client.delete(f"/api/v1/nodes/{node}")
    world.wait("the node to go", lambda: world.api.find(f"/api/v1/nodes/{node}") is None, 90)
    world.wait("the NodeClaim to go", lambda: world.claims() == [])
    world.wait("the Linode to go", lambda: world.cloud.machines() == 0)
    path = f"/api/v1/namespaces/{world.namespace}/pods/gpu-job"
    assert world.api.find(path) is None or world.events("Evicted")


def test_another_replica_takes_over_where_the_leader_ends(world: KarpenterWorld) -> None:
    world.wait("a leader", lambda: holder(world))
    first = holder(world)
    world.start_controller()
    world.wait("the second to wait", lambda: [line for line in world.log(1) if "waiting to become" in line["message"]])

    world.controllers[0].terminate()
    assert exit_code(world.controllers[0]) == 0
    world.wait(
        "the second to lead", lambda: holder(world) not in {"", first}, 10
    )  # no need to wait 15 s: it was released
    world.apply(*example("one-gpu").values())
    world.wait("the pod to be bound", lambda: bound(world, "gpu-job"))
    assert world.cloud.bought() == 1


def test_a_restarted_api_server_costs_nothing_twice(world: KarpenterWorld) -> None:
    world.wait("a leader", lambda: holder(world))
    objects = example("one-gpu")
    world.apply(*(objects[kind] for kind in ("DeviceClass", "LinodeNodeClass", "NodePool", "ResourceClaimTemplate")))
    world.control_plane.api_server.kill()
    time.sleep(2)
    world.control_plane.start_api_server()
    world.apply(objects["Pod"])

    world.wait("the pod to be bound", lambda: bound(world, "gpu-job"), 120)
    assert world.cloud.bought() == 1
    assert len(world.claims()) == 1


def rules_without(left_out: str = "") -> list[Object]:
    """RBAC rules for everything that the controller says it does, but one."""
    wanted = permissions(with_devices=True, lease_namespace="any", lease_name="any")
    allowed = [item for item in wanted if str(item) != left_out]
    assert len(allowed) == len(wanted) - bool(left_out)
    return [{"apiGroups": [item.group], "resources": [item.resource], "verbs": [item.verb]} for item in allowed]


def test_what_the_controller_asks_for_is_enough_for_it(start: Callable[..., KarpenterWorld]) -> None:
    world = start(autostart=False)
    world.start_controller(KUBECONFIG=str(world.kubeconfig_of("enough", rules_without())))
    objects = example("one-gpu")
    objects["Pod"]["metadata"]["annotations"] = {RUNTIME_ANNOTATION: "1s"}
    world.apply(*objects.values())

    world.wait("the pod to succeed", lambda: world.pod("gpu-job")["status"]["phase"] == "Succeeded")
    world.wait("the NodeClaim to go", lambda: world.cloud.bought() and not world.claims(), 120)
    assert [line for line in world.log() if "orbidden" in str(line)] == []


def test_a_missing_rule_is_named_and_the_controller_does_not_start(start: Callable[..., KarpenterWorld]) -> None:
    world = start(autostart=False)
    lacking = world.kubeconfig_of("lacking", rules_without("create pods/eviction"))
    controller = world.start_controller(KUBECONFIG=str(lacking))

    assert exit_code(controller) == 1
    (line,) = [line for line in world.log() if line["level"] == "ERROR"]
    assert line["message"] == "refusing to start"
    assert line["error"].startswith("RBAC does not allow: create pods/eviction;")


def test_a_wrong_cluster_name_ends_the_controller_before_it_does_anything(start: Callable[..., KarpenterWorld]) -> None:
    world = start(autostart=False)
    assert exit_code(world.start_controller(CLUSTER_NAME="nowhere")) == 1
    assert "could not determine LKE cluster with name: nowhere" in world.log()[-1]["error"]
    assert holder(world) == ""


def test_a_controller_that_is_told_to_end_gives_its_lease_back(world: KarpenterWorld) -> None:
    world.wait("a leader", lambda: holder(world))
    world.controllers[0].terminate()
    assert exit_code(world.controllers[0]) == 0
    assert holder(world) == ""


def test_fifty_pods_at_once_have_their_linodes_soon(world: KarpenterWorld, request: pytest.FixtureRequest) -> None:
    objects = example("one-gpu")
    del objects["NodePool"]["spec"]["limits"]
    pod = objects.pop("Pod")
    world.apply(*objects.values())
    world.wait("a leader", lambda: holder(world))
    began = datetime.now(UTC)
    world.apply(*pods_of(pod, 50))
    created = (datetime.now(UTC) - began).total_seconds()

    world.wait("fifty Linodes", lambda: world.cloud.bought() == 50, 120)
    starts = sorted((charge.start - began).total_seconds() for charge in world.cloud.world.billing.charges)
    request.node.user_properties.append(("seconds to the first and the last Linode", (starts[0], starts[-1])))
    assert starts[-1] - created < 10.0  # 2 s on a machine that does nothing else
    world.wait("all pods to be bound", lambda: bound(world, *(f"job-{number}" for number in range(50))), 120)
    assert len(world.claims()) == 50


def exit_code(controller: ServerProcess) -> int:
    """How a controller ended, within half a minute."""
    process = controller._process
    assert process is not None
    return process.wait(30)
