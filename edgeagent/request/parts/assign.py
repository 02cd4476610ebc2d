"""Deal the pieces of a request out to arguments, together: no piece twice while another would do, and in its order.

Law: the same candidates give the same deal. While each argument can have a piece of its own, no two of one kind get
pieces that overlap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

ORDER_BONUS = 1.5
"""Nats for two neighbours among the arguments that get pieces in the order of the request (in trials 1.5 was best)."""

REUSE_PENALTY = 50.0
"""Nats against a piece that another argument of the kind has: more than any evidence weighs."""

LEAD_MAX = 8.0
"""Nats by which a value leads, above which it makes no difference; also those of an only value."""

BEAM = 144
"""Beginnings of a deal that are kept: more than two arguments of texts have."""


@dataclass(frozen=True)
class Candidate:
    """A value that the request has for an argument, where it stands there, and its weight in nats.

    `lead` is by how much it outweighs the other values that the argument could have, once it is dealt.
    """

    value: Any
    begin: int
    end: int
    weight: float = 0.0
    why: str = ""
    lead: float = LEAD_MAX

    def overlaps(self, other: Candidate) -> bool:
        """Whether the two take a word of the request in common."""
        return self.begin < other.end and other.begin < self.end


def deal(rows: Sequence[Sequence[Candidate]]) -> tuple[int, ...]:
    """Which candidate each argument gets: its place in the argument's row. No row may be empty."""
    beams: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for row in rows:
        grown = [
            (score + _gain(rows, taken, candidate), (*taken, place))
            for score, taken in beams
            for place, candidate in enumerate(row)
        ]
        beams = sorted(grown, key=lambda each: (-each[0], each[1]))[:BEAM]
    return beams[0][1]


def dealt(rows: Mapping[str, Sequence[Candidate]]) -> dict[str, Candidate]:
    """Which candidate each argument gets, by its name, and how far it leads. No row may be empty."""
    places = deal(list(rows.values()))
    return {name: _leading(row, row[place]) for (name, row), place in zip(rows.items(), places, strict=True)}


def _leading(row: Sequence[Candidate], chosen: Candidate) -> Candidate:
    other = max((each.weight for each in row if each.value != chosen.value), default=-math.inf)
    return replace(chosen, lead=min(LEAD_MAX, chosen.weight - other))


def _gain(rows: Sequence[Sequence[Candidate]], taken: tuple[int, ...], candidate: Candidate) -> float:
    held = [row[place] for row, place in zip(rows, taken, strict=False)]
    reused = sum(candidate.overlaps(each) for each in held)
    in_order = bool(held) and held[-1].end <= candidate.begin
    return candidate.weight + ORDER_BONUS * in_order - REUSE_PENALTY * reused
