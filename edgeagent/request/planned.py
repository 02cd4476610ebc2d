"""Planned: what was made of a request: the calls, or what is said, and a call in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from edgeagent.request.evidence import Evidence, settled
from edgeagent.request.language import ENGLISH, SentenceTable
from edgeagent.request.lexical import Scores
from edgeagent.request.said import tongue_in

NOTHING_SAID = Evidence()


@dataclass(frozen=True)
class PlannedCall:
    """A call of one of the tools; what the request says of its arguments; and what says that one is meant."""

    tools: tuple[str, ...]
    evidence: Evidence = NOTHING_SAID
    scores: Scores = ()
    signs: Mapping[str, float] = field(default_factory=dict)

    def is_like(self, other: PlannedCall) -> bool:
        """Whether it is the same call that the other one is, as far as the request says."""
        mine, others = self.evidence, other.evidence
        return (self.tools, mine.narrowed, mine.given) == (other.tools, others.narrowed, others.given)


@dataclass(frozen=True)
class Plan:
    """The calls to be made, or the text to be said; with neither, the model answers in words."""

    calls: tuple[PlannedCall, ...] = ()
    text: str = ""
    scores: Scores = ()
    proposed: PlannedCall | None = None
    """The call that the text proposes, if it proposes one."""
    is_refusal: bool = False
    """Whether the text says that nothing was done, since the request forbids it."""

    @property
    def why(self) -> tuple[tuple[str, str], ...]:
        """What the arguments of each call were held to."""
        return tuple((f"{call.tools[0]}.{name}", why) for call in self.calls for name, why in call.evidence.why)


def sentences_for(request: str) -> SentenceTable:
    """What is said without a model, in the language of the request."""
    return tongue_in(request).sentences


def in_words(call: PlannedCall, sentences: SentenceTable = ENGLISH.sentences) -> str:
    """The likeliest call as one says it: `set valve (valve north, open yes)`."""
    evidence = settled(call.evidence, {})
    told = []
    for _, name, text in evidence.narrowed:
        values = (json.loads(text) or {}).get("enum", ())
        if values:
            value = values[0]
            shown = (sentences.yes if value else sentences.no) if isinstance(value, bool) else value
            told.append(f"{name.replace('_', ' ')} {shown}")
    named = call.tools[0].replace("_", " ")
    return f"{named} ({', '.join(told)})" if told else named
