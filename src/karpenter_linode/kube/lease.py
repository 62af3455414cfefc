"""Leader election by a Lease (``coordination.k8s.io/v1``), as client-go does it.

A holder is judged by how long *we* have seen its lease unchanged, never by the times it wrote: clocks differ.
The leader judges itself by its own clock: once it has not renewed for the renew deadline it may change nothing more,
even if it slept meanwhile and has not noticed (spec/anchors.md 3.2).
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct, field

from karpenter_linode.kube.decoding import decode_object
from karpenter_linode.kube.http import MERGE_PATCH, KubeCall
from karpenter_linode.model.meta import KubeObject
from karpenter_linode.ports import AlreadyExistsError, ConflictError, KubeError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.kube.http import KubeHttp
    from karpenter_linode.ports import Clock, Logger, Random

_JITTER: Final = 1.2


class LeaseLostError(KubeError):
    """This process is not, or no longer, the leader: it may not change anything."""

    status = 0


class LeaseSpec(Struct, frozen=True, rename="camel"):
    """Who holds a lease."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    renew_time: str = ""
    lease_transitions: int = 0


class Lease(KubeObject, frozen=True, rename="camel", omit_defaults=True):
    """A lease."""

    API_VERSION: ClassVar[str] = "coordination.k8s.io/v1"
    KIND: ClassVar[str] = "Lease"
    PLURAL: ClassVar[str] = "leases"

    spec: LeaseSpec = field(default_factory=LeaseSpec)


class Candidate(Struct, frozen=True):
    """What is contended for, and by whom.

    Args:
        namespace: of the lease.
        name: of the lease.
        identity: ours, unique for each process.
    """

    namespace: str
    name: str
    identity: str


class LeaseTimes(Struct, frozen=True):
    """Seconds.

    Args:
        duration: a lease that others see unchanged for so long is free.
        renew_deadline: a leader that could not renew for so long stops leading.
        retry: between two attempts.
    """

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0


class LeaderElector:
    """Takes, keeps and gives back a lease.

    Args:
        http: its own connection, so that other traffic cannot hold up renewing.
        candidate: the lease, and who we are.
        clock: pauses.
        random: jitters them.
        logger: told of changes.
        times: time limits.
        monotonic: seconds that only go forward.
    """

    def __init__(
        self,
        http: KubeHttp,
        candidate: Candidate,
        *,
        clock: Clock,
        random: Random,
        logger: Logger,
        times: LeaseTimes | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._http = http
        self._namespace, self._name, self.identity = candidate.namespace, candidate.name, candidate.identity
        self._clock, self._random, self._logger = clock, random, logger
        self._times = times or LeaseTimes()
        self._monotonic = monotonic
        self._seen: tuple[str, str, int] = ("", "", 0)
        self._seen_at = 0.0
        self._renewed: float | None = None
        self._version = ""

    @property
    def is_leader(self) -> bool:
        """Whether this process may act now."""
        return self._renewed is not None and self._monotonic() - self._renewed < self._times.renew_deadline

    def check(self) -> None:
        """Raise LeaseLostError unless this process may act now."""
        if not self.is_leader:
            raise LeaseLostError(
                f"lease {self._namespace}/{self._name} is not held by this process; nothing is written"
            )

    async def acquire(self) -> None:
        """Wait until the lease is ours."""
        told = ""
        while not await self._attempt():
            if self._seen[0] != told:
                told = self._seen[0]
                self._logger.info("waiting to become the leader", lease=self._name, holder=told)
            await self._clock.sleep(self._times.retry * self._random.uniform(1, _JITTER))
        self._logger.info("became the leader", lease=self._name, holder=self.identity)

    async def hold(self) -> None:
        """Renew for ever. Raises LeaseLostError when the lease could not be kept."""
        while True:
            await self._clock.sleep(self._times.retry)
            left = self._times.renew_deadline - (self._monotonic() - (self._renewed or 0.0))
            if left > 0:
                try:
                    await asyncio.wait_for(self._attempt(), left)
                except TimeoutError:
                    self._logger.warning("no answer while renewing the lease", lease=self._name)
            if not self.is_leader:
                self._renewed = None
                winner = "silence" if self._seen[0] in {"", self.identity} else self._seen[0]
                raise LeaseLostError(f"lease {self._namespace}/{self._name} lost to {winner}")

    async def release(self) -> None:
        """Give the lease back, so that another replica need not wait. Does nothing where it is not ours."""
        if self._renewed is None:
            return
        self._renewed = None
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()}
        try:
            await self._patch(spec)
        except KubeError as error:
            self._logger.warning("could not release the lease", lease=self._name, error=str(error))

    async def _attempt(self) -> bool:
        """Take or renew the lease, if that is possible now."""
        started = self._monotonic()
        try:
            lease = await self._take(started)
        except KubeError as error:
            if not isinstance(error, ConflictError | AlreadyExistsError):
                self._logger.warning("cannot reach the lease", lease=self._name, error=str(error))
            return False
        if lease is None:
            return False
        self._version = lease.metadata.resource_version
        self._renewed = started
        return True

    async def _take(self, now: float) -> Lease | None:
        try:
            lease = await self._call(KubeCall("get", Lease.API_VERSION, Lease.PLURAL, self._namespace, self._name))
        except NotFoundError:
            return await self._create()
        spec = lease.spec
        seen = (spec.holder_identity, spec.renew_time, spec.lease_transitions)
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
        ours = spec.holder_identity == self.identity
        if spec.holder_identity and not ours and now - self._seen_at < spec.lease_duration_seconds:
            self._renewed = None
            return None
        self._version = lease.metadata.resource_version
        change: dict[str, Any] = self._spec()
        if not ours:
            change |= {"acquireTime": change["renewTime"], "leaseTransitions": spec.lease_transitions + 1}
        return await self._patch(change)

    async def _create(self) -> Lease:
        spec = self._spec()
        body = {
            "apiVersion": Lease.API_VERSION,
            "kind": Lease.KIND,
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": {**spec, "acquireTime": spec["renewTime"], "leaseTransitions": 0},
        }
        return await self._call(KubeCall("create", Lease.API_VERSION, Lease.PLURAL, self._namespace, body=body))

    def _spec(self) -> dict[str, Any]:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._times.duration),
            "renewTime": _now(),
        }

    async def _patch(self, spec: dict[str, Any]) -> Lease:
        body = {"metadata": {"resourceVersion": self._version}, "spec": spec}
        call = KubeCall(
            "patch",
            Lease.API_VERSION,
            Lease.PLURAL,
            self._namespace,
            self._name,
            body=body,
            content_type=MERGE_PATCH,
        )
        return await self._call(call)

    async def _call(self, call: KubeCall) -> Lease:
        return decode_object(await self._http.send(call), Lease, str(call))


def _now() -> str:
    """``metav1.MicroTime``: always six digits."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
