"""What does a request say of a tool's arguments? What it names narrows them; what it lacks must be asked for.

Law: only what stands in the request counts as evidence. Numbers are read with the words around them (`channel 2`,
`10 samples`, `2 minutes` for `seconds`), options by their words, truth values by a word or its opposite. A text is a
part of the request too, of whole words, unless its argument has a form of its own (a pattern, a date) or room for more
than `QUOTED_CHARS_MAX` characters by its own declaration: a small model copies far better than it writes. English only;
in another language a request has numbers, names and parts, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from edgeagent.core.agent import Tool
from edgeagent.core.from_user import Narrowed
from edgeagent.core.quoting import names_option, numbers_in
from edgeagent.core.values import canonical_json
from edgeagent.grammar.lexical import PREFIX_WEIGHT, is_prefix, stem, stems
from edgeagent.shape.admits import admits
from edgeagent.shape.pointer import Document

QUOTED_CHARS_MAX = 400
"""A text that may be longer, as its author says, is one to be written and not one to be taken from the request."""

PART_WORDS_MAX, REQUEST_WORDS_MAX = 16, 60
"""The longest part of a request, and the longest request, of which every part is put into the grammar."""

_FORBIDS = re.compile(r"\W*(?:please\W+|no\W+)?(?:do\s+not|don['’]?t|never|under no circumstances)\b", re.IGNORECASE)
_STILL_ASKS = re.compile(r"\W*(?:please\W+)?(?:do\s+not|don['’]?t|never)\s+(?:forget|fail|hesitate)\b", re.IGNORECASE)

_PART = re.compile(r"(?<![\w^])-?\d+(?:[.,'’]\d+)*(?:e[+-]?\d+(?!\w))?|[^\W\d_]+|°|%")
_WORD = re.compile(r"[^\W_]+")
_SMALL = "two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: number for number, word in enumerate(_WORD.findall(_SMALL), 2)}
_NUMBER_WORDS |= {"fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60}
_ONE = ("a", "an", "one")  # A number only before a unit: "for a minute", not "the south one".
_PLAIN_EXPONENT = re.compile(r"-?\d+(?:\.\d+)?e[+-]?\d{1,2}")
_TIMES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_BETWEEN = ("minus", "negative", "number", "no", "of", "is", "to", "at", "equals")  # "channel number 2"

_RUN = re.compile(r"(?!['’])[^\s,;:!?\"“”()]*?[^\s,;:!?\"“”().'’](?=['’]s\b|[\s,;:!?\"“”().'’]*(?:\s|$)|[,;:!?\"“”()])")
_SENTENCE_END = re.compile(r"[.:;!?]\s")
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|(?<!\w)'([^']+)'(?!\w)")
_DATE = stem("date")
_FORMS = frozenset(("enum", "const", "pattern", "format", "contentEncoding"))
_ARTICLES = ("the", "a", "an", "my", "our", "your", "his", "her", "their")

_UNITS: dict[str, tuple[str, Decimal]] = {
    stem(word): (kind, Decimal(factor))
    for kind, factor, words in (
        ("time", "0.001", "ms millisecond milliseconds"),
        ("time", "1", "s sec secs second seconds"),
        ("time", "60", "min mins minute minutes"),
        ("time", "3600", "h hr hour hours"),
        ("temperature", "1", "° c degree degrees celsius"),
        ("fahrenheit", "1", "f fahrenheit"),
        ("share", "1", "% percent"),
    )
    for word in words.split(" ")
}

_PERCENT = _UNITS["%"]

_OPPOSITES = (("open", "close"), ("open", "shut"), ("on", "off"), ("enable", "disable"), ("start", "stop"))
_SWITCHED = {
    True: re.compile(r"\b(?:turn|switch)\w*\b[^.]{0,40}?\bon\b", re.IGNORECASE),
    False: re.compile(r"\b(?:turn|switch)\w*\b[^.]{0,40}?\boff\b", re.IGNORECASE),
}


@dataclass(frozen=True)
class Evidence:
    """What a request says: limits on arguments, optional ones that it gives, and what it leaves open (or nothing)."""

    narrowed: tuple[Narrowed, ...] = ()
    given: tuple[str, ...] = ()
    missing: str = ""


@dataclass(frozen=True)
class _Mention:
    """A number in a request, its unit, and the stems before and behind it; in digits, or as a word, which says less."""

    value: Decimal
    unit: tuple[str, Decimal] | None
    before: str
    behind: str
    in_digits: bool


def forbids(request: str) -> bool:
    """Whether the request begins by saying that something must not be done."""
    return _FORBIDS.match(request) is not None and _STILL_ASKS.match(request) is None


def evidence_of(tool: Tool, request: str) -> Evidence:
    """What the request says of the tool's arguments."""
    schema = tool.parameters.schema
    properties = {name: _without_null(each) for name, each in schema.get("properties", {}).items()}
    required = frozenset(schema.get("required", ()))
    numbers = _Numbers(properties, required, request)
    texts = sum(_is_quotable(name, inner) for name, inner in properties.items())
    parts = parts_of(request, tool, texts) if texts else []
    narrowed, given, questions = [], [], []
    for name, inner in properties.items():
        fragment, question = _of(name, inner, request, numbers, parts, name in required)
        if question and (name in required or fragment is False):
            questions.append(question)
        elif question:
            narrowed.append((tool.name, name, canonical_json(False)))  # An option that nobody has named is left out.
        elif fragment is None or (fragment is False and name in required):
            continue
        else:
            narrowed.append((tool.name, name, canonical_json(fragment)))
            if fragment is not False and name not in required:
                given.append(name)
    return Evidence(tuple(narrowed), tuple(given), " ".join(questions))


def _of(
    name: str, schema: Any, request: str, numbers: _Numbers, parts: list[str], is_required: bool
) -> tuple[Any, str]:
    """What is left of an argument: a schema, False for nothing, None for everything; and what to ask for."""
    if not isinstance(schema, Mapping):
        return None, ""
    options = schema.get("enum")
    if options and all(isinstance(each, str) for each in options):
        return _of_options(name, options, request)
    match schema.get("type"):
        case "integer" | "number" if not options:
            return numbers.of(name)
        case "boolean":
            said = _yes_or_no(name, request)
            return (False, "") if said is None else ({"enum": [said]}, "")
        case "string" if is_required and parts and _is_quotable(name, schema):
            return {"enum": parts}, ""
    named = set(_name_stems(name)) & set(stems(request))
    return (None if named else False), ""


def _without_null(schema: Any) -> Any:
    """The one alternative beside null, as an optional argument has it."""
    options = schema.get("anyOf", ()) if isinstance(schema, Mapping) else ()
    others = [each for each in options if not isinstance(each, Mapping) or each.get("type") != "null"]
    return others[0] if len(others) == 1 and len(options) == 2 else schema


def _of_options(name: str, options: Sequence[str], request: str) -> tuple[Any, str]:
    said = set(stems(request))
    shares = {option: _share(option, said, request) for option in options}
    best = max(shares.values())
    if best > 0:
        return {"enum": [option for option, share in shares.items() if share == best]}, ""
    return None, f"Which {name.replace('_', ' ')}: {_listed(options)}?"


def _share(option: str, said: set[str], request: str) -> float:
    """How much of the option's name the request has."""
    if names_option(option, (request,)):
        return 1.0
    parts = stems(option)
    found = (1.0 if p in said else PREFIX_WEIGHT if any(is_prefix(p, s) for s in said) else 0.0 for p in parts)
    return sum(found) / len(parts) if parts else 0.0


def _yes_or_no(name: str, request: str) -> bool | None:
    """Whether the request says that this is so, that it is not, or nothing of it."""
    words = {stem(word) for word in _WORD.findall(request.casefold())}
    parts = _name_stems(name)
    pairs = [(stem(yes), stem(no)) for yes, no in _OPPOSITES]
    yes = any(part in words for part in parts if part != "on")
    no = any(no in words for part in parts for yes_word, no in pairs if yes_word == part)
    if any(part == yes_word for part in parts for yes_word, _ in pairs):
        yes = yes or _SWITCHED[True].search(request) is not None
        no = no or _SWITCHED[False].search(request) is not None
    return None if yes == no else yes


def _name_stems(name: str) -> list[str]:
    return [stem(word) for word in _WORD.findall(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold())]


# -- texts ---------------------------------------------------------------------------------------------------------


def parts_of(request: str, tool: Tool, texts: int) -> list[str]:
    """The parts of a request that an argument may hold, shorter ones first; none of a request that is too long.

    If as many are in quotation marks as there are text arguments, it is those. A part stays within its sentence, begins
    and ends with a word that means something (from four words on an article may begin it), and is not headed by the
    word that commands.
    """
    quoted = [each for match in _QUOTED.finditer(request) if (each := match[1] or match[2] or match[3])]
    if quoted and len(quoted) == texts:
        return list(dict.fromkeys(quoted))
    words = [(run.start(), run.end()) for run in _RUN.finditer(request)]
    if len(words) > REQUEST_WORDS_MAX:
        return []
    commands = {*stems(tool.name), *stems(tool.description)} if words else set()
    found = quoted
    for count in range(1, PART_WORDS_MAX + 1):
        for first in range(0 if _may_lead(request, words, commands) else 1, len(words) - count + 1):
            part = request[words[first][0] : words[first + count - 1][1]]
            if _is_part(part, count):
                found.append(part)
    return list(dict.fromkeys(found))


def _may_lead(request: str, words: Sequence[tuple[int, int]], commands: set[str]) -> bool:
    head = stems(request[words[0][0] : words[0][1]]) if words else []
    return len(words) < 3 or bool(head and head[0] not in commands and len(words) < 5)


def _is_part(part: str, count: int) -> bool:
    if _SENTENCE_END.search(part):
        return False
    words = part.split()
    begins = bool(stems(words[0])) or words[0][0].isdecimal() or (count > 3 and words[0].casefold() in _ARTICLES)
    return begins and (bool(stems(words[-1])) or words[-1][-1].isdecimal())


def _is_quotable(name: str, schema: Any) -> bool:
    """Whether a text is taken from the request: not one with a form of its own, as dates have."""
    if not isinstance(schema, Mapping) or schema.get("type") != "string" or _DATE in _name_stems(name):
        return False
    bound: int = schema.get("maxLength", 0)
    return bound <= QUOTED_CHARS_MAX and not schema.keys() & _FORMS


# -- numbers -------------------------------------------------------------------------------------------------------


class _Numbers:
    """The numbers of a request, dealt out to the number arguments of a tool."""

    def __init__(self, properties: Mapping[str, Any], required: frozenset[str], request: str) -> None:
        self._schemas = {name: each for name, each in properties.items() if _is_number(each)}
        self._required = [name for name in self._schemas if name in required]
        self._mentions = list(_mentions(request))
        self._distinct = _distinct({name: _name_stems(name) for name in self._schemas})
        self._owners = [self._owners_of(mention) for mention in self._mentions]

    def of(self, name: str) -> tuple[Any, str]:
        """As `_of`: the numbers that may be meant, or what to ask for."""
        schema, own = self._schemas[name], self._own(name)
        if not own and name not in self._required and not self._left_over():
            return False, ""
        meant = [self._in_unit_of(name, mention) for mention in own or self._free(name)]
        values = list(dict.fromkeys(v for v in map(_plain, meant) if admits(schema, v, Document(schema))))
        if values and (own or name not in self._required or self._enough()):
            return {"enum": values}, ""
        if meant and not values and (own or name in self._required):
            return False, f"{_spoken(name)} must be {_bounds(schema) or 'a whole number'}."
        return False, f"Which {_spoken(name)}{f' ({bounds})' if (bounds := _bounds(schema)) else ''}?" * (
            name in self._required
        )

    def _own(self, name: str) -> list[_Mention]:
        return [m for m, owners in zip(self._mentions, self._owners, strict=True) if name in owners]

    def _free(self, name: str) -> list[_Mention]:
        """The numbers that no argument owns, without those in a unit that is not this argument's."""
        unit = _unit_of(name)
        unowned = (m for m, owners in zip(self._mentions, self._owners, strict=True) if not owners)
        return [m for m in unowned if unit is None or m.unit is None or m.unit[0] == unit[0]]

    def _left_over(self) -> bool:
        """Whether there are more unowned numbers than the required arguments take."""
        open_names = [name for name in self._required if not self._own(name)]
        unowned = (m for m, owners in zip(self._mentions, self._owners, strict=True) if not owners)
        return sum(mention.in_digits for mention in unowned) > len(open_names)

    def _enough(self) -> bool:
        """Whether there are as many unowned numbers as required arguments without one of their own."""
        open_names = [name for name in self._required if not self._own(name)]
        return sum(not owners for owners in self._owners) >= len(open_names)

    def _owners_of(self, mention: _Mention) -> frozenset[str]:
        names = self._distinct
        by_name = [n for n, parts in names.items() if mention.before in parts]
        by_unit = [n for n in names if mention.unit and (unit := _unit_of(n)) and unit[0] == mention.unit[0]]
        behind = [n for n, parts in names.items() if mention.behind in parts]
        return frozenset(by_name or by_unit or behind)

    def _in_unit_of(self, name: str, mention: _Mention) -> Decimal:
        unit = _unit_of(name)
        if unit is None and mention.unit == _PERCENT and _is_fraction(self._schemas[name]):
            return mention.value / 100
        if unit is None or mention.unit is None or unit[0] != mention.unit[0]:
            return mention.value
        return mention.value * mention.unit[1] / unit[1]


def _distinct(names: Mapping[str, list[str]]) -> dict[str, set[str]]:
    """The words of each name that no other name has: `value` tells `initial_value` from nothing if there is another."""
    every = [part for parts in names.values() for part in set(parts)]
    return {name: {part for part in parts if every.count(part) == 1} for name, parts in names.items()}


def _mentions(request: str) -> Iterator[_Mention]:
    parts = _PART.findall(request.casefold())
    for place, part in enumerate(parts):
        times = _TIMES.get(parts[place + 1], 1) if place + 1 < len(parts) else 1
        after = place + (2 if times > 1 else 1)
        behind = [stem(each) for each in parts[after : after + 2]]
        unit = next((_UNITS[each] for each in behind[:1] if each in _UNITS), None)
        if unit is not None and unit[0] == "temperature" and behind[1:] and behind[1] in _UNITS:
            unit = _UNITS[behind[1]]  # "70 degrees Fahrenheit"
        value = _value(part, unit is not None)
        if value is not None:
            if parts[place - 1 : place] in (["minus"], ["negative"]):
                value = -abs(value)
            before = [each for each in parts[max(0, place - 2) : place] if each not in _BETWEEN]
            yield _Mention(
                value * times,
                unit,
                stem(before[-1]) if before else "",
                behind[0] if behind else "",
                part[-1].isdecimal(),
            )


def _value(part: str, has_unit: bool) -> Decimal | None:
    if part in _NUMBER_WORDS:
        return Decimal(_NUMBER_WORDS[part])
    if part in _ONE:
        return Decimal(1) if has_unit else None
    if "e" in part and part[-1].isdecimal():
        return Decimal(part) if _PLAIN_EXPONENT.fullmatch(part) else None
    return next(numbers_in((part,), thousands=True), None) if part[-1].isdecimal() else None


def _unit_of(name: str) -> tuple[str, Decimal] | None:
    return next((_UNITS[part] for part in _name_stems(name) if part in _UNITS), None)


def _is_number(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") in ("integer", "number") and "enum" not in schema


def _is_fraction(schema: Mapping[str, Any]) -> bool:
    """Whether a percentage is meant as a part of one: a number that need not be whole, and may not be above 1."""
    return bool(schema["type"] == "number" and schema.get("maximum", 1) <= 1)


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


# -- in words ------------------------------------------------------------------------------------------------------


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _bounds(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"from {low:g} to {high:g}"
    return f"at least {low:g}" if low is not None else f"at most {high:g}" if high is not None else ""


def _listed(options: Sequence[str]) -> str:
    return f"{', '.join(options[:-1])} or {options[-1]}" if len(options) > 1 else options[0]
