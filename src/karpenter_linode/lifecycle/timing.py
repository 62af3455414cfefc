"""Delays that more than one decider uses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

NOW: Final = timedelta(0)
NODE_POLL: Final = timedelta(seconds=1)
INSTANCE_POLL: Final = timedelta(seconds=5)


def rfc3339(moment: datetime) -> str:
    """A time as the API writes it, in whole seconds of UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_rfc3339(text: str) -> datetime:
    """Read such a time. Raises ``ValueError``."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        msg = f"{text!r} is not an RFC 3339 time: the zone is missing"
        raise ValueError(msg)
    return moment.astimezone(UTC)
