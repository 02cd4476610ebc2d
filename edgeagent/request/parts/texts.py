"""Parts of a request that a text argument may be.

A part is a chunk between function words, a piece of one, two of them with `of` or `and` between, what stands in
quotation marks, a formula, or the rest of a sentence behind a colon or `that`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from edgeagent.request.language import ENGLISH, word_set
from edgeagent.request.parts.dates import When
from edgeagent.request.parts.words import Words

PART_WORDS_MAX = 8
TAIL_WORDS_MAX = 24

TAIL_MARKS = word_set(ENGLISH.texts.tail_marks)
_ANNOUNCES = word_set(ENGLISH.texts.announces)
_JOINERS = word_set(ENGLISH.texts.joiners)
EXPRESSION = re.compile(r"(?<!\w)[\w.()]*(?:\s*[-+*/^=<>]+\s*[\w.()]*\w\)?)+")


Kind = Literal["quoted", "formula", "time", "chunk", "piece", "tail", "rest", "joined"]
"""How a part was found."""


@dataclass(frozen=True)
class Part:
    """A part of a request, and how it was found."""

    text: str
    begin: int
    end: int
    kind: Kind


def parts_of(said: Words, whens: Iterable[When] = ()) -> list[Part]:
    """The parts of a request that a text may be, each once, by the first way it was found."""
    found: dict[tuple[int, int], Part] = {}
    runs = runs_of(said)
    ways = (_quotations(said), _times(whens), _formulas(said), _chunks(said, runs), _pieces(said, runs))
    for way in (*ways, _tails(said), _rest(said), _joined(said, runs)):
        for part in way:
            found.setdefault((part.begin, part.end), part)
    wholes = [part for part in found.values() if part.kind in ("formula", "time")]
    return [part for part in found.values() if not any(_is_within(part, whole) for whole in wholes)]


def _is_within(part: Part, whole: Part) -> bool:
    return part.kind in ("chunk", "piece") and whole.begin <= part.begin and part.end <= whole.end


def _quotations(said: Words) -> Iterator[Part]:
    for begin, end in said.quoted:
        yield Part(said.request[begin:end], begin, end, "quoted")


def _times(whens: Iterable[When]) -> Iterator[Part]:
    for when in whens:
        yield Part(when.text, when.begin, when.end, "time")


def _formulas(said: Words) -> Iterator[Part]:
    for match in EXPRESSION.finditer(said.request):
        text = match[0].strip()
        begin = match.start() + match[0].index(text)
        if re.search(r"[\^=*]|\d", text):
            yield Part(text, begin, begin + len(text), "formula")


def _chunks(said: Words, runs: list[tuple[int, int]]) -> Iterator[Part]:
    for first, last in runs:
        yield _part(said, first, last, "chunk")


def _pieces(said: Words, runs: list[tuple[int, int]]) -> Iterator[Part]:
    for first, last in runs:
        for begin in range(first, last + 1):
            for end in range(begin, min(last, begin + PART_WORDS_MAX - 1) + 1):
                yield _part(said, begin, end, "piece")


def _joined(said: Words, runs: list[tuple[int, int]]) -> Iterator[Part]:
    """Two or three runs with `of`, `and`, a comma between: `University of Ghent`, `Lyon, France`."""
    for place, run in enumerate(runs):
        for other in range(place + 1, min(place + 4, len(runs))):
            if not _joins(said, runs[other - 1][1], runs[other][0]):
                break
            for begin in range(run[0], run[1] + 1):
                if begin == run[0] or said.words[begin].is_capital:
                    for end in range(runs[other][0], min(runs[other][1], begin + PART_WORDS_MAX) + 1):
                        yield _part(said, begin, end, "joined")


def _joins(said: Words, last: int, first: int) -> bool:
    between = said.words[last + 1 : first]
    if not between:
        return said.request[said.words[last].end : said.words[first].begin] == ", "
    plain = all(word.folded in _JOINERS for word in between) and len(between) <= 2
    return plain and not any(word.apart for word in said.words[last + 2 : first + 1])


def told_in(said: Words, messages: Collection[str]) -> tuple[Part, Part] | None:
    """Whom a request wants something told, and what: `the operator` and all behind `that`, `saying` or a colon.

    Between them may stand what is said to be told, a word with one of the stems `messages`.
    """
    what = next(_behind(said, _ANNOUNCES, (":",)), None)
    if what is None:
        return None
    before = [
        place for place, word in enumerate(said.words) if word.end <= what.begin and word.folded not in _ANNOUNCES
    ]
    runs = [run for run in runs_of(said) if run[0] > 0 and run[1] in before][::-1]
    if runs and said.words[runs[0][1]].stem in messages:
        runs = runs[1:]
    elif runs and runs[0][1] != before[-1]:
        return None
    return (_part(said, *runs[0], "chunk"), what) if runs else None


def _tails(said: Words) -> Iterator[Part]:
    """The rest of a sentence behind a colon, a comma, `that`, `to`, or `saying`."""
    return _behind(said, TAIL_MARKS, (":", ","))


def _behind(said: Words, marks: Collection[str], signs: Collection[str]) -> Iterator[Part]:
    for place, word in enumerate(said.words[:-1]):
        after = said.request[word.end : said.words[place + 1].begin]
        if word.folded in marks or after.strip() in signs:
            last = sentence_end(said, place + 1)
            if 2 <= last - place <= TAIL_WORDS_MAX:
                yield _part(said, place + 1, last, "tail")


def _rest(said: Words) -> Iterator[Part]:
    """The rest of the first sentence behind the word that commands, and its particle: `put on`."""
    last = sentence_end(said, 0)
    first = next((place for place, word in enumerate(said.words) if place and not word.is_cut), len(said.words))
    if first <= last <= TAIL_WORDS_MAX:
        yield _part(said, first, last, "rest")


def sentence_end(said: Words, place: int) -> int:
    for last in range(place, len(said.words) - 1):
        if re.search(r"[.!?;]\s", said.request[said.words[last].end : said.words[last + 1].begin]):
            return last
    return len(said.words) - 1


def runs_of(said: Words) -> list[tuple[int, int]]:
    """The runs of words between function words and punctuation, without a leading article."""
    runs, first = [], None
    for place, word in enumerate(said.words):
        if first is not None and (word.is_cut or word.apart or word.is_article):
            runs.append((first, place - 1))
            first = None
        if first is None and not word.is_cut and not word.is_article:
            first = place
    return runs if first is None else [*runs, (first, len(said.words) - 1)]


def _part(said: Words, first: int, last: int, kind: Kind) -> Part:
    return Part(said.text(first, last), said.words[first].begin, said.words[last].end, kind)
