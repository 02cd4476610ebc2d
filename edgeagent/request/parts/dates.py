"""The days and times of a request, and how an argument wants them written. Without a clock: today is not known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

MONTHS = {name: number for number, name in enumerate(re.findall("...", "janfebmaraprmayjunjulaugsepoctnovdec"), 1)}
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|(?-i:May)|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_NTH = r"(?:st|nd|rd|th)?"
_DAY = (
    rf"(?P<m1>{_MONTH})\.? ?(?P<d1>\d{{1,2}}){_NTH}(?!\d|:)(?:,? ?(?P<y1>\d{{4}}))?",
    rf"(?P<d2>\d{{1,2}}){_NTH}(?: of)? (?P<m2>{_MONTH})\.?(?:,? (?P<y2>\d{{4}}))?",
    r"(?P<y3>\d{4})[-/.](?P<m3>\d{1,2})[-/.](?P<d3>\d{1,2})",
    r"(?P<a4>\d{1,2})[-/.](?P<b4>\d{1,2})[-/.](?P<y4>\d{4})",
)
_NAMED_DAY = (
    rf"{_MONTH} \d{{4}}",
    r"(?:(?:next|this|coming|last) )?(?:mon|tues|wednes|thurs|fri|satur|sun)day",
    r"today|(?:the )?day after tomorrow|tomorrow|tonight|yesterday|next (?:week|month|year)",
    r"this (?:weekend|week|month|evening|afternoon|morning)",
)
_HALF = r" ?[ap](?:m\b|\.m\.)"
_PART_SAID = r"(?:(?: o['’]?clock)? (?:in the (?:morning|afternoon|evening)|at night))"
_EACH_PART = r" (?:(?:every|each|this) (?:morning|afternoon|evening|night)|tonight)"
_ISO = r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(?::\d{2})?(?:Z|z|[+-]\d{2}:\d{2})?"
_CLOCK = (
    rf"(?:\d{{1,2}}(?::\d{{2}})?{_PART_SAID}|\d{{1,2}}:\d{{2}}{_EACH_PART}"
    rf"|\d{{1,2}}:\d{{2}}(?::\d{{2}})?(?:{_HALF})?|\d{{1,2}}{_HALF}"
    r"|noon|midnight)"
)
_PART_OF_DAY = r"(?:morning|afternoon|evening|night)"
_ANY_DAY = "|".join(re.sub(r"\?P<\w+>", "?:", each) for each in (*_DAY, *_NAMED_DAY))
_WHEN = re.compile(
    rf"(?<![\w/])(?:{_ISO}|(?:every|each|in the) {_PART_OF_DAY},? at {_CLOCK}"
    rf"|(?:{_ANY_DAY})(?: {_PART_OF_DAY})?(?:(?:,| at|,? from)? {_CLOCK})?"
    rf"|{_CLOCK}(?:(?: on|,)? (?:{_ANY_DAY})(?: {_PART_OF_DAY})?)?)(?![\w/])",
    re.IGNORECASE,
)
_FIRST_OF = re.compile(rf"(?<![\w.:])(\d{{1,2}}){_NTH} ?(?:to|until|till|through|and|-|–) ?(?:the )?$", re.IGNORECASE)
_OF_MONTH = re.compile(rf"\d{{1,2}}{_NTH}(?: of)? (?P<month>{_MONTH})\.?(?:,? (?P<year>\d{{4}}))?", re.IGNORECASE)
_DAYS = [re.compile(each, re.IGNORECASE) for each in _DAY]
_TIME = re.compile(
    r"(?<![\w:])(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?(?: ?([ap])\.?m\b"
    r"|(?: o['’]?clock)? (?:in the |at |every |each |this |to)([maen]))?",
    re.IGNORECASE,
)
_DAYTIME = re.compile(r"\b(?:to)?([maen])(?:orning|fternoon|vening|ight)\b")
_OFFSET = re.compile(r"\d(Z|[+-]\d{2}:\d{2})$", re.IGNORECASE)
_ORDER = re.compile(r"\b(y{2,4}|m{1,2}|d{1,2})([-/. ])(y{2,4}|m{1,2}|d{1,2})\2(y{2,4}|m{1,2}|d{1,2})\b", re.IGNORECASE)
_ORDER_WORDS = re.compile(r"\b(year|month|day)([-/])(year|month|day)\2(year|month|day)\b", re.IGNORECASE)
_LIKE_ISO = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_HOURS = re.compile(r"\bHH:MM(?::SS)?\b|\b24.?hour|\b[012]\d:[0-5]\d\b", re.IGNORECASE)


_SPAN = re.compile(
    r"(?<![\w.])(?:\d+(?:\.\d+)?|an?|one|two|three|four|five|six|ten|half an?)[ -]"
    r"(?:second|minute|min|hour|day|week|month|year)s?(?: and a half)?\b",
    re.IGNORECASE,
)


_OF_TIME = re.compile(
    rf"\d|\b(?:{_MONTH}|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:to|yester)day|tonight|tomorrow|now|soon|later"
    r"|earl(?:y|ier)|late|noon|midnight|(?:second|minute|hour|day|week|weekend|month|quarter|year|decade|century)s?"
    r"|dawn|sunrise|sunset|dusk|mornings?|afternoons?|evenings?|nights?|spring|summer|autumn|fall|winter|immediately"
    r"|daily|hourly|weekly|monthly|yearly|annual(?:ly)?|current(?:ly)?|latest|recent(?:ly)?|past|future|next|last"
    r"|previous|before|after|during|until|since|ago|when|whenever|always|christmas|easter"
    r"|(?:at|by|over) (?:breakfast|lunch|dinner))\b",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    r"(?:\b(?:minus|negative) |(?<![\w-])-)\d+(?:\.\d+)?[ -]?(?:second|sec|minute|min|hour|day|week|month|year)s?\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\byesterday\b|\blast (?:night|week|month|year|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b|\bago\b",
    re.IGNORECASE,
)


def speaks_of_time(request: str) -> bool:
    """Whether the request has any word or number of which a time might be made."""
    return _OF_TIME.search(request) is not None


def is_negative(request: str) -> bool:
    """Whether the request has a length of time below zero: `minus 5 minutes`."""
    return _NEGATIVE.search(request) is not None


def is_past(request: str) -> bool:
    """Whether the request has a time that is over: `yesterday at 4pm`."""
    return _PAST.search(request) is not None


@dataclass(frozen=True)
class Day:
    """A day of the calendar."""

    year: int
    month: int
    day: int


@dataclass(frozen=True)
class When:
    """A day, a time of day, or both, as the request says it; `day` and `minutes` where that is certain."""

    text: str
    begin: int
    end: int
    day: Day | None
    minutes: int | None
    seconds: int = 0
    offset: str = ""
    """That of ISO 8601, if one is said."""


def whens_in(request: str) -> Iterator[When]:
    """The days and times of a request, in their order."""
    for match in _WHEN.finditer(request):
        if (first := _FIRST_OF.search(request, 0, match.start())) and (last := _OF_MONTH.match(match[0])):
            yield _named_with(first, last)  # The day of "3 to 9 May" that has no month of its own.
        text = match[0]
        offset = _OFFSET.search(text)
        day, rest = _day_in(re.sub(r"(?<=\d)[Tt](?=\d)", " ", text))
        minutes, seconds = _time_in(rest)
        yield When(text, match.start(), match.end(), day, minutes, seconds, offset[1].upper() if offset else "")


def _named_with(first: re.Match[str], last: re.Match[str]) -> When:
    """The first day of two whose month, and year if there is one, is told of the last."""
    text = f"{first[1]} {last['month']}" + (f" {last['year']}" if last["year"] else "")
    return When(text, first.start(1), first.end(1), _day_in(text)[0], None)


def spans_in(request: str) -> Iterator[When]:
    """The lengths of time of a request: `25 minutes`."""
    for match in _SPAN.finditer(request):
        yield When(match[0], match.start(), match.end(), None, None)


def iso_length(seconds: Decimal) -> str:
    """A length of time as ISO 8601 has it: `PT1H30M`."""
    sign, rest, told = "-" if seconds < 0 else "", abs(seconds), ""
    for letter, size in (("H", 3600), ("M", 60)):
        count, rest = divmod(rest, size)
        told += f"{count:f}{letter}" if count else ""
    return f"{sign}PT{told}" + (f"{rest.normalize():f}S" if rest or not told else "")


def exactly(when: When) -> list[str]:
    """A certain time of day, or that of a certain day, as ISO 8601 has it; with seconds and without."""
    if when.minutes is None:
        return []
    clock = f"{when.minutes // 60:02}:{when.minutes % 60:02}"
    day = "" if when.day is None else f"{when.day.year:04}-{when.day.month:02}-{when.day.day:02}T"
    return [f"{day}{clock}:{when.seconds:02}{when.offset}", f"{day}{clock}{when.offset}"]


def written(when: When, description: str, *, form: str | None = None) -> str | None:
    """How an argument of this description wants it: a certain day as in ISO 8601, unless another form is asked for.

    Everything else as it was said. None where a form is asked for that the words do not settle: `next Friday` has no
    date without a clock.
    """
    order = _ORDER.search(description) or _ORDER_WORDS.search(description)
    is_plain_day = when.day is not None and when.minutes is None
    if order is not None or form == "date" or _LIKE_ISO.search(description) or is_plain_day:
        parts, mark = (order.group(1, 3, 4), order[2]) if order is not None else (("year", "month", "day"), "-")
        return None if when.day is None else mark.join(_piece(each[0].casefold(), when.day) for each in parts)
    if when.day is None and when.minutes is not None and _HOURS.search(description):
        return f"{when.minutes // 60:02}:{when.minutes % 60:02}"
    return when.text


def _piece(letter: str, day: Day) -> str:
    return {"y": f"{day.year:04}", "m": f"{day.month:02}", "d": f"{day.day:02}"}[letter]


def _day_in(text: str) -> tuple[Day | None, str]:
    """The day that a text names with its year, and the rest of the text."""
    for pattern in _DAYS:
        match = pattern.search(text)
        if match is not None:
            found = {key[0]: value for key, value in match.groupdict().items() if value is not None}
            return _day(found), text[: match.start()] + " " + text[match.end() :]
    return None, text


def _day(found: dict[str, str]) -> Day | None:
    if "y" not in found:
        return None
    if "a" in found:  # 03/17/1915 is certain, 03/04/1915 is read as month and day.
        first, second = int(found["a"]), int(found["b"])
        month, day = (second, first) if first > 12 else (first, second)
    else:
        named = found["m"][:3].casefold()
        month, day = MONTHS[named] if named in MONTHS else int(found["m"]), int(found["d"])
    return Day(int(found["y"]), month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None


def _time_in(text: str) -> tuple[int | None, int]:
    """A time of day in minutes, and its seconds; None where it is not certain, as a bare number is not."""
    folded = text.casefold()
    if "noon" in folded.split():
        return 720, 0
    match = _TIME.search(folded)
    if match is None or (match[2] is None and match[4] is None and match[5] is None):
        return None, 0
    hours, minutes, seconds = int(match[1]), int(match[2] or 0), int(match[3] or 0)
    said = match[5] or (part[1] if (part := _DAYTIME.search(folded)) is not None else "")
    half = match[4] or {"m": "a", "a": "p", "e": "p", "n": "p" if hours > 5 else "a"}.get(said)
    if half is not None and match[4] is not None and not 0 < hours <= 12:
        return None, 0
    if half is not None:
        hours = hours if hours > 12 else hours % 12 + (12 if half == "p" else 0)
    return (hours * 60 + minutes, seconds) if hours < 24 and minutes < 60 and seconds < 60 else (None, 0)
