"""The scheduler stand-in: what it places, what it refuses and in which words, and when it tries again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from karpenter_linode.model.core import Taint
from karpenter_linode.model.meta import find_condition
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.resource import ResourceClaim
from karpenter_linode.ports import ConflictError
from karpenter_linode.sim.resource_types import served_type, type_of

Run = Callable[..., Any]
NO_HELP = "preemption: 0/{0} nodes are available: {0} Preemption is not helpful for scheduling."


def asks(**requests: str) -> list[dict[str, Any]]:
    return [{"name": "app", "image": "pause", "resources": {"requests": requests}}]


def place(world: Any, name: str = "pod") -> str:
    return str(world.pod(name).spec.node_name)


def verdict(world: Any, name: str = "pod") -> tuple[str, str, str]:
    condition = find_condition(world.pod(name).status.conditions, "PodScheduled")
    return (condition.status, condition.reason, condition.message)


def test_without_nodes_a_pod_is_unschedulable(run: Run) -> None:
    async def play(world: Any) -> None:
        world.add_pod()
        await world.clock.sleep(1)
        assert verdict(world) == ("False", "Unschedulable", "no nodes available to schedule pods")
        assert world.messages("FailedScheduling") == ["no nodes available to schedule pods"]

    run(play)


def test_an_unready_node_takes_nothing_until_its_taint_goes(run: Run) -> None:
    async def play(world: Any) -> None:
        world.boot()
        world.add_pod()
        await world.clock.sleep(1)
        assert "untolerated taint {node.cloudprovider.kubernetes.io/uninitialized: true}" in verdict(world)[2]
        await world.clock.sleep(30)
        assert place(world) == "node-a"
        assert verdict(world)[0] == "True"
        assert world.messages("Scheduled") == ["Successfully assigned default/pod to node-a"]

    run(play)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"nodeSelector": {"a": "b"}}, "1 node(s) didn't match Pod's node affinity/selector"),
        ({"containers": asks(cpu="5")}, "1 Insufficient cpu"),
        ({"containers": asks(cpu="5", memory="9Gi")}, "1 Insufficient cpu, 1 Insufficient memory"),
        ({"containers": asks(**{"nvidia.com/gpu": "1"})}, "1 Insufficient nvidia.com/gpu"),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
            '1 persistentvolumeclaim "data" not found',
        ),
    ],
)
def test_refusals_are_in_the_words_of_kube_scheduler(run: Run, spec: dict[str, Any], message: str) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod(**spec)
        await world.clock.sleep(1)
        assert verdict(world)[2] == f"0/1 nodes are available: {message}. {NO_HELP.format(1)}"

    run(play)


@pytest.mark.parametrize("entry", [{"resourceClaimName": "c"}, {"resourceClaimTemplateName": "one-gpu"}])
def test_a_pod_whose_claim_does_not_exist_stays_outside_the_queue(run: Run, entry: dict[str, str]) -> None:
    async def play(world: Any) -> None:
        await world.ready(gpus=1, plan="g2-gpu-rtx4000a1-s")
        world.add_pod(resourceClaims=[{"name": "gpu", **entry}])
        await world.clock.sleep(300)
        assert find_condition(world.pod().status.conditions, "PodScheduled") is None
        world.add_gpu_template()
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
        world.add("resource.k8s.io/v1", "ResourceClaim", "c", spec={"devices": {"requests": [request]}})
        await world.clock.sleep(400)
        assert place(world) == "node-a"

    run(play)


def test_reasons_of_several_nodes_are_counted(run: Run) -> None:
    async def play(world: Any) -> None:
        world.boot("node-a", taints=(Taint("nvidia.com/gpu", "true", "NoSchedule"),))
        world.boot("node-b")
        world.boot("node-c")
        await world.clock.sleep(30)
        world.add_pod(containers=asks(cpu="5"))
        await world.clock.sleep(1)
        told = "2 Insufficient cpu, 1 node(s) had untolerated taint {nvidia.com/gpu: true}"
        expected = ", ".join(sorted(told.split(", ")))
        assert verdict(world)[2] == f"0/3 nodes are available: {expected}. {NO_HELP.format(3)}"

    run(play)


def test_pods_fill_a_node_by_request_and_wait_for_room(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        for name in ("a", "b", "c"):
            world.add_pod(name, containers=asks(cpu="2"))
        await world.clock.sleep(30)
        assert [place(world, name) for name in ("a", "b", "c")] == ["node-a", "node-a", ""]
        world.delete("v1", "Pod", "a")
        await world.clock.sleep(30)
        assert place(world, "c") == "node-a"

    run(play)


def test_a_finished_pod_makes_room(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        runtime = {"annotations": {"simulate.karpenter-linode/runtime": "1m"}}
        world.add_pod("a", containers=asks(cpu="4"), metadata=runtime)
        world.add_pod("b", containers=asks(cpu="4"))
        await world.clock.sleep(30)
        assert place(world, "b") == ""
        await world.clock.sleep(90)
        assert place(world, "b") == "node-a"

    run(play)


def test_the_pod_count_is_a_resource(run: Run) -> None:
    async def play(world: Any) -> None:
        room = {"cpu": Quantity.of(4), "memory": Quantity.parse("8Gi"), "pods": Quantity.of(1)}
        await world.ready(allocatable=room)
        world.add_pod("a")
        world.add_pod("b")
        await world.clock.sleep(30)
        assert "1 Too many pods" in verdict(world, "b")[2]

    run(play)


def test_higher_priority_goes_first(run: Run) -> None:
    async def play(world: Any) -> None:
        world.add("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000)
        world.add_pod("low", containers=asks(cpu="4"))
        world.add_pod("high", containers=asks(cpu="4"), priorityClassName="high")
        await world.ready()
        await world.clock.sleep(30)
        assert (place(world, "high"), place(world, "low")) == ("node-a", "")

    run(play)


def test_the_node_with_more_room_is_preferred(run: Run) -> None:
    async def play(world: Any) -> None:
        world.boot("node-a")
        world.boot("node-b")
        await world.clock.sleep(30)
        for name in ("a", "b"):
            world.add_pod(name, containers=asks(cpu="1"))
        await world.clock.sleep(30)
        assert {place(world, "a"), place(world, "b")} == {"node-a", "node-b"}

    run(play)


def test_soft_taints_and_preferences_steer(run: Run) -> None:
    async def play(world: Any) -> None:
        world.boot("node-a", taints=(Taint("x", "y", "PreferNoSchedule"),))
        world.boot("node-b")
        world.boot("node-c", labels={"disk": "fast"})
        await world.clock.sleep(30)
        world.add_pod("plain", containers=asks(cpu="100m"))
        term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}
        preferred = [{"weight": 50, "preference": term}]
        affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
        world.add_pod("picky", affinity=affinity)
        await world.clock.sleep(30)
        assert place(world, "plain") == "node-b"
        assert place(world, "picky") == "node-c"

    run(play)


def test_host_ports_clash(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        container = {"name": "app", "image": "x", "ports": [{"containerPort": 80, "hostPort": 80}]}
        other = {"name": "app", "image": "x", "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "UDP"}]}
        world.add_pod("a", containers=[container])
        world.add_pod("b", containers=[container])
        world.add_pod("c", containers=[other])
        await world.clock.sleep(30)
        placed = {name: place(world, name) for name in ("a", "b", "c")}
        assert placed == {"a": "node-a", "b": "", "c": "node-a"}
        assert "free ports" in verdict(world, "b")[2]

    run(play)


def labelled(app: str) -> dict[str, Any]:
    return {"labels": {"app": app}}


def apart(app: str, key: str = "kubernetes.io/hostname") -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def together(app: str) -> dict[str, Any]:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_anti_affinity_holds_in_both_directions(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod("a", metadata=labelled("web"), affinity=apart("web"))
        await world.clock.sleep(5)
        world.add_pod("b", metadata=labelled("web"), affinity=apart("web"))
        world.add_pod("c", metadata=labelled("web"))
        world.add_pod("d", metadata=labelled("db"))
        await world.clock.sleep(5)
        assert [place(world, name) for name in "abcd"] == ["node-a", "", "", "node-a"]
        assert "didn't match pod anti-affinity rules" in verdict(world, "b")[2]
        assert "didn't satisfy existing pods anti-affinity rules" in verdict(world, "c")[2]

    run(play)


def test_affinity_waits_for_its_partner_unless_it_is_the_first_of_its_kind(run: Run) -> None:
    async def play(world: Any) -> None:
        world.boot("node-a")
        world.boot("node-b")
        await world.clock.sleep(30)
        world.add_pod("guest", affinity=together("host"))
        world.add_pod("first", metadata=labelled("self"), affinity=together("self"))
        await world.clock.sleep(5)
        assert place(world, "first") != ""
        assert "didn't match pod affinity rules" in verdict(world, "guest")[2]
        world.add_pod("host", metadata=labelled("host"))
        world.add_pod("second", metadata=labelled("self"), affinity=together("self"))
        await world.clock.sleep(15)
        assert place(world, "guest") == place(world, "host") != ""
        assert place(world, "second") == place(world, "first")

    run(play)


def test_hard_spread_keeps_the_skew(run: Run) -> None:
    async def play(world: Any) -> None:
        spread = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
        world.boot("node-a")
        world.boot("node-b")
        await world.clock.sleep(30)
        for name in "abcd":
            world.add_pod(name, metadata=labelled("web"), topologySpreadConstraints=[spread])
        await world.clock.sleep(30)
        assert sorted(place(world, name) for name in "abcd") == ["node-a", "node-a", "node-b", "node-b"]
        world.add_pod("rack", metadata=labelled("web"), topologySpreadConstraints=[{**spread, "topologyKey": "rack"}])
        await world.clock.sleep(5)
        assert "(missing required label)" in verdict(world, "rack")[2]

    run(play)


def test_gates_keep_a_pod_out(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod(schedulingGates=[{"name": "quota"}])
        await world.clock.sleep(5)
        assert verdict(world)[1] == "SchedulingGated"
        world.store.patch(served_type("v1", "Pod"), "pod", {"spec": {"schedulingGates": None}}, namespace="default")
        await world.clock.sleep(5)
        assert place(world) == "node-a"

    run(play)


def test_other_schedulers_pods_are_left_alone(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod(schedulerName="volcano")
        await world.clock.sleep(30)
        assert world.pod().status.conditions == ()

    run(play)


def test_repeated_failures_are_counted_in_one_event_and_back_off(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod(nodeSelector={"a": "b"})
        await world.clock.sleep(1000)
        (event,) = (e for e in world.store.list(served_type("v1", "Event")) if e.plain["reason"] == "FailedScheduling")
        assert 3 <= event.plain["count"] <= 6

    run(play)


async def gpu_node(world: Any, *, gpus: int = 1) -> None:
    world.add_gpu_template()
    await world.ready(gpus=gpus, plan=f"g2-gpu-rtx4000a{gpus}-s")
    await world.clock.sleep(200)


def devices(world: Any) -> list[str]:
    return sorted(
        result.device
        for claim in world.store.all(ResourceClaim)
        if claim.status.allocation
        for result in claim.status.allocation.devices.results
    )


def test_no_device_is_given_twice(run: Run) -> None:
    async def play(world: Any) -> None:
        await gpu_node(world, gpus=2)
        for name in ("a", "b", "c"):
            world.add_gpu_pod(name)
        await world.clock.sleep(60)
        assert devices(world) == ["gpu-0", "gpu-1"]
        waiting = [name for name in ("a", "b", "c") if not place(world, name)]
        assert len(waiting) == 1
        assert "1 cannot allocate all claims" in verdict(world, waiting[0])[2]
        world.delete("v1", "Pod", next(name for name in ("a", "b", "c") if name not in waiting))
        await world.clock.sleep(60)
        assert place(world, waiting[0]) == "node-a"
        assert devices(world) == ["gpu-0", "gpu-1"]

    run(play)


def test_a_failed_write_gives_the_devices_back(run: Run) -> None:
    async def play(world: Any) -> None:
        await gpu_node(world)
        world.add_gpu_pod("a")
        original = world.store.bind
        failures = iter([True, False, False])

        def bind(name: str, namespace: str, node: str) -> Any:
            if next(failures):
                raise ConflictError("binding refused")
            return original(name, namespace, node)

        world.store.bind = bind
        await world.clock.sleep(0.5)
        assert verdict(world, "a")[:2] == ("False", "SchedulerError")
        await world.clock.sleep(30)
        assert place(world, "a") == "node-a"
        assert devices(world) == ["gpu-0"]

    run(play)


def test_a_claim_bound_to_another_node_keeps_the_pod_off(run: Run) -> None:
    async def play(world: Any) -> None:
        await gpu_node(world)
        await world.ready("node-b")
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
        world.add("resource.k8s.io/v1", "ResourceClaim", "shared", spec={"devices": {"requests": [request]}})
        claims = [{"name": "gpu", "resourceClaimName": "shared"}]
        world.add_pod("a", resourceClaims=claims)
        await world.clock.sleep(10)
        world.add_pod("b", resourceClaims=claims, nodeSelector={"kubernetes.io/hostname": "node-b"})
        await world.clock.sleep(10)
        assert "1 resourceclaim not available on the node" in verdict(world, "b")[2]

    run(play)


def test_an_unknown_device_class_makes_a_pod_unschedulable(run: Run) -> None:
    async def play(world: Any) -> None:
        await gpu_node(world)
        world.store.delete(served_type("resource.k8s.io/v1", "DeviceClass"), "gpu.nvidia.com")
        world.add_gpu_pod()
        await world.clock.sleep(10)
        assert verdict(world)[1] == "Unschedulable"
        assert "gpu.nvidia.com" in verdict(world)[2]
        world.add("resource.k8s.io/v1", "DeviceClass", "gpu.nvidia.com", spec={})
        await world.clock.sleep(30)
        assert place(world) == "node-a"

    run(play)


def test_a_claim_of_another_pod_is_refused(run: Run) -> None:
    async def play(world: Any) -> None:
        await gpu_node(world)
        world.add_gpu_pod("a")
        await world.clock.sleep(60)
        claim = next(iter(world.store.all(ResourceClaim)))
        world.add_pod("b", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "other"}])
        entry = {"name": "gpu", "resourceClaimName": claim.name}
        world.store.patch(
            served_type("v1", "Pod"),
            "b",
            {"status": {"resourceClaimStatuses": [entry]}},
            namespace="default",
            subresource="status",
        )
        await world.clock.sleep(10)
        assert place(world, "b") == ""
        assert any("pod is not owner" in entry.message for entry in world.journal.story("default/b"))

    run(play)


def test_a_second_user_of_a_slice_waits_for_the_first_to_be_written(run: Run) -> None:
    async def play(world: Any) -> None:
        await gpu_node(world)
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
        world.add("resource.k8s.io/v1", "ResourceClaim", "shared", spec={"devices": {"requests": [request]}})
        for name in ("a", "b"):
            world.add_pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}])
        await world.clock.sleep(0.006)
        assert "is in the process of being allocated" in verdict(world, "b")[2]
        await world.clock.sleep(10)
        claim = world.store.get(type_of(ResourceClaim), "shared", "default").decode(ResourceClaim)
        assert [user.name for user in claim.status.reserved_for] == ["a", "b"]

    run(play)
