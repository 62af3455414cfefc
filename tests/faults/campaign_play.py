"""Plays a story of the campaign in an embedded world, and judges what came of it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import campaign_judge
import campaign_story
from msgspec import Struct, structs

from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.karpenter import NodeClaim, NodePool
from karpenter_linode.operator import embedded
from karpenter_linode.operator.embedded import EmbeddedWorld, bundled_account
from karpenter_linode.operator.options import Options
from karpenter_linode.ports import KubeError, NotFoundError
from karpenter_linode.scheduling.pods import is_terminal
from karpenter_linode.sim.faults import Driver, KubeCalls, KubeLatency, KubeWatches, LinodeCalls, NodeStop, play_fault
from karpenter_linode.sim.kube_faults import FaultRule
from karpenter_linode.sim.loop import run_virtual
from karpenter_linode.sim.nvidia import DriverBehaviour

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from karpenter_linode.sim.cluster import Account


TOKEN = "a-token-that-no-line-may-show"  # noqa: S105 - the emulator takes any
REST = 4 * 3600.0
"""Seconds after the calm within which everything must have ended."""
_FOR_EVER = 10**6
_AGENT_SECONDS = 20.0


class Verdict(Struct, frozen=True):
    """How a story ended.

    Args:
        wrong: what must not be, one line each.
        digest: of everything that happened: two runs of a story have the same.
        claims, linodes, pods: how many there were.
        journal: the story as JSON lines.
    """

    wrong: tuple[str, ...]
    digest: str
    claims: int
    linodes: int
    pods: int
    seconds: float
    journal: bytes = b""


def play(story: Any) -> Verdict:
    """Play a story from its beginning to its end."""
    logging.getLogger("httpx2").setLevel(logging.WARNING)

    async def live() -> Verdict:
        unhandled: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(str(context)))
        with patch.object(embedded, "_TOKEN", TOKEN):
            stage = Stage(story)
            try:
                verdict = await stage.play()
            except Exception as error:  # noqa: BLE001 - whatever the world met is the story's end
                verdict = Verdict((f"the world broke: {type(error).__name__}: {error}",), "", 0, 0, 0, 0)
        if unhandled:
            return Verdict((*verdict.wrong, f"unhandled in a task: {unhandled}"), verdict.digest, 0, 0, 0, 0)
        return verdict

    return run_virtual(live())


def _account(tier: str) -> Account:
    """An account that sees only the plans of the stories: scheduling simulations get shorter."""
    account = bundled_account()
    wanted = {*campaign_story.GPU_PLANS, *campaign_story.CPU_PLANS}
    cluster = structs.replace(account.cluster, tier=tier)
    if tier == "enterprise":
        cluster = structs.replace(cluster, k8s_version="v1.34.6+lke2")
    plans = tuple(plan for plan in account.types if plan.id in wanted)
    return structs.replace(account, types=plans, cluster=cluster)


class Stage:
    """A world and the story's hands in it."""

    def __init__(self, story: Any) -> None:
        self.story = story
        self.world = EmbeddedWorld(
            story.manifests,
            seed=story.seed,
            options=Options(ignore_dra_requests=False, workers=story.workers),
            account=_account(story.tier),
        )
        self.cluster, self.clock = self.world.cluster, self.world.clock
        self.judge = campaign_judge.Judge(self.world)
        self._tasks: list[asyncio.Task[None]] = []
        self._alive = asyncio.Lock()

    async def play(self) -> Verdict:
        """From the start to the end of everything."""
        self.cluster.driver.behaviour = DriverBehaviour(late_seconds=self.story.driver_late)
        await self.world.start()
        self._begin(self._start_agents())
        self._begin(self._watch())
        try:
            for act in self.story.acts:
                await self._until(act.at)
                self._do(act)
            await self._until(campaign_story.CALM_AT)
            await self._calm()
            ended = await self.world.run_until(self._ended, REST, step=10.0)
            wrong = [*self.judge.wrong, *self.judge.at_the_end(ended=ended)]
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self.world.stop()
        return self._verdict([*wrong, *self.judge.of_the_journal(TOKEN)])

    def _verdict(self, wrong: list[str]) -> Verdict:
        outcome = self.world.outcome(quiet=True)
        journal = self.cluster.journal.to_json_lines()
        bill = repr(outcome.bill).encode()
        digest = hashlib.sha256(journal + bill).hexdigest()
        counts = (len(outcome.node_claims), len(outcome.bill), len(outcome.pods))
        return Verdict(tuple(wrong), digest, *counts, outcome.seconds, journal)

    def _ended(self) -> bool:
        store = self.cluster.store
        return (
            not any(True for kind in (NodeClaim, Node) for _ in store.all(kind))
            and not self.cluster.linode.billing.running()
            and all(is_terminal(pod) or campaign_judge.cannot_run(pod) for pod in store.all(Pod))
        )

    async def _until(self, at: float) -> None:
        wait = at - (self.clock.now() - self.world.started).total_seconds()
        if wait > 0:
            await self.clock.sleep(wait)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _watch(self) -> None:
        while True:
            await self.clock.sleep(5.0)
            self.judge.now()

    async def _start_agents(self) -> None:
        """What start-up taints wait for: a while after its node is registered, the agent takes its taint away."""
        seen: dict[str, float] = {}
        while True:
            await self.clock.sleep(5.0)
            now = self.clock.now().timestamp()
            for node in tuple(self.cluster.store.all(Node)):
                kept = [taint for taint in node.spec.taints if taint.key != campaign_story.STARTUP_TAINT]
                if len(kept) == len(node.spec.taints) or now - seen.setdefault(node.uid, now) < _AGENT_SECONDS:
                    continue
                plain = [{"key": item.key, "value": item.value, "effect": item.effect} for item in kept]
                kind = campaign_judge.type_of(Node)
                self.cluster.store.patch(kind, node.name, {"spec": {"taints": plain}}, patch_kind="merge")

    def _do(self, act: Any) -> None:
        how = act.how
        self.cluster.journal.step("campaign", "", act.what, **{k: v for k, v in how.items() if k != "manifests"})
        lasting: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "crash": lambda: self._crash(how["seconds"], how["at_call"]),
            "cloud": lambda: self._trouble_cloud(how),
            "cloud-outage": lambda: self._cloud_outage(how["seconds"]),
            "kube-outage": lambda: self._kube_outage(how["seconds"]),
            "latency": lambda: self._latency(how),
            "driver": lambda: self._driver(how),
            "noise": lambda: self._noise(how["seconds"]),
            "overlap": lambda: self._overlap(min(how["seconds"], 60.0)),
        }
        if act.what in lasting:
            self._begin(lasting[act.what]())
        else:
            self._do_at_once(act.what, how)

    def _do_at_once(self, what: str, how: dict[str, Any]) -> None:
        match what:
            case "apply":
                self.cluster.apply(how["manifests"])
            case "delete":
                self._delete(how["kind"], how["number"])
            case "cloud-calls":
                self._fail_cloud_calls(how)
            case "kube-calls":
                verb, resource, status = how["verb"], how["resource"], how["status"]
                fault = KubeCalls(verb, resource, status, times=how["times"], lost_answer=how["lost"])
                play_fault(self.cluster, fault)
            case "watches":
                play_fault(self.cluster, KubeWatches(how["effect"], how["resource"]))
            case "node-stop" if self.cluster.nodes.alive():
                play_fault(self.cluster, NodeStop())
                self.judge.excuse()
            case "node-stop":
                pass
            case _:
                raise ValueError(what)

    def _delete(self, kind: str, number: int) -> None:
        self.judge.excuse()
        if kind == "Linode":
            if machines := [item for item in self.cluster.linode.machines.all() if item.status != "deleting"]:
                machine = machines[number % len(machines)]
                self.judge.recycled += 1
                self.cluster.linode.delete_machine(machine)
            return
        types = {"Pod": Pod, "Node": Node, "NodeClaim": NodeClaim, "NodePool": NodePool}
        if objects := tuple(self.cluster.store.all(types[kind])):
            obj: Any = objects[number % len(objects)]
            with suppress(NotFoundError):
                self.cluster.delete(obj.API_VERSION, kind, obj.name, obj.namespace or "default")

    async def _crash(self, seconds: float, at_call: str) -> None:
        if at_call:
            reached = asyncio.Event()

            def called(method: str, _: str) -> None:
                if method == at_call:
                    reached.set()

            self.cluster.linode.faults.before_call = called
            with suppress(TimeoutError):
                async with asyncio.timeout(600):
                    await reached.wait()
        async with self._alive:
            self.cluster.journal.step("campaign", "", "the controller dies")
            await self.world.kill_controller()
            await self.clock.sleep(seconds)
            await self._start_controller()

    async def _start_controller(self) -> None:
        while True:
            try:
                await self.world.start_controller()
            except Exception as error:  # noqa: BLE001 - Kubernetes starts a process that ends again and again
                self.cluster.journal.step("campaign", "", f"the controller cannot start: {error}")
                await self.clock.sleep(10)
            else:
                return

    def _fail_cloud_calls(self, how: dict[str, Any]) -> None:
        if how["effect"] == "late":
            seconds = 8.0
            self.judge.late_posts += how["times"] if how["method"] == "POST" else 0
            self.cluster.linode.faults.carry_out_late(how["method"], how["path"], seconds, times=how["times"])
            return
        lost, status = how["effect"] == "lost", 0 if how["effect"] == "refused" else how["status"]
        play_fault(self.cluster, LinodeCalls(how["method"], how["path"], status, times=how["times"], lost_answer=lost))

    async def _trouble_cloud(self, how: dict[str, Any]) -> None:
        faults, pair = self.cluster.linode.faults, (how["plan"], "us-ord")
        match how["effect"]:
            case "sold-out":
                faults.sold_out.add(pair)
                await self.clock.sleep(how["seconds"])
                faults.sold_out.discard(pair)
            case "late-tags":
                faults.tag_reads_until_visible = 3
            case "slow-deletes":
                faults.slow_deletion_seconds = min(how["seconds"], 400.0)
            case "stuck":
                faults.stuck_members = 2
            case _:
                faults.account_limit = len(self.cluster.linode.machines.all()) + 1
                await self.clock.sleep(how["seconds"])
                faults.account_limit = None

    async def _cloud_outage(self, seconds: float) -> None:
        faults = self.cluster.linode.faults
        before = len(faults.rules)
        for method in ("GET", "POST", "PUT", "DELETE"):
            faults.fail(method, ".*", 503, times=_FOR_EVER)
        rules = faults.rules[before:]
        await self.clock.sleep(seconds)
        for rule in rules:
            rule.times = 0

    async def _kube_outage(self, seconds: float) -> None:
        play_fault(self.cluster, KubeCalls("", "", 503, times=_FOR_EVER))
        play_fault(self.cluster, KubeWatches("drop"))
        rule = self.cluster.faults.rules[-1]
        await self.clock.sleep(seconds)
        rule.times = 0

    async def _noise(self, seconds: float) -> None:
        """One call in four fails, before or after it takes effect."""
        luck = self.cluster.random.child(f"noise/{seconds}")
        rules = [
            FaultRule(
                lambda call: call.verb != "watch" and luck.uniform(0, 1) < 1 / 8,
                lambda _: KubeError("internal error"),
                times=None,
                lost_answer=lost,
            )
            for lost in (False, True)
        ]
        self.cluster.faults.rules += rules
        await self.clock.sleep(seconds)
        for rule in rules:
            rule.times = 0

    async def _overlap(self, seconds: float) -> None:
        """A new process starts while the old one still believes that it leads."""
        async with self._alive:
            self.judge.overlaps += 1
            self.cluster.journal.step("campaign", "", "two controllers run")
            old, self.world._controller = self.world._controller, None
            await self._start_controller()
            await self.clock.sleep(seconds)
            if old is not None:
                await old.stop()

    async def _latency(self, how: dict[str, Any]) -> None:
        play_fault(self.cluster, KubeLatency((0.0, how["seconds"]), how["lag"]))
        await self.clock.sleep(how["lasts"])
        play_fault(self.cluster, KubeLatency((0.002, 0.008), 0.01))

    async def _driver(self, how: dict[str, Any]) -> None:
        play_fault(self.cluster, Driver(DriverBehaviour(publishing=how["publishing"])))
        await self.clock.sleep(how["seconds"])
        play_fault(self.cluster, Driver(DriverBehaviour()))

    async def _calm(self) -> None:
        """Nothing goes wrong from here on, and what was there for the pods is there again."""
        self.cluster.journal.step("campaign", "", "calm")
        cloud = self.cluster.linode.faults
        cloud.rules.clear()
        cloud.sold_out.clear()
        cloud.account_limit, cloud.tag_reads_until_visible, cloud.stuck_members = None, 0, 0
        cloud.slow_deletion_seconds, cloud.before_call = 0, None
        self.cluster.faults.rules.clear()
        self.cluster.faults.latency_seconds, self.cluster.faults.watch_lag = (0.002, 0.008), 0.01
        self.cluster.driver.behaviour = DriverBehaviour()
        async with self._alive:
            pass
        self.cluster.apply(self.story.manifests)
        for node in tuple(self.cluster.store.all(Node)):
            if self.cluster.nodes.machine(node.name) is not None and not self.cluster.nodes.is_alive(node.name):
                self.cluster.delete("v1", "Node", node.name)  # as users do with one that is dead
