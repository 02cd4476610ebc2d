"""What kind of act does a request want, and of what kind are a tool's? By their verbs; English only.

Some kinds exclude each other: what asks to delete is not served by a tool that creates, nor what asks to look by one
that changes something. A verb whose kind is not certain has none, and a tool that is named by no such verb excludes
nothing. Knows no models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from edgeagent.core.agent import Tool
from edgeagent.request.language import ENGLISH, Act, word_set
from edgeagent.request.lexical import options_in, purpose, stem, stem_set, stems, words_of

_VERBS = {word: act for act, words in ENGLISH.verbs.acts.items() for word in words.split()}
_ACTS = {stem(verb): act for verb, act in _VERBS.items()}
_WEAK = stem_set(ENGLISH.verbs.weak)
"""Verbs that say of a tool what it does, and little of a request: "get me a taxi", "turn the page"."""

_EXCLUDED: Mapping[Act, frozenset[Act]] = {
    "read": frozenset(("make", "change", "remove", "start", "stop")),
    "make": frozenset(("remove", "start", "stop")),
    "change": frozenset(("remove",)),
    "remove": frozenset(("make", "read", "start", "change")),
    "start": frozenset(("stop", "remove")),
    "stop": frozenset(("start", "make")),
}
"""What serves none of an act: tools that only do these."""

_POLITE = stem_set(ENGLISH.verbs.polite)
_PARTICLES = word_set(ENGLISH.verbs.particles)
"""Behind a verb they make another one of it: to check in is not to look. Nor is what starts brewing about starting;
what stops brewing is about stopping."""


def act_of(request: str) -> Act | None:
    """What the request wants done, by the first word that says something; None if that is not certain."""
    spelled = words_of(request)
    told = [word for word in stems(request) if word not in _POLITE]
    act = _ACTS.get(told[0]) if told and told[0] not in _WEAK else None
    if act is None:
        return None
    place = [stem(word) for word in spelled].index(told[0])
    behind = "".join(spelled[place + 1 : place + 2])
    return None if behind in _PARTICLES or (behind.endswith("ing") and act != "stop") else act


def acts_of(tool: Tool) -> frozenset[Act]:
    """What a tool does: by the words of its name, the first of its description, its options, and by its examples."""
    words = [*stems(tool.name), *stems(purpose(tool))[:1]]
    words += [word for option in options_in(tool.parameters.schema) for word in stems(option)]
    shown = (act_of(example) for example in tool.examples)
    return frozenset(_known(words)) | {act for act in shown if act is not None}


def options_for(act: Act | None, options: Sequence[str]) -> list[str]:
    """The options that are verbs of this act: `delete` for what is to be removed."""
    return [option for option in options if act is not None and _VERBS.get(option.casefold()) == act]


def excludes(act: Act | None, acts: frozenset[Act]) -> bool:
    """Whether a tool of these acts does only what does not serve this one."""
    return act is not None and bool(acts) and acts <= _EXCLUDED[act]


def _known(words: Iterable[str]) -> Iterable[Act]:
    return (_ACTS[word] for word in words if word in _ACTS)
