"""Times as the Kubernetes API writes them (``metav1.Time``): RFC 3339, UTC, whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """The text of an aware time."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_rfc3339(text: str) -> datetime:
    """An aware UTC time from such a text.

    Raises:
        ValueError: no time, or one without a zone; the message quotes it.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        msg = f"{text!r} is not an RFC 3339 time: the zone is missing"
        raise ValueError(msg)
    return moment.astimezone(UTC)
