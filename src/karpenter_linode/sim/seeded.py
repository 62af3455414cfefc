"""Seeded randomness in independent streams."""

from __future__ import annotations

import random
from typing import Final

NAME_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes' name generator draws from: no vowels, nothing that looks like another character."""


class SeededRandom:
    """``ports.Random`` whose draws depend on the seed and the stream's name alone.

    Each consumer takes its own ``child``, so that adding one, or one drawing more, does not shift the others.
    """

    def __init__(self, seed: int | str) -> None:
        self._path = str(seed)
        self._random = random.Random(self._path)  # noqa: S311  # reproducible on purpose; nothing here is a secret

    def child(self, name: str) -> SeededRandom:
        """The stream of that name under this one; asked again, it starts again."""
        return SeededRandom(f"{self._path}/{name}")

    def uniform(self, low: float, high: float) -> float:
        """A number between the two."""
        return self._random.uniform(low, high)

    def token(self, length: int) -> str:
        """Letters and digits, as Kubernetes' name generator picks them."""
        return "".join(self._random.choice(NAME_ALPHABET) for _ in range(length))

    def hexadecimal(self, digits: int) -> str:
        """Lower-case hexadecimal digits."""
        return f"{self._random.getrandbits(4 * digits):0{digits}x}"

    def uuid(self) -> str:
        """A version 4 UUID."""
        text = self.hexadecimal(32)
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) % 4]}{text[17:20]}-{text[20:]}"
