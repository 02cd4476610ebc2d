"""Candidates of a text argument: the parts of a request that speak most for being it, by the weights of their signs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from edgeagent.request.language import ENGLISH, word_set
from edgeagent.request.parts.assign import Candidate
from edgeagent.request.parts.declared import Argument
from edgeagent.request.parts.signs import TextSign
from edgeagent.request.parts.text_signs import signs_of
from edgeagent.request.parts.texts import Part
from edgeagent.request.parts.words import Word, Words

UNSAID, UNSAID_MAX = 0.6, 3
"""Nats against an only text for each word of the request that nothing says then, and how many are counted."""

TAKEN = 4.0
"""Nats against a part of which another argument has a piece."""

GIVEN = 4.0
"""Nats of evidence from which on an optional text is given."""

PARTS_KEPT = 6
"""The parts of a request that stay, best first: the model compares no more for an argument.

On even rows of BFCL twelve were right no more often than four."""

WEIGHTS = ENGLISH.texts.weights
"""Nats by sign, fitted as a conditional logit (L2 0.5) on required texts.

On the even rows of BFCL's `simple_python`, `multiple` and `live_simple`, and of needle. What is said of times, tails
and the rest was raised by hand, and addresses are ours: those rows have few of either.
"""

_INDEFINITE = word_set(ENGLISH.words.indefinite)
"""Words that name nothing: with these alone it is open what a text is."""

_WHATEVER = word_set(ENGLISH.words.whatever)


def text_candidates(
    argument: Argument,
    said: Words,
    parts: Iterable[Part],
    spoken: frozenset[str],
    taken: Sequence[Candidate] = (),
    *,
    is_only: bool = False,
) -> list[Candidate]:
    """The parts that the argument may be, with their weights, best first; `PARTS_KEPT` of them.

    `taken` is what other arguments have from the request; `is_only` says that no other argument is a text, so that a
    part that leaves out much of what is said is hardly the one.
    """
    unsaid = [
        each
        for each in _telling(said, spoken | argument.words)
        if not any(t.begin < each.end and each.begin < t.end for t in taken)
    ]
    found = []
    for part in parts:
        signs = signs_of(part, argument, said, spoken)
        if _is_open(part, said) or (argument.required and _is_the_tools(part, signs)):
            continue
        weight = sum(WEIGHTS[sign] for sign in signs)
        if is_only:
            left = sum(not (part.begin <= each.begin and each.end <= part.end + 1) for each in unsaid)
            weight -= UNSAID * min(left, UNSAID_MAX)
        candidate = Candidate(said.spelled(part.begin, part.end), part.begin, part.end, weight, part.kind)
        if any(candidate.overlaps(each) for each in taken):
            candidate = replace(candidate, weight=weight - TAKEN)
        found.append(candidate)
    found.sort(key=lambda each: (-each.weight, each.begin, each.end))
    return found[:PARTS_KEPT]


def _is_open(part: Part, said: Words) -> bool:
    """Whether a part names nothing: `something for me`, `whatever you like`."""
    inside = [word for word in said.words if part.begin <= word.begin and word.end <= part.end]
    telling = [word for word in inside if not word.is_cut and word.folded not in _INDEFINITE]
    left = [word.folded for word in said.words if word.end <= part.end]
    return not _WHATEVER.isdisjoint(left) or (not telling and any(word.folded in _INDEFINITE for word in inside))


def _is_the_tools(part: Part, signs: Sequence[TextSign]) -> bool:
    """Whether a part only says what the tool is about: `a timer`, for a timer's name."""
    by_itself = (
        TextSign.AN_EXAMPLE in signs or part.kind in ("quoted", "time") or any(char.isdigit() for char in part.text)
    )
    return TextSign.ALL_WORDS_ARE_THE_TOOLS in signs and not by_itself


def _telling(said: Words, spoken: frozenset[str]) -> list[Word]:
    """The words of a request that say something which its tool does not: without the word that commands."""
    words = [word for word in said.words if not word.is_cut and not word.is_article and word.begin > 0]
    return [word for word in words if word.stem not in spoken and word.folded not in _INDEFINITE]
