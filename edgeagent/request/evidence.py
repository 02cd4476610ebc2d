"""Evidence of a request about a tool's arguments: what they are held to, what is missing, what is left open.

Where words do not decide between texts, the candidates stay open for a model to compare (`settled`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from edgeagent.core.from_user import Narrowed
from edgeagent.core.values import canonical_json
from edgeagent.request.explained import ALL_EXPLAINED, Explained
from edgeagent.request.lexical import stems
from edgeagent.request.parts.assign import LEAD_MAX, Candidate, dealt

LIKELIHOOD_WEIGHT, WORD_BONUS = 0.6, 0.5
"""What a nat of the model's log-probability of a value counts beside the weights of the words, and nats for each word
of it, since of two texts the longer one is always less likely. Chosen on the even rows of BFCL."""

WEIGHT_OF_NONE = 3.0
"""Nats that speak for a call of which nothing had to be taken from the request: as for a value that is named."""

STRANGE_MAX = 3
"""Words that name what nobody knows, above which more make no difference."""

UNDONE_MAX = 2
"""Words for what the tool does not do, above which more make no difference."""

FREE, LEFT_OUT = "free", "left out"
"""Why an argument is not held to anything: the model fills it, or its default stands."""


@dataclass(frozen=True)
class Open:
    """A text argument and the parts of the request that it may be, best first by their words."""

    argument: str
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Evidence:
    """What a request says: limits on arguments, optional ones that it gives, and what it leaves open (or nothing).

    `open` are the texts, if words have not decided what one of them is; until they are settled, `narrowed` holds them
    to all of their parts. `why` tells for each argument what its limit comes from, and `dealt` has what was taken from
    the request. `asked` are the request's stems, `unknown` those of which the tool does not speak.
    """

    narrowed: tuple[Narrowed, ...] = ()
    given: tuple[str, ...] = ()
    missing: str = ""
    open: tuple[Open, ...] = ()
    why: tuple[tuple[str, str], ...] = ()
    dealt: Mapping[str, Candidate] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    has_unused: bool = False
    """Whether a number or a time is said that no argument takes."""
    strange: tuple[str, ...] = ()
    """Words that name something of which neither the tool nor any value speaks."""
    explained: Explained = ALL_EXPLAINED
    """What of it the tool explains, of an order."""
    needs: tuple[str, ...] = ()
    """The arguments that must be given."""

    @property
    def sure(self) -> dict[str, float]:
        """What says how sure the values are; nothing of no request.

        `lead` and `said`: by how many nats the least sure value leads, and how many speak for the least said one;
        `unsaid`: the share of the request that neither the tool nor the values have; `strange`: words that name what
        nothing has; `undone`: those that say what is to be done, and not by this tool; `left_out`: optional arguments.
        """
        if not self.asked:
            return {}
        said = {word for _, _, text in self.narrowed for word in stems(text)}
        return {
            "lead": min((each.lead for each in self.dealt.values()), default=LEAD_MAX),
            "said": min((each.weight for each in self.dealt.values()), default=WEIGHT_OF_NONE),
            "unsaid": sum(word not in said for word in self.unknown) / len(self.asked),
            "strange": float(min(len(self.strange), STRANGE_MAX)),
            "undone": float(min(len(self.explained.undone) + len(self.explained.unmeant), UNDONE_MAX)),
            "left_out": float(sum(why == LEFT_OUT for _, why in self.why)),
        }


def settled(evidence: Evidence, likelihoods: Mapping[str, Sequence[float]]) -> Evidence:
    """The evidence with each open argument held to one part, by its words and the log-probabilities of its candidates.

    `likelihoods` has for an open argument one number a candidate, in their order. Where it has none, the words alone
    decide.
    """
    if not evidence.open:
        return evidence
    rows = {each.argument: _weighed(each, likelihoods.get(each.argument)) for each in evidence.open}
    chosen = dealt(rows)
    narrowed = tuple(
        (tool, name, canonical_json({"enum": [chosen[name].value]}) if name in chosen else text)
        for tool, name, text in evidence.narrowed
    )
    compared = {each.argument: len(each.candidates) for each in evidence.open}
    why = tuple(
        (name, f"{chosen[name].why}, compared with {compared[name] - 1}" if name in chosen else reason)
        for name, reason in evidence.why
    )
    return replace(evidence, narrowed=narrowed, open=(), why=why, dealt={**evidence.dealt, **chosen})


def _weighed(question: Open, likelihoods: Sequence[float] | None) -> Sequence[Candidate]:
    """The candidates with what the model's log-probability of each, and its length, count beside the words."""
    if likelihoods is None:
        return question.candidates
    return [
        replace(each, weight=each.weight + LIKELIHOOD_WEIGHT * likely + WORD_BONUS * len(each.value.split()))
        for each, likely in zip(question.candidates, likelihoods, strict=True)
    ]
