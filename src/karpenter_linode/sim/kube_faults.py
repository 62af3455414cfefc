"""Faults of the API server, as rules that match calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from karpenter_linode.ports import KubeError

if TYPE_CHECKING:
    from karpenter_linode.sim.seeded import SeededRandom

WRITES = frozenset({"create", "patch", "delete"})


class ApiCall(Struct, frozen=True):
    """One call, as RBAC sees it."""

    user: str
    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def writes(self) -> bool:
        """Whether the call changes something."""
        return self.verb in WRITES


class FaultRule(Struct):
    """Fails some calls.

    Args:
        matches: which calls count.
        error: makes the error to raise.
        skip: matching calls that pass first.
        times: matching calls that fail after those; None for all.
        lost_answer: the call takes effect and only its answer is lost.
    """

    matches: Callable[[ApiCall], bool]
    error: Callable[[ApiCall], KubeError]
    skip: int = 0
    times: int | None = 1
    lost_answer: bool = False

    def strikes(self, call: ApiCall) -> bool:
        """Whether this call fails; counts it."""
        if self.times == 0 or not self.matches(call):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class KubeFaults:
    """Latency and failures of one user's calls.

    Args:
        random: draws latencies; without it calls take no time.
        latency_seconds: the range of a call's duration.
        watch_lag: seconds between a change and its watch event.
    """

    def __init__(
        self,
        random: SeededRandom | None = None,
        *,
        latency_seconds: tuple[float, float] = (0.0, 0.0),
        watch_lag: float = 0.0,
    ) -> None:
        self._random = random
        self.latency_seconds = latency_seconds
        self.watch_lag = watch_lag
        self.rules: list[FaultRule] = []

    def latency(self, call: ApiCall) -> float:  # noqa: ARG002  # rules by call may follow; callers pass what they have
        """How long this call takes, in seconds."""
        return self._random.uniform(*self.latency_seconds) if self._random is not None else 0.0

    def before(self, call: ApiCall) -> KubeError | None:
        """The error that keeps this call from happening, if any."""
        return self._struck(call, lost_answer=False)

    def after(self, call: ApiCall) -> KubeError | None:
        """The error that hides this call's success, if any."""
        return self._struck(call, lost_answer=True)

    def _struck(self, call: ApiCall, *, lost_answer: bool) -> KubeError | None:
        for rule in self.rules:
            if rule.lost_answer is lost_answer and rule.strikes(call):
                return rule.error(call)
        return None
