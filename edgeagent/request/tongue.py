"""Tongue: one language beside English as data, read from `<language>.toml`; and which of them a request is in.

What is read is English (`english.toml`): a tongue says how its words, phrases and numbers are said there, word by word
(`said.py`), which is enough for all that is asked of a request. Law: a tongue is a value; it knows no tools.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Literal

import msgspec

from edgeagent.errors import ConfigError
from edgeagent.request.language import ENGLISH, SentenceTable, Table

FILES: Mapping[str, str] = {"de": "german", "es": "spanish", "fr": "french", "it": "italian"}
"""The languages that are shipped beside English, as an author names them, and their files."""

COMPOUND_CHARS_MIN = 4
"""The least letters of a part of a compound word: `Wohnzimmer|licht`."""

OTHERS = "others"
"""The table of what words mean besides, which counts where the agent's tools speak of that."""

LEAD = 1
"""Words by which another language must lead over English to be it: what is in doubt, or mixed, is read as English."""

SHORT = 4
"""The letters of a word that may well be another language's: `die` alone is not yet German."""

_WORD = re.compile(r"[^\W\d_]+")

_FOREIGN = frozenset("äöüßñ¿¡àâçéèêëîïôûùáíóúœ")
"""Letters and marks that English has not."""


class MoodTable(Table, frozen=True):
    """Patterns of a sentence that word order alone makes a question or a prohibition, and of a yes and a no."""

    asks: str
    forbids: str
    agrees: str
    refuses: str


class NumeralTable(Table, frozen=True):
    """Numbers in words; `joiners` may stand between two of them, `mark` is that of decimals.

    `words` are pairs, a colon between. `clocks` are patterns of a time of day, where `{h}` and `{m}` are numbers, and
    the minutes that they add to it (-1: those of `{m}` are taken away).
    """

    mark: Literal[",", "."]
    joiners: str
    words: str
    clocks: list[tuple[str, int]]


class TongueTable(Table, frozen=True):
    """All of the file. `phrases` are a pattern and what each of its groups is in English (`=`: as it stands).

    `words` are tables of English words and those that mean them. `particles` are parts of verbs that stand at the
    end of a clause: `taue das Fach ab` is `abtauen`.
    """

    name: str
    stems: str
    compounds: bool
    mood: MoodTable
    numbers: NumeralTable
    phrases: list[list[str]]
    words: dict[str, dict[str, str]]
    sentences: SentenceTable
    particles: str = ""


@dataclass(frozen=True)
class Tongue:
    """A language, ready to be read. English has no table: it is read as it stands."""

    name: str
    sentences: SentenceTable
    table: TongueTable | None = None

    @cached_property
    def exact(self) -> Mapping[str, str]:
        """English by the words of the file."""
        return {form: english for _, english, form in _forms(self.table)}

    @cached_property
    def _by_stem(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for table, english, form in _forms(self.table):
            if table != "function":
                found.setdefault(self._stem(form), english)
        return found

    @cached_property
    def _others(self) -> Mapping[str, Sequence[str]]:
        """By stem what a word may mean besides."""
        found: dict[str, list[str]] = {}
        for english, forms in (self.table.words.get(OTHERS, {}) if self.table is not None else {}).items():
            for form in forms.split():
                found.setdefault(self._stem(form.casefold()), []).append(english)
        return found

    def english_of(self, word: str, knows: Callable[[str], bool] = lambda word: False) -> str | None:
        """What a word (in small letters) is in English; None where the file does not say.

        Of what it may mean it is what the agent's tools speak of, which `knows` tells; else the first.
        """
        first = self.exact.get(word) or (self._by_stem.get(self._stem(word)) if len(word) > 3 else None)
        if self.table is None or (first is not None and all(map(knows, first.split()))):
            return first
        others = self._others.get(self._stem(word), ())
        return next((each for each in others if all(map(knows, each.split()))), first)

    def english_of_parts(self, word: str, knows: Callable[[str], bool] = lambda word: False) -> str | None:
        """What a compound word is in English: of the first two parts that are both known."""
        if self.table is None or not self.table.compounds:
            return None
        for place in range(len(word) - COMPOUND_CHARS_MIN, COMPOUND_CHARS_MIN - 1, -1):
            first = self.english_of(word[:place], knows) or self.english_of(word[:place].removesuffix("s"), knows)
            last = self.english_of(word[place:], knows) if first else None
            if first and last:
                return f"{first} {last}"
        return None

    @cached_property
    def particles(self) -> frozenset[str]:
        """What a verb leaves at the end of a clause."""
        return frozenset(self.table.particles.split() if self.table is not None else ())

    @cached_property
    def numerals(self) -> Mapping[str, int]:
        """Numbers by their words."""
        pairs = (each.split(":") for each in self.table.numbers.words.split()) if self.table is not None else ()
        return {word.casefold(): int(value) for word, value in pairs}

    @cached_property
    def phrases(self) -> Sequence[tuple[re.Pattern[str], Sequence[str]]]:
        """The patterns of its phrases, and what their groups are in English."""
        rows = self.table.phrases if self.table is not None else ()
        return [(re.compile(pattern, re.IGNORECASE), texts) for pattern, *texts in rows]

    @cached_property
    def clocks(self) -> Sequence[tuple[re.Pattern[str], int]]:
        """The patterns of a time of day, and the minutes that they add."""
        rows = self.table.numbers.clocks if self.table is not None else ()
        hour, minute = r"(?P<h>2[0-4]|1\d|0?\d)", r"(?P<m>[0-5]?\d)"
        return [
            (re.compile(each.replace("{h}", hour).replace("{m}", minute), re.IGNORECASE), more) for each, more in rows
        ]

    def compiled(self, name: Literal["asks", "forbids", "agrees", "refuses"]) -> re.Pattern[str] | None:
        """The pattern of a mood; English has its own."""
        return None if self.table is None else re.compile(getattr(self.table.mood, name), re.IGNORECASE)

    def known(self, words: Sequence[str]) -> int:
        """How many of the words are its own."""
        if self.table is None:
            return sum(word in english_words() for word in words)
        return sum(self.english_of(word) is not None or word in self.numerals for word in words)

    def _stem(self, word: str) -> str:
        assert self.table is not None
        return _stemmer(self.table.stems)(word)


ENGLISH_TONGUE = Tongue("en", ENGLISH.sentences)


def tongue_from(text: str, name: str) -> Tongue:
    """The tongue of this file's text. Raises ConfigError, naming what is unknown, missing, wrong or said twice."""
    try:
        table = msgspec.convert(tomllib.loads(text), TongueTable)
        found = Tongue(table.name, table.sentences, table)
        _check(found, table, name)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, re.error, KeyError, ValueError) as error:
        raise ConfigError(f"{name}: {error}") from None
    return found


def _check(found: Tongue, table: TongueTable, name: str) -> None:
    for mood in table.mood.__struct_fields__:
        re.compile(getattr(table.mood, mood))
    for pattern, texts in found.phrases:
        if pattern.groups != len(texts):
            raise ConfigError(
                f"{name}: the phrase {pattern.pattern!r} has {pattern.groups} groups and {len(texts)} texts"
            )
    _ = found.clocks  # A pattern that is none is an error here.
    if not found.numerals:
        raise ConfigError(f"{name}: numbers.words is empty; write pairs such as 'eins:1 zwei:2'")
    twice: dict[str, str] = {}
    for _, english, form in _forms(table):
        if twice.setdefault(form, english) != english:
            raise ConfigError(f"{name}: {form!r} stands for {twice[form]!r} and for {english!r}; leave one of them")
    _stemmer(table.stems)("x")


def _forms(table: TongueTable | None) -> Iterator[tuple[str, str, str]]:
    """By table the English words and those that mean them, in small letters; not what words mean besides."""
    for name, words in (table.words if table is not None else {}).items():
        if name != OTHERS:
            for english, forms in words.items():
                yield from ((name, english, form.casefold()) for form in forms.split())


@cache
def tongue(name: str) -> Tongue:
    """The language of that name among those that are shipped."""
    if name == "en":
        return ENGLISH_TONGUE
    if name not in FILES:
        known = ", ".join(["en", *FILES])
        raise ConfigError(f"no language {name!r} is shipped; known: {known}")
    file = f"{FILES[name]}.toml"
    return tongue_from(resources.files("edgeagent.request").joinpath(file).read_text("utf-8"), file)


def tongue_of(request: str) -> Tongue:
    """The language that most of a request's words are of; English where none clearly leads."""
    words = [word.casefold() for word in _WORD.findall(request) if len(word) > 1]
    if all(word in english_words() for word in words):
        return ENGLISH_TONGUE
    told = [(tongue(name).known(words), tongue(name)) for name in FILES]
    most = max(count for count, _ in told)
    best = [each for count, each in told if count == most]
    is_half = 2 * most == len(words) and any(len(word) > SHORT and any(e.known([word]) for e in best) for word in words)
    lead = 0 if most and not _FOREIGN.isdisjoint(request.casefold()) else LEAD
    is_other = most >= ENGLISH_TONGUE.known(words) + lead and (
        5 * most >= 2 * len(words) if most > LEAD or not lead else 2 * most > len(words) or is_half
    )
    return best[0] if is_other and len(best) == 1 else _closest(words, best) if is_other else ENGLISH_TONGUE


def _closest(words: Sequence[str], best: Sequence[Tongue]) -> Tongue:
    """Of languages that know as many of the words, the one that has most of them as they are spelled."""
    return max(best, key=lambda each: (sum(word in each.exact for word in words), -best.index(each)))


@cache
def english_words() -> frozenset[str]:
    """The English words that are known, of any sentence and of devices."""
    tables = (ENGLISH.words, ENGLISH.polarity)
    told = [str(getattr(table, key)) for table in tables for key in table.__struct_fields__]
    acts = " ".join(ENGLISH.verbs.acts.values())
    numbers = " ".join([*ENGLISH.numbers.words, *ENGLISH.numbers.times])
    units = " ".join(words for rows in ENGLISH.units.values() for _, words in rows)
    theirs = " ".join(english for name in FILES for table in _table(name).words.values() for english in table)
    parts = " ".join([*ENGLISH.numbers.ordinals, *ENGLISH.numbers.fractions, *ENGLISH.numbers.parts])
    found = frozenset(_WORD.findall(" ".join([*told, acts, numbers, parts, units, theirs]).casefold()))
    return found | {f"{each}s" for each in found if len(each) > 3}


def _table(name: str) -> TongueTable:
    table = tongue(name).table
    assert table is not None
    return table


@cache
def _stemmer(name: str) -> Callable[[str], str]:
    import snowballstemmer

    stem: Callable[[str], str] = snowballstemmer.stemmer(name).stemWord
    return stem
