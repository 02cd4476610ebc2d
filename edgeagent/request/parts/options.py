"""Options and truth values: which of them does a request name?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from edgeagent.core.quoting import names_option
from edgeagent.request.language import ENGLISH, word_set
from edgeagent.request.lexical import PREFIX_WEIGHT, is_prefix, stem, stem_set, stems, synonyms, words_of
from edgeagent.request.parts.declared import Argument, name_stems
from edgeagent.request.polarity import is_neutral, polarity_with
from edgeagent.request.said import as_said

ALIKE = 0.3
"""How much of an option's word is said by one that means about the same: less than by any of its letters."""

_WORD = re.compile(r"[^\W_]+")
_OPPOSITES = ENGLISH.truth.opposites
_SWITCHED = {
    True: ENGLISH.patterns.compiled("switched_on"),
    False: ENGLISH.patterns.compiled("switched_off"),
}
_LETTERS = frozenset(word for word in word_set(ENGLISH.words.stop) if len(word) == 1)
_DENIES = word_set(ENGLISH.truth.denies)
_TURNS_ON, _TURNS_OFF = stem_set("enable activate"), stem_set("disable deactivate")
_SAYS_ON, _SAYS_OFF = stem_set("on enabled active activated yes"), stem_set("off disabled inactive deactivated no")
_AUXILIARY = stem_set(ENGLISH.truth.auxiliary)


def named_options(options: Sequence[str], request: str) -> list[str]:
    """The options that the request names best: all that it names alike, or none."""
    said = set(stems(request))
    original = as_said(request)
    shares = {option: max(_share(option, said, each) for each in {request, original}) for option in options}
    best = max(shares.values(), default=0.0)
    return [option for option, share in shares.items() if share == best] if best > 0 else []


def switched(options: Sequence[str], request: str) -> list[str]:
    """The one of two options for on and off that the request means without naming it: `disable it` is off."""
    on, off = ([each for each in options if stem(each.casefold()) in words] for words in (_SAYS_ON, _SAYS_OFF))
    said = set(map(stem, words_of(request)))
    is_on = bool(said & _TURNS_ON) or _SWITCHED[True].search(request) is not None
    is_off = bool(said & _TURNS_OFF) or _SWITCHED[False].search(request) is not None
    is_one = len(on) == len(off) == 1 and is_on is not is_off
    return [] if not is_one else on if is_on else off


def _share(option: str, said: set[str], request: str) -> float:
    """How much of the option's name the request has."""
    if option.casefold() in _LETTERS:
        return float(_is_named(option, request))
    if names_option(option, (request,)):
        return 1.0
    parts = stems(option)
    return sum(_part_share(part, said) for part in parts) / len(parts) if parts else 0.0


def _part_share(part: str, said: set[str]) -> float:
    if part in said:
        return 1.0
    if any(is_prefix(part, each) for each in said):
        return PREFIX_WEIGHT
    return ALIKE if said & synonyms(part) else 0.0


def _is_named(option: str, request: str) -> bool:
    """Whether an option that is also a word of one letter is meant: `belt A`, or `belt a` where nothing follows."""
    behind = rf"(?<=\w )(?:{re.escape(option.upper())}\b|(?i:{re.escape(option)})(?=\s*(?:[.,;:!?]|$|and\b|or\b)))"
    return re.search(behind, request) is not None


def yes_or_no(
    argument: Argument, request: str, spoken: frozenset[str] = frozenset(), named: frozenset[str] = frozenset()
) -> bool | None:
    """Whether the request says that this is so, that it is not, or nothing of it.

    `spoken` are the words of the tool, which say nothing of one of its arguments; `named` are those of its name.
    """
    spelled = [word.casefold() for word in _WORD.findall(request)]
    words = [stem(word) for word in spelled]
    parts = name_stems(argument.name)
    pairs = [(stem(yes), stem(no)) for yes, no in _OPPOSITES]
    telling = [part for part in parts if part not in _AUXILIARY and part != "on"] or parts
    telling = [part for part in telling if part not in spoken] or telling
    places = [n for n, word in enumerate(words) if any(word == part or is_prefix(word, part) for part in telling)]
    yes = bool(places)
    no = any(no in words for part in parts for yes_word, no in pairs if yes_word == part)
    if any(part == yes_word for part in parts for yes_word, _ in pairs):
        yes = yes or _SWITCHED[True].search(request) is not None
        no = no or _SWITCHED[False].search(request) is not None
    elif places and all(_DENIES & set(spelled[max(0, place - 3) : place]) for place in places):
        yes, no = False, True
    if not yes and not no and is_neutral(frozenset(parts)):
        return polarity_with(named, request)
    return None if yes == no else yes
