"""Which day is meant by `tomorrow`, `Friday` or `3 March`, given when it was said? The clock and its zone are input.

Law: what may be either of two days stays open: on a Wednesday nobody knows what `next Friday` is.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime, timedelta

from edgeagent.request.parts.dates import MONTHS, Day, When

_WEEKDAYS = ["mon", "tues", "wednes", "thurs", "fri", "satur", "sun"]
_NAMED = re.compile(
    r"\b(?:(?P<after>day after tomorrow)|(?P<today>today|tonight|this (?:evening|afternoon|morning))"
    r"|(?P<tomorrow>tomorrow)|(?P<yesterday>yesterday)"
    r"|(?:(?P<how>next|last|this|coming) )?(?P<weekday>mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?P<m1>[a-z]{3,9})\.? (?P<d1>\d{1,2})|(?P<d2>\d{1,2})(?:st|nd|rd|th)?(?: of)? (?P<m2>[a-z]{3,9}))\b",
    re.IGNORECASE,
)
DAYS = {"today": 0, "tomorrow": 1, "after": 2, "yesterday": -1}


def resolved(when: When, now: datetime | None) -> When:
    """The day and time with what is certain of them when it is said at that moment; as it was where nobody knows."""
    if now is None:
        return when
    day = when.day or _day_of(when.text, now.date())
    if day is None and when.minutes is None:
        return when
    zone = when.offset or (f"{now:%z}"[:3] + ":" + f"{now:%z}"[3:5] if now.tzinfo is not None else "")
    return replace(when, day=day, offset=zone if day is not None and when.minutes is not None else when.offset)


def coming(when: When, now: datetime | None) -> When:
    """A time of day on the day when it comes next, for what wants a day with it."""
    if now is None or when.day is not None or when.minutes is None:
        return when
    is_over = when.minutes <= now.hour * 60 + now.minute
    day = now.date() + timedelta(days=1 if is_over else 0)
    return resolved(replace(when, day=Day(day.year, day.month, day.day)), now)


def _day_of(text: str, today: date) -> Day | None:
    match = _NAMED.search(text)
    if match is None:
        return None
    said = match.groupdict()
    for name, days in DAYS.items():
        if said[name]:
            return _as_day(today + timedelta(days=days))
    if said["weekday"]:
        ahead = (_WEEKDAYS.index(said["weekday"].casefold()) - today.weekday()) % 7
        is_open = said["how"] is not None and said["how"].casefold() in ("next", "last")
        return None if is_open or not ahead else _as_day(today + timedelta(days=ahead))
    month = MONTHS.get((said["m1"] or said["m2"])[:3].casefold())
    number = int(said["d1"] or said["d2"])
    if month is None or not 1 <= number <= 28 + 3 * (month != 2):
        return None
    is_over = (month, number) < (today.month, today.day)
    return Day(today.year + is_over, month, number)


def _as_day(day: date) -> Day:
    return Day(day.year, day.month, day.day)
