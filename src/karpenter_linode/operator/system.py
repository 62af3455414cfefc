"""Time and chance of the real world."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime
from typing import Final

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # what Kubernetes' name generator draws from


class SystemClock:
    """``ports.Clock`` over real time."""

    def now(self) -> datetime:
        """Aware UTC time."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class SystemRandom:
    """``ports.Random`` over the operating system's randomness."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def uniform(self, low: float, high: float) -> float:
        """A number between the two."""
        return self._random.uniform(low, high)

    def token(self, length: int) -> str:
        """Letters and digits, as Kubernetes' name generator picks them."""
        return "".join(self._random.choice(_ALPHABET) for _ in range(length))
