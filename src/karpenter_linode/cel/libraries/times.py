"""Timestamps and durations: their texts (RFC 3339, Go's durations) and the accessors of the standard library."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.cel.declarations import Library, Overload, method
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.libraries.operators import TIME_MAX, TIME_MIN, checked_duration, checked_timestamp
from karpenter_linode.cel.types import DURATION, INT, STRING, TIMESTAMP
from karpenter_linode.cel.values import Duration, Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

_SECOND: Final = 10**9
_DAY: Final = 86_400
_EPOCH_DAYS: Final = 719_468  # from 0000-03-01 to 1970-01-01
_ERA: Final = 146_097  # days in 400 years
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_DURATION_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))",
)
_OFFSET: Final = re.compile(r"([+-]?)([0-9]{1,6}):\+?([0-9]{1,6})")
_MONTH_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FEBRUARY: Final = 2
_LONGEST: Final = 64


def parse_duration(text: str) -> Duration:
    """Go's duration text: ``1h30m``, ``-1.5s``, ``100ms``.

    Raises:
        EvaluationError: no such text, or out of range.
    """
    body = text[1:] if text[:1] in ("+", "-") else text
    total, offset = 0, 0
    if body == "0":
        return Duration(0)
    while offset < len(body) <= _LONGEST:
        part = _DURATION_PART.match(body, offset)
        if part is None or not (part[1] or part[2]):
            break
        unit = _UNITS[part[3]]
        total += int(part[1] or "0") * unit + int(part[2] or "0") * unit // 10 ** len(part[2] or "")
        offset = part.end()
    if not body or offset != len(body):
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Duration'")
    return checked_duration(-total if text[0] == "-" else total)


def format_duration(value: Timestamp) -> str:
    """Seconds, with as much of a fraction as there is, and ``s``."""
    seconds, nanos = divmod(abs(value.nanos), _SECOND)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{'-' if value.nanos < 0 else ''}{seconds}{fraction}s"


def parse_timestamp(text: str) -> Timestamp:
    """An RFC 3339 time.

    Raises:
        EvaluationError: no such text, or out of range.
    """
    match = _TIMESTAMP.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Timestamp'")
    year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
    offset_hours, offset_minutes = int(match[9] or "0"), int(match[10] or "0")
    clock = ((hour, 24), (minute, 60), (second, 60), (offset_hours, 24), (offset_minutes, 60))
    dated = year >= 1 and 1 <= month <= len(_MONTH_DAYS) and 1 <= day <= _days_in_month(year, month)
    if not dated or any(part >= end for part, end in clock):
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Timestamp'")
    seconds = _days_from_civil(year, month, day) * _DAY + hour * 3600 + minute * 60 + second
    offset = (offset_hours * 3600 + offset_minutes * 60) * (-1 if match[8] == "-" else 1)
    made = checked_timestamp((seconds - offset) * _SECOND + int((match[7] or "0")[:9].ljust(9, "0")))
    return Timestamp(made.nanos, offset)


def format_timestamp(value: Timestamp) -> str:
    """RFC 3339 in the zone it was written in, with as much of a fraction as there is."""
    seconds, nanos = divmod(value.nanos, _SECOND)
    days, rest = divmod(seconds + value.offset, _DAY)
    year, month, day = _civil_from_days(days)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{year:04d}-{month:02d}-{day:02d}T{clock}{fraction}{_zone(value.offset)}"


def _zone(offset: int) -> str:
    minutes = abs(offset) // 60
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if offset else "Z"


def _days_in_month(year: int, month: int) -> int:
    leap = month == _FEBRUARY and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _MONTH_DAYS[month - 1] + leap


def _days_from_civil(year: int, month: int, day: int) -> int:
    # years begin in March here, so that the leap day is the last of its year
    year -= month <= _FEBRUARY
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * _ERA + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - _EPOCH_DAYS


def _civil_from_days(days: int) -> tuple[int, int, int]:
    era, day_of_era = divmod(days + _EPOCH_DAYS, _ERA)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = (shifted + 2) % 12 + 1
    return year_of_era + era * 400 + (month <= _FEBRUARY), month, day_of_year - (153 * shifted + 2) // 5 + 1


def _local_seconds(value: Timestamp, zone: str) -> int:
    """Seconds of the wall clock in a zone: ``UTC``, an offset as ``-08:00``, or a name of the time zone database."""
    seconds = value.nanos // _SECOND
    if zone in ("", "UTC", "Local"):  # kube-scheduler runs in UTC
        return seconds
    if ":" in zone:
        match = _OFFSET.fullmatch(zone)
        if match is None or int(match[3]) >= 60:  # noqa: PLR2004 - minutes
            raise EvaluationError(f"'{zone[:_LONGEST]}' is no offset from UTC such as -08:00")
        shift = int(match[2]) * 3600 + int(match[3]) * 60
        return seconds - shift if match[1] == "-" else seconds + shift
    return seconds + _zone_offset(seconds, zone)


def _zone_offset(seconds: int, zone: str) -> int:
    # the time zone database is data, not a clock
    from datetime import UTC, datetime, timedelta  # noqa: PLC0415 - heavy, and hardly ever needed
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - likewise

    try:
        # no zone changes its offset within a day of the first or the last moment there is
        inside = min(max(seconds, TIME_MIN // _SECOND + _DAY), TIME_MAX // _SECOND - _DAY)
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=inside)
        shift = moment.astimezone(ZoneInfo(zone)).utcoffset()
    except (LookupError, ValueError, OSError, OverflowError):
        raise EvaluationError(f"unknown time zone {zone}") from None
    return int(shift.total_seconds()) if shift is not None else 0


def _date(seconds: int) -> tuple[int, int, int]:
    return _civil_from_days(seconds // _DAY)


def _day_of_year(seconds: int) -> int:
    year, _, _ = _date(seconds)
    return seconds // _DAY - _days_from_civil(year, 1, 1)


def _accessor(name: str, read: Callable[[int], int]) -> tuple[Overload, ...]:
    def here(value: Timestamp) -> int:
        return read(value.nanos // _SECOND)

    def there(value: Timestamp, zone: str) -> int:
        return read(_local_seconds(value, zone))

    return (
        method(f"timestamp_to_{name}", (TIMESTAMP,), INT, here),
        method(f"timestamp_to_{name}_with_tz", (TIMESTAMP, STRING), INT, there),
    )


def _span(name: str, unit: int) -> Overload:
    def read(value: Duration) -> Any:
        whole = abs(value.nanos) // unit
        return -whole if value.nanos < 0 else whole

    return method(f"duration_to_{name}", (DURATION,), INT, read)


def _milliseconds(value: Timestamp, zone: str = "") -> int:
    _local_seconds(value, zone)  # the zone must exist
    return value.nanos % _SECOND // 10**6


_OVERLOADS: Final = {
    "getFullYear": _accessor("year", lambda seconds: _date(seconds)[0]),
    "getMonth": _accessor("month", lambda seconds: _date(seconds)[1] - 1),
    "getDate": _accessor("day_of_month_1_based", lambda seconds: _date(seconds)[2]),
    "getDayOfMonth": _accessor("day_of_month", lambda seconds: _date(seconds)[2] - 1),
    "getDayOfWeek": _accessor("day_of_week", lambda seconds: (seconds // _DAY + 4) % 7),
    "getDayOfYear": _accessor("day_of_year", _day_of_year),
    "getHours": (*_accessor("hours", lambda seconds: seconds // 3600 % 24), _span("hours", 3600 * _SECOND)),
    "getMinutes": (*_accessor("minutes", lambda seconds: seconds // 60 % 60), _span("minutes", 60 * _SECOND)),
    "getSeconds": (*_accessor("seconds", lambda seconds: seconds % 60), _span("seconds", _SECOND)),
    "getMilliseconds": (
        method("timestamp_to_milliseconds", (TIMESTAMP,), INT, _milliseconds),
        method("timestamp_to_milliseconds_with_tz", (TIMESTAMP, STRING), INT, _milliseconds),
        _span("milliseconds", 10**6),
    ),
}
LIBRARY: Final = Library("times", _OVERLOADS)
