"""A token bucket."""

from __future__ import annotations


class TokenBucket:
    """``rate`` tokens a second, at most ``burst`` saved up. Time comes from the caller and only ever goes forward.

    Args:
        rate: tokens per second.
        burst: tokens at the start, and at most.
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, float(burst)
        self._tokens = float(burst)
        self._at: float | None = None

    def reserve(self, now: float) -> float:
        """Take a token, on credit if need be; returns the seconds to wait before it may be used."""
        self._refill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def take(self, now: float) -> bool:
        """Take a token if there is one."""
        self._refill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _refill(self, now: float) -> None:
        if self._at is not None and now > self._at:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now if self._at is None else max(self._at, now)
