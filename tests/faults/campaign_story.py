"""Random stories for the campaign: what users want, what they delete, and everything that goes wrong meanwhile.

A story is plain data and depends on its seed alone, so that one that ends badly can be told again, and cut down.
"""

from __future__ import annotations

import random
from typing import Any

from msgspec import Struct

CALM_AT = 1800.0
"""Seconds after which nothing goes wrong any more."""

GPU_PLANS = ("g2-gpu-rtx4000a1-s", "g2-gpu-rtx4000a1-m", "g2-gpu-rtx4000a2-s", "g2-gpu-rtx4000a4-s")
CPU_PLANS = ("g6-standard-2", "g6-standard-4", "g6-standard-6")
LONG_NAME = "a-pool-with-a-name-as-long-as-kubernetes-allows-" + "x" * 15
STARTUP_TAINT = "example.com/agent-starts"
RUNTIME = "simulate.karpenter-linode/runtime"
IMPOSSIBLE = "impossible"
"""Pods with names that start like this ask for what no plan has."""

_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
_CLOUD_CALLS = (
    ("POST", "/lke/clusters/[0-9]+/pools"),
    ("PUT", "/lke/clusters/[0-9]+/pools/[0-9]+"),
    ("PUT", "/linode/instances/[0-9]+"),
    ("GET", "/lke/clusters/[0-9]+/pools"),
    ("GET", "/linode/instances/[0-9]+"),
    ("GET", "/linode/instances"),
    ("DELETE", "/lke/clusters/[0-9]+/nodes/[^/]+"),
    ("DELETE", "/lke/clusters/[0-9]+/pools/[0-9]+"),
)
_TWICE_AS_OFTEN = ("delete", "crash", "cloud-calls", "kube-calls")
_MISHAPS = (
    *_TWICE_AS_OFTEN,
    *_TWICE_AS_OFTEN,
    "cloud",
    "cloud-outage",
    "watches",
    "latency",
    "kube-outage",
    "driver",
    "node-stop",
    "noise",
    "overlap",
)
_KUBE_KINDS = ("nodeclaims", "nodes", "pods", "nodepools", "resourceclaims", "resourceslices", "")


class Act(Struct, frozen=True):
    """Something that happens ``at`` a second of the story; ``how`` depends on ``what``."""

    at: float
    what: str
    how: dict[str, Any] = {}


class Story(Struct, frozen=True):
    """The start of a world and what happens to it."""

    seed: int
    manifests: tuple[dict[str, Any], ...]
    acts: tuple[Act, ...]
    driver_late: float = 0.0
    workers: int = 10
    tier: str = "standard"


def random_story(seed: int) -> Story:
    """The story of a seed."""
    dice = random.Random(f"campaign/{seed}")  # noqa: S311  # reproducible on purpose; nothing here is a secret
    pools = _node_pools(dice)
    manifests = [_plain("LinodeNodeClass", "default", "karpenter.k8s.linode/v1alpha1", {"spec": {}}), *pools]
    manifests += [_template(name, count) for name, count in (("one", 1), ("two", 2), ("nine", 9), ("all", 0))]
    if dice.random() < 0.5:
        manifests.append(_daemon_set())
    acts = [_arrival(dice, number) for number in range(dice.randint(2, 14))]
    acts += [_mishap(dice) for _ in range(dice.randint(0, 14))]
    acts.sort(key=lambda act: act.at)
    late, workers = dice.choice((0.0, 0.0, 60.0)), dice.choice((1, 10, 10))
    tier = dice.choice(("standard", "standard", "enterprise"))
    return Story(seed, tuple(manifests), tuple(acts), late, workers, tier)


def _node_pools(dice: random.Random) -> list[dict[str, Any]]:
    names = ["gpu", dice.choice(("gpu-too", LONG_NAME))][: dice.randint(1, 2)]
    pools = [_node_pool(dice, name, GPU_PLANS, gpu=True) for name in names]
    return [*pools, _node_pool(dice, "cpu", CPU_PLANS, gpu=False)]


def _node_pool(dice: random.Random, name: str, plans: tuple[str, ...], *, gpu: bool) -> dict[str, Any]:
    wanted = plans if name in {"gpu", "cpu"} else plans[: dice.randint(1, 4)]
    node: dict[str, Any] = {
        "nodeClassRef": {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"},
        "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(wanted)}],
    }
    if gpu:
        node["taints"] = [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}]
    if dice.random() < 0.3:
        node["startupTaints"] = [{"key": STARTUP_TAINT, "effect": "NoSchedule"}]
    if dice.random() < 0.2:
        node["terminationGracePeriod"] = "5m"
    if dice.random() < 0.15:
        node["expireAfter"] = "1h"
    spec: dict[str, Any] = {
        "weight": dice.randint(1, 100),
        "template": {"spec": node},
        "disruption": {"consolidateAfter": dice.choice(("0s", "30s", "2m", "10m")), "budgets": [{"nodes": "100%"}]},
    }
    if dice.random() < 0.4:
        spec["limits"] = {"cpu": dice.choice(("40", "64"))}
    # A node that dies before it can take pods would keep them waiting for ever otherwise: there is no limit by default.
    metadata = {"annotations": {"karpenter.k8s.linode/initialization-timeout": "10m"}}
    return _plain("NodePool", name, "karpenter.sh/v1", {"metadata": metadata, "spec": spec})


def _arrival(dice: random.Random, number: int) -> Act:
    at = round(dice.uniform(0, CALM_AT * 0.8) if dice.random() < 0.7 else dice.uniform(0, 60), 1)
    kind = dice.choice(("one", "one", "shared", "two", "all", "cpu", "cpu", "many", IMPOSSIBLE))
    runtime = dice.choice(("30s", "3m", "8m", "15m"))
    owner = dice.choice(("", "", "ReplicaSet", "Job"))
    name = f"{kind}-{number}"
    if kind == "shared":
        claim = _plain("ResourceClaim", name, "resource.k8s.io/v1", {"spec": _devices(1)})
        pods = [_pod(f"{name}-{item}", runtime, owner, claim=name) for item in range(dice.randint(2, 3))]
        return Act(at, "apply", {"manifests": [claim, *pods]})
    if kind == "cpu":
        pods = [_pod(f"{name}-0", runtime, owner, cpu=dice.choice(("200m", "1", "3")))]
    elif kind == "many":
        pods = [_pod(f"{name}-{item}", runtime, owner, cpu="700m") for item in range(dice.randint(3, 9))]
    elif kind == IMPOSSIBLE:
        pods = [_pod(f"{name}-0", runtime, "", template="nine"), _pod(f"{name}-1", runtime, "", cpu="500")]
    else:
        pods = [_pod(f"{name}-{item}", runtime, owner, template=kind) for item in range(dice.randint(1, 3))]
    return Act(at, "apply", {"manifests": pods})


def _mishap(dice: random.Random) -> Act:
    at = round(dice.uniform(0, CALM_AT * 0.9), 1)
    what = dice.choice(_MISHAPS)
    return Act(at, what, _details(dice, what))


def _details(dice: random.Random, what: str) -> dict[str, Any]:
    seconds = dice.choice((10.0, 60.0, 400.0, 1200.0))
    match what:
        case "delete":
            kinds = ("Pod", "Node", "NodeClaim", "NodeClaim", "NodePool", "Linode")
            return {"kind": dice.choice(kinds), "number": dice.randint(0, 5)}
        case "crash":
            return {
                "seconds": dice.choice((0.0, 1.0, 7.0, 200.0)),
                "at_call": dice.choice(("", "POST", "PUT", "DELETE")),
            }
        case "cloud-calls":
            method, path = dice.choice(_CLOUD_CALLS)
            effect = dice.choice(("status", "refused", "lost", "late"))
            status = dice.choice((500, 503, 429, 408))
            return {"method": method, "path": path, "effect": effect, "status": status, "times": dice.randint(1, 6)}
        case "cloud":
            effect = dice.choice(("sold-out", "late-tags", "slow-deletes", "stuck", "account-limit"))
            return {"effect": effect, "plan": dice.choice((*GPU_PLANS, *CPU_PLANS)), "seconds": seconds}
        case "kube-calls":
            return {
                "verb": dice.choice(("create", "patch", "delete", "list", "get", "")),
                "resource": dice.choice(_KUBE_KINDS),
                "status": dice.choice((409, 429, 500)),
                "times": dice.randint(1, 8),
                "lost": dice.random() < 0.4,
            }
        case "watches":
            return {"effect": dice.choice(("drop", "compact", "silence")), "resource": dice.choice(_KUBE_KINDS)}
        case "latency":
            return {"seconds": dice.choice((0.5, 3.0)), "lag": dice.choice((0.01, 1.0, 8.0)), "lasts": seconds}
        case "driver":
            return {"publishing": dice.choice(("complete", "parts", "regenerated", "never")), "seconds": seconds}
        case _:
            return {"seconds": seconds}


def _pod(
    name: str, runtime: str, owner: str, *, cpu: str = "100m", template: str = "", claim: str = ""
) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "app", "image": "example", "resources": {"requests": {"cpu": cpu}}}
    policy = "Always" if owner == "ReplicaSet" else "Never"
    spec: dict[str, Any] = {"restartPolicy": policy, "containers": [container]}
    if template or claim:
        reference = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
        spec |= {"tolerations": [_TOLERATION], "resourceClaims": [{"name": "gpu", **reference}]}
        container["resources"]["claims"] = [{"name": "gpu"}]
    metadata: dict[str, Any] = {"annotations": {RUNTIME: runtime}}
    if owner:
        version = "batch/v1" if owner == "Job" else "apps/v1"
        reference = {"apiVersion": version, "kind": owner, "name": name, "uid": f"uid-{name}", "controller": True}
        metadata["ownerReferences"] = [reference]
    return _plain("Pod", name, "v1", {"metadata": metadata, "spec": spec})


def _template(name: str, count: int) -> dict[str, Any]:
    return _plain("ResourceClaimTemplate", name, "resource.k8s.io/v1", {"spec": {"spec": _devices(count)}})


def _devices(count: int) -> dict[str, Any]:
    how = {"allocationMode": "ExactCount", "count": count} if count else {"allocationMode": "All"}
    return {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", **how}}]}}


def _daemon_set() -> dict[str, Any]:
    spec = {
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "agent", "image": "example", "resources": {"requests": {"cpu": "100m"}}}],
    }
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": spec}
    selector = {"matchLabels": {"app": "agent"}}
    return _plain("DaemonSet", "agent", "apps/v1", {"spec": {"selector": selector, "template": template}})


def _plain(kind: str, name: str, version: str, rest: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, **rest.get("metadata", {})}
    return {"apiVersion": version, "kind": kind, **rest, "metadata": metadata}
