"""Units of measure by their words, and which an argument declares. No numbers, no requests."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from edgeagent.request.lexical import stem


class Unit(NamedTuple):
    """A kind of quantity, and how many of its first unit this one is."""

    kind: str
    factor: Decimal


_WORDS = (
    ("time", "0.001", "ms millisecond milliseconds"),
    ("time", "1", "s sec secs second seconds"),
    ("time", "60", "min mins minute minutes"),
    ("time", "3600", "h hr hrs hour hours"),
    ("days", "1", "day days"),
    ("days", "7", "week weeks"),
    ("months", "1", "month months"),
    ("months", "12", "year years"),
    ("temperature", "1", "° c degree degrees celsius"),
    ("fahrenheit", "1", "f fahrenheit"),
    ("share", "1", "% percent"),
    ("length", "0.001", "mm millimeter millimeters millimetre millimetres"),
    ("length", "0.01", "cm centimeter centimeters centimetre centimetres"),
    ("length", "1", "m meter meters metre metres"),
    ("length", "1000", "km kilometer kilometers kilometre kilometres"),
    ("length", "1609.344", "mile miles"),
    ("length", "0.3048", "foot feet ft"),
    ("length", "0.0254", "inch inches"),
    ("length", "0.9144", "yard yards"),
    ("volume", "0.001", "ml milliliter milliliters millilitre millilitres"),
    ("volume", "1", "l liter liters litre litres"),
    ("volume", "3.785411784", "gallon gallons"),
    ("mass", "0.001", "g gram grams"),
    ("mass", "1", "kg kilogram kilograms kilo kilos"),
    ("mass", "0.45359237", "lb lbs pound pounds"),
)
UNITS: dict[str, Unit] = {
    stem(word): Unit(kind, Decimal(factor)) for kind, factor, words in _WORDS for word in words.split(" ")
}
"""Units by the stems of their words."""

PERCENT = UNITS["%"]
