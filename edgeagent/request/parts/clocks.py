"""Times of day that English says in words, in digits: `half past ten` is `10:30`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from edgeagent.request.language import ENGLISH

_NUMBERS = {"one": 1, **ENGLISH.numbers.words}
_TENS = "|".join(word for word, value in _NUMBERS.items() if value >= 20)
_DIGITS = "|".join(word for word, value in _NUMBERS.items() if value < 10)
_HOUR = "|".join(word for word, value in _NUMBERS.items() if value <= 12)
_MINUTE = "|".join(word for word, value in _NUMBERS.items() if 5 <= value < 20)
_PATTERNS = [
    (
        re.compile(
            each.replace("{h}", rf"(?P<h>{_HOUR}|1\d|2[0-4]|0?\d)").replace(
                "{m}", rf"(?P<m>(?:{_TENS})(?:[- ](?:{_DIGITS}))?|{_MINUTE}|[0-5]?\d)"
            ),
            re.IGNORECASE,
        ),
        more,
    )
    for each, more in ENGLISH.numbers.clocks
]


def english_clocks(request: str) -> Iterator[tuple[int, int, str]]:
    """Where a time of day is said in words, and how it is written; the first pattern that finds one has it."""
    taken: list[tuple[int, int]] = []
    for pattern, more in _PATTERNS:
        for match in pattern.finditer(request):
            begin, end = match.span()
            if not any(begin < other[1] and other[0] < end for other in taken):
                taken.append((begin, end))
                said = match.groupdict()
                minute = _number(said["m"]) if said.get("m") else None
                yield begin, end, clock_of(_number(said["h"]), minute, more)


def clock_of(hour: int, minute: int | None, more: int) -> str:
    """The time with so many minutes more; where the words say how many, -1 takes them away."""
    minutes = hour * 60 + (more if minute is None else -minute if more < 0 else minute)
    minutes %= 24 * 60
    return f"{minutes // 60}:{minutes % 60:02}"


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else sum(_NUMBERS[each] for each in re.split(r"[- ]", word.casefold()))
