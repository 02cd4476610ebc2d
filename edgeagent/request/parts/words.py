"""Cut a request into words, with where they stand. Knows English function words and no tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from edgeagent.request.lexical import stem

# A word ends before punctuation that is followed by a space, so that `a.b/c`, `6:30` and `2,000` stay whole.
_RUN = re.compile(r"[^\s\"“”()\[\]{}<>]+")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+|(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|Inc|Ltd|Co|Corp|No)\.")
_TRAILING = ",;:!?.'’`"
_PLAIN = " \t$€£#"  # What may stand between two words that belong together.
_LEADING = "'‘’`$€£#"
_POSSESSIVE = re.compile(r"['’]s?$")
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|(?<!\w)'((?:[^']|(?<=\w)'(?=\w))+?)'(?!\w)|(?<!\w)‘([^’]+)’|`([^`]+)`")

_SPLIT = re.compile(r"[^\W_]+")

ARTICLES = frozenset(("the", "a", "an", "my", "our", "your", "his", "her", "their", "its", "this", "that", "these"))

PREPOSITIONS = frozenset(
    _SPLIT.findall(
        "in on at from to for of by with without about between near around into onto over under through via during "
        "within after before until till since against among across per using as toward towards than versus vs "
        "along beside besides including excluding like regarding concerning nearby following based starting ending "
        "named called titled dated numbered involving related specializing considering located"
    )
)

_FUNCTION = frozenset(
    _SPLIT.findall(
        "i me we us you he she they them it is are am was were be been being do does did done have has had having "
        "will would can could shall should may might must what which who whom whose where when why how there here and "
        "or but nor so if then else not no please also just very too only all any some each every both either neither "
        "more most much many few less least get find give show tell want need know let make please help would like "
        "look looking up off down out saying says said provide calculate compute determine search fetch retrieve s"
    )
)
"""Words between which a text may stand, and of which it is hardly ever made."""

_COMMANDS = frozenset(
    _SPLIT.findall(
        "add analyze answer arrange ask assess book bring buy call cancel change check choose classify clean "
        "clear close collect compare compile compose configure confirm convert copy count create decrease define "
        "delete describe design determine detect develop display divide draw draft edit enter estimate evaluate "
        "examine execute explain explore export extract figure file filter fix forecast format generate grab "
        "identify increase inform install invest launch learn list locate log look lower make measure meet modify "
        "monitor move multiply name note notify obtain open order organize outline pay perform pick place plan "
        "play plot post predict prepare print process propose purchase put raise rank rate read recommend record "
        "reduce register remind remove rent repeat reply report request reserve reset return review run save say "
        "schedule see select sell send set share simulate solve sort specify start state stop subtract suggest "
        "sum summarize switch take tell test track transfer translate turn update upload use verify view visit "
        "walk watch write"
    )
)
"""Verbs that ask for something, behind `please`, `you`, `to`, or where a sentence begins; else they are nouns."""

_LEADS_COMMAND = frozenset(("please", "you", "to", "i", "we", "me", "and", "then"))


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
        group = next(number for number in range(1, 6) if match[number] is not None)
        found.append(match.span(group))
    return found
