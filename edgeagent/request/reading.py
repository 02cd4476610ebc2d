"""Reading of a request for one tool: its pieces (numbers, days, lists, parts), dealt out to the arguments together.

Law: no piece is given twice while another would do. Numbers, days and lists are dealt first, since a text may be
anything; so a text has what they leave.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from edgeagent.core.agent import Tool
from edgeagent.request.language import SentenceTable
from edgeagent.request.lexical import stem, stems
from edgeagent.request.parts.assign import Candidate, dealt
from edgeagent.request.parts.calendar import coming, resolved
from edgeagent.request.parts.dates import When, exactly, iso_length, spans_in, whens_in, written
from edgeagent.request.parts.declared import Argument, arguments_of
from edgeagent.request.parts.lists import list_candidates
from edgeagent.request.parts.numbers import MISFIT, OUTSIDE, OWN, Mention, mentions_in, number_candidates
from edgeagent.request.parts.options import named_options
from edgeagent.request.parts.text_candidates import GIVEN, text_candidates
from edgeagent.request.parts.text_signs import MESSAGES
from edgeagent.request.parts.texts import Part, parts_of, told_in
from edgeagent.request.parts.units import UNITS
from edgeagent.request.parts.words import Words
from edgeagent.request.said import now_in, tongue_in
from edgeagent.shape.admits import admits
from edgeagent.shape.pointer import Document

REQUEST_WORDS_MAX, REQUEST_CHARS_MAX = 120, 2_000
"""The longest request of which texts and lists are taken; a longer one is a document, and they are free."""

LISTED = 1.5
"""Nats from which on a list is taken from the request; below, a required one is the model's to fill."""

LEFT_OVER = 1.5
"""Nats for an optional number if there is just one number in the request that nothing else takes."""

SPELLED_OUT = 2.0
"""Nats for a day with a number over one without: "next month (April 2031)"."""

KNOWN_SHARE = 1 / 3
"""The share of function words, commands and the tool's words from which on a request is read as English."""

_TIMES = ("12:34:56", "12:34:56Z", "12:34", "2024-05-06T12:34:56", "2024-05-06T12:34:56Z")
_A_DAY = "2024-05-06"
_NO_TIMES = ("x", "12", "a-1", "12:99:99")

_SECONDS = {"time": 1, "days": 86_400}
"""How many seconds the first unit of a kind has."""

_EACH = re.compile(
    r"\b(?:each|every) (?:single )?(second|minute|hour|day|week)s?\b|\b(hour|dai|week)ly\b", re.IGNORECASE
)

OPTION, OF_ITS_FORM = "option", "of its form"


@dataclass(frozen=True)
class Reading:
    """One request for one tool, cut into pieces. `spoken` are the words of the tool, `named` those of its name.

    `is_read` says that so many of its words are known that what is not found is not there.
    """

    request: str
    spoken: frozenset[str]
    named: frozenset[str]
    arguments: Mapping[str, Argument]
    said: Words
    is_read: bool
    whens: tuple[When, ...]
    mentions: tuple[Mention, ...]

    @classmethod
    def of(cls, tool: Tool, request: str) -> Reading:
        """The request, read for this tool."""
        spoken, said = frozenset(stems(f"{tool.name} {tool.description}")), _words_of(request)
        known = sum(word.is_cut or word.is_article or word.stem in spoken for word in said.words)
        now = now_in(request)
        whens = tuple(resolved(each, now) for each in whens_in(request))
        return cls(
            request,
            spoken,
            frozenset(stems(tool.name)),
            arguments_of(tool.parameters.schema),
            said,
            bool(said.words) and known >= KNOWN_SHARE * len(said.words),
            whens,
            tuple(each for each in mentions_in(request) if not _is_of_clock(each, whens)),
        )

    @property
    def sentences(self) -> SentenceTable:
        """What is said about it, in its language."""
        return tongue_in(self.request).sentences

    def of_kind(self, kind: str) -> Iterator[Argument]:
        """The arguments of a kind, in their order."""
        return (each for each in self.arguments.values() if each.kind == kind)


@dataclass(frozen=True)
class Pieces:
    """What each argument gets of a request; of texts several may be left, best first.

    `shared` are texts of which every part is another's.
    """

    numbers: Mapping[str, Candidate]
    days: Mapping[str, Candidate]
    lists: Mapping[str, Candidate]
    texts: Mapping[str, list[Candidate]]
    shared: frozenset[str]


def pieces_of(reading: Reading) -> Pieces:
    """The pieces of a request, dealt out."""
    numbers, lists = _numbers_of(reading), _lists_of(reading)
    days = _clocks_of(reading) | _days_of(reading) | _lengths_of(reading, list(numbers.values()))
    taken = [*numbers.values(), *days.values(), *lists.values(), *_options_named(reading)]
    texts, shared = _texts_of(reading, taken, days)
    return Pieces(numbers, days, lists, texts, shared)


# -- numbers -------------------------------------------------------------------------------------------------------


def _numbers_of(reading: Reading) -> dict[str, Candidate]:
    """The number of each argument that has one; optional ones only where something speaks for them."""
    rows = {each.name: number_candidates(each, reading.mentions) for each in reading.of_kind("number")}
    rows = {name: row for name, row in rows.items() if row}
    held = {name: row for name, row in rows.items() if reading.arguments[name].required}
    for _ in rows:
        given = _meant(_apart(held))
        extra = _next_optional(reading, rows, held, given)
        if extra is None:
            return given
        held = {name: row for name, row in rows.items() if name in held or name == extra}
    return _meant(_apart(held))


def _meant(given: Mapping[str, Candidate]) -> dict[str, Candidate]:
    """Without the numbers that are outside their argument and for which nothing speaks but that they were left."""
    return {name: each for name, each in given.items() if each.why != OUTSIDE or each.weight + MISFIT >= OWN}


def _next_optional(
    reading: Reading,
    rows: Mapping[str, list[Candidate]],
    held: Mapping[str, list[Candidate]],
    given: Mapping[str, Candidate],
) -> str | None:
    """The optional argument that has most reason to be given one of the numbers, if any has."""
    taken, said = list(given.values()), sum(not each.is_weak for each in reading.mentions)
    best, chosen = 0.0, None
    for name, row in rows.items():
        if name not in held:
            free = [each for each in row if not any(each.overlaps(other) for other in taken)]
            weight = max((each.weight for each in free), default=0.0)
            weight += LEFT_OVER * (len(free) == 1 and len(taken) == said - 1)
            if weight >= OWN and weight > best:
                best, chosen = weight, name
    return chosen


# -- days and lists ------------------------------------------------------------------------------------------------


def _days_of(reading: Reading) -> dict[str, Candidate]:
    """Each day of the request to one argument that is a date, required ones first."""
    ordered = sorted(reading.of_kind("date"), key=lambda each: not each.required)
    rows = {}
    for argument in ordered[: len(reading.whens)]:
        row = [day for when in reading.whens if (day := _day(argument, when)) is not None]
        rows[argument.name] = [day for day in row if fits(argument, day.value)]
    return _apart({name: rows[name] for name in reading.arguments if rows.get(name)})


def _clocks_of(reading: Reading) -> dict[str, Candidate]:
    """The certain times of the request for arguments whose form is that of a time, or of a day with one."""
    rows: dict[str, list[Candidate]] = {}
    for argument in reading.arguments.values():
        if argument.kind in ("form", "date"):
            now = now_in(reading.request)
            told = ((when, value) for when in reading.whens for value in _readings(reading, when, now))
            found = ((when, value) for when, value in told if fits(argument, value))
            row = [Candidate(value, when.begin, when.end, SPELLED_OUT, "time") for when, value in found]
            rows |= {argument.name: row} if row and is_of_time(argument) else {}
    return _apart(rows)


def _readings(reading: Reading, when: When, now: datetime | None) -> Iterator[str]:
    """A time with its day, on the day when it comes next, and alone where its day is another argument's or the next."""
    yield from (*exactly(when), *exactly(coming(when, now)))
    alone = replace(when, day=None, offset="")
    is_next = when.day is not None and coming(alone, now).day == when.day
    is_dealt = any(is_of_day(each) for each in reading.of_kind("date")) or _is_an_option(reading, when)
    if is_dealt or (when.day is not None and is_next):
        yield from exactly(alone)


def _is_an_option(reading: Reading, when: When) -> bool:
    """Whether the day of a time is what one of the options names: `every Monday at 7`."""
    options = {word for each in reading.of_kind("option") for option in each.schema["enum"] for word in stems(option)}
    return bool(options & set(stems(when.text)))


def _lengths_of(reading: Reading, taken: Sequence[Candidate]) -> dict[str, Candidate]:
    """The lengths of time of the request for arguments whose form that is; those that no number has."""
    wanted = [each for each in reading.arguments.values() if each.schema.get("format") == "duration"]
    said = [each for each in reading.mentions if each.unit is not None and each.unit.kind in _SECONDS]
    told = [
        (each.begin, each.end, each.value * each.unit.factor * _SECONDS[each.unit.kind]) for each in said if each.unit
    ]
    told += [(match.start(), match.end(), _of_each(match[1] or match[2])) for match in _EACH.finditer(reading.request)]
    rows: dict[str, list[Candidate]] = {}
    for argument in sorted(wanted, key=lambda each: not each.required)[: len(told)]:
        row = [Candidate(iso_length(seconds), begin, end, OWN, "length") for begin, end, seconds in told]
        row = [each for each in row if fits(argument, each.value) and not any(each.overlaps(t) for t in taken)]
        rows |= {argument.name: row} if row else {}
    return _apart({name: rows[name] for name in reading.arguments if name in rows})


def _of_each(word: str) -> Decimal:
    """How many seconds are in what something is done in each of."""
    unit = UNITS[stem("day" if word.casefold() == "dai" else word.casefold())]
    return unit.factor * _SECONDS[unit.kind]


def _day(argument: Argument, when: When) -> Candidate | None:
    """The day as the argument wants it; None where it wants a form that the request does not settle."""
    value = written(when, argument.description, form=argument.schema.get("format"))
    if value is None:
        return None
    weight = SPELLED_OUT if any(char.isdecimal() for char in when.text) else 0.0
    return Candidate(value, when.begin, when.end, weight, "day" if value == when.text else "day, converted")


def _lists_of(reading: Reading) -> dict[str, Candidate]:
    strong = [each for each in reading.mentions if not each.is_weak]
    rows = {each.name: list_candidates(each, reading.said, strong) for each in reading.of_kind("list")}
    return _apart({name: row for name, row in rows.items() if row and row[0].weight >= LISTED})


# -- texts ---------------------------------------------------------------------------------------------------------


def _texts_of(
    reading: Reading, taken: Sequence[Candidate], days: Mapping[str, Candidate]
) -> tuple[dict[str, list[Candidate]], frozenset[str]]:
    """The parts that each text argument may be, and the arguments whose parts are all others'.

    Optional ones are given only where one speaks for them by itself.
    """
    texts = [each for each in reading.arguments.values() if each.kind == "text" or _is_of_pattern(each)]
    texts = [each for each in texts if each.name not in days]
    if not texts:
        return {}, frozenset()
    required = [each for each in texts if each.required]
    parts = _parts_for(reading, len(required))
    rows = {each.name: _fitting(reading, each, parts, taken) for each in required}
    rows = {name: row for name, row in rows.items() if row} | _told(reading, required)
    own = _apart(rows)
    shared = frozenset(rows.keys() - own.keys() if reading.is_read else ())
    taken = [*taken, *own.values()]
    for argument in texts:
        if not argument.required:
            free = [each for each in _fitting(reading, argument, parts, taken) if each.weight >= GIVEN]
            free = [each for each in free if not any(each.overlaps(other) for other in taken)]
            rows |= {argument.name: free} if free else {}
    return {name: rows[name] for name in reading.arguments if name in rows and name not in shared}, shared


def _told(reading: Reading, required: Sequence[Argument]) -> dict[str, list[Candidate]]:
    """Whom something is told, and what, where these are the two texts that a tool must have."""
    messages = [each for each in required if each.words & MESSAGES]
    told = told_in(reading.said, MESSAGES) if len(required) == 2 and len(messages) == 1 else None
    if told is None:
        return {}
    others = [each for each in required if each is not messages[0]]
    rows = zip([*others, *messages], told, strict=True)
    found = {each.name: _whole(reading, part) for each, part in rows}
    fit = all(fits(each, found[each.name].value) for each in required)
    return {name: [candidate] for name, candidate in found.items()} if fit else {}


def _whole(reading: Reading, part: Part) -> Candidate:
    return Candidate(reading.said.spelled(part.begin, part.end), part.begin, part.end, GIVEN, part.kind)


def _parts_for(reading: Reading, wanted: int) -> list[Part]:
    """The parts of the request; only quotations where there is one for each text that is wanted."""
    parts = parts_of(reading.said, [*reading.whens, *spans_in(reading.request)])
    options = [option for each in reading.of_kind("option") for option in each.schema["enum"]]
    quoted = [each for each in parts if each.kind == "quoted" and not named_options(options, each.text)]
    return quoted if quoted and len(quoted) == wanted else parts


def _options_named(reading: Reading) -> Iterator[Candidate]:
    """The options that the request names, where they stand in it."""
    for argument in reading.of_kind("option"):
        named = named_options(argument.schema["enum"], reading.request)
        begin = reading.request.casefold().find(named[0].casefold()) if len(named) == 1 else -1
        if begin >= 0:
            yield Candidate(named[0], begin, begin + len(named[0]), why=OPTION)


def _fitting(
    reading: Reading, argument: Argument, parts: Sequence[Part], taken: Sequence[Candidate]
) -> list[Candidate]:
    is_only = sum(1 for _ in reading.of_kind("text")) == 1
    found = text_candidates(argument, reading.said, parts, reading.spoken, taken, is_only=is_only)
    options = [each for each in taken if each.why == OPTION]
    found = [each for each in found if not any(each.overlaps(option) for option in options)]
    fitting = [each for each in found if fits(argument, each.value)]
    if argument.kind == "form":
        words = [replace(each, why=OF_ITS_FORM) for each in fitting if " " not in each.value]
        return words or fitting
    return fitting


def _is_of_pattern(argument: Argument) -> bool:
    """Whether it is a required text with a pattern, which a part of the request may have."""
    return argument.kind == "form" and argument.required and "pattern" in argument.schema


# -- for all kinds -------------------------------------------------------------------------------------------------


def is_of_time(argument: Argument) -> bool:
    """Whether only times, or days with a time, have the argument's form."""
    return any(fits(argument, each) for each in _TIMES) and not any(fits(argument, each) for each in _NO_TIMES)


def is_of_day(argument: Argument) -> bool:
    """Whether the argument is a day, or a day with a time, by its form."""
    return any(fits(argument, each) for each in (_A_DAY, *_TIMES[3:])) and not fits(argument, _NO_TIMES[0])


def _is_of_clock(mention: Mention, whens: Sequence[When]) -> bool:
    """Whether a number is a part of a time of day: `23` of `23:30`."""
    return any(
        when.minutes is not None and ":" in when.text and when.begin <= mention.begin and mention.end <= when.end
        for when in whens
    )


def fits(argument: Argument, value: Any) -> bool:
    """Whether the argument's schema admits the value."""
    return admits(argument.schema, value, Document(argument.schema))


def _apart(rows: Mapping[str, Sequence[Candidate]]) -> dict[str, Candidate]:
    """What each argument gets; nothing for one that could only get a piece of another."""
    found: dict[str, Candidate] = {}
    for name, candidate in dealt(rows).items():
        if not any(candidate.overlaps(each) for each in found.values()):
            found[name] = candidate
    return found


def _words_of(request: str) -> Words:
    """The words of a request that is not too long for parts to be taken from it; else none."""
    said = Words.of(request if len(request) <= REQUEST_CHARS_MAX else "")
    return said if len(said.words) <= REQUEST_WORDS_MAX else Words.of("")
