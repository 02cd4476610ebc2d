"""Is a call meant at all, and how sure is one? Evidence is weighed by a sum that was fitted once; nothing runs here.

The evidence is what a driver knows of a request and of the tool that fits it best: what the two share in words, and
what its model holds probable. The weights, and from which sum on a call is made, come from outside: they are a model's.
Sums are log-odds, but only on requests like those of the fitting, so a threshold belongs to one set of tools.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from edgeagent.core.agent import Tool
from edgeagent.core.events import CALL_ODDS, CALL_ODDS_NEEDED
from edgeagent.request.lexical import PREFIX_WEIGHT, Scores, is_prefix, purpose, stems, weighted_texts

MISSING = "missing"
"""The piece of evidence that a required argument is not in the request (1) or that none is missing (0)."""

UNRELATED_REFUSED = 0.95
"""The share of unrelated requests that a threshold of an agent's own keeps from calling a tool."""

EXAMPLES_REFUSED = 0.1
"""The share of the author's examples that it may refuse for that, at most."""


@dataclass(frozen=True)
class Weights:
    """What each piece of evidence counts, in nats a unit, and the mean it had where that was fitted.

    Evidence that is not named here counts nothing.
    """

    bias: float
    each: Mapping[str, tuple[float, float]]

    def log_odds(self, signs: Mapping[str, float]) -> float:
        """The sum. Missing evidence counts as the mean, which says nothing either way."""
        return self.bias + sum(
            weight * (signs[name] - mean) for name, (weight, mean) in self.each.items() if name in signs
        )


def probability(log_odds: float) -> float:
    """The probability whose log-odds these are."""
    return 1 / (1 + math.exp(-log_odds)) if log_odds >= 0 else 1 - 1 / (1 + math.exp(log_odds))


def words_shared(tool: Tool, request: str) -> dict[str, float]:
    """How much of the tool's description and of its name the request has: 0 to 1.

    `arguments` is how much of the request is only in the tool's arguments, their options and its examples. An example
    that is the very request does not count, so that examples can be weighed like any other request.
    """
    asked, said, named = (list(dict.fromkeys(stems(text))) for text in (request, purpose(tool), tool.name))
    words = (stems(text) for text, _ in weighted_texts(tool) if text != request)
    known = _share(asked, list(chain.from_iterable(words)))
    return {
        "description": _share(said, asked),
        "name": _share(named, asked),
        "arguments": known - _share(asked, [*said, *named]),
    }


def _share(words: Sequence[str], others: Sequence[str]) -> float:
    if not words:
        return 0.0
    found = (1.0 if w in others else PREFIX_WEIGHT if any(is_prefix(w, o) for o in others) else 0.0 for w in words)
    return sum(found) / len(words)


MARGIN_MAX = 12.0
"""Nats by which a tool leads, above which it makes no difference; also those of an only tool."""


def sureness(scores: Scores, shares: Sequence[float] | None) -> dict[str, float]:
    """What says how sure a call is: how far its tool leads, and how the model chose what it wrote.

    `shares` are the log-probabilities of the tokens that the grammar did not force: none where all were, None where
    nobody knows, and then they say nothing.
    """
    of_tools = [score for name, score in scores if name not in (CALL_ODDS, CALL_ODDS_NEEDED)]
    best, second, *_ = (*sorted(of_tools, reverse=True), -math.inf, -math.inf)
    margin = min(MARGIN_MAX, best - second) if second > -math.inf else MARGIN_MAX
    found = {"margin": margin}
    if shares is None:
        return found
    mean = sum(shares) / len(shares) if shares else 0.0
    return found | {"written": float(len(shares)), "mean": mean, "least": min(shares, default=0.0)}


def threshold(unrelated: Sequence[float], examples: Sequence[float]) -> float:
    """From which log-odds on a call is made, by those of requests that want none and of requests that want one.

    It keeps `UNRELATED_REFUSED` of the unrelated ones from calling, or fewer where it would refuse more than
    `EXAMPLES_REFUSED` of the examples; where there is room between the two it lies in the middle.
    """
    assert unrelated, "a threshold needs requests that want no call"
    above = _quantile(unrelated, UNRELATED_REFUSED)
    if not examples:
        return above
    below = _quantile(examples, EXAMPLES_REFUSED)
    return (above + below) / 2 if above < below else below


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.floor(share * len(ordered)))]
