"""Said: a request in English words, each of which knows where it stands in what was really said.

A request in another language is read word by word: its phrases, numbers and times first, then its words, those of the
agent's tools as they stand. So all that reads a request reads English, and a text taken from it is what was said.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from itertools import accumulate
from typing import NamedTuple

from edgeagent.request.numerals_of import WORDS_MAX, number_of
from edgeagent.request.parts.clocks import clock_of, english_clocks
from edgeagent.request.spelling import meant_by
from edgeagent.request.tongue import ENGLISH_TONGUE, Tongue, english_words, tongue, tongue_of

CHARS_MAX = 2_000
"""A longer request is a document, and is read as it stands."""

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+|[\W_]", re.DOTALL)
_SENTENCE = re.compile(r"[^.!?;:]+[.!?;:]*\s*|[.!?;:]+\s*")
_DONE = "\0"
_ENDS_CLAUSE = frozenset((".", "!", "?", ";", ",", ":", "und", "oder", "bis"))
_SLIPS = re.compile(r"\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)|(?<![\w/.@])([^\W\d_]{4,})(?![\w/@]|\.\w)")


class Piece(NamedTuple):
    """A piece of what was said, from `begin` to `end`, and what it is in English; `is_done` once that is settled."""

    text: str
    begin: int
    end: int
    is_done: bool = False


class Spoken(NamedTuple):
    """How a request is spoken: its language (without one its words tell), and when, with the zone.

    Without a time nobody knows what tomorrow is.
    """

    language: str = ""
    now: datetime | None = None


NOBODY_KNOWS = Spoken()


class Said(str):
    """The request in English. A part of it, by `part`, knows as much."""

    __slots__ = ("_begins", "_pieces", "now", "original", "tongue")

    tongue: Tongue
    original: str
    now: datetime | None
    _pieces: tuple[Piece, ...]
    _begins: tuple[int, ...]

    @classmethod
    def of(cls, pieces: Sequence[Piece], original: str, language: Tongue, now: datetime | None = None) -> Said:
        """What these pieces say."""
        said = cls("".join(piece.text for piece in pieces))
        said.original, said.tongue, said.now, said._pieces = original, language, now, tuple(pieces)
        said._begins = tuple(accumulate((len(piece.text) for piece in pieces[:-1]), initial=0))
        return said

    def part(self, begin: int, end: int) -> Said:
        """From one place to another, both in English, without white space around it."""
        text = str(self)[begin:end]
        begin += len(text) - len(text.lstrip())
        end = begin + len(text.strip())
        inside = [
            self._cut(piece, max(0, begin - at), min(end - at, len(piece.text)))
            for at, piece in zip(self._begins, self._pieces, strict=True)
            if at < end and begin < at + len(piece.text)
        ]
        return Said.of(inside, self.original, self.tongue, self.now)

    def _cut(self, piece: Piece, begin: int, end: int) -> Piece:
        """A part of a piece. What is in English as it was said is cut with it; else all of it was said for the part."""
        is_same = piece.text == self.original[piece.begin : piece.end]
        places = (piece.begin + begin, piece.begin + end) if is_same else (piece.begin, piece.end)
        return Piece(piece.text[begin:end], *places, piece.is_done)

    def followed_by(self, other: Said) -> Said:
        """This one and another part of the same request behind it, with a space between."""
        gap = self._pieces[-1].end
        pieces = (*self._pieces, Piece(" ", gap, gap, True), *other._pieces)
        return Said.of(pieces, self.original, self.tongue, self.now)

    @property
    def as_said(self) -> str:
        """All of it, as it was really said."""
        return self.spelled(0, len(self))

    def spelled(self, begin: int, end: int) -> str:
        """What was really said from one place to another, both in English."""
        if not self._pieces or begin >= end:
            return ""
        first, last = (bisect_right(self._begins, place) - 1 for place in (begin, end - 1))
        one, other = self._pieces[first], self._pieces[last]
        # A piece that stands as it was said may be cut; what it is in English is whole or not at all.
        head = begin - self._begins[first] if one.text == self.original[one.begin : one.end] else 0
        tail = self._begins[last] + len(other.text) - end
        tail = tail if other.text == self.original[other.begin : other.end] else 0
        places = [(piece.begin, piece.end) for piece in self._pieces[first : last + 1]]
        places[0] = (one.begin + head, places[0][1])
        places[-1] = (places[-1][0], other.end - tail)
        told, end = "", places[0][0]
        for begin, after in places:  # Between two of them something may have been taken out.
            told += self.original[end:after] if begin <= end else f" {self.original[begin:after]}"
            end = max(end, after)
        return told


def said_of(
    request: str,
    language: str = "",
    knows: Callable[[str], bool] = lambda word: False,
    now: datetime | None = None,
    words: Collection[str] = (),
) -> Said:
    """What a request says, in the language of its own words, or in the one that is named.

    `knows` tells of a word whether the agent's tools have it as it stands: such a word is left. `now` is when it is
    said, with its zone. `words` are those of the tools, of which one may be meant by a word that nobody knows.
    """
    if isinstance(request, Said):
        return request
    spoken = tongue(language) if language else tongue_of(request)
    if len(request) > CHARS_MAX:
        return Said.of([Piece(request, 0, len(request), True)], request, spoken, now)
    if spoken.table is None:
        return Said.of(_respelled(request, words), request, spoken, now)
    pieces = [Piece(match[0], *match.span()) for match in _TOKEN.finditer(request)]
    pieces = _clocks(_numbers(_phrases(_parted_verbs(pieces, spoken), spoken), spoken), spoken)
    return Said.of(_worded(pieces, _moods(request, spoken), spoken, knows), request, spoken, now)


def spelled_in(request: str, begin: int, end: int) -> str:
    """What was really said from one place of a request to another."""
    return request.spelled(begin, end) if isinstance(request, Said) else request[begin:end]


def as_said(request: str) -> str:
    """All of a request, as it was really said."""
    return request.as_said if isinstance(request, Said) else request


def part_of(request: str, begin: int, end: int) -> str:
    """A part of a request, without white space around it."""
    return request.part(begin, end) if isinstance(request, Said) else request[begin:end].strip()


def without(request: str, begin: int, end: int) -> str:
    """A request without what stands from one place to another."""
    if not isinstance(request, Said):
        return f"{request[:begin].rstrip()} {request[end:].lstrip()}".strip()
    parts = [each for each in (request.part(0, begin), request.part(end, len(request))) if each]
    return parts[0].followed_by(parts[1]) if len(parts) == 2 else parts[0] if parts else request.part(0, 0)


def now_in(request: str) -> datetime | None:
    """When a request was said, if that is known."""
    return request.now if isinstance(request, Said) else None


def tongue_in(request: str) -> Tongue:
    """The language that a request was said in."""
    return request.tongue if isinstance(request, Said) else ENGLISH_TONGUE


# -- in the order in which it is read ------------------------------------------------------------------------------


def _parted_verbs(pieces: list[Piece], spoken: Tongue) -> list[Piece]:
    """Verbs whose particle stands at the end of their clause, as one: the verb is replaced, the particle goes."""
    first, found = None, list(pieces)
    for place, piece in enumerate(pieces):
        word = piece.text.casefold()
        if word in _ENDS_CLAUSE:
            first = None
        elif first is None and word.isalpha():
            first = place
        elif first is not None and word in spoken.particles and _ends_clause(pieces, place):
            english = spoken.english_of(word + pieces[first].text.casefold())
            if english is not None:
                found[first] = pieces[first]._replace(text=english, is_done=True)
                found[place] = piece._replace(text="", is_done=True)
    return found


def _ends_clause(pieces: Sequence[Piece], place: int) -> bool:
    behind = next((each.text.casefold() for each in pieces[place + 1 :] if not each.text.isspace()), ".")
    return behind in _ENDS_CLAUSE


def _phrases(pieces: list[Piece], spoken: Tongue) -> list[Piece]:
    """Phrases that are more than their words: each group of a pattern is replaced."""
    for pattern, texts in spoken.phrases:
        for match in list(pattern.finditer(_open(pieces)))[::-1]:
            for number, text in reversed(list(enumerate(texts, 1))):
                if text != "=" and match[number] is not None:
                    pieces = _replaced(pieces, *match.span(number), text)
    return pieces


def _numbers(pieces: list[Piece], spoken: Tongue) -> list[Piece]:
    """Numbers in digits: with a point before decimals, and none between thousands; those in words, too."""
    assert spoken.table is not None
    numbers, found, place = spoken.table.numbers, list[Piece](), 0
    while place < len(pieces):
        piece = pieces[place]
        if piece.text[:1].isdecimal() and not piece.is_done:
            found.append(piece._replace(text=_in_digits(piece.text, numbers.mark)))
            place += 1
            continue
        value, after = (
            number_of([each.text for each in pieces[place : place + WORDS_MAX]], spoken)
            if not piece.is_done
            else (None, 0)
        )
        if value is None:
            found.append(piece)
            place += 1
        else:
            found.append(Piece(str(value), piece.begin, pieces[place + after - 1].end))
            place += after
    return found


def _clocks(pieces: list[Piece], spoken: Tongue) -> list[Piece]:
    """Times of day as `7:30`."""
    for pattern, more in spoken.clocks:
        for match in list(pattern.finditer(_open(pieces)))[::-1]:
            said = match.groupdict()
            text = clock_of(int(said["h"]), int(said["m"] or 0) if "m" in said else None, more)
            pieces = _replaced(pieces, *match.span(), text)
    return pieces


def _moods(request: str, spoken: Tongue) -> dict[int, str]:
    """By the place at which a sentence begins: what says in English that it asks or forbids."""
    asks, forbids = spoken.compiled("asks"), spoken.compiled("forbids")
    assert asks is not None
    assert forbids is not None
    found = {}
    for match in _SENTENCE.finditer(request):
        if forbids.match(match[0]):
            found[match.start()] = "don't "
        elif asks.match(match[0]):
            found[match.start()] = "whether "
    return found


def _worded(
    pieces: Sequence[Piece], moods: dict[int, str], spoken: Tongue, knows: Callable[[str], bool]
) -> list[Piece]:
    """All that is left, word by word."""
    found, left = list[Piece](), sorted(moods.items())
    for piece in pieces:
        if left and left[0][0] <= piece.begin and not piece.text.isspace():
            found.append(Piece(left.pop(0)[1], piece.begin, piece.begin))
        found.append(
            piece if piece.is_done else piece._replace(text=_in_english(piece.text, spoken, knows, begins=not found))
        )
    return found


def _respelled(request: str, words: Collection[str]) -> list[Piece]:
    """English with what is misspelt as it is meant, outside of quotations, and with its times of day in digits."""
    found, at = list[Piece](), 0
    read = [*english_clocks(request)]
    for match in _SLIPS.finditer(request) if words else ():
        meant = meant_by(match[1], english_words(), words) if match[1] else None
        if meant is not None:
            read.append((*match.span(1), meant))
    for begin, end, text in sorted(read):
        if begin >= at:
            found += [Piece(request[at:begin], at, begin, True), Piece(text, begin, end, True)]
            at = end
    return [*found, Piece(request[at:], at, len(request), True)]


def _in_english(text: str, spoken: Tongue, knows: Callable[[str], bool], *, begins: bool) -> str:
    word = text.casefold()
    is_letter = len(text) == 1 and text.isupper() and not begins  # `A` is a name, and `a` is a word.
    if not text.isalpha() or (knows(text) and (is_letter or word not in spoken.exact)):
        return text
    found = spoken.english_of(word, knows) or spoken.english_of_parts(word, knows)
    if found is None and (meant := meant_by(text, spoken.exact)) is not None:
        return spoken.exact[meant]
    return found or text


# -- pieces --------------------------------------------------------------------------------------------------------


def _open(pieces: Sequence[Piece]) -> str:
    """What is not settled yet; what is cannot be matched."""
    return "".join(_DONE * len(piece.text) if piece.is_done else piece.text for piece in pieces)


def _replaced(pieces: list[Piece], begin: int, end: int, text: str) -> list[Piece]:
    """The pieces with those from one place to another as one, which is settled."""
    at, inside, first = 0, list[Piece](), 0
    for place, piece in enumerate(pieces):
        if begin <= at and at + len(piece.text) <= end and piece.text:
            first = first if inside else place
            inside.append(piece)
        at += len(piece.text)
    if not inside:
        return pieces
    whole = Piece(text, inside[0].begin, inside[-1].end, True)
    return [*pieces[:first], whole, *pieces[first + len(inside) :]]


def _in_digits(text: str, mark: str) -> str:
    """A number as English writes it: `1.500,5` is `1500.5` where the comma is the mark of decimals."""
    other = "." if mark == "," else ","
    if ":" in text or text.count(mark) > 1:
        return text
    whole, _, decimals = text.partition(mark)
    thousands = whole.split(other)
    if len(thousands) > 1:
        if any(len(each) != 3 for each in thousands[1:]):
            return text  # `21.5` is written so everywhere; `3.12.2026` is a day.
        whole = "".join(thousands)
    return f"{whole}.{decimals}" if decimals else whole
