"""Tiny scheduling problems and the cheapest legal answer, by trying everything (shared by a test and the benchmark).

Problems have the form of the conformance vectors. Each pod fits a plan in each zone, so all can be placed.
"""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Plain = dict[str, Any]
Place = tuple[str, list[Plain]]
"""A zone and the pods on one node in it."""

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
INSTANCE_TYPE, CAPACITY_TYPE = "node.kubernetes.io/instance-type", "karpenter.sh/capacity-type"
ZONES: Final = ("a", "b")
RULES: Final = ("none", "none", "none", "zone", "apart", "spread")
NODE_CPU, NODE_MEMORY = 4, 8
_ON_NODE: Final = -1


def tiny(seed: int) -> Plain:
    """A random problem of up to six pods in two groups, up to four plans, two zones and perhaps a node."""
    draw = random.Random(seed)  # noqa: S311 - equal seeds give equal problems
    pods: list[Plain] = []
    for group in "xy":
        rule, cpu, memory = draw.choice(RULES), draw.choice((1, 2, 3, 5)), draw.choice((1, 2, 4, 9))
        pods += [_pod(f"{group}{number}", rule, cpu, memory) for number in range(draw.randint(1, 3))]
    plans = [_plan("large", 8, 16, draw.randint(35, 60), ZONES)]
    for index in range(draw.randint(0, 3)):
        cpu, memory = draw.choice((2, 4, 6)), draw.choice((4, 8, 16))
        plans.append(
            _plan(f"p{index}", cpu, memory, cpu * draw.randint(3, 6) + memory, draw.choice((ZONES, ZONES[:1])))
        )
    return {
        "nodePools": [_pool()],
        "instanceTypes": plans,
        "nodes": [{"node": _node(draw.choice(ZONES)), "nodeClaim": None}] if draw.randrange(2) else [],
        "boundPods": [],
        "pods": pods,
        "daemonSets": [],
        "namespaces": [],
    }


def optimum(problem: Plain) -> int:
    """The least sum of the new nodes' prices over all legal answers that place every pod."""
    pods: list[Plain] = problem["pods"]
    node_zone = problem["nodes"][0]["node"]["metadata"]["labels"][ZONE] if problem["nodes"] else ""
    best: int | None = None
    known: dict[tuple[str, ...], int | None] = {}

    def price(zone: str, block: list[Plain]) -> int | None:
        key = (zone, *(pod["metadata"]["name"] for pod in block))
        if key not in known:
            known[key] = _price(problem["instanceTypes"], zone, block)
        return known[key]

    for numbers in _assignments(len(pods), _ON_NODE if node_zone else 0):
        blocks: dict[int, list[Plain]] = {}
        for pod, number in zip(pods, numbers, strict=True):
            blocks.setdefault(number, []).append(pod)
        on_node = blocks.pop(_ON_NODE, [])
        fixed: list[Place] = [(node_zone, on_node)] if on_node else []
        if not all(_fits(block, zone, NODE_CPU, NODE_MEMORY) for zone, block in fixed):
            continue
        for zones in product(ZONES, repeat=len(blocks)):
            places = list(zip(zones, blocks.values(), strict=True))
            prices = [price(zone, block) for zone, block in places]
            cost = sum(item for item in prices if item is not None)
            if None not in prices and (best is None or cost < best) and _spread([*fixed, *places]):
                best = cost
    if best is None:
        raise ValueError("no answer places every pod")
    return best


def _assignments(pods: int, least: int) -> Iterator[list[int]]:
    """Every way to put pods into alike blocks: each joins a block that there is, or opens the next one."""
    if not pods:
        yield []
        return
    for numbers in _assignments(pods - 1, least):
        for number in range(least, max([*numbers, -1]) + 2):
            yield [*numbers, number]


def _price(plans: Sequence[Plain], zone: str, pods: Sequence[Plain]) -> int | None:
    """The cheapest plan in a zone that some pods fit on together."""
    return min(
        (
            offering["price"]
            for plan in plans
            for offering in plan["offerings"]
            if offering["requirements"][0]["values"] == [zone]
            and _fits(pods, zone, int(plan["capacity"]["cpu"]), int(plan["capacity"]["memory"].removesuffix("Gi")))
        ),
        default=None,
    )


def _fits(pods: Sequence[Plain], zone: str, cpu: int, memory: int) -> bool:
    asked = [pod["spec"]["containers"][0]["resources"]["requests"] for pod in pods]
    apart = [pod["metadata"]["labels"]["app"] for pod in pods if "affinity" in pod["spec"]]
    return (
        sum(int(item["cpu"]) for item in asked) <= cpu
        and sum(int(item["memory"].removesuffix("Gi")) for item in asked) <= memory
        and all(pod["spec"].get("nodeSelector", {ZONE: zone}) == {ZONE: zone} for pod in pods)
        and len(apart) == len(set(apart))
    )


def _spread(places: Sequence[Place]) -> bool:
    """Whether the pods of each group that must be spread are, over both zones and with a skew of at most one."""
    counts: dict[str, dict[str, int]] = {}
    for zone, pods in places:
        for pod in pods:
            if "topologySpreadConstraints" in pod["spec"]:
                counts.setdefault(pod["metadata"]["labels"]["app"], dict.fromkeys(ZONES, 0))[zone] += 1
    return all(max(zones.values()) - min(zones.values()) <= 1 for zones in counts.values())


def _pool() -> Plain:
    reference = {"group": "g", "kind": "LinodeNodeClass", "name": "default"}
    return {
        "metadata": {"name": "pool"},
        "spec": {"template": {"spec": {"nodeClassRef": reference}}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def _pod(name: str, rule: str, cpu: int, memory: int) -> Plain:
    labels = {"app": name[0]}
    term: Plain = {"labelSelector": {"matchLabels": labels}}
    rules: dict[str, Plain] = {
        "none": {},
        "zone": {"nodeSelector": {ZONE: ZONES[0]}},
        "apart": {
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{**term, "topologyKey": HOSTNAME}]
                }
            }
        },
        "spread": {
            "topologySpreadConstraints": [
                {**term, "topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
            ]
        },
    }
    requests = {"cpu": str(cpu), "memory": f"{memory}Gi"}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}], **rules[rule]},
        "status": {"phase": "Pending"},
    }


def _plan(name: str, cpu: int, memory: int, price: int, zones: tuple[str, ...]) -> Plain:
    def one_of(key: str, *values: str) -> Plain:
        return {"key": key, "operator": "In", "values": list(values)}

    kind = one_of(CAPACITY_TYPE, "on-demand")
    return {
        "name": name,
        "requirements": [one_of(INSTANCE_TYPE, name), one_of(ZONE, *zones), kind],
        "capacity": {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "10"},
        "overhead": {},
        "offerings": [{"price": price, "requirements": [one_of(ZONE, zone), kind]} for zone in zones],
    }


def _node(zone: str) -> Plain:
    allocatable = {"cpu": str(NODE_CPU), "memory": f"{NODE_MEMORY}Gi", "pods": "10"}
    return {
        "metadata": {"name": "n", "labels": {ZONE: zone, HOSTNAME: "n"}},
        "spec": {},
        "status": {"allocatable": allocatable},
    }
