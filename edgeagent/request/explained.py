"""Explained: does a tool explain what a request says is to be done, and to what? By words; knows no models.

Law: what a tool's options and the names of its arguments explain is where and how much, never what. To "water the front
lawn" is nothing that a mower does, though it knows the lawn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from edgeagent.core.agent import Tool
from edgeagent.request.language import ENGLISH, word_set
from edgeagent.request.lexical import is_prefix, kin, options_in, purpose, stem_set, stems
from edgeagent.request.parts.strange import GENERIC
from edgeagent.request.parts.words import ARTICLES, Word
from edgeagent.request.polarity import OPPOSITES

_LIGHT = stem_set(ENGLISH.verbs.light)
"""Verbs that are said of any tool."""

_POLITE = stem_set(ENGLISH.verbs.polite)
_ACTS = {each for words in ENGLISH.verbs.acts.values() for each in stem_set(words)}
_DOING = (_ACTS | OPPOSITES.keys()) - _LIGHT - _POLITE - stem_set(ENGLISH.verbs.places)
"""Words that say what is to be done wherever they stand, but behind an article: `the heating` is a thing."""

_PARTICLES = frozenset(("up", "down"))
"""Beside a verb that is known they say nothing new: `heat it up`."""


_VAGUE = GENERIC - _DOING - _LIGHT - stem_set(ENGLISH.verbs.places)
"""Words that name no thing."""


FORM_CHARS = 4
"""The letters of a word that is short for longer ones, but of no others."""

_ENDINGS = word_set("er ers or ors ing ings ed ion ions y al s es en ness ment")


class Explained(NamedTuple):
    """What of an order a tool explains.

    `undone` are the words that say what is to be done and are none of the tool's; `unmeant` those that name a thing by
    a word that else says what is to be done. `has_thing`: whether a word is the tool's own that names a thing, and
    stands not only in its options and arguments.
    """

    undone: tuple[str, ...] = ()
    unmeant: tuple[str, ...] = ()
    has_thing: bool = False


ALL_EXPLAINED = Explained(has_thing=True)


def explained(tool: Tool, said: Sequence[Word], values: Collection[str]) -> Explained:
    """What the tool explains of these words. `values` are the stems of what its arguments got."""
    own = own_words(tool)
    words = [word for word in said if stems(word.text) and word.stem not in _POLITE]
    behind = {place for place, word in enumerate(said) if place and said[place - 1].folded in ARTICLES}
    things = {id(said[place]) for place in behind}
    known = _of_tool(tool) | set(values)
    first = words[0] if words and words[0].stem not in values else None
    doing = [word for word in words if id(word) not in things and _does(word, is_first=word is first)]
    undone = [word.stem for word in doing if not _is_known(word, known)]
    if len(undone) < len(doing):
        undone = [each for each in undone if each not in _PARTICLES]
    return Explained(
        tuple(dict.fromkeys(undone)),
        tuple(w.stem for w in words if id(w) in things and w.stem in _DOING and not is_alike(w.stem, known)),
        any(is_alike(word.stem, own) for word in words),
    )


def own_words(tool: Tool) -> frozenset[str]:
    """The words of a tool's name and purpose that name a thing, and are not only those of its options and arguments."""
    schema, named = tool.parameters.schema, set(stems(tool.name))
    verbs = {each for text in (tool.name, purpose(tool)) for each in stems(text)[:1] if each in _DOING | _LIGHT}
    places = {word for option in options_in(schema) for word in stems(option)}
    places |= {word for name in schema.get("properties", {}) for word in stems(name) if word not in named}
    return frozenset({*named, *stems(purpose(tool))} - places - verbs - _VAGUE)


def is_alike(word: str, known: Iterable[str]) -> bool:
    """Whether a stem is one of these, means about the same, or is a part of one."""
    known = set(known)
    return word in known or any(_is_form(word, each) for each in known) or bool(kin(word) & known)


def _is_form(one: str, other: str) -> bool:
    """Whether one word is a form of the other, or short for it: `heater` of heat, `temp`; a window is none of wind."""
    short, long = sorted((one, other), key=len)
    behind = long[len(short) :]
    return is_prefix(one, other) and (len(short) > FORM_CHARS or len(behind) > FORM_CHARS or behind in _ENDINGS)


def _is_known(word: Word, known: Collection[str]) -> bool:
    """Whether a word, or a part of one with a hyphen, is known."""
    return any(is_alike(each, known) for each in (word.stem, *stems(word.text)))


def _of_tool(tool: Tool) -> frozenset[str]:
    return frozenset({*stems(tool.name), *stems(purpose(tool)), *(w for each in tool.examples for w in stems(each))})


def _does(word: Word, *, is_first: bool) -> bool:
    return word.stem in _DOING or (is_first and word.stem not in GENERIC and word.stem not in _LIGHT)
