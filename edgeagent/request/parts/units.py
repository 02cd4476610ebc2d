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

DEGREES, CELSIUS, FAHRENHEIT = "temperature", "celsius", "fahrenheit"
"""Kinds of temperatures: of either scale, and of one."""

_SCALES = frozenset((DEGREES, CELSIUS, FAHRENHEIT))


def is_comparable(one: Unit, other: Unit) -> bool:
    """Whether a number in one unit can be told in the other. Degrees are those of the scale that is meant."""
    if one.kind == FAHRENHEIT:
        return other.kind in (FAHRENHEIT, CELSIUS)
    return one.kind == other.kind or {one.kind, other.kind} <= _SCALES


def converted(value: Decimal, unit: Unit, other: Unit) -> Decimal:
    """A number in a unit told in a comparable one; of another scale to a tenth of a degree."""
    match unit.kind, other.kind:
        case "fahrenheit", "celsius":
            return ((value - 32) * 5 / 9).quantize(Decimal("0.1"))
        case "celsius", "fahrenheit":
            return (value * 9 / 5 + 32).quantize(Decimal("0.1"))
    return value * unit.factor / other.factor


PERCENT = UNITS["%"]
