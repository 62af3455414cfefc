"""Plans that could not be bought a moment ago (spec/linode-provider.md 3.7)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.ports import Clock, Logger

SOLD_OUT: Final = timedelta(minutes=3)
ACCOUNT_LIMIT: Final = timedelta(minutes=15)
_WHOLE_REGION: Final = ""


class UnavailableOfferings:
    """Marks with an end. ``sequence`` rises with every mark and every end, so that callers know what is stale."""

    def __init__(self, clock: Clock, logger: Logger, region: str) -> None:
        self._clock, self._logger, self._region = clock, logger, region
        self._until: dict[str, datetime] = {}
        self._sequence = 0

    @property
    def sequence(self) -> int:
        """Changes whenever the answers may have changed."""
        self._expire()
        return self._sequence

    def mark(self, instance_type: str, reason: str, duration: timedelta = SOLD_OUT) -> None:
        """Take a plan out for a while."""
        self._mark(instance_type, reason, duration)

    def mark_region(self, reason: str, duration: timedelta = SOLD_OUT) -> None:
        """Take every plan out for a while."""
        self._mark(_WHOLE_REGION, reason, duration)

    def among(self, instance_types: Iterable[str]) -> frozenset[str]:
        """Which of these plans are out now."""
        self._expire()
        if _WHOLE_REGION in self._until:
            return frozenset(instance_types)
        return frozenset(name for name in instance_types if name in self._until)

    def _mark(self, key: str, reason: str, duration: timedelta) -> None:
        self._logger.debug(
            "removing offering from offerings",
            **{"reason": reason, "instance-type": key or "*", "region": self._region, "ttl": str(duration)},
        )
        end = self._clock.now() + duration
        self._until[key] = max(end, self._until.get(key, end))
        self._sequence += 1

    def _expire(self) -> None:
        now = self._clock.now()
        ended = [key for key, end in self._until.items() if end <= now]
        for key in ended:
            del self._until[key]
        self._sequence += len(ended)
