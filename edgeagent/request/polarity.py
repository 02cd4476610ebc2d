"""Polarity: does a request ask for the one of two opposites of which a tool, or an argument, is the other?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from edgeagent.core.agent import Tool
from edgeagent.request.language import ENGLISH
from edgeagent.request.lexical import stem, stem_set, stems, weighted_texts, words_of

_POLARITY = ENGLISH.polarity
_ON, _OFF = stem_set(_POLARITY.on), stem_set(_POLARITY.off)
_NEUTRAL = stem_set(_POLARITY.neutral)
_ENDS = stem_set(f"{ENGLISH.verbs.acts['stop']} {ENGLISH.verbs.acts['remove']}")
_BOTH = frozenset(("on", "off"))
_ARTICLES = frozenset(("the", "a", "an", "my", "your"))
_SWITCHED_ON = ENGLISH.patterns.compiled("switched_on")
_SWITCHED_OFF = ENGLISH.patterns.compiled("switched_off")


def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for pair in _POLARITY.opposites.split():
        one, other = map(stem, pair.split(":"))
        found[one].add(other)
        found[other].add(one)
    return {word: frozenset(others) for word, others in found.items()}


OPPOSITES = _opposites()
"""Stems by their opposites."""


def polarity_of(request: str) -> bool | None:
    """Whether the request wants something on or off; None where it says neither, or both."""
    words = set(map(stem, words_of(request)))
    on = bool(words & _ON) or _SWITCHED_ON.search(request) is not None
    off = bool(words & _OFF) or _SWITCHED_OFF.search(request) is not None
    return None if on == off else on


def polarity_with(named: frozenset[str], request: str) -> bool | None:
    """Whether the request wants on or off what a tool of such a name does: of `child_lock` to lock is on."""
    said = set(stems(request))
    does, undoes = said & named & (_ON | _OFF), said & {other for word in named for other in OPPOSITES.get(word, ())}
    plainly = {word for word in said & (_ON | _OFF) if word not in does | undoes}
    switched = _SWITCHED_ON.search(request) is not None, _SWITCHED_OFF.search(request) is not None
    if not (does or undoes) or plainly or any(switched):
        return polarity_of(" ".join(word for word in words_of(request) if stem(word) not in does | undoes))
    return None if does and undoes else bool(does)


def is_neutral(name_words: frozenset[str]) -> bool:
    """Whether an argument's name says only that something is on."""
    return bool(name_words & _NEUTRAL)


def is_opposite(tool: Tool, request: str) -> bool:
    """Whether the tool's name has the opposite of a word of the request, and the tool no word for what is asked."""
    named, asked = set(stems(tool.name)), set(stems(request))
    if _is_off(tool, request) or _is_in(tool, request) or _is_ended(tool, request):
        return True
    against = {word for word in asked for other in OPPOSITES.get(word, ()) if other in named}
    if not against and (wanted := polarity_of(request)) is not None:
        alike, unlike = (_ON, _OFF) if wanted else (_OFF, _ON)
        is_against = bool(named & unlike) and not named & alike
        against = asked & alike | {"on" if wanted else "off"} if is_against else against
    return bool(against) and not _does_both(tool, request, against)


def _does_both(tool: Tool, request: str, against: Iterable[str]) -> bool:
    """Whether the tool has a word for what is asked, though its name has the opposite."""
    alike = {other for word in stems(tool.name) for other in OPPOSITES.get(word, ())}
    own = _own(tool, request)
    return bool(own & (alike | set(against))) or own >= _BOTH


def _own(tool: Tool, request: str) -> set[str]:
    """The stems of what the tool says of itself, beside what it takes over from the request."""
    return {stem(word) for text, _ in weighted_texts(tool) if text != request for word in words_of(text)}


def ended_in(request: str) -> frozenset[str]:
    """The stems of what the request wants ended: charging, where it says "stop charging"."""
    said = [word for word in words_of(request) if word not in _ARTICLES]
    return frozenset(stem(word) for one, word in pairwise(said) if stem(one) in _ENDS and word.endswith("ing"))


def _is_ended(tool: Tool, request: str) -> bool:
    """Whether what the tool is about is to end, and the tool ends nothing: "stop charging" is no wish to charge."""
    ended, own = ended_in(request), _own(tool, request)
    undone = {other for word in ended for other in OPPOSITES.get(word, ())}
    ends = own & ((_ENDS | _OFF | undone) - ended) or own >= _BOTH
    return bool(ended & own) and not ends and not any(is_neutral(frozenset(words_of(n))) for n in _properties(tool))


def _is_off(tool: Tool, request: str) -> bool:
    """Whether what the tool does is wanted off: "child lock off" is no wish to lock."""
    does = set(stems(tool.name)[:1]) & (_ON | _OFF)
    takes = any(is_neutral(frozenset(words_of(name))) for name in _properties(tool))
    return not takes and any(word == "off" and stem(one) in does for one, word in pairwise(words_of(request)))


def _is_in(tool: Tool, request: str) -> bool:
    """Whether the tool takes something out of what the request wants it in: `out_of_service`."""
    match = re.search(r"\bout of (\w+)", " ".join(words_of(tool.name)))
    if match is None:
        return False
    said = " ".join(words_of(request))
    return f"out of {match[1]}" not in said and re.search(rf"\b(?:in|into) {re.escape(match[1])}\b", said) is not None


def counterpart(tool: Tool, tools: Iterable[Tool]) -> tuple[Tool, str] | None:
    """The tool that does the opposite of this one by its name, if there is one, and the word that tells this one."""
    mine = stems(tool.name)
    for other in tools:
        theirs = stems(other.name)
        only, others = set(mine) - set(theirs), set(theirs) - set(mine)
        for word in only:
            if len(only) == len(others) == 1 and OPPOSITES.get(word, frozenset()) & others:
                return other, word
    return None


def says(word: str, request: str) -> bool:
    """Whether the request says this word, another opposite of its opposites, or that something is to be on or off."""
    asked = set(stems(request))
    alike = {word} | {each for other in OPPOSITES.get(word, ()) for each in OPPOSITES.get(other, ())}
    wanted = polarity_of(request)
    return bool(asked & alike) or (wanted is True and word in _ON) or (wanted is False and word in _OFF)


def _properties(tool: Tool) -> list[str]:
    return list(tool.parameters.schema.get("properties", {}))
