"""Strange words of a request: those that name something of which nothing that is known speaks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from edgeagent.request.language import ENGLISH, word_set
from edgeagent.request.lexical import is_prefix, kin, stem, words_of
from edgeagent.request.parts.dates import speaks_of_time
from edgeagent.request.parts.units import UNITS
from edgeagent.request.parts.words import Word, Words

_TELLERS = word_set("i we it he she they there my our")
_TELLS = word_set("is are was were am")


def _generic() -> frozenset[str]:
    words, polarity, verbs = ENGLISH.words, ENGLISH.polarity, ENGLISH.verbs
    told = [words.stop, words.function, words.prepositions, words.commands, words.indefinite, words.generic]
    told += [polarity.on, polarity.off, polarity.opposites, verbs.weak, verbs.polite, verbs.particles]
    told += [*verbs.acts.values(), *ENGLISH.numbers.words, *ENGLISH.numbers.times, *ENGLISH.numbers.fractions]
    told += [*ENGLISH.numbers.groups, *ENGLISH.numbers.parts, *ENGLISH.numbers.ordinals, ENGLISH.texts.messages]
    told += [ENGLISH.followup.more, ENGLISH.followup.less, ENGLISH.followup.filling]
    return frozenset(stem(word) for word in words_of(" ".join(told))) | UNITS.keys()


GENERIC = _generic()
"""Stems that name no thing: words of any sentence, verbs that ask for something, numbers and units."""


def strange_words(said: Words, known: Collection[str], taken: Sequence[tuple[int, int]]) -> list[Word]:
    """The words that neither `known` stems nor what is `taken` from the request explain.

    What only tells how things are, beside what is asked for, explains itself: "the plants are thirsty, open the valve".
    """
    found, clauses = list[Word](), _clauses(said.words)
    for clause in clauses:
        is_told = clause[0].folded in _TELLERS or any(word.folded in _TELLS for word in clause)
        verb = 1 if clause is clauses[0] else 0  # What is to be done may be said in any word.
        for word in () if is_told and len(clauses) > 1 else clause[verb:]:
            parts = [stem(each) for each in words_of(word.text) if len(each) > 1 and not each.isdecimal()]
            is_taken = any(begin < word.end and word.begin < end for begin, end in taken)
            is_named = is_taken or word.is_article or speaks_of_time(word.text)
            if not is_named and not all(_is_known(each, known) for each in parts):
                found.append(word)
    return found


def _clauses(words: Sequence[Word]) -> list[list[Word]]:
    """The words between marks."""
    clauses: list[list[Word]] = []
    for word in words:
        if word.apart or not clauses:
            clauses.append([])
        clauses[-1].append(word)
    return clauses


def _is_known(word: str, known: Collection[str]) -> bool:
    is_like = any(is_prefix(word, each) for each in known)
    return is_like or word in GENERIC or word in known or bool(kin(word) & set(known))
