"""The numbers of a request, and what speaks for each of them as an argument's value.

A number is read with its unit and with the words around it, up to the next number. Numbers inside a formula or a word
(`3x^2`, `CO2`) are none. The weights of the signs (`WEIGHTS`) were fitted once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice

from edgeagent.core.quoting import numbers_in
from edgeagent.request.language import ENGLISH, word_set
from edgeagent.request.lexical import is_prefix, stem, stem_set
from edgeagent.request.parts.assign import Candidate
from edgeagent.request.parts.declared import Argument
from edgeagent.request.parts.numerals import Token, numerals, part_behind
from edgeagent.request.parts.signs import NumberSign
from edgeagent.request.parts.units import DEGREES, PERCENT, UNITS, Unit, converted, is_comparable
from edgeagent.shape.admits import admits
from edgeagent.shape.pointer import Document

_PART = re.compile(r"(?<![\w^])-?\d+(?:[.,'’]\d+)*(?:e[+-]?\d+(?!\w))?|(?<=\d)(?:st|nd|rd|th)\b|[^\W\d_]+|°|%")
_NTH = ("st", "nd", "rd", "th")
_WORD = re.compile(r"[^\W_]+")
_FORMULA = re.compile(r"[a-z)](?:\^|\*\*)\d|\d[abnt-z](?![a-z\d])|[a-z)] ?[*/] ?\d|\d\*[a-z(]")
_FORMULA_RUN = re.compile(r"[\w.()^*/]+(?: ?[-+*/^=] ?[\w.()^*/]+)+|[\w.()^*]+")
_NAMED = re.compile(r"[^\W\d_]\w*\s*=\s*$")
_ONE = word_set(ENGLISH.numbers.one)  # A number only before a unit: "for a minute", not "the south one".
_ONE_WORD = ENGLISH.numbers.one.split()[-1]
_PLAIN_EXPONENT = re.compile(r"-?\d+(?:\.\d+)?e[+-]?\d{1,2}")
_TIMES = ENGLISH.numbers.times
_SHORT_TIMES = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000}  # Behind an amount of money: "$2M".
_LEADS_PART, _HALF = frozenset(("a", "one", "to", "by", "under", "below", "above")), "half"
_MINUS, _BETWEEN = word_set(ENGLISH.numbers.minus), word_set(ENGLISH.numbers.between)
_VARIABLE = re.compile(r"[abnt-z](?![^\W_])")  # `3x`; capitals are units, as in 298K.

_NOTHING_COUNTED = (word_set(ENGLISH.words.prepositions) | word_set(ENGLISH.words.function)) - {"to", "more", "less"}
_DETERMINERS = word_set(ENGLISH.words.articles) | {"other", "which", "every", "each"}

_BELOW, _ZEROS = frozenset(("below", "under")), ("zero", "0")

WORDS_AROUND = 3

NUMBER_MAX = 10**15
"""Numbers from here on are not taken: a double would change them."""

MENTIONS_MAX = 64
"""The most numbers of a request that are looked at: more is a table, not a request."""

WEIGHTS = ENGLISH.numbers.weights
"""Nats by sign, fitted as a conditional logit on the even rows of BFCL's `simple_python`, `multiple`, `live_simple`.

Those of units and years are ours: these rows hardly have any that are not decided by something else.
"""

OWN = 1.2
"""Nats of evidence from which on a number is an argument's own, whatever the others get."""

MISFIT = 2.0
"""Nats against a number that the argument's schema does not admit."""

OUTSIDE = "outside"
"""Why such a number is a candidate."""

_MONEY, _SHARES = stem_set(ENGLISH.numbers.money), stem_set(ENGLISH.numbers.share)
_TIMES_OVER = stem("times")
_COUNTS, _YEAR = stem_set(ENGLISH.numbers.count), stem(ENGLISH.numbers.year)


@dataclass(frozen=True)
class Mention:
    """A number in a request, its unit, where it stands, and the stems before and behind it, nearest first."""

    value: Decimal
    unit: Unit | None
    before: tuple[str, ...]
    behind: tuple[str, ...]
    in_digits: bool
    begin: int
    end: int
    money: bool = False
    is_weak: bool = False
    """Whether it is a number only behind the name of an argument: `channel one`, and not `the south one`."""
    is_part: bool = False
    """Whether it is a part of a whole: `a quarter of the way`, in percent."""
    is_ordinal: bool = False
    """Whether it is one only before the name of an argument: `the third channel`."""

    @property
    def is_how_often(self) -> bool:
        """Whether it counts times: `5 times`."""
        return self.behind[:1] == (_TIMES_OVER,)


# -- mentions ------------------------------------------------------------------------------------------------------


def mentions_in(request: str) -> list[Mention]:
    """The numbers of a request in their order; of a formula only what an equals sign names (`a = 2`)."""
    formulas = [each.span() for each in _FORMULA_RUN.finditer(request) if _FORMULA.search(each[0])]
    found = _mentions(request.casefold(), request)
    plain_ones = (
        each
        for each in found
        if abs(each.value) < NUMBER_MAX and not any(begin <= each.begin < end for begin, end in formulas)
    )
    return list(islice(plain_ones, MENTIONS_MAX))


def _mentions(request: str, spelled: str) -> Iterator[Mention]:
    tokens = numerals([Token(each[0], *each.span()) for each in _PART.finditer(request) if each[0] not in _NTH])
    parts = [each.text for each in tokens]
    for place, token in enumerate(tokens):
        money = request[: token.begin].rstrip()[-1:] in ("$", "€", "£")
        times, after = _times(parts[place + 1 : place + 2], money, place)
        behind = [stem(each) for each in parts[after : after + WORDS_AROUND]]
        unit = _unit(behind)
        if (part := _part(tokens, place)) is not None:
            yield part
            continue
        value = _value(token, unit is not None)
        if place + 1 < len(tokens) and (share := _part(tokens, place + 1)) is not None and share.begin == token.begin:
            continue  # "three quarters" of a whole are no three.
        if value is None or (times == 1 and unit is None and _VARIABLE.match(spelled, token.end)):
            continue
        if set(parts[place - 1 : place]) & _MINUS:
            value = -abs(value)
        if token.text in _ZEROS and set(parts[place - 1 : place]) & _BELOW:
            continue  # "ten degrees below zero"
        is_below = unit is not None and _is_below_zero(parts[after + 1 : after + 3])
        value = -abs(value) if is_below else value
        around = (_before(tokens[:place]), _behind(behind))
        is_weak = token.text == _ONE_WORD and token.value is None and unit is None and _is_pronoun(parts, place)
        in_digits = token.text[-1].isdecimal()
        end = tokens[after + 2 if is_below else after - 1].end
        if unit is not None and (more := part_behind(tokens, after + 1)) is not None:
            value, end = value + more, tokens[after + 3].end
        yield Mention(value * times, unit, *around, in_digits, token.begin, end, money, is_weak)


def _is_below_zero(behind: Sequence[str]) -> bool:
    """Whether the words behind a number and its unit say that it is below zero."""
    return len(behind) == 2 and behind[0] in _BELOW and behind[1] in _ZEROS


def _is_pronoun(parts: Sequence[str], place: int) -> bool:
    """Whether "one" stands for a thing: nothing that it could count follows, or it is "the one", "this one"."""
    behind = parts[place + 1 : place + 2]
    return not behind or behind[0] in _NOTHING_COUNTED or not _DETERMINERS.isdisjoint(parts[place - 1 : place])


def _part(tokens: Sequence[Token], place: int) -> Mention | None:
    """A part of a whole, in percent, or an ordinal, which counts only before its name."""
    token, numbers = tokens[place], ENGLISH.numbers
    behind = _behind([stem(each.text) for each in tokens[place + 1 : place + 1 + WORDS_AROUND]])
    before, parts = _before(tokens[:place]), numbers.parts
    times = tokens[place - 1].value or numbers.words.get(tokens[place - 1].text) if place else None
    is_said = token.value is None and token.text in parts and token.text not in UNITS
    is_said = is_said and not (place > 1 and tokens[place - 2].text == numbers.and_) and behind[:1] != ("past",)
    lead = tokens[place - 1].text if place else ""
    if is_said and (times or lead in _LEADS_PART or token.text == _HALF):
        begin = tokens[place - 1].begin if times else token.begin
        percent = (100 * parts[token.text] * Decimal(times or 1)).quantize(Decimal(1))
        return Mention(percent, PERCENT, before, behind, False, begin, token.end, is_part=True)
    if token.value is None and token.text in numbers.ordinals:
        return Mention(
            Decimal(numbers.ordinals[token.text]),
            None,
            before,
            behind,
            False,
            token.begin,
            token.end,
            is_weak=True,
            is_ordinal=True,
        )
    return None


def _times(behind: Sequence[str], money: bool, place: int) -> tuple[int, int]:
    """What the word behind a number multiplies it by, and where the words behind begin."""
    table = _TIMES | _SHORT_TIMES if money else _TIMES
    times = table.get(behind[0], 1) if behind else 1
    return times, place + (2 if times > 1 else 1)


def _unit(behind: Sequence[str]) -> Unit | None:
    if not behind or behind[0] not in UNITS:
        return None
    unit = UNITS[behind[0]]
    if unit.kind == DEGREES and behind[1:] and behind[1] in UNITS:
        return UNITS[behind[1]]  # "70 degrees Fahrenheit"
    return unit


def _before(tokens: Sequence[Token]) -> tuple[str, ...]:
    """The stems before a number, up to the number before it."""
    words: list[str] = []
    for token in reversed(tokens):
        if token.text[-1].isdecimal() or token.value is not None or len(words) == WORDS_AROUND:
            break
        if token.text not in _BETWEEN:
            words.append(stem(token.text))
    return tuple(words)


def _behind(words: Sequence[str]) -> tuple[str, ...]:
    until = next((n for n, word in enumerate(words) if word[-1].isdecimal()), len(words))
    return tuple(words[:until])


def _value(token: Token, has_unit: bool) -> Decimal | None:
    part = token.text
    if token.value is not None:
        return token.value
    if part in _ONE:
        return Decimal(1) if has_unit or part == _ONE_WORD else None
    if "e" in part and part[-1].isdecimal():
        return Decimal(part) if _PLAIN_EXPONENT.fullmatch(part) else None
    return next(numbers_in((part,), thousands=True), None) if part[-1].isdecimal() else None


# -- signs ---------------------------------------------------------------------------------------------------------


def number_signs(mention: Mention, argument: Argument) -> list[NumberSign]:
    """What speaks for and against a number as this argument."""
    return [*_word_signs(mention, argument), *_unit_signs(mention, argument), *_size_signs(mention, argument)]


def _word_signs(mention: Mention, argument: Argument) -> Iterator[NumberSign]:
    before, behind, own, rivals = mention.before, mention.behind, argument.own, argument.rivals
    of_both = any(_says(word, own) for word in before) and any(_says(word, rivals) for word in before)
    if before and not of_both:  # "base and height as 6 and 10" says which they are by the order alone.
        if _says(before[0], own):
            yield NumberSign.NAMED_BEFORE
        elif any(_says(word, own) for word in before[1:]):
            yield NumberSign.NAMED_FURTHER_BEFORE
        elif before[0] in argument.words:
            yield NumberSign.NAMED_BEFORE_WITH_OTHERS
        if _says(before[0], rivals) and not mention.is_how_often:  # "read sensor 2", not "read the sensor 5 times"
            yield NumberSign.ANOTHER_NAMED_BEFORE
        elif any(_says(word, rivals) for word in before[1:]):
            yield NumberSign.ANOTHER_NAMED_FURTHER_BEFORE
        if any(word in argument.about for word in before):
            yield NumberSign.DESCRIBED_BEFORE
    if behind:
        if _says(behind[0], own):
            yield NumberSign.NAMED_BEHIND
        elif any(_says(word, own) for word in behind[1:2]):
            yield NumberSign.NAMED_FURTHER_BEHIND
        if _says(behind[0], rivals):
            yield NumberSign.ANOTHER_NAMED_BEHIND
        if any(word in argument.about for word in behind[:2]):
            yield NumberSign.DESCRIBED_BEHIND


def _says(word: str, names: Iterable[str]) -> bool:
    return any(word == name or is_prefix(word, name) for name in names)


def _unit_signs(mention: Mention, argument: Argument) -> Iterator[NumberSign]:
    unit = argument.unit
    if unit is not None and mention.unit is not None:
        yield NumberSign.IN_ITS_UNIT if is_comparable(mention.unit, unit) else NumberSign.IN_ANOTHER_UNIT
    money = bool(argument.words & _MONEY) or "dollar" in argument.description.casefold()
    if mention.money:
        yield NumberSign.MONEY_FOR_MONEY if money else NumberSign.MONEY_FOR_ANOTHER
    elif money:
        yield NumberSign.NO_MONEY_FOR_MONEY
    share = bool(argument.words & _SHARES)
    if mention.unit == PERCENT:
        yield NumberSign.PERCENTAGE_FOR_A_SHARE if share else NumberSign.PERCENTAGE_FOR_ANOTHER
    elif share:
        yield NumberSign.NO_PERCENTAGE_FOR_A_SHARE


def _size_signs(mention: Mention, argument: Argument) -> Iterator[NumberSign]:
    whole = mention.value == mention.value.to_integral_value()
    is_year = whole and 1000 <= mention.value <= 2100 and mention.unit is None and not mention.money
    if is_year:
        yield NumberSign.YEAR_FOR_A_YEAR if _YEAR in argument.words else NumberSign.YEAR_FOR_ANOTHER
    elif _YEAR in argument.words and mention.behind[:1] != (_YEAR,):
        yield NumberSign.NO_YEAR_FOR_A_YEAR
    elif whole and mention.unit is None and mention.behind and argument.words & _COUNTS and not _is_one_of(argument):
        yield NumberSign.COUNT_FOR_A_COUNT
    if not mention.in_digits and not mention.is_how_often:
        yield NumberSign.IN_A_WORD
    if whole and argument.schema.get("type") == "number":
        yield NumberSign.WHOLE_FOR_A_FRACTION


def _is_one_of(argument: Argument) -> bool:
    """Whether its name counts it among others, as `num1` does."""
    return argument.name[-1:].isdecimal()


# -- candidates ----------------------------------------------------------------------------------------------------


def number_candidates(argument: Argument, mentions: Iterable[Mention]) -> list[Candidate]:
    """The numbers that the argument may be, in its unit, in the order of the request.

    One that the schema does not admit is among them, with less weight: where it is the best, it was meant.
    """
    found = []
    for mention in mentions:
        is_unnamed = mention.is_weak and not _is_named(mention, argument)
        is_of_another = is_foreign(argument, mention) or is_unnamed
        if not is_of_another:
            value = plain(in_unit_of(argument, mention))
            is_fit = admits(argument.schema, value, Document(argument.schema))
            weight = number_weight(mention, argument) - (0.0 if is_fit else MISFIT)
            found.append(Candidate(value, mention.begin, mention.end, weight, "number" if is_fit else OUTSIDE))
    return found


def _is_named(mention: Mention, argument: Argument) -> bool:
    if mention.is_ordinal:
        return bool(mention.behind) and _says(mention.behind[0], argument.own or argument.words)
    return bool(mention.before) and _says(mention.before[0], argument.own or argument.words)


def number_weight(mention: Mention, argument: Argument) -> float:
    """What speaks for a number as this argument, in nats."""
    return sum(WEIGHTS[sign] for sign in number_signs(mention, argument))


def is_foreign(argument: Argument, mention: Mention) -> bool:
    """Whether the number is in a unit that cannot be the argument's."""
    unit = argument.unit
    if mention.is_part:
        return unit != PERCENT and not _is_fraction(argument)
    return unit is not None and mention.unit is not None and not is_comparable(mention.unit, unit)


def in_unit_of(argument: Argument, mention: Mention) -> Decimal:
    """The number in the unit that the argument declares; a percentage as a part of one, where that is meant."""
    unit = argument.unit
    if unit is None and mention.unit == PERCENT and _is_fraction(argument):
        return mention.value / 100
    if unit is None or mention.unit is None or not is_comparable(mention.unit, unit):
        return mention.value
    value = converted(mention.value, mention.unit, unit)
    is_rounded = mention.unit.kind != unit.kind and argument.schema.get("type") == "integer"
    return value.to_integral_value() if is_rounded else value


def _is_fraction(argument: Argument) -> bool:
    """Whether a percentage is meant as a part of one: a number that need not be whole, and may not be above 1."""
    told = argument.description.casefold()
    as_percent = "percentage" in told or "percent" in told or "percent" in argument.words
    return (
        argument.schema.get("type") == "number"
        and argument.schema.get("maximum", 1) <= 1
        and (not as_percent or "decimal" in told)
    )


def plain(number: Decimal) -> int | float:
    """The number as JSON has it."""
    return int(number) if number == number.to_integral_value() else float(number)
