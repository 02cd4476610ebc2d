"""Numbers in llama.cpp's grammars: exactly the integers and decimals that lie within bounds."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from msgspec import Struct

from edgeagent.errors import GrammarError
from edgeagent.grammar.gbnf_rules import RuleBook
from edgeagent.grammar.gbnf_text import group, times

# Digits of a number without bounds: more than a double distinguishes, few enough to end.
DIGITS_MAX = 20
# Significant digits of a number with bounds: that many always survive a double, so none rounds onto an open bound.
SIGNIFICANT_MAX = 15
# Multiples that are written out one by one; beyond it the decoder checks.
MULTIPLES_MAX = 1_024

Digits = str | None  # Digits after the point that a fraction is compared with; None compares with nothing.


def integers(low: int, high: int) -> list[str]:
    """Return the alternatives that spell exactly the integers from `low` to `high`, without leading zeros or -0."""
    options: list[str] = []
    if low < 0:
        negative = _naturals(max(1, -high), -low)
        options.append('"-" ' + group(negative))
    if high >= 0:
        options.extend(_naturals(max(0, low), high))
    return options


def _naturals(low: int, high: int) -> list[str]:
    options: list[str] = []
    full: list[int] = []  # Lengths of which every number lies inside.
    for length in range(len(str(low)), len(str(high)) + 1):
        least, most = (0 if length == 1 else 10 ** (length - 1)), 10**length - 1
        if length > 1 and low <= least and most <= high:
            full.append(length)
        else:
            options.extend(_same_length(str(max(low, least)), str(min(high, most))))
    if full:
        options.append(f"[1-9] {times('[0-9]', full[0] - 1, full[-1] - 1)}")
    return options


def _same_length(low: str, high: str) -> list[str]:
    """Alternatives for the numbers between two of the same number of digits."""
    if not low:
        return [""]
    if set(low) == {"0"} and set(high) == {"9"}:
        return [times("[0-9]", len(low), len(low))]
    if low[0] == high[0]:
        return [f'"{low[0]}" {group(_same_length(low[1:], high[1:]))}'.strip()]
    rest = len(low) - 1
    options = []
    first, last = int(low[0]), int(high[0])
    if set(low[1:]) - {"0"}:
        options.append(f'"{first}" {group(_same_length(low[1:], "9" * rest))}')
        first += 1
    if set(high[1:]) - {"9"}:
        options.append(f'"{last}" {group(_same_length("0" * rest, high[1:]))}')
        last -= 1
    if first <= last:
        digit = f"[{first}-{last}]" if first < last else f'"{first}"'
        options.append(f"{digit} {times('[0-9]', rest, rest)}".strip())
    return options


class _Edge(Struct, frozen=True):
    """One end of a range of positive decimals: its whole part, its digits after the point, and whether it is open."""

    whole: int
    digits: str
    is_open: bool


def _edge(number: Decimal, is_open: bool) -> _Edge:
    whole = int(number.to_integral_value(ROUND_FLOOR))
    fraction = format(number - whole, "f").partition(".")[2].rstrip("0")
    return _Edge(whole, fraction, is_open)


def integer(rules: RuleBook, schema: Any, path: str) -> str:
    low, high, step = schema["minimum"], schema["maximum"], schema.get("multipleOf")
    if step is None:
        return rules.named(path or "integer", " | ".join(integers(low, high)))
    first = -(-low // step) * step
    if (high - first) // step < MULTIPLES_MAX:
        return rules.constants(list(range(first, high + 1, step)), path)
    rules.relax(path, "multipleOf", f"llama.cpp's grammars do not count in steps of {step}")
    return rules.named(path or "integer", " | ".join(integers(low, high)))


def number(rules: RuleBook, schema: Any, path: str) -> str:
    if not schema.keys() & {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}:
        whole = f'("0" | [1-9] [0-9]{{0,{DIGITS_MAX - 1}}})'
        # Two digits of exponent: with twenty before the point the value stays inside a double.
        return rules.named("number", f'"-"? {whole} ("." [0-9]{{1,{DIGITS_MAX}}})? ([eE] [-+]? [0-9]{{1,2}})?')
    low, low_open = _bound(schema, "minimum", "exclusiveMinimum")
    high, high_open = _bound(schema, "maximum", "exclusiveMaximum")
    options: list[str] = []
    if low is None or low < 0:
        # Mirrored, and without zero: -0 is never written.
        above = _Edge(0, "", True) if high is None or high >= 0 else _edge(-high, high_open)
        below = None if low is None else _edge(-low, low_open)
        options += [f'"-" {group([option])}' for option in _decimals(rules, above, below)]
    if high is None or high >= 0:
        above = _Edge(0, "", False) if low is None or low < 0 else _edge(low, low_open)
        options += _decimals(rules, above, None if high is None else _edge(high, high_open))
    if not options:
        raise GrammarError(f"{rules.place(path)}: no number of {SIGNIFICANT_MAX} digits lies inside the bounds")
    return rules.named(path or "number", " | ".join(options))


def _decimals(rules: RuleBook, low: _Edge, high: _Edge | None) -> list[str]:
    """Alternatives for the decimals between two that are not negative."""
    top = 10 ** max(DIGITS_MAX, len(str(low.whole)) + 1) - 1 if high is None else high.whole
    if high is not None and low.whole == high.whole:
        return _fraction(rules, low, high)
    options = _fraction(rules, low, None)
    last = top if high is None else top - 1
    for length in range(len(str(low.whole + 1)), len(str(last)) + 1):
        first, most = max(low.whole + 1, 10 ** (length - 1)), min(last, 10**length - 1)
        if first <= most:
            point = f'("." {times("[0-9]", 1, _places(most))})?' if _places(most) else ""
            options.append(f"{group(integers(first, most))} {point}".strip())
    return options + (_fraction(rules, None, high) if high is not None else [])


def _fraction(rules: RuleBook, low: _Edge | None, high: _Edge | None) -> list[str]:
    """Alternatives for one whole part, that of the ends given, and the fractions that lie inside."""
    edge = low or high
    assert edge is not None
    low_digits = None if low is None or (low.digits == "" and not low.is_open) else low.digits
    high_digits = None if high is None else high.digits
    opens = low is not None and low.is_open, high is not None and high.is_open
    state = _Fraction(low_digits, high_digits, *opens)
    after = _digits(rules, state, _places(edge.whole))
    options = [f'"{edge.whole}"'] if state.may_end() else []
    return options + ([f'"{edge.whole}." {after}'] if after else [])


def _digits(rules: RuleBook, state: _Fraction, places: int) -> str:
    """Return what one or more further digits are made of; nothing if none fits."""
    if places == 0:
        return ""
    if state.low is None and state.high is None:
        return times("[0-9]", 1, places)
    options: list[str] = []
    for first, last, following in state.steps():
        rest = _digits(rules, following, places - 1)
        digit = f'"{first}"' if first == last else f"[{first}-{last}]"
        if following.may_end():
            options.append(digit)
        if rest:
            options.append(f"{digit} {rest}")
    return rules.named("digits", " | ".join(options)) if options else ""


def _bound(schema: Any, closed: str, opened: str) -> tuple[Decimal | None, bool]:
    number = schema.get(closed, schema.get(opened))
    return (None, False) if number is None else (Decimal(repr(number)), closed not in schema)


def _places(whole: int) -> int:
    """Return how many digits after the point a double still tells apart."""
    return max(0, SIGNIFICANT_MAX - len(str(whole)))


class _Fraction(Struct, frozen=True):
    """How the digits so far compare with both ends: None is already inside, else the digits still to compare."""

    low: Digits
    high: Digits
    low_open: bool
    high_open: bool

    def may_end(self) -> bool:
        """Return whether the number may end here, as if zeros followed."""
        above = self.low is None or (self.low == "" and not self.low_open)
        below = self.high is None or self.high != "" or not self.high_open
        return above and below

    def steps(self) -> Iterable[tuple[int, int, _Fraction]]:
        """Return the next digits, grouped by what is still to compare after them."""
        groups: dict[_Fraction, list[int]] = {}
        for digit in range(10):
            low_digit = -1 if self.low is None else int(self.low[:1] or "0")
            high_digit = 10 if self.high is None else int(self.high[:1] or "0")
            if low_digit <= digit <= high_digit:
                low = self.low[1:] if self.low is not None and digit == low_digit else None
                high = self.high[1:] if self.high is not None and digit == high_digit else None
                low = None if low == "" and not self.low_open else low
                groups.setdefault(_Fraction(low, high, self.low_open, self.high_open), []).append(digit)
        return [(digits[0], digits[-1], following) for following, digits in groups.items()]
