"""Times as the API server writes them."""

from __future__ import annotations

from datetime import datetime


def rfc3339(moment: datetime) -> str:
    """``metav1.Time``: UTC, whole seconds."""
    return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def parse_rfc3339(text: str) -> datetime:
    """An aware datetime from the server's text."""
    return datetime.fromisoformat(text)
