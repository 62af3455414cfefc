from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from karpenter_linode.kube.lease import Candidate, LeaderElector, LeaseLostError
from karpenter_linode.sim.seeded import SeededRandom

CANDIDATE = {"namespace": "kube-system", "name": "leader"}


class Leases:
    """An API server that holds one lease."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.down = False

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if self.down:
            raise httpx2.ConnectError("down")
        if request.method == "GET":
            return httpx2.Response(200, json=self.lease) if self.lease else self._refuse(404, "NotFound")
        body = json.loads(request.content)
        if request.method == "POST":
            if self.lease:
                return self._refuse(409, "AlreadyExists")
            self._store(body["spec"])
        else:
            assert self.lease is not None
            if body["metadata"]["resourceVersion"] != str(self.version):
                return self._refuse(409, "Conflict")
            self._store({**self.lease["spec"], **body["spec"]})
        return httpx2.Response(200, json=self.lease)

    def _store(self, spec: dict[str, Any]) -> None:
        self.version += 1
        self.lease = {"metadata": {"name": "leader", "resourceVersion": str(self.version)}, "spec": spec}

    def _refuse(self, code: int, reason: str) -> httpx2.Response:
        return httpx2.Response(code, json={"reason": reason, "message": reason, "code": code})

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""


class Time:
    """Monotonic seconds that sleeping lets pass."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self._passed = asyncio.Event()

    def __call__(self) -> float:
        return self.seconds

    def now(self) -> Any:
        raise AssertionError("leases are measured with monotonic time")

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self._passed.set()

    async def reaches(self, seconds: float) -> None:
        while self.seconds < seconds:
            self._passed.clear()
            await self._passed.wait()


@pytest.fixture
def leases() -> Leases:
    return Leases()


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def elector(http: Any, leases: Leases, clock: Time, logger: Any) -> Any:
    def build(identity: str) -> LeaderElector:
        connection, _ = http(leases)
        return LeaderElector(
            connection,
            Candidate(**CANDIDATE, identity=identity),
            clock=clock,
            random=SeededRandom(1),
            logger=logger,
            monotonic=clock,
        )

    return build


def test_the_first_one_creates_the_lease(elector: Any, leases: Leases) -> None:
    first = elector("a")
    asyncio.run(first.acquire())
    assert first.is_leader
    assert leases.holder == "a"
    assert leases.lease is not None
    assert leases.lease["spec"]["leaseDurationSeconds"] == 15
    assert leases.lease["spec"]["leaseTransitions"] == 0


def test_another_one_waits_until_it_has_seen_the_lease_unchanged_for_its_duration(
    elector: Any, leases: Leases, clock: Time
) -> None:
    asyncio.run(elector("a").acquire())
    clock.seconds += 1000  # how old the lease says it is does not count: only what the second one has seen itself
    before = clock.seconds
    second = elector("b")
    asyncio.run(second.acquire())
    assert clock.seconds - before >= 15
    assert leases.holder == "b"
    assert leases.lease is not None
    assert leases.lease["spec"]["leaseTransitions"] == 1


def test_a_released_lease_is_taken_at_once(elector: Any, leases: Leases, clock: Time) -> None:
    first, second = elector("a"), elector("b")

    async def hand_over() -> None:
        await first.acquire()
        await first.release()
        await second.acquire()

    before = clock.seconds
    asyncio.run(hand_over())
    assert not first.is_leader
    assert leases.holder == "b"
    assert clock.seconds == before


def test_a_leader_that_slept_too_long_may_not_act_before_it_has_noticed(elector: Any, clock: Time) -> None:
    leader = elector("a")
    asyncio.run(leader.acquire())
    leader.check()
    clock.seconds += 10
    with pytest.raises(LeaseLostError, match="kube-system/leader is not held"):
        leader.check()


def test_a_leader_that_cannot_renew_gives_up_before_others_may_take_over(
    elector: Any, leases: Leases, clock: Time
) -> None:
    leader = elector("a")
    asyncio.run(leader.acquire())
    leases.down = True
    before = clock.seconds
    with pytest.raises(LeaseLostError, match="lost to silence"):
        asyncio.run(leader.hold())
    assert 10 <= clock.seconds - before < 15


def test_a_leader_whose_lease_another_one_took_stops(elector: Any, leases: Leases) -> None:
    leader = elector("a")
    asyncio.run(leader.acquire())
    leases._store({"holderIdentity": "b", "leaseDurationSeconds": 15, "renewTime": "now", "leaseTransitions": 1})
    with pytest.raises(LeaseLostError, match="lost to b"):
        asyncio.run(leader.hold())


def test_a_short_outage_is_survived(elector: Any, leases: Leases, clock: Time) -> None:
    leader = elector("a")

    async def live() -> None:
        await leader.acquire()
        holding = asyncio.create_task(leader.hold())
        leases.down = True
        start = clock.seconds
        await clock.reaches(start + 5)
        leases.down = False
        await clock.reaches(start + 60)
        assert leader.is_leader
        holding.cancel()

    asyncio.run(live())


def test_a_lease_of_another_is_never_released(elector: Any, leases: Leases) -> None:
    asyncio.run(elector("a").acquire())
    asyncio.run(elector("b").release())
    assert leases.holder == "a"
