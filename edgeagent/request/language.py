"""One language, as data: its words, patterns, weights and sentences, read from `<language>.toml` and checked.

Law: nothing is left out and nothing is unknown, or the error names it; so no sign counts nothing by a slip. The tables
are part of the package, and this is the one place that reads them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from decimal import Decimal
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from edgeagent.errors import ConfigError
from edgeagent.request.parts.signs import NumberSign, TextSign

Act = Literal["read", "make", "change", "remove", "start", "stop"]
Role = Literal["from", "to", "place", "by", "about", "with", "for"]


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file. Texts are words with spaces between them."""


class WordTable(Table, frozen=True):
    """Words of any sentence.

    `kin` are words that mean about the same, with colons between, `related` what is said of a thing and the thing;
    `before_commands` are those behind which a verb asks for something, and `generic` those that name no thing. `real`
    are words that are a slip of the pen away from others and are none.
    """

    stop: str
    kin: str
    related: str
    generic: str
    articles: str
    prepositions: str
    function: str
    commands: str
    before_commands: str
    indefinite: str
    whatever: str
    real: str


class PatternTable(Table, frozen=True):
    """Regular expressions."""

    asks: str
    orders_politely: str
    notifies: str
    exclaims: str
    asks_for_agreement: str
    denies: str
    reports: str
    agrees: str
    refuses: str
    denied: str
    points_back: str
    denies_little: str
    forbids: str
    still_asks: str
    disclaims: str
    relative: str
    announces: str
    denies_first: str
    contrasts_first: str
    contrasts_behind: str
    excepts: str
    all_of: str
    joint: str
    verbal: str
    switched_on: str
    switched_off: str

    def compiled(self, name: str) -> re.Pattern[str]:
        """The expression of this name; capitals make no difference."""
        return re.compile(getattr(self, name), re.IGNORECASE)


class VerbTable(Table, frozen=True):
    """Verbs by what they ask for; weak ones say little of a request, light ones nothing of what is to be done;
    particles make another verb of one, and places are opposites that say where or how much."""

    acts: dict[Act, str]
    weak: str
    light: str
    places: str
    polite: str
    particles: str


class ArgumentTable(Table, frozen=True):
    """Words of the names of arguments, and of tools that have to do with what is to come."""

    date: str
    time: str
    ordinals: str
    to_come: str


class TruthTable(Table, frozen=True):
    """What says that something is so, or that it is not."""

    opposites: list[tuple[str, str]]
    denies: str
    auxiliary: str


class PolarityTable(Table, frozen=True):
    """Words that say on or off; pairs of opposites, a colon between; names of arguments that either may fill."""

    on: str
    off: str
    opposites: str
    neutral: str


class NumberTable(Table, frozen=True):
    """Numbers in words, the words around them, and what each sign of a number weighs."""

    one: str
    minus: str
    between: str
    money: str
    share: str
    count: str
    year: str
    hundred: str
    of: str
    and_: str = msgspec.field(name="and")
    words: dict[str, int]
    fractions: dict[str, Decimal]
    parts: dict[str, Decimal]
    ordinals: dict[str, int]
    groups: dict[str, int]
    times: dict[str, int]
    clocks: list[tuple[str, int]]
    weights: dict[NumberSign, float]


class RoleTable(Table, frozen=True):
    """Arguments of some names, and the prepositions that lead to them."""

    prepositions: str
    names: str


class TextTable(Table, frozen=True):
    """Words in and around texts, names of arguments that are texts, and what each sign of a text weighs."""

    joiners: str
    of: str
    of_names: str
    the: str
    tail_marks: str
    announces: str
    links: str
    names: str
    codes: str
    wide: str
    cities: str
    messages: str
    email: str
    url: str
    host: str
    roles: dict[Role, RoleTable]
    weights: dict[TextSign, float]


class FollowupTable(Table, frozen=True):
    """Words of requests that only say what is to be other than before, and patterns of what refers to that."""

    more: str
    less: str
    low: str
    long: str
    filling: str
    half: str
    double: str
    refers: str
    points: str

    def compiled(self, name: str) -> re.Pattern[str]:
        """The expression of this name; capitals make no difference."""
        return re.compile(getattr(self, name), re.IGNORECASE)


class SentenceTable(Table, frozen=True):
    """What is said without a model."""

    no_tool: str
    nothing_done: str
    read_on: str
    which: str
    which_of: str
    which_within: str
    must_be: str
    not_negative: str
    not_past: str
    whole: str
    from_to: str
    at_least: str
    at_most: str
    shall_i: str
    shall_i_although: str
    which_tool: str
    yes_or_no: str
    what_for: str
    none_of: str
    yes: str
    no: str
    done: str
    failed: str
    refused: str
    can: str
    or_: str = msgspec.field(name="or")
    and_: str = msgspec.field(name="and")


class Language(Table, frozen=True):
    """All of it; `units` are by their kind: how many of the first one each is, and its words."""

    words: WordTable
    patterns: PatternTable
    verbs: VerbTable
    arguments: ArgumentTable
    truth: TruthTable
    polarity: PolarityTable
    followup: FollowupTable
    numbers: NumberTable
    units: dict[str, list[tuple[str, str]]]
    texts: TextTable
    sentences: SentenceTable


def language_of(text: str, name: str) -> Language:
    """The language of this file's text. Raises ConfigError, naming what is unknown, missing or wrong."""
    try:
        found = msgspec.convert(tomllib.loads(text), Language)
        for pattern in found.patterns.__struct_fields__:
            found.patterns.compiled(pattern)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, re.error) as error:
        raise ConfigError(f"{name}: {error}") from None
    _check_all(found.numbers.weights, NumberSign, f"{name}: numbers.weights")
    _check_all(found.texts.weights, TextSign, f"{name}: texts.weights")
    return found


def _check_all(weights: Collection[str], signs: type[StrEnum], where: str) -> None:
    missing = [str(sign) for sign in signs if sign not in weights]
    if missing:
        named = ", ".join(map(repr, missing))
        raise ConfigError(f"{where} has no weight for {named}; a sign that counts nothing weighs 0.0")


@cache
def language(name: str) -> Language:
    """The language of that name among those that are shipped."""
    return language_of(resources.files("edgeagent.request").joinpath(f"{name}.toml").read_text("utf-8"), f"{name}.toml")


ENGLISH = language("english")
"""What requests are read with."""


def word_set(words: str) -> frozenset[str]:
    """The words of a table."""
    return frozenset(words.split())
