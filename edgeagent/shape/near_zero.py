"""Is a number so near to zero that a float does not hold it? Then it is refused, for 0 is another number.

A float below 2.2e-308 keeps ever fewer digits. What it keeps to a part in 64 passes: all that Python and others write
of their own floats, such as 4.9e-324.
"""

from __future__ import annotations

import re
from decimal import Decimal

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?")

NORMAL_MIN = 2.2250738585072014e-308
"""The smallest float that keeps all its digits."""

PART = 64

SHORT = 300
"""A number of fewer characters is near zero only with an exponent."""


def why_not_held(text: str) -> str:
    """Say why a float does not hold a decimal number, or a number among others in a text; nothing if it does."""
    if len(text) <= SHORT and "e-" not in text and "E-" not in text:
        return ""
    return next((why for each in _NUMBER.finditer(text) if (why := _why(each[0]))), "")


def _why(literal: str) -> str:
    number = float(literal)
    if number >= NORMAL_MIN or not re.search("[1-9]", literal.lower().partition("e")[0]):
        return ""
    shown = literal if len(literal) <= 40 else f"{literal[:40]}…"
    if number == 0:
        return f"{shown} is nearer to 0 than any number that is kept here, which is 5e-324"
    written, kept = Decimal(literal), Decimal(number)
    if written == Decimal(repr(number)) or abs(written - kept) * PART <= written:
        return ""
    return f"{shown} is so near to 0 that its digits are not kept; {number!r} is the nearest"
