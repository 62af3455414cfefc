"""Durations as Go writes them (``1h30m``, ``15s``, ``250ms``) to ``timedelta``, and back."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import lru_cache
from typing import Final

_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_MICROSECONDS: Final = {"us": 1, "µs": 1, "μs": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
_MAX_TEXT: Final = 64
_MAX_HOURS: Final = 2_562_047  # Go's int64 nanoseconds


class DurationError(ValueError):
    """The text is no duration. The message quotes it."""


@lru_cache(maxsize=256)
def parse_duration(text: str) -> timedelta:
    """Read a Go duration, to the microsecond.

    Raises:
        DurationError: the text does not follow the grammar or is out of Go's range.
    """
    rest = text[1:] if text[:1] in {"+", "-"} else text
    total, position = 0, 0
    while rest != "0" and position < len(rest) and len(text) <= _MAX_TEXT:
        match = _PART.match(rest, position)
        if match is None:
            break
        whole, _, fraction = match[1].partition(".")
        scale = _MICROSECONDS.get(match[2], 0)
        digits = int(whole + fraction or "0")
        total += digits * scale // 10 ** len(fraction) if scale else digits // (1000 * 10 ** len(fraction))
        position = match.end()
    if (rest != "0" and position < len(rest)) or not rest or total > _MAX_HOURS * 3_600_000_000:
        msg = f"{text!r} is not a duration: expected numbers with units, as in 1h30m, 15s or 250ms"
        raise DurationError(msg)
    return timedelta(microseconds=-total if text[0] == "-" else total)


def format_duration(duration: timedelta) -> str:
    """The text Go would write, to the second: ``1m15s``, ``2h0m0s``, ``0s``."""
    seconds = int(duration.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}s"
    return f"{sign}{minutes}m{seconds}s" if minutes else f"{sign}{seconds}s"
