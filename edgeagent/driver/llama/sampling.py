"""Which of the likely tokens is taken? Greedy, or drawn by a seed; the same seed at the same place draws the same.

The draw depends on the seed and the token's place in the text alone, not on how many draws came before: forced tokens
and cancelled generations do not shift it.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

# A token e**-20 times as likely as the first is never drawn: 262,144 of them together have a chance of 1 in 1,800.
FAINTEST = 20.0

TOP_P = 0.95
"""The share of the likeliest tokens among which is drawn, where nothing else is said."""

Logits = NDArray[np.float32]


def log_share(logits: Logits, token: int) -> float:
    """The log-probability of a token among all."""
    return float(logits[token]) - log_whole(logits)


def log_whole(logits: Logits) -> float:
    """What is taken from a token's logit to have its log-probability."""
    top = float(logits.max())
    return top + math.log(float(np.exp(logits - top).sum(dtype=np.float64)))


class Sampler(Protocol):
    """Takes one token."""

    def pick(self, logits: Logits, place: int) -> int:
        """A token out of the whole vocabulary, for this place in the text."""

    def pick_among(self, logits: Logits, allowed: NDArray[np.int64], place: int) -> int:
        """A token out of the allowed ones."""


class Greedy:
    """The likeliest token; of equally likely ones that with the lowest id."""

    def pick(self, logits: Logits, place: int) -> int:
        return int(logits.argmax())

    def pick_among(self, logits: Logits, allowed: NDArray[np.int64], place: int) -> int:
        return int(allowed[logits[allowed].argmax()])


class Seeded:
    """A draw at a temperature among the likeliest tokens that together have the share `top_p`."""

    def __init__(self, seed: int, *, temperature: float = 0.7, top_p: float = TOP_P) -> None:
        if not (temperature > 0 and 0 < top_p <= 1):
            raise ValueError(f"temperature {temperature} must be above 0, and top_p {top_p} in 0 < p <= 1")
        self._seed = seed & (2**64 - 1)
        self._temperature = temperature
        self._top_p = top_p

    def pick(self, logits: Logits, place: int) -> int:
        likely = np.flatnonzero(logits >= logits.max() - np.float32(FAINTEST * self._temperature))
        return self._draw(logits, likely, place, again=0)

    def pick_among(self, logits: Logits, allowed: NDArray[np.int64], place: int) -> int:
        those = logits[allowed]
        likely = allowed[those >= those.max() - np.float32(FAINTEST * self._temperature)]
        return self._draw(logits, likely, place, again=1)

    def _draw(self, logits: Logits, likely: NDArray[np.int64], place: int, *, again: int) -> int:
        order = likely[np.argsort(-logits[likely], kind="stable")]
        weights = np.exp((logits[order].astype(np.float64) - float(logits[order[0]])) / self._temperature)
        shares = np.cumsum(weights / weights.sum())
        kept = int(np.searchsorted(shares, self._top_p)) + 1
        # Philox is counter-based: (seed, place, again) names the number that is drawn.
        chance = np.random.Generator(np.random.Philox(key=self._seed, counter=[place, again, 0, 0])).random()
        return int(order[min(int(np.searchsorted(shares, chance * shares[min(kept, len(order)) - 1])), len(order) - 1)])


GREEDY = Greedy()


def sampler_of(seed: int, temperature: float, top_p: float) -> Sampler:
    """The sampler of an ask: greedy at temperature 0."""
    return Seeded(seed, temperature=temperature, top_p=top_p) if temperature else GREEDY
