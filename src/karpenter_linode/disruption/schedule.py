"""Cron schedules of disruption budgets, in UTC (spec/karpenter-lifecycle.md 3.4)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from msgspec import Struct

from karpenter_linode.model.duration import DurationError, parse_duration

_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
        1,
    )
}
_DAYS: Final = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELDS: Final[tuple[tuple[str, int, int, dict[str, int]], ...]] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 6, _DAYS),
)
_PART: Final = re.compile(r"(\*|\?|([0-9a-z]+)(?:-([0-9a-z]+))?)(?:/([0-9]{1,4}))?")
_SEARCHED_DAYS: Final = 366 * 5
_EVERY: Final = "@every "


class ScheduleError(ValueError):
    """The text is no schedule. The message names the field."""


class Schedule(Struct, frozen=True):
    """A parsed schedule: the values each field allows, or a fixed period."""

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = True
    every: timedelta | None = None

    def hit_after(self, moment: datetime) -> datetime | None:
        """The first hit strictly after a moment; None where there is none within five years."""
        start = moment.replace(microsecond=0)
        if self.every is not None:
            return start + self.every
        start = start.replace(second=0) + timedelta(minutes=1)
        for ahead in range(_SEARCHED_DAYS):
            day = start + timedelta(days=ahead)
            if not self._on(day):
                continue
            for hour in sorted(self.hours):
                for minute in sorted(self.minutes):
                    hit = day.replace(hour=hour, minute=minute)
                    if hit >= start:
                        return hit
        return None

    def _on(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (in_month and in_week) if self.any_day else (in_month or in_week)


@lru_cache(maxsize=256)
def parse_schedule(text: str) -> Schedule:
    """Read five cron fields or a macro.

    Raises:
        ScheduleError: the text does not follow the grammar. Day of week 7 is an error, as upstream has it.
    """
    if text.startswith(_EVERY):
        try:
            every = parse_duration(text.removeprefix(_EVERY).strip())
        except DurationError as error:
            raise ScheduleError(str(error)) from None
        return Schedule(every=max(every, timedelta(seconds=1)))
    fields = _MACROS.get(text, text).split()
    if len(fields) != len(_FIELDS):
        msg = f"{text!r} is not a schedule: expected 5 fields or a macro such as @daily, found {len(fields)} fields"
        raise ScheduleError(msg)
    minutes, hours, days, months, weekdays = (
        _field(value.lower(), *bounds) for value, bounds in zip(fields, _FIELDS, strict=True)
    )
    any_day = fields[2][0] in "*?" or fields[4][0] in "*?"
    return Schedule(minutes, hours, days, months, weekdays, any_day)


def _field(text: str, name: str, low: int, high: int, names: dict[str, int]) -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            msg = f"{name} {part!r} is not a value, a range or *, with an optional step"
            raise ScheduleError(msg)
        whole, first, last, step = match.groups()
        if whole in {"*", "?"}:
            start, end = low, high
        else:
            start = _number(first, name, low, high, names)
            end = _number(last, name, low, high, names) if last else (high if step else start)
        if start > end or step == "0":
            msg = f"{name} {part!r} is empty"
            raise ScheduleError(msg)
        values.update(range(start, end + 1, int(step or 1)))
    return frozenset(values)


def _number(text: str, name: str, low: int, high: int, names: dict[str, int]) -> int:
    number = names.get(text, int(text) if text.isdecimal() and len(text) < len("1000") else -1)
    if not low <= number <= high:
        msg = f"{name} {text!r} is not between {low} and {high}"
        raise ScheduleError(msg)
    return number
