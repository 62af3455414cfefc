"""What users and faults do: each scenario is told once, and played on a real control plane and in the embedded one."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from karpenter_world import example, is_true
from stages import Pause, Scenario, Script, Until

from karpenter_linode.sim.kubelet import RUNTIME_ANNOTATION
from karpenter_linode.sim.nvidia import DriverBehaviour

if TYPE_CHECKING:
    from stages import Object, Stage

ONE_GPU = "g2-gpu-rtx4000a1-s"
TWO_GPUS = "g2-gpu-rtx4000a2-s"


def described_example(world: Stage) -> Script:
    """From the pending pod to the emptied pool."""
    world.apply(*running_for("3s", *example("one-gpu").values()))
    yield Until("a NodeClaim", lambda: world.all("NodeClaim"))
    assert plans(world) == [ONE_GPU]
    yield initialized(world)
    yield bound(world, "gpu-job")
    assert node_of(world, "gpu-job") == world.all("NodeClaim")[0]["status"]["nodeName"]
    yield succeeded(world, "gpu-job")
    yield from emptied(world)
    assert world.bought() == 1


def template_after_its_pod(world: Stage) -> Script:
    """A pod that comes before the template of its claim waits and is told so; nothing is bought until then."""
    objects = example("one-gpu")
    template = objects.pop("ResourceClaimTemplate")
    world.apply(*objects.values())
    yield Until("the claim's refusal", lambda: events(world, "gpu-job", "FailedResourceClaimCreation"))
    yield Pause(3.0)
    assert world.bought() == 0
    world.apply(template)
    yield bound(world, "gpu-job")
    yield settled(world)
    assert world.bought() == 1


def ada_gpu_by_its_metadata(world: Stage) -> Script:
    """A claim that selects product, brand, architecture, compute capability and memory, with every plan allowed."""
    objects = example("ada-gpu")
    world.apply(*running_for("3s", *objects.values()))
    yield bound(world, "gpu-job")
    (claim,) = world.all("NodeClaim")
    assert claim["metadata"]["labels"]["node.kubernetes.io/instance-type"].startswith("g2-gpu-rtx4000a")
    (result,) = world.find("ResourceClaim", "ada-gpu")["status"]["allocation"]["devices"]["results"]
    assert result["pool"] == node_of(world, "gpu-job")
    yield succeeded(world, "gpu-job")
    yield from emptied(world)
    assert world.bought() == 1


def limit_reached(world: Stage) -> Script:
    """Five pods under a limit of 16 CPUs get four nodes; the fifth is told why it waits."""
    objects = example("five-pods")
    names = [f"gpu-job-{number}" for number in range(1, 6)]
    pods = [named(objects.pop("Pod"), name) for name in names[:1]]
    pods += [named(pods[0], name) for name in names[1:]]
    world.apply(*objects.values(), *pods)
    yield Until("four pods to be bound", lambda: sum(bool(node_of(world, name)) for name in names) == 4)
    (left,) = [name for name in names if not node_of(world, name)]
    yield Until("the fifth to be refused", lambda: refusals(world, left, "all available instance types exceed limits"))
    yield Pause(3.0)
    yield settled(world)
    assert world.bought() == 4
    assert len(world.all("NodeClaim")) == 4


def dra_off(world: Stage) -> Script:
    """Nothing is bought, and the pod is told why."""
    world.apply(*example("one-gpu").values())
    text = "pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter"
    yield Until("the event", lambda: refusals(world, "gpu-job", text))
    yield Pause(3.0)
    assert world.all("NodeClaim") == []
    assert world.bought() == 0


def shared_claim(world: Stage) -> Script:
    """Two pods that share a claim share a node."""
    objects = example("shared-claim")
    pod = objects.pop("Pod")
    world.apply(*running_for("5s", *objects.values(), named(pod, "reader"), named(pod, "writer")))
    yield bound(world, "reader", "writer")
    assert node_of(world, "reader") == node_of(world, "writer")
    yield succeeded(world, "reader", "writer")
    yield from emptied(world)
    assert world.bought() == 1


def two_claims_on_one_node(world: Stage) -> Script:
    """One pod with two claims: two devices of one node."""
    objects = example("one-gpu")
    allow(objects, TWO_GPUS)
    spec = objects["Pod"]["spec"]
    spec["resourceClaims"] = [{"name": name, "resourceClaimTemplateName": "one-gpu"} for name in ("left", "right")]
    spec["containers"][0]["resources"]["claims"] = [{"name": "left"}, {"name": "right"}]
    world.apply(*running_for("3s", *objects.values()))
    yield bound(world, "gpu-job")
    results = [
        result for claim in world.all("ResourceClaim") for result in claim["status"]["allocation"]["devices"]["results"]
    ]
    assert {result["pool"] for result in results} == {node_of(world, "gpu-job")}
    assert len({result["device"] for result in results}) == 2
    assert plans(world) == [TWO_GPUS]
    yield succeeded(world, "gpu-job")
    yield from emptied(world)
    assert world.bought() == 1


def late_slices(world: Stage) -> Script:
    """Until its devices are published a node is not initialized, the reason is shown, and no second one is bought."""
    world.apply(*example("one-gpu").values())
    yield Until("the driver to be waited for", lambda: waits_for_driver(world))
    yield Pause(5.0)
    assert waits_for_driver(world)
    assert not node_of(world, "gpu-job")
    yield initialized(world)
    yield bound(world, "gpu-job")
    yield settled(world)
    assert world.bought() == 1


def slices_in_two_parts(world: Stage) -> Script:
    """A pool of which one slice is missing does not count."""
    objects = example("one-gpu")
    allow(objects, TWO_GPUS)
    ask_for(objects, 2)
    world.apply(*objects.values())
    yield Until("the first slice", lambda: len(world.all("ResourceSlice")) == 1)
    yield Pause(2.0)
    assert waits_for_driver(world)
    yield initialized(world)
    assert len(world.all("ResourceSlice")) == 2
    yield bound(world, "gpu-job")
    yield settled(world)
    assert world.bought() == 1


def rising_generation(world: Stage) -> Script:
    """First half of the devices as a complete pool, then a new generation in two parts: only the last state counts."""
    objects = example("one-gpu")
    allow(objects, TWO_GPUS)
    ask_for(objects, 2)
    world.apply(*objects.values())
    yield Until("a complete pool with half of the devices", lambda: generations(world) == [1])
    few = "1 of the 2 devices that the plan has"
    yield Until(
        "it to be too few", lambda: waits_for_driver(world) and few in condition(world, "Initialized")["message"]
    )
    yield Until("the first slice of the new generation", lambda: generations(world) == [2])
    yield Pause(2.0)
    assert waits_for_driver(world)
    yield initialized(world)
    assert generations(world) == [2, 2]
    yield bound(world, "gpu-job")
    yield settled(world)
    assert world.bought() == 1


def pod_deleted_while_its_node_boots(world: Stage) -> Script:
    """Nothing is left."""
    world.apply(*example("one-gpu").values())
    yield Until("a Linode", world.bought)
    world.delete("Pod", "gpu-job")
    yield from emptied(world)
    assert world.bought() == 1


def node_deleted_by_hand(world: Stage) -> Script:
    """`kubectl delete node` drains the node and deletes its Linode."""
    world.apply(*example("one-gpu").values())
    yield Until("the pod to run", lambda: phase(world, "gpu-job") == "Running")
    world.delete("Node", node_of(world, "gpu-job"))
    yield from emptied(world)
    yield Until("the pod to be evicted", lambda: world.find("Pod", "gpu-job") is None)
    assert world.bought() == 1


def controller_killed_after_buying(world: Stage) -> Script:
    """Between the call that creates the Linode and the status that tells of it: the next one adopts the Linode."""
    world.apply(*example("one-gpu").values())
    yield Until("a Linode", world.bought, every=0.002)
    yield world.kill_controller()
    (claim,) = world.all("NodeClaim")
    assert not is_true(claim, "Launched")
    yield world.start_controller()
    yield initialized(world)
    assert [item["metadata"]["uid"] for item in world.all("NodeClaim")] == [claim["metadata"]["uid"]]
    yield bound(world, "gpu-job")
    yield settled(world)
    assert world.bought() == 1


def another_controller_takes_over(world: Stage) -> Script:
    """One ends without a word while the node boots; the next carries on."""
    world.apply(*example("one-gpu").values())
    yield Until("the claim to be launched", lambda: is_true((world.all("NodeClaim") or [{}])[0], "Launched"))
    yield world.kill_controller()
    yield world.start_controller()
    yield bound(world, "gpu-job")
    yield settled(world)
    assert world.bought() == 1
    assert len(world.all("NodeClaim")) == 1


def api_server_restarted_under_load(world: Stage) -> Script:
    """Fifty pods arrive while it goes down and comes back: one Linode for each NodeClaim, one node for each pod."""
    objects = example("one-gpu")
    del objects["NodePool"]["spec"]["limits"]
    pod = objects.pop("Pod")
    names = [f"job-{number:02d}" for number in range(50)]
    world.apply(*objects.values(), *(named(pod, name) for name in names[:30]))
    yield Until("some Linodes", lambda: world.bought() >= 5)
    yield world.restart_api_server()
    world.apply(*(named(pod, name) for name in names[30:]))
    yield bound(world, *names)
    yield settled(world)
    assert len({node_of(world, name) for name in names}) == 50
    assert len(world.all("NodeClaim")) == 50
    assert world.bought() == 50


def extended_resource(world: Stage) -> Script:
    """`nvidia.com/gpu: 1` served by devices: the scheduler makes the claim."""
    world.apply(*running_for("3s", *example("extended-resource").values()))
    yield bound(world, "gpu-job")
    status = world.find("Pod", "gpu-job")["status"]["extendedResourceClaimStatus"]
    claim = world.find("ResourceClaim", status["resourceClaimName"])
    assert claim is not None
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert result["pool"] == node_of(world, "gpu-job")
    yield succeeded(world, "gpu-job")
    yield from emptied(world)
    assert world.bought() == 1


SCENARIOS = (
    Scenario(described_example),
    Scenario(template_after_its_pod),
    Scenario(ada_gpu_by_its_metadata),
    Scenario(limit_reached, many=True),
    Scenario(dra_off, dra=False),
    Scenario(shared_claim),
    Scenario(two_claims_on_one_node),
    Scenario(late_slices, driver=DriverBehaviour(late_seconds=12.0)),
    Scenario(slices_in_two_parts, driver=DriverBehaviour(publishing="parts")),
    Scenario(rising_generation, driver=DriverBehaviour(publishing="regenerated")),
    Scenario(pod_deleted_while_its_node_boots),
    Scenario(node_deleted_by_hand),
    Scenario(controller_killed_after_buying),
    Scenario(another_controller_takes_over),
    Scenario(api_server_restarted_under_load, many=True),
    Scenario(extended_resource, releases=("1.37",)),
)


# What scripts wait for


def bound(world: Stage, *names: str) -> Until:
    def probe() -> bool:
        placed = {pod["metadata"]["name"] for pod in world.all("Pod") if pod["spec"].get("nodeName")}
        return placed >= set(names)

    return Until(f"{len(names)} pods to be bound", probe)


def succeeded(world: Stage, *names: str) -> Until:
    return Until("the pods to succeed", lambda: all(phase(world, name) == "Succeeded" for name in names))


def initialized(world: Stage) -> Until:
    def probe() -> bool:
        claims = world.all("NodeClaim")
        return bool(claims) and all(is_true(claim, "Initialized") for claim in claims)

    return Until("the node to be initialized", probe)


def settled(world: Stage) -> Until:
    """Nothing more happens by itself: all nodes are initialized, and known to be wanted."""

    def probe() -> bool:
        claims = world.all("NodeClaim")
        kinds = ("Initialized", "Ready", "Consolidatable")
        return bool(claims) and all(is_true(claim, kind) for claim in claims for kind in kinds)

    return Until("the nodes to settle", probe)


def emptied(world: Stage) -> Script:
    """No NodeClaim, no Linode, no Node."""
    yield Until("the NodeClaim to go", lambda: not world.all("NodeClaim"))
    yield Until("the Linode to go", lambda: world.machines() == 0)
    yield Until("the Node to go", lambda: not world.all("Node"))


# What scripts look at


def node_of(world: Stage, pod: str) -> str:
    found = world.find("Pod", pod)
    return str((found or {}).get("spec", {}).get("nodeName", ""))


def phase(world: Stage, pod: str) -> str:
    found = world.find("Pod", pod)
    return str((found or {}).get("status", {}).get("phase", ""))


def plans(world: Stage) -> list[str]:
    (claim,) = world.all("NodeClaim")
    (values,) = [
        item["values"] for item in claim["spec"]["requirements"] if item["key"] == "node.kubernetes.io/instance-type"
    ]
    return list(values)


def condition(world: Stage, kind: str) -> Object:
    (claim,) = world.all("NodeClaim") or [{}]
    return next((item for item in claim.get("status", {}).get("conditions", []) if item["type"] == kind), {})


def waits_for_driver(world: Stage) -> bool:
    """Whether the only NodeClaim says that it is not initialized for want of devices."""
    found = condition(world, "Initialized")
    shown = found.get("reason") == "DRADriverPoolsNotPublished" and "gpu.nvidia.com" in found["message"]
    return shown and found["status"] == "Unknown"


def generations(world: Stage) -> list[int]:
    return [int(item["spec"]["pool"]["generation"]) for item in world.all("ResourceSlice")]


def events(world: Stage, pod: str, reason: str) -> list[Object]:
    found = world.all("Event")
    return [event for event in found if event["involvedObject"]["name"] == pod and event["reason"] == reason]


def refusals(world: Stage, pod: str, text: str) -> list[Object]:
    """The controller's events that say why a pod gets no node."""
    return [
        event
        for event in events(world, pod, "FailedScheduling")
        if event["source"].get("component") == "karpenter" and text in event["message"]
    ]


# Variations of the examples


def named(manifest: Object, name: str) -> Object:
    found = copy.deepcopy(manifest)
    found["metadata"]["name"] = name
    return found


def running_for(duration: str, *manifests: Object) -> list[Any]:
    """The same, with pods that end."""
    for manifest in manifests:
        if manifest["kind"] == "Pod":
            manifest["metadata"]["annotations"] = {RUNTIME_ANNOTATION: duration}
    return list(manifests)


def allow(objects: dict[str, Object], plan: str) -> None:
    objects["NodePool"]["spec"]["template"]["spec"]["requirements"][0]["values"] = [plan]


def ask_for(objects: dict[str, Object], count: int) -> None:
    objects["ResourceClaimTemplate"]["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = count
