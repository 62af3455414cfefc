"""From a pending pod to the Linode call that buys its node, at the default batch windows, in the embedded world.

50 pods arrive at once, each too large to share a node. A pod counts as served with the call that raises what was bought
to its number. In virtual time the two APIs take what the world's settings say and computing takes nothing; in real time
computing counts too, with cluster, cloud and controllers sharing one processor.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.operator.embedded import EmbeddedWorld
from karpenter_linode.operator.system import SystemClock
from karpenter_linode.sim.loop import run_virtual

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from datetime import datetime

PODS, SEEDS = 50, 20
_SETTLED = 15.0
_LIMIT = 120.0
_STEP = 0.05


class Recorder:
    """Stands before the emulated API and notes what was asked, and when."""

    def __init__(self, world: EmbeddedWorld) -> None:
        self._app, self._clock = world.cluster.linode_app, world.clock
        self.calls: Counter[str] = Counter()
        self.bought: list[tuple[datetime, int]] = []
        self._counts: dict[str, int] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request as an ASGI application does."""
        arrived, (method, path) = self._clock.now(), (scope["method"], scope["path"])
        self.calls[_route(method, path)] += 1
        parts: list[bytes] = []

        async def heard() -> Any:
            message = await receive()
            parts.append(message.get("body", b""))
            return message

        await self._app(scope, heard, send)
        if "/pools" in path and method in {"POST", "PUT"}:
            body = json.loads(b"".join(parts))
            before = self._counts.get(path, 0) if method == "PUT" else 0
            self._counts[path] = body["count"]
            self.bought.append((arrived, body["count"] - before))


def _route(method: str, path: str) -> str:
    return f"{method} " + "/".join("{id}" if part[:1].isdigit() else part for part in path.split("/")[2:])


def node_class() -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.k8s.linode/v1alpha1",
        "kind": "LinodeNodeClass",
        "metadata": {"name": "default"},
        "spec": {},
    }


def node_pool(name: str) -> dict[str, Any]:
    """A NodePool of dedicated plans."""
    reference = {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"}
    only = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g6-dedicated-8"]}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"nodeClassRef": reference, "requirements": [only]}}},
    }


def pod(number: int, pool: str) -> dict[str, Any]:
    """A pod that fills more than half of a node."""
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": "5"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"job-{number}"},
        "spec": {"nodeSelector": {"karpenter.sh/nodepool": pool}, "containers": [container]},
    }


async def story(seed: int, pools: int, clock: Any) -> tuple[list[float], Counter[str], float]:
    """Seconds until each pod's node was asked for; calls and processor time from the arrival until the last one."""
    names = [f"pool-{number}" for number in range(pools)]
    world = EmbeddedWorld([node_class(), *map(node_pool, names)], seed=seed, clock=clock)
    recorder = Recorder(world)
    world.cluster.linode_app = recorder  # type: ignore[assignment]  # the transport takes any ASGI application
    await world.start()
    try:
        await world.clock.sleep(_SETTLED)
        recorder.calls.clear()
        arrived, busy = world.clock.now(), time.process_time()
        world.cluster.apply([pod(number, names[number % pools]) for number in range(PODS)])
        bought = await world.run_until(lambda: sum(more for _, more in recorder.bought) >= PODS, _LIMIT, _STEP)
        if not bought:
            raise RuntimeError(
                f"only {recorder.bought} were bought for {len(list(world.cluster.store.all(NodeClaim)))}"
            )
        calls, busy = Counter(recorder.calls), time.process_time() - busy
    finally:
        await world.stop()
    waited = [(when - arrived) / timedelta(seconds=1) for when, more in recorder.bought for _ in range(more)]
    return waited, calls, busy


def measured(name: str, pools: int, run: Callable[[Coroutine[Any, Any, Any]], Any], seeds: range, clock: Any) -> None:
    """One line for the waiting, one for calls and processor time, for all stories together."""
    waited: list[float] = []
    calls: Counter[str] = Counter()
    busy = 0.0
    for seed in seeds:
        found, asked, spent = run(story(seed, pools, clock))
        waited += found
        calls += asked
        busy += spent
    waited.sort()
    half, most = waited[len(waited) // 2], waited[int(len(waited) * 0.99)]
    print(f"{name}: p50 {half:.2f} s, p99 {most:.2f} s, longest {waited[-1]:.2f} s")
    told = ", ".join(f"{route} {count / len(seeds):.1f}" for route, count in sorted(calls.items()))
    print(f"  {busy / len(seeds):.2f} s of processor; Linode calls: {told}")


def main() -> int:
    measured(f"{PODS} pods, one pool, virtual time", 1, run_virtual, range(SEEDS), None)
    measured(f"{PODS} pods over four pools, virtual time", 4, run_virtual, range(SEEDS), None)
    measured(f"{PODS} pods, one pool, real time", 1, asyncio.run, range(3), SystemClock())
    return 0


if __name__ == "__main__":
    sys.exit(main())
