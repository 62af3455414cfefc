"""How long ago something was, as kubectl's tables tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model.timestamps import parse_rfc3339

if TYPE_CHECKING:
    from datetime import datetime

UNKNOWN: Final = "<unknown>"
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY


def age(text: str | None, now: datetime) -> str:
    """The age of a timestamp; ``<unknown>`` where there is none."""
    if not text:
        return UNKNOWN
    try:
        return human_duration(int((now - parse_rfc3339(text)).total_seconds()))
    except ValueError:
        return UNKNOWN


def human_duration(seconds: int) -> str:
    """A duration in the two units that matter (``duration.HumanDuration`` of Kubernetes' apimachinery)."""
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 0)}s"
    if seconds < 3 * _HOUR:
        minutes, rest = divmod(seconds, _MINUTE)
        return _joined(minutes, "m", rest if minutes < 10 else 0, "s")  # noqa: PLR2004  # where seconds stop to matter
    if seconds < 2 * _DAY:
        hours, rest = divmod(seconds, _HOUR)
        return _joined(hours, "h", rest // _MINUTE if hours < 8 else 0, "m")  # noqa: PLR2004  # likewise minutes
    if seconds < 2 * _YEAR:
        days, rest = divmod(seconds, _DAY)
        return _joined(days, "d", rest // _HOUR if days < 8 else 0, "h")  # noqa: PLR2004  # likewise hours
    years, rest = divmod(seconds, _YEAR)
    return _joined(years, "y", rest // _DAY if years < 8 else 0, "d")  # noqa: PLR2004  # likewise days


def _joined(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"
