"""How fast pods are placed: ``python bench/scheduling.py [--problems DIR] [FAMILY ...]``.

Families:
    mix         Karpenter's own benchmark rebuilt (spec/karpenter-scheduling.md 7): 400 types, five kinds of pods.
    preference  its 4,000 pods with preferences, under both policies.
    problems    problem files in the conformance vectors' form (``--problems``), with Karpenter's own times beside.
    claims      pods with one GPU claim each, over the Linode catalog.
    nodes       1,000 pending pods over 5,000 nodes.
    optimum     not speed but price: tiny problems beside the cheapest legal answer, found by trying everything.

Each row measures the whole way from Problem to Solution in a fresh interpreter state, best of several runs.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import importlib.util
import json
import platform
import random
import sys
import time
import tracemalloc
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karpenter_linode.linode.instance_types import build_instance_types
from karpenter_linode.linode.tables import bundled_availability, bundled_types
from karpenter_linode.model import codec
from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.instance_type import NANO_DOLLARS, InstanceType
from karpenter_linode.model.karpenter import NodePool
from karpenter_linode.model.resource import DeviceClass, ResourceClaim
from karpenter_linode.scheduling import Problem, SchedulingOptions, StateNode, solve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEED = 42
TINY_PROBLEMS = 500
SIZES = (100, 1_000, 2_000, 5_000, 10_000, 20_000)
CPU = ("100m", "250m", "500m", "1000m", "1500m")
MEMORY = ("100Mi", "256Mi", "512Mi", "1024Mi", "2048Mi", "4096Mi")
LABELS = "abcdefg"
GPU_REGION = "us-ord"
ZONE, HOSTNAME, CAPACITY_TYPE = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "karpenter.sh/capacity-type"
# Karpenter v1.13, Solve only, 2 vCPU: seconds (vectors/scheduling-bench/README.md).
KARPENTER = {
    "plain-1000": 0.070, "plain-5000": 0.815, "zonespread-1000": 0.118, "zonespread-5000": 0.759,
    "antiaffinity-1000": 0.171, "antiaffinity-5000": 2.221, "mixed-1000": 0.166, "mixed-5000": 2.079,
    "linodegpu-1000": 0.450, "linodegpu-5000": 7.738, "existing500-1000": 0.267,
}  # fmt: skip


def fake_types() -> tuple[InstanceType, ...]:
    """Karpenter's 400 fake instance types."""
    return tuple(codec.convert(_fake_type(index), InstanceType) for index in range(400))


def _fake_type(index: int) -> dict[str, Any]:
    cpu, memory = index + 1, 2 * (index + 1)
    price = (Decimal(cpu) / 10 + Decimal(memory * 1024**3) / 10**10) * NANO_DOLLARS
    large = cpu > 4 and memory > 8  # noqa: PLR2004 - the fake provider's own thresholds
    where = [
        ("spot", "test-zone-1"),
        ("spot", "test-zone-2"),
        *(("on-demand", f"test-zone-{zone}") for zone in (1, 2, 3)),
    ]
    requirements = [
        ("node.kubernetes.io/instance-type", [f"fake-it-{index}"]),
        ("kubernetes.io/arch", ["amd64"]),
        ("kubernetes.io/os", ["linux", "windows", "darwin"]),
        (ZONE, ["test-zone-1", "test-zone-2", "test-zone-3"]),
        (CAPACITY_TYPE, ["spot", "on-demand"]),
        ("size", ["large" if large else "small"]),
        ("integer", [str(cpu)]),
    ]
    if large:
        requirements.append(("special", ["optional"]))
    return {
        "name": f"fake-it-{index}",
        "requirements": [{"key": key, "operator": "In", "values": values} for key, values in requirements],
        "capacity": {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": str(10 * cpu)},
        "overhead": {"kubeReserved": {"cpu": "100m", "memory": "10Mi"}},
        "offerings": [
            {
                "price": int(price),
                "requirements": [
                    {"key": CAPACITY_TYPE, "operator": "In", "values": [capacity_type]},
                    {"key": ZONE, "operator": "In", "values": [zone]},
                ],
            }
            for capacity_type, zone in where
        ],
    }


def mix_problem(pods: int) -> Problem:
    """Karpenter's diverse mix: generic, zone spread, hostname spread, zone affinity, hostname anti-affinity."""
    draw = random.Random(SEED)  # noqa: S311 - a benchmark needs the same numbers each time
    share = pods // 5
    made: list[Pod] = []
    kinds: tuple[Callable[[str], dict[str, Any]], ...] = (
        lambda _: {},
        lambda _: _spread(ZONE, draw.choice(LABELS)),
        lambda _: _spread(HOSTNAME, draw.choice(LABELS)),
        lambda own: _affinity("podAffinity", ZONE, {"my-affininity": own}),
        lambda _: _affinity("podAntiAffinity", HOSTNAME, {"app": "nginx"}),
    )
    for number, kind in enumerate(kinds):
        for _ in range(share):
            own = draw.choice(LABELS)
            values = ({"my-label": own}, {"my-label": own}, {"my-label": own}, {"my-affininity": own}, {"app": "nginx"})
            made.append(_pod(len(made), values[number], kind(own), draw))
    while len(made) < pods:
        made.append(_pod(len(made), {"my-label": draw.choice(LABELS)}, {}, draw))
    return _problem(made)


def preference_problem(pods: int, policy: str) -> Problem:
    """Pods that prefer a zone and to stand apart, by zone (which cannot be) and by host (which can)."""
    draw = random.Random(SEED)  # noqa: S311 - likewise
    requests = {"cpu": draw.choice(CPU), "memory": draw.choice(MEMORY)}
    term = {"labelSelector": {"matchLabels": {"app": "nginx"}}}
    zone = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["test-zone-1"]}]}
    affinity = {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": zone}]},
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 10, "podAffinityTerm": {**term, "topologyKey": ZONE}},
                {"weight": 1, "podAffinityTerm": {**term, "topologyKey": HOSTNAME}},
            ]
        },
    }
    made = [_pod(index, {"app": "nginx"}, {"affinity": affinity}, draw, requests) for index in range(pods)]
    return _problem(made, policy)


def claims_problem(pods: int) -> Problem:
    """Pods with a claim for one GPU each, over every plan that Linode sells in a region with GPUs."""
    types = build_instance_types(
        bundled_types(), bundled_availability(GPU_REGION), GPU_REGION, ignore_dra_requests=False
    )
    device_class = {"metadata": {"name": "gpu.nvidia.com"}, "spec": {"selectors": [{"cel": {"expression": _IS_GPU}}]}}
    exactly = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 1}
    claims = [
        {
            "metadata": {"name": f"claim-{index}", "namespace": "default", "uid": f"claim-{index}"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        }
        for index in range(pods)
    ]
    made = [codec.convert(_claim_pod(index), Pod) for index in range(pods)]
    return Problem(
        pods=tuple(made),
        node_pools=(codec.convert(_POOL, NodePool),),
        instance_types={"default": types},
        resource_claims=tuple(codec.convert(claim, ResourceClaim) for claim in claims),
        device_classes=(codec.convert(device_class, DeviceClass),),
        options=SchedulingOptions(ignore_dra_requests=False),
    )


def nodes_problem(pods: int, nodes: int) -> Problem:
    """Pending pods over many nodes with little room."""
    draw = random.Random(SEED)  # noqa: S311 - likewise
    made = [_pod(index, {"my-label": draw.choice(LABELS)}, {}, draw) for index in range(pods)]
    problem = _problem(made)
    existing = [
        {
            "metadata": {
                "name": f"node-{index:05}",
                "labels": {
                    ZONE: f"test-zone-{index % 3 + 1}",
                    HOSTNAME: f"node-{index:05}",
                    "kubernetes.io/os": "linux",
                },
            },
            "status": {"allocatable": {"cpu": draw.choice(CPU), "memory": draw.choice(MEMORY), "pods": "10"}},
        }
        for index in range(nodes)
    ]
    return Problem(
        pods=problem.pods,
        node_pools=problem.node_pools,
        instance_types=problem.instance_types,
        nodes=tuple(StateNode(codec.convert(node, Node)) for node in existing),
    )


_IS_GPU = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
_POOL = {
    "metadata": {"name": "default", "uid": "pool"},
    "spec": {
        "template": {
            "spec": {"nodeClassRef": {"group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default"}}
        },
        "limits": {"cpu": "10000000", "memory": "10000000Gi"},
    },
}


def _claim_pod(index: int) -> dict[str, Any]:
    plain = _plain_pod(index, {}, {"cpu": "1", "memory": "1Gi"})
    plain["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    plain["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": f"claim-{index}"}]
    return plain


def _pod(
    index: int,
    labels: dict[str, str],
    spec: dict[str, Any],
    draw: random.Random,
    requests: dict[str, str] | None = None,
) -> Pod:
    requests = requests or {"cpu": draw.choice(CPU), "memory": draw.choice(MEMORY)}
    plain = _plain_pod(index, labels, requests)
    plain["spec"].update(spec)
    return codec.convert(plain, Pod)


def _plain_pod(index: int, labels: dict[str, str], requests: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": f"pod-{index}", "namespace": "default", "uid": f"uid-{index:06}", "labels": labels},
        "spec": {"containers": [{"name": "app", "resources": {"requests": requests}}]},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    }


def _spread(key: str, label: str) -> dict[str, Any]:
    selector = {"matchLabels": {"my-label": label}}
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [constraint]}


def _affinity(kind: str, key: str, labels: dict[str, str]) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _problem(pods: list[Pod], policy: str = "Respect") -> Problem:
    return Problem(
        pods=tuple(pods),
        node_pools=(codec.convert(_POOL, NodePool),),
        instance_types={"default": fake_types()},
        options=SchedulingOptions(
            preference_policy="Ignore" if policy == "Ignore" else "Respect",
            well_known_labels=("size", "special", "integer"),
        ),
    )


def rows(families: list[str], folder: Path | None) -> Iterator[tuple[str, Problem]]:
    """The problems to measure, by name."""
    if "mix" in families:
        yield from ((f"mix-{size}", mix_problem(size)) for size in SIZES)
    if "preference" in families:
        yield from (
            (f"preference-{policy}-4000", preference_problem(4_000, policy)) for policy in ("Respect", "Ignore")
        )
    if "problems" in families and folder is not None:
        cases = _vector_cases()
        for path in sorted(folder.glob("*.json.gz")):
            with gzip.open(path, "rt") as file:
                yield path.name.removesuffix(".json.gz"), cases.to_problem(json.load(file, parse_float=Decimal))
    if "claims" in families:
        yield from ((f"claims-{size}", claims_problem(size)) for size in (1_000, 5_000))
    if "nodes" in families:
        yield "nodes5000-1000", nodes_problem(1_000, 5_000)


def measure(problem: Problem, runs: int) -> tuple[float, float, Any]:
    """Best wall and CPU seconds over some runs, and the solution."""
    wall = cpu = float("inf")
    solution = None
    for _ in range(runs):
        gc.collect()
        started, cpu_started = time.perf_counter(), time.process_time()
        solution = solve(problem)
        wall, cpu = min(wall, time.perf_counter() - started), min(cpu, time.process_time() - cpu_started)
    return wall, cpu, solution


def peak_memory(problem: Problem) -> int:
    """Bytes that solving allocates at most at once, beyond the problem itself."""
    gc.collect()
    tracemalloc.start()
    solve(problem)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def price_gaps(problems: int) -> list[float]:
    """How far the prices of answers to tiny problems are above the cheapest legal ones, as fractions, ascending."""
    exhaustive, cases, gaps = _of_tests("properties/scheduling_optimum.py"), _vector_cases(), []
    for seed in range(problems):
        plain = exhaustive.tiny(seed)
        price = sum(claim.price for claim in solve(cases.to_problem(plain)).new_node_claims) // NANO_DOLLARS
        best = exhaustive.optimum(plain)
        gaps.append((price - best) / max(best, 1))
    return sorted(gaps)


def _print_gaps(problems: int) -> None:
    gaps = price_gaps(problems)
    shares = ", ".join(f"{share:.0%}: {gaps[int(share * (problems - 1))]:+.1%}" for share in (0.5, 0.9, 0.95, 0.99, 1))
    cheapest = sum(gap == 0 for gap in gaps)
    mean = sum(gaps) / problems
    print(f"\n{problems} tiny problems: {cheapest} answers are the cheapest; above it {mean:+.1%} on average, {shares}")


def _vector_cases() -> Any:
    return _of_tests("conformance/scheduling_cases.py")


def _of_tests(name: str) -> Any:
    path = Path(__file__).parent.parent / "tests" / name
    spec = importlib.util.spec_from_file_location(f"tests_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=["mix", "preference", "problems", "claims", "nodes", "optimum"])
    parser.add_argument("--problems", type=Path, default=None, help="folder with *.json.gz problems")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--memory", action="store_true", help="measure peak memory, too (slow)")
    arguments = parser.parse_args()
    print(
        f"{platform.machine()}, Python {platform.python_version()}, best of {arguments.runs}; CPU time beside wall time"
    )
    heads = ("pods/s", "wall s", "cpu s", "peak MB", "claims", "unplaced", "$/h", "Karpenter")
    widths = (9, 9, 9, 9, 8, 9, 12, 11)
    print(f"{'problem':24}" + "".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True)))
    for name, problem in rows(arguments.families, arguments.problems):
        wall, cpu, solution = measure(problem, arguments.runs)
        memory = f"{peak_memory(problem) / 2**20:.0f}" if arguments.memory else "-"
        price = sum(claim.price for claim in solution.new_node_claims) / NANO_DOLLARS
        beside = f"{KARPENTER[name]:.3f} s" if name in KARPENTER else "-"
        print(
            f"{name:24}{len(problem.pods) / wall:9.0f}{wall:9.3f}{cpu:9.3f}{memory:>9}"
            f"{len(solution.new_node_claims):8}{len(solution.unplaced):9}{price:12.4f}{beside:>11}"
        )
    if "optimum" in arguments.families:
        _print_gaps(TINY_PROBLEMS)


if __name__ == "__main__":
    main()
