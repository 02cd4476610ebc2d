"""The lists of a request: numbers in a row, things told one after another, and what is written as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from edgeagent.core.quoting import names_option
from edgeagent.request.lexical import stem, stems, synonyms
from edgeagent.request.parts.assign import Candidate
from edgeagent.request.parts.declared import Argument
from edgeagent.request.parts.numbers import NUMBER_MAX, Mention, plain
from edgeagent.request.parts.texts import Part, runs_of
from edgeagent.request.parts.units import PERCENT
from edgeagent.request.parts.words import Words
from edgeagent.shape.admits import admits
from edgeagent.shape.pointer import Document

OPTIONS = "options"
"""Why a list is one of options that are named."""

ITEMS_MAX = 32
"""More than anybody tells in a sentence."""

_BETWEEN_NUMBERS = re.compile(r"(?:st|nd|rd|th)?[\s,;&°%$]*(?:(?:and|percent|degrees?)\b[\s,]*)?\Z")
_BETWEEN_TEXTS = re.compile(r"['\"”’]?\s*(?:,|&|,?\s*\band\b|,?\s*\bor\b)\s*(?:the |a |an )?['\"“‘]?\Z", re.IGNORECASE)

NAMED, SEVERAL, WRITTEN, ONE = 3.0, 1.5, 6.0, -1.0
"""Nats for a list whose argument is named before it, for more than one item, for JSON, and against a single item."""


def list_candidates(argument: Argument, said: Words, mentions: Sequence[Mention]) -> list[Candidate]:
    """The lists that the argument may be, best first."""
    items = argument.schema["items"]
    found = [*_written(argument, said), *_options(argument, said)]
    if items.get("type") in ("integer", "number") and "enum" not in items:
        found += _numbers(argument, said, mentions, items["type"] == "number")
    elif items.get("type") == "string" and "enum" not in items and not _has_written(found):
        found += _texts(argument, said)
    fits = [each for each in found if admits(argument.schema, each.value, Document(argument.schema))]
    return sorted(fits, key=lambda each: (-each.weight, each.begin))


def _has_written(found: Sequence[Candidate]) -> bool:
    return any(each.why == "written" for each in found)


def _written(argument: Argument, said: Words) -> Iterator[Candidate]:
    """Lists in square brackets, and in round ones where those hold numbers: `(3, 4)`."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"[\[(]", said.request):
        begin, text = match.start(), said.request[match.start() :]
        if text[0] == "(":
            text = f"[{text[1:].partition(')')[0]}]"
        try:
            value, length = decoder.raw_decode(re.sub(r"'([^'\[\],]*)'", r'"\1"', text))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, list) and value and _is_exact(value):
            value = _as_declared(value, argument.schema["items"])
            yield Candidate(value, begin, begin + length, WRITTEN + _named(argument, said, begin), "written")


def _is_exact(value: Any) -> bool:
    """Whether every engine reads its numbers exactly."""
    if isinstance(value, list):
        return all(_is_exact(each) for each in value)
    return not isinstance(value, int | float) or abs(value) < NUMBER_MAX


def _as_declared(value: Any, schema: Any) -> Any:
    """Whole numbers as fractions where those are declared, as deep as lists go."""
    if isinstance(value, list):
        items = schema.get("items", schema) if isinstance(schema, Mapping) else schema
        return [_as_declared(each, items if isinstance(each, list) else schema) for each in value]
    kind = _leaf(schema)
    return float(value) if kind == "number" and isinstance(value, int) and not isinstance(value, bool) else value


def _leaf(schema: Any) -> Any:
    while isinstance(schema, Mapping) and isinstance(schema.get("items"), Mapping):
        schema = schema["items"]
    return schema.get("type") if isinstance(schema, Mapping) else None


def _options(argument: Argument, said: Words) -> Iterator[Candidate]:
    """The options that the request names, together."""
    told = argument.schema["items"].get("enum") or argument.examples
    named = [(place, option) for option in told if isinstance(option, str) and (place := _place(option, said)) >= 0]
    if named:
        named.sort()
        end = named[-1][0] + len(named[-1][1])
        yield Candidate([option for _, option in named], named[0][0], end, NAMED + len(named), OPTIONS)


def _place(option: str, said: Words) -> int:
    """Where the request names the option, as it is or by the stems of its words; -1 for nowhere."""
    spelled = said.request.casefold().find(option.casefold()) if names_option(option, (said.request,)) else -1
    if spelled >= 0:
        return spelled
    parts = stems(option) or [stem(option.casefold())]
    words = [word.stem for word in said.words]
    for place in range(len(words) - len(parts) + 1):
        near = zip(parts, words[place : place + len(parts)], strict=True)
        if all(part == word or part in synonyms(word) for part, word in near):
            return said.words[place].begin
    return -1


def _numbers(argument: Argument, said: Words, mentions: Sequence[Mention], is_fraction: bool) -> Iterator[Candidate]:
    for run in _in_a_row(mentions, lambda one, other: _BETWEEN_NUMBERS.fullmatch(said.request[one.end : other.begin])):
        share = is_fraction and "percentage" not in argument.description.casefold()
        values = [plain(each.value / 100 if each.unit == PERCENT and share else each.value) for each in run]
        listed: list[Any] = [float(each) for each in values] if is_fraction else values
        weight = (SEVERAL if len(run) > 1 else ONE) + _named(argument, said, run[0].begin)
        yield Candidate(listed, run[0].begin, run[-1].end, weight, "numbers")


def _in_a_row(found: Sequence[Any], follows: Callable[[Any, Any], Any]) -> Iterator[Sequence[Any]]:
    """What follows one another, in as long runs as there are."""
    begin = 0
    for place in range(1, len(found) + 1):
        if place == len(found) or not follows(found[place - 1], found[place]):
            yield found[begin:place][:ITEMS_MAX]
            begin = place


def _texts(argument: Argument, said: Words) -> Iterator[Candidate]:
    quoted = [Part(said.request[begin:end], begin, end, "quoted") for begin, end in said.quoted]
    chunks = [
        Part(said.text(first, last), said.words[first].begin, said.words[last].end, "chunk")
        for first, last in runs_of(said)
    ]
    for parts in (quoted, chunks):
        for run in _in_a_row(parts, lambda a, b: _BETWEEN_TEXTS.fullmatch(said.request[a.end : b.begin])):
            for trimmed, fit in _trimmed(run, said, argument):
                weight = fit + (SEVERAL if len(run) > 1 else ONE)
                weight += _named(argument, said, trimmed[0].begin) + 2.0 * (run[0].kind == "quoted")
                weight -= 2.0 * (len(trimmed[0].text.split()) > 3)
                yield Candidate(
                    [said.spelled(each.begin, each.end) for each in trimmed],
                    trimmed[0].begin,
                    trimmed[-1].end,
                    weight,
                    "texts",
                )


def _trimmed(run: Sequence[Part], said: Words, argument: Argument) -> Iterator[tuple[list[Part], float]]:
    """The run as it is, and with its first item without a command or a name before it, with what speaks for that."""
    head = run[0]
    inside = [word for word in said.words if head.begin <= word.begin and word.end <= head.end]
    is_led = len(inside) > 1 and (inside[0].begin == said.words[0].begin or inside[0].stem in argument.words)
    yield list(run), -2.0 * is_led
    capital = next((word for word in inside if word.is_capital and word.begin > head.begin), None)
    later = capital if capital is not None else inside[1] if is_led else None
    if head.kind != "quoted" and later is not None:
        yield [Part(said.request[later.begin : head.end], later.begin, head.end, head.kind), *run[1:]], 0.0


def _named(argument: Argument, said: Words, begin: int) -> float:
    """Whether one of the four words before a list is the argument's."""
    near = [stem(word.folded) for word in said.before(begin)[:4]]
    own = argument.own or argument.words
    return NAMED if any(word in own for word in near) else 0.0
