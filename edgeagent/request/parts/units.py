"""Units of measure by their words, and which an argument declares. No numbers, no requests."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from edgeagent.request.language import ENGLISH
from edgeagent.request.lexical import stem


class Unit(NamedTuple):
    """A kind of quantity, and how many of its first unit this one is."""

    kind: str
    factor: Decimal


UNITS: dict[str, Unit] = {
    stem(word): Unit(kind, Decimal(factor))
    for kind, rows in ENGLISH.units.items()
    for factor, words in rows
    for word in words.split()
}
"""Units by the stems of their words."""

PERCENT = UNITS["%"]
