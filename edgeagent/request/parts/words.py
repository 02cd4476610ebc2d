"""Cut a request into words, with where they stand. Knows English function words and no tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from edgeagent.request.language import ENGLISH, word_set
from edgeagent.request.lexical import stem
from edgeagent.request.said import spelled_in

# A word ends before punctuation that is followed by a space, so that `a.b/c`, `6:30` and `2,000` stay whole.
_RUN = re.compile(r"[^\s\"“”„«»()\[\]{}<>]+")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+|(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|Inc|Ltd|Co|Corp|No)\.")
_TRAILING = ",;:!?.'’`"
_PLAIN = " \t$€£#"  # What may stand between two words that belong together.
_LEADING = "'‘’`$€£#¡¿"
_POSSESSIVE = re.compile(r"['’]s?$")
_QUOTED = re.compile(
    r"\"([^\"]+)\"|“([^”]+)”|(?<!\w)'((?:[^']|(?<=\w)'(?=\w))+?)'(?!\w)|(?<!\w)‘([^’]+)’|`([^`]+)`"
    r"|„([^“”]+)[“”]|« ?([^»]+?) ?»"
)

ARTICLES = word_set(ENGLISH.words.articles)
PREPOSITIONS = word_set(ENGLISH.words.prepositions)
_FUNCTION = word_set(ENGLISH.words.function)
"""Words between which a text may stand, and of which it is hardly ever made."""

_COMMANDS = word_set(ENGLISH.words.commands)
"""Verbs that ask for something, behind `please`, `you`, `to`, or where a sentence begins; else they are nouns."""

_LEADS_COMMAND = word_set(ENGLISH.words.before_commands)


@dataclass(frozen=True)
class Word:
    """A word of a request, from `begin` to `end`; `apart` if punctuation stands between it and the one before.

    `is_command` says of a verb that it asks for something.
    """

    text: str
    begin: int
    end: int
    apart: bool = False
    is_command: bool = False

    @property
    def folded(self) -> str:
        return self.text.casefold()

    @property
    def stem(self) -> str:
        return stem(self.folded)

    @property
    def is_capital(self) -> bool:
        return self.text[:1].isupper()

    @property
    def is_article(self) -> bool:
        """Whether it is an article or a possessive; one with a capital within a sentence belongs to a name."""
        return self.folded in ARTICLES and (self.begin == 0 or not self.is_capital)

    @property
    def is_cut(self) -> bool:
        """Whether texts end before this word: a preposition, a pronoun, an auxiliary."""
        return self.is_command or self.folded in PREPOSITIONS or self.folded in _FUNCTION


@dataclass(frozen=True)
class Words:
    """A request and its words; `quoted` are the places between quotation marks."""

    request: str
    words: tuple[Word, ...]
    quoted: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, request: str) -> Words:
        """The words of this request."""
        return cls(request, tuple(_words(request)), tuple(_quoted(request)))

    def text(self, first: int, last: int) -> str:
        """The request from one word to another, both included."""
        return self.request[self.words[first].begin : self.words[last].end]

    def spelled(self, begin: int, end: int) -> str:
        """What was really said from one place to another."""
        return spelled_in(self.request, begin, end)

    def before(self, place: int) -> Sequence[Word]:
        """The words that begin before a place, nearest first."""
        return [word for word in reversed(self.words) if word.end <= place]


def begins_with_verb(request: str) -> bool:
    """Whether the first word is a verb that asks for something, as far as those are known."""
    first = next((word for word in _words(request) if word.folded not in _LEADS_COMMAND), None)
    return first is not None and first.is_command


def _words(request: str) -> list[Word]:
    found: list[Word] = []
    for run in _RUN.finditer(request):
        text = run[0].lstrip(_LEADING)
        begin = run.end() - len(text)
        text = _without_end(text)
        if any(char.isalnum() for char in text):
            gap = request[found[-1].end : begin] if found else ""
            apart = bool(gap.strip(_PLAIN))
            found.append(Word(text, begin, begin + len(text), apart, _commands(text, found, gap)))
    return found


def _commands(text: str, before: Sequence[Word], gap: str) -> bool:
    """Whether a word is a verb that asks for something, by what stands before it."""
    begins = not before or gap.strip() in (".", "!", "?")
    if text.casefold() not in _COMMANDS or (text[0].isupper() and not begins):
        return False
    return begins or before[-1].folded in _LEADS_COMMAND


def _without_end(text: str) -> str:
    """A word without what only ends a sentence or says whose something is; initials and titles keep their point."""
    inner = text.rstrip(_TRAILING)
    if text.startswith(f"{inner}.") and _INITIALS.fullmatch(f"{inner}."):
        return f"{inner}."
    return _POSSESSIVE.sub("", inner)


def _quoted(request: str) -> list[tuple[int, int]]:
    found = []
    for match in _QUOTED.finditer(request):
        group = next(number for number in range(1, _QUOTED.groups + 1) if match[number] is not None)
        found.append(match.span(group))
    return found
