"""What is a threshold for "no call" worth? Requests of one set that want a call, against those of another that do not.

The threshold is put where a given share of the first is refused, wrongly; what it refuses of the second is the figure.
That is how a detector is judged whatever threshold it was given; it says nothing of how the threshold is found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.accuracy.tally import Result, wilson

WRONGLY_REFUSED = 0.10
"""The share of the first set that may be refused."""


@dataclass(frozen=True)
class Point:
    """Where the threshold lies, in nats over what was needed; how many of each set are refused there."""

    threshold: float
    wrongly_refused: int
    wanted: int
    refused: int
    unwanted: int

    def summary(self) -> dict[str, Any]:
        """As JSON; null for a threshold that the rules alone set."""
        low, high = wilson(self.refused, self.unwanted)
        return {
            "threshold": round(self.threshold, 3) if math.isfinite(self.threshold) else None,
            "wrongly_refused": {"count": self.wrongly_refused, "of": self.wanted},
            "no_call": {"count": self.refused, "of": self.unwanted, "low": round(low, 3), "high": round(high, 3)},
        }


def operating_point(wanted: Sequence[float], unwanted: Sequence[float], share: float = WRONGLY_REFUSED) -> Point:
    """The highest threshold at which at most this share of `wanted` is refused. Neither may be empty.

    Margins below the threshold are refused; those of minus infinity always are, and may by themselves be more.
    """
    threshold = sorted(wanted)[min(math.floor(share * len(wanted)), len(wanted) - 1)]
    return Point(threshold, _refused(wanted, threshold), len(wanted), _refused(unwanted, threshold), len(unwanted))


def _refused(margins: Sequence[float], threshold: float) -> int:
    return sum(margin < threshold or margin == -math.inf for margin in margins)


def margins(results: Sequence[Result]) -> list[float] | None:
    """By how much a call was meant in each; None for an engine that does not tell."""
    told = [each.answered.margin for each in results]
    known = [margin for margin in told if margin is not None]
    return known if len(known) == len(told) else None
