"""Which tool do the words of a request speak of? Words are compared by their stems; no model, no state.

The tools of one agent are the whole corpus (Okapi BM25), so a word that only one tool has weighs most. English suffixes
are stripped; other languages match where their words are spelled alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from edgeagent.core.agent import Tool
from edgeagent.request.language import ENGLISH, word_set

Scores = tuple[tuple[str, float], ...]
"""Tools by name with their scores, in the order they were asked for."""

SATURATION, LENGTH_SHARE = 1.2, 0.5
"""BM25's k1 and b: what a repeated word adds, and how much a long text is held against its tool."""

NAME_WEIGHT, ENUM_WEIGHT = 2.0, 1.5
"""A word of a tool's name, and one of its options, count so often as one of its description."""

PREFIX_CHARS_MIN = 4
"""`temp` is `temperature`: a word that begins with the whole of another, this long at least, is half a match."""

PREFIX_WEIGHT = 0.5

KIN_WEIGHT = 0.6
"""How much a word counts that only means about the same: `lamp` for `light`, `warm` for `temperature`."""

_WORD = re.compile(r"[^\W_]+")
_STOP = word_set(ENGLISH.words.stop)
_CLAUSE = re.compile(r"(?<=[.;!])\s+")
_DISCLAIMS = ENGLISH.patterns.compiled("disclaims")
_SNAKE = re.compile(r"\b[a-z0-9]+(?:_[a-z0-9]+)+\b")
_INNER_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_VOWEL = re.compile(r"[aeiouy]")


@dataclass(frozen=True)
class Lexicon:
    """The words of an agent's tools: how often each stands in each tool, and how rare it is. Make it with `of`."""

    counts: Mapping[str, Mapping[str, float]]
    rarity: Mapping[str, float]
    mean_length: float
    spelled: frozenset[str] = frozenset()

    @classmethod
    def of(cls, tools: Iterable[Tool]) -> Lexicon:
        """The words of these tools, which are the corpus."""
        tools = tuple(tools)
        counts = {tool.name: _counts(weighted_texts(tool)) for tool in tools}
        lengths = [sum(words.values()) for words in counts.values()]
        vocabulary = {word for words in counts.values() for word in words}
        rarity = {word: _rarity(sum(word in words for words in counts.values()), len(counts)) for word in vocabulary}
        return cls(counts, rarity, sum(lengths) / len(lengths) if lengths else 1.0, _spelled(tools))

    def scores(self, request: str, names: Iterable[str]) -> Scores:
        """How much each of the tools is spoken of; 0 for one that shares no word with the request."""
        asked = [self._alike(word) for word in dict.fromkeys(stems(request))]
        return tuple((name, sum(self._weight(name, alike) for alike in asked)) for name in names)

    def has(self, name: str, word: str) -> bool:
        """Whether this stem, or one that it may mean, is among the tool's words."""
        return any(each in self.counts[name] for each, _ in self._alike(word))

    def _alike(self, word: str) -> list[tuple[str, float]]:
        """The words of the tools that this word may mean, with how sure that is."""
        whole = [(word, 1.0)] if word in self.rarity else []
        alike = [(each, PREFIX_WEIGHT) for each in self.rarity if each != word and is_prefix(each, word)]
        return whole + alike + [(each, KIN_WEIGHT) for each in sorted(kin(word)) if each in self.rarity]

    def _weight(self, name: str, alike: Sequence[tuple[str, float]]) -> float:
        words = self.counts[name]
        return max((sure * self._of_word(words, word) for word, sure in alike if word in words), default=0.0)

    def _of_word(self, words: Mapping[str, float], word: str) -> float:
        length = sum(words.values()) / self.mean_length
        damping = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length)
        return self.rarity[word] * words[word] * (SATURATION + 1) / (words[word] + damping)


def stems(text: str) -> list[str]:
    """The stems of a text's words in their order, without numbers and without words that every sentence has."""
    return [stem(word) for word in words_of(text) if word not in _STOP and not word.isdecimal()]


def words_of(text: str) -> list[str]:
    """A text's words in their order, in small letters: `setValve` and `set_valve` are two."""
    return _WORD.findall(_INNER_CAPITAL.sub(" ", text).casefold())


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """The word without an English ending: `valves`, `opened`, `heating` are `valv`, `open`, `heat`."""
    if len(word) <= 3:
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-2] if word.endswith(("shes", "ches", "xes", "sses")) else word[:-1]
    for ending in ("ing", "ed", "ly"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 3 and _VOWEL.search(rest):
            word = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "aeiouls" else rest
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def kin(word: str) -> frozenset[str]:
    """The stems of words that mean about what this stem means, or are said of it: `warm` of a temperature."""
    return synonyms(word) | _groups(ENGLISH.words.related).get(word, frozenset())


def synonyms(word: str) -> frozenset[str]:
    """The stems of words that mean about what this stem means."""
    return _groups(ENGLISH.words.kin).get(word, frozenset())


@cache
def _groups(table: str) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for group in table.split():
        alike = {stem(each) for each in group.split(":")}
        for each in alike:
            found.setdefault(each, set()).update(alike - {each})
    return {word: frozenset(others) for word, others in found.items()}


def stem_set(words: str) -> frozenset[str]:
    """The stems of a table's words."""
    return frozenset(map(stem, words.split()))


def is_prefix(one: str, other: str) -> bool:
    """Whether one of the words begins with the other, and that one is long enough to mean something."""
    shorter, longer = sorted((one, other), key=len)
    return len(shorter) >= PREFIX_CHARS_MIN and longer.startswith(shorter)


def options_in(schema: Any) -> Iterator[str]:
    """The texts of which an argument may be one, at any depth of its schema."""
    if isinstance(schema, Mapping):
        found = [*schema.get("enum", ()), schema.get("const")]
        yield from (each for each in found if isinstance(each, str))
        for key in ("items", "anyOf"):
            yield from options_in(schema.get(key))
        for each in schema.get("properties", {}).values():
            yield from options_in(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from options_in(each)


def purpose(tool: Tool) -> str:
    """What the description says that the tool is for, without what it says that others are for, or that it never does.

    "Log a meal. Use log_expense for money." speaks of meals. A description of nothing else is taken as it is.
    """
    own = {tool.name, *tool.parameters.schema.get("properties", {})}
    clauses = _CLAUSE.split(tool.description)
    kept = [each for each in clauses if not (_DISCLAIMS.search(each) or set(_SNAKE.findall(each)) - own)]
    return " ".join(kept) or tool.description


def weighted_texts(tool: Tool) -> Iterator[tuple[str, float]]:
    """The texts that say what a tool is for, with how much a word of each counts."""
    yield tool.name, NAME_WEIGHT
    yield purpose(tool), 1.0
    for name, schema in tool.parameters.schema.get("properties", {}).items():
        yield name, 1.0
        yield schema.get("description", "") if isinstance(schema, Mapping) else "", 1.0
        for option in options_in(schema):
            yield option, ENUM_WEIGHT
    for example in tool.examples:
        yield example, 1.0


def _counts(texts: Iterable[tuple[str, float]]) -> dict[str, float]:
    counts: dict[str, float] = {}
    for text, weight in texts:
        for word in stems(text):
            counts[word] = counts.get(word, 0.0) + weight
    return counts


def _spelled(tools: Iterable[Tool]) -> frozenset[str]:
    """The words of tools as they are spelled."""
    return frozenset(word for tool in tools for text, _ in weighted_texts(tool) for word in words_of(text))


def _rarity(holders: int, tools: int) -> float:
    return math.log(1 + (tools - holders + 0.5) / (holders + 0.5))
