"""Cron expressions: which minutes they fit."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache

from ec2_env.errors import ToolError

FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
"""Ranges of the five fields of a cron expression: minute, hour, day of month, month, day of week (0 and 7 are Sunday)."""
Cron = tuple[frozenset[int], frozenset[int], frozenset[int], frozenset[int], frozenset[int], bool]


def next_run(schedule: str, now: datetime) -> str:
    """Returns the first minute after `now` that fits a cron expression, as "YYYY-MM-DD HH:MM".

    Raises:
        ToolError: if the expression is not valid, or fits no day of the next four years.
    """
    minutes, hours, days, months, weekdays, either = cron(schedule)
    start = now + timedelta(minutes=1)
    for offset in range(4 * 366):
        day = (start + timedelta(days=offset)).date()
        if day.month not in months:
            continue
        fits = (day.day in days, day.isoweekday() % 7 in weekdays)
        if not (any(fits) if either else all(fits)):
            continue
        first = (start.hour, start.minute) if offset == 0 else (0, 0)
        clock = next(((h, m) for h in sorted(hours) for m in sorted(minutes) if (h, m) >= first), None)
        if clock is not None:
            return f"{day} {clock[0]:02d}:{clock[1]:02d}"
    raise ToolError(f"schedule: {schedule[:60]!r} fits no day of the next four years")


@lru_cache(maxsize=256)
def cron(schedule: str) -> Cron:
    """Returns the values that each field of a cron expression fits, and whether one of the two day fields is enough.

    Raises:
        ToolError: if it is not valid.
    """
    parts = schedule.split()
    if len(parts) != len(FIELDS) or len(schedule) > 100:
        raise ToolError(f'schedule: {schedule[:60]!r} is not a cron expression; expected five fields such as "30 2 * * 1-5"')
    minute, hour, day, month, weekday = (
        _values(part, low, high, schedule) for part, (low, high) in zip(parts, FIELDS, strict=True)
    )
    weekday = frozenset(value % 7 for value in weekday)
    return minute, hour, day, month, weekday, parts[2] != "*" and parts[4] != "*"


def _values(part: str, low: int, high: int, schedule: str) -> frozenset[int]:
    found: set[int] = set()
    for item in part.split(","):
        match = re.fullmatch(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?", item, re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match and match[1] else (low, high)
        if match and match[1] and match[3] and not match[2]:
            last = high
        step = int(match[3]) if match and match[3] else 1
        if match is None or not low <= first <= last <= high or step < 1:
            raise ToolError(f"schedule: {item!r} in {schedule[:60]!r} is not valid; expected {low}-{high}, *, a-b, a,b or */n")
        found.update(range(first, last + 1, step))
    return frozenset(found)
