"""Numbers in words, as one each: `two hundred and fifteen`, `seventy-five`, `half an hour`, `a couple of minutes`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from edgeagent.request.language import ENGLISH, word_set
from edgeagent.request.lexical import stem
from edgeagent.request.parts.units import UNITS

_NUMBERS = ENGLISH.numbers
_ARTICLES = word_set(ENGLISH.words.articles) & word_set(_NUMBERS.one)
_ONE_WORD = _NUMBERS.one.split()[-1]
_SMALL = _NUMBERS.words | {_ONE_WORD: 1}


@dataclass(frozen=True)
class Token:
    """A word, a number or a mark, and where it stands; `value` where words are a number."""

    text: str
    begin: int
    end: int
    value: Decimal | None = None


def numerals(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with those that say one number together joined to one."""
    apart = [place for place in range(1, len(tokens)) if tokens[place].begin - tokens[place - 1].end > 1]
    bounds = zip([0, *apart], [*apart, len(tokens)], strict=True)  # "twenty, five" is no twenty-five.
    return [each for first, last in bounds for each in _joined(tokens[first:last])]


def _joined(tokens: Sequence[Token]) -> list[Token]:
    found: list[Token] = []
    place = 0
    while place < len(tokens):
        value, after = _numeral(tokens, place)
        if value is None:
            found.append(tokens[place])
            place += 1
        else:
            found.append(replace(tokens[place], end=tokens[after - 1].end, value=value))
            place = after
    return found


def _numeral(tokens: Sequence[Token], place: int) -> tuple[Decimal | None, int]:
    """The number that begins at a place, and the place behind it."""
    word = tokens[place].text
    if word in _NUMBERS.fractions:
        return _fraction(tokens, place)
    start = place + (word in _ARTICLES)
    if _at(tokens, start) in _NUMBERS.groups:
        after = start + 1 + (_at(tokens, start + 1) == _NUMBERS.of)
        return Decimal(_NUMBERS.groups[_at(tokens, start)]), after
    if word not in _NUMBERS.words and not (word == _ONE_WORD and _at(tokens, place + 1) == _NUMBERS.hundred):
        return None, place
    value, after = _below_hundred(tokens, place)
    if _at(tokens, after) == _NUMBERS.hundred:
        value, after = value * 100, after + 1
        begin = after + (_at(tokens, after) == _NUMBERS.and_)
        if _at(tokens, begin) in _SMALL:
            rest, after = _below_hundred(tokens, begin)
            value += rest
    return _with_fraction(tokens, Decimal(value), after)


def _below_hundred(tokens: Sequence[Token], place: int) -> tuple[int, int]:
    value = _SMALL[tokens[place].text]
    digit = _SMALL.get(_at(tokens, place + 1), 10)
    return (value + digit, place + 2) if value >= 20 and value % 10 == 0 and digit < 10 else (value, place + 1)


def _with_fraction(tokens: Sequence[Token], value: Decimal, after: int) -> tuple[Decimal, int]:
    """`two and a half`, `three quarters of an hour`, `two dozen`."""
    word, more = _at(tokens, after), part_behind(tokens, after)
    if word in _NUMBERS.groups:
        return value * _NUMBERS.groups[word], after + 1
    if word in _NUMBERS.fractions:
        part, behind = _fraction(tokens, after)
        return (value, after) if part is None else (value * part, behind)
    return (value, after) if more is None else (value + more, after + 3)


def part_behind(tokens: Sequence[Token], place: int) -> Decimal | None:
    """The part that `and a half` at this place adds: to a number, or to one with its unit."""
    words = [_at(tokens, place + each) for each in range(3)]
    is_part = words[0] == _NUMBERS.and_ and words[1] in _ARTICLES
    return _NUMBERS.fractions.get(words[2]) if is_part else None


def _fraction(tokens: Sequence[Token], place: int) -> tuple[Decimal | None, int]:
    """A part of the unit that follows; without a unit it is no number."""
    after = place + 1 + (_at(tokens, place + 1) == _NUMBERS.of)
    after += _at(tokens, after) in _ARTICLES
    is_number = stem(_at(tokens, after)) in UNITS
    return (_NUMBERS.fractions[tokens[place].text], after) if is_number else (None, place)


def _at(tokens: Sequence[Token], place: int) -> str:
    return tokens[place].text if place < len(tokens) else ""
