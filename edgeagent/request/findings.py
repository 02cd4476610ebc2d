"""Findings of a request about each of a tool's arguments: what narrows it, and what must be asked for.

Law: only what stands in the request counts as evidence, and no value is outside the argument's schema. An argument
with a form of its own (a pattern), or with room for more than `QUOTED_CHARS_MAX` characters by its own declaration,
stays free: a small model copies far better than it writes, but what is asked for there is written.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from edgeagent.core.agent import Tool
from edgeagent.core.from_user import Narrowed
from edgeagent.core.values import canonical_json
from edgeagent.request.contrast import SEVERAL_MAX
from edgeagent.request.evidence import FREE, LEFT_OUT, Evidence, Open
from edgeagent.request.explained import explained
from edgeagent.request.language import ENGLISH, SentenceTable, word_set
from edgeagent.request.lexical import kin, stem, stem_set, stems, weighted_texts, words_of
from edgeagent.request.mood import points_back
from edgeagent.request.parts.assign import Candidate
from edgeagent.request.parts.dates import is_negative, is_past, speaks_of_time
from edgeagent.request.parts.declared import Argument
from edgeagent.request.parts.lists import OPTIONS
from edgeagent.request.parts.numbers import OUTSIDE, OWN, in_unit_of, is_foreign, number_weight
from edgeagent.request.parts.options import named_options, switched, yes_or_no
from edgeagent.request.parts.strange import strange_words
from edgeagent.request.parts.units import UNITS
from edgeagent.request.parts.words import ARTICLES, PREPOSITIONS, Word
from edgeagent.request.polarity import ended_in
from edgeagent.request.reading import OF_ITS_FORM, Pieces, Reading, fits, is_of_day, pieces_of
from edgeagent.request.said import spelled_in, tongue_in
from edgeagent.request.verbs import act_of, options_for

JOINING = frozenset((ENGLISH.numbers.and_, "also", "plus"))
_FILLING = word_set(ENGLISH.words.indefinite) | {"that", "those", "both"}
MESSAGES = stem_set(ENGLISH.texts.messages)
TO_COME = stem_set(ENGLISH.arguments.to_come)
"""Words of tools that have to do with what is to come."""


LATER = 2
"""Ordinals above this say which one is meant, and not what is done first, or in a second."""

NOT_HELD: Mapping[str, Any] = {}


@dataclass(frozen=True)
class _Finding:
    """What is left of an argument (a schema, False for nothing, None for everything), why, and what to ask for."""

    left: Any
    why: str
    question: str = ""
    dealt: Candidate | None = None


def evidence_of(tool: Tool, request: str, held: Mapping[str, Any] = NOT_HELD) -> Evidence:
    """What the request says of the tool's arguments. `held` are options that are settled, by their argument.

    Of a tool that changes something nothing that must be given is left to a model, and nothing that is said is dropped:
    both are asked for.
    """
    reading = Reading.of(tool, request)
    pieces, is_careful = pieces_of(reading), tool.effect != "read"
    narrowed, given, questions, why = [], [], [], []
    dealt: dict[str, Candidate] = {}
    for argument in reading.arguments.values():
        finding, is_required = _finding(reading, pieces, argument), argument.required
        if argument.name in held:
            finding = _Finding({"enum": [held[argument.name]]}, "named")
        left = finding.left
        if is_careful and not finding.question:
            finding = replace(finding, question=_left_to_chance(reading, argument, left))
        if finding.question and (is_required or left is False or (is_careful and left is not None)):
            questions.append(finding.question)
            narrowed += [(tool.name, argument.name, canonical_json(left))] if isinstance(left, dict) else []
            continue
        if finding.question or (is_careful and left is None and not is_required and argument.kind in ("form", "date")):
            left = False  # An option that nobody has named is left out.
        if left is None or (left is False and is_required):
            why.append((argument.name, FREE))
            continue
        if finding.dealt is not None:
            dealt[argument.name] = finding.dealt
        narrowed.append((tool.name, argument.name, canonical_json(left)))
        why.append((argument.name, LEFT_OUT if left is False else finding.why))
        if left is not False and not is_required:
            given.append(argument.name)
    return _with_left_over(
        Evidence(tuple(narrowed), tuple(given), " ".join(questions), _open(pieces), tuple(why), dealt),
        tool,
        reading,
        pieces,
    )


def _with_left_over(found: Evidence, tool: Tool, reading: Reading, pieces: Pieces) -> Evidence:
    """The evidence with what the request says and nothing has: of a tool that changes something, it is asked about."""
    request = reading.request
    asked = tuple(dict.fromkeys(stems(request)))
    known = {word for text, _ in weighted_texts(tool) if text != request for word in stems(text)}
    strange = _strange(reading, pieces, found.narrowed, known)
    texts = [(row[0].begin, row[0].end) for row in pieces.texts.values() if row]
    unused = [] if found.missing else [*_unused(reading, pieces, found.narrowed), *_in_a_list(reading, pieces, strange)]
    return replace(
        found,
        missing=" ".join(unused[:1]) if unused and tool.effect != "read" else found.missing,
        asked=asked,
        unknown=tuple(word for word in asked if word not in known and not kin(word) & known),
        has_unused=bool(unused),
        strange=tuple(dict.fromkeys(each.folded for each in strange)),
        explained=explained(
            tool,
            [word for word in reading.said.words if not any(b < word.end and word.begin < e for b, e in texts)],
            {word for _, _, text in found.narrowed for word in stems(text)},
        ),
        needs=tuple(each.name for each in reading.arguments.values() if each.required),
    )


def several_of(tool: Tool, request: str) -> tuple[str, Sequence[str]]:
    """The argument of which the request names several options in a row, and these: `the kitchen and the bath`.

    Between them nothing stands that could be another order, or another object of one.
    """
    reading = Reading.of(tool, request)
    for argument in reading.of_kind("option"):
        named = named_options(argument.schema["enum"], request)
        if 1 < len(named) <= SEVERAL_MAX and _in_a_row_said(reading, argument, named):
            return argument.name, named
    return "", ()


def _in_a_row_said(reading: Reading, argument: Argument, named: Sequence[str]) -> bool:
    parts = {word: option for option in named for word in stems(option)}
    places = [(place, parts[word.stem]) for place, word in enumerate(reading.said.words) if word.stem in parts]
    if {option for _, option in places} != set(named):
        return False
    inside = reading.said.words[places[0][0] : places[-1][0]]
    others = [word for word in inside if word.stem not in parts]
    joined = {word.folded for word in others} & JOINING
    plain = JOINING | ARTICLES | PREPOSITIONS
    return bool(joined or any(word.apart for word in inside[1:])) and all(
        word.folded in plain or word.stem in argument.words or word.folded in _FILLING for word in others
    )


def _left_to_chance(reading: Reading, argument: Argument, left: Any) -> str:
    """What to ask where a value that must be given would be the model's to choose."""
    schema = argument.schema
    if argument.kind == "option" and isinstance(left, dict) and len(left["enum"]) > 1:
        return reading.sentences.which_of.format(argument=_spoken(argument), options=_listed(reading, left["enum"]))
    if argument.required and argument.kind == "text" and points_back(reading.request):
        return (
            "" if reading.said.quoted or _is_message(reading, argument.name) else _which(reading, argument)
        )  # Nobody knows what "it" is.
    if not argument.required or (left is not None and left is not False) or "const" in schema:
        return ""
    if argument.kind == "truth":
        return reading.sentences.yes_or_no.format(argument=_spoken(argument))
    is_written = schema.get("type") == "string" and argument.kind in ("other", "text")
    return "" if is_written else _which(reading, argument)


def _unused(reading: Reading, pieces: Pieces, narrowed: Sequence[Narrowed]) -> list[str]:
    """A question about the first number or time that is said and that no argument has."""
    texts = [each for name, row in pieces.texts.items() for each in (row if _is_message(reading, name) else row[:1])]
    taken = [*pieces.numbers.values(), *pieces.days.values(), *pieces.lists.values(), *texts]
    said = [(m.begin, m.end) for m in reading.mentions if not m.is_weak or (m.is_ordinal and m.value > LATER)]
    said += [(each.begin, each.end) for each in reading.whens]
    inside = list(said)
    parts = ((each.begin, each.end) for each in reading.said.words if each.folded in ENGLISH.numbers.fractions)
    said += [each for each in parts if not any(begin <= each[0] < end for begin, end in inside)]
    # A number may be a part of an option's name: "profile 2".
    options = {each.name for each in reading.of_kind("option")}
    values = {value for _, name, text in narrowed if name in options for value in words_of(text)}
    for begin, end in said:
        text = reading.request[begin:end]
        is_taken = any(each.begin < end and begin < each.end for each in taken)
        if not is_taken and not set(words_of(text)) <= values:
            return [reading.sentences.what_for.format(said=_with_unit(reading.request, begin, end))]
    return []


def _strange(reading: Reading, pieces: Pieces, narrowed: Sequence[Narrowed], known: Collection[str]) -> Sequence[Word]:
    """What the request names and nothing has: no tool's word, no value, no time."""
    texts = [row[0] for row in pieces.texts.values() if row]
    lists = [each for each in pieces.lists.values() if each.why != OPTIONS]
    taken = [*pieces.numbers.values(), *pieces.days.values(), *lists, *texts]
    spans = [(each.begin, each.end) for each in taken]
    spans += [(each.begin, each.end) for each in reading.mentions]
    spans += [(each.begin, each.end) for each in reading.whens]
    values = {word for _, _, text in narrowed for word in stems(text)}
    return strange_words(reading.said, {*known, *values}, spans)


def _in_a_list(reading: Reading, pieces: Pieces, strange: Sequence[Word]) -> list[str]:
    """A question about what stands in a row with options of a list, and is none of them."""
    for row in pieces.lists.values():
        inside = [each for each in strange if row.why == OPTIONS and row.begin < each.begin and each.end < row.end]
        if inside:
            said = spelled_in(reading.request, inside[0].begin, inside[-1].end)
            return [reading.sentences.what_for.format(said=said)]
    return []


def _is_message(reading: Reading, name: str) -> bool:
    return bool(reading.arguments[name].words & MESSAGES)


def _with_unit(request: str, begin: int, end: int) -> str:
    """What is said from one place to another, and its unit."""
    behind = re.match(r" ?([^\W\d_]+|[°%])", request[end:])
    is_unit = behind is not None and stem(behind[1].casefold()) in UNITS
    return spelled_in(request, begin, end + (len(behind[0]) if behind is not None and is_unit else 0))


def _open(pieces: Pieces) -> tuple[Open, ...]:
    """The texts that words leave open, all of them if one is: what one gets another has not."""
    is_open = any(len({each.value for each in row}) > 1 for row in pieces.texts.values())
    return tuple(Open(name, tuple(row)) for name, row in pieces.texts.items()) if is_open else ()


def _finding(reading: Reading, pieces: Pieces, argument: Argument) -> _Finding:
    """What is left of the argument."""
    name = argument.name
    match argument.kind:
        case "option":
            return _of_options(reading, argument)
        case "truth":
            said = yes_or_no(argument, reading.request, reading.spoken, reading.named)
            return _Finding(False, "") if said is None else _Finding({"enum": [said]}, "said so")
        case "number":
            return _of_number(reading, pieces, argument)
        case "text" | "date" if argument.required and (question := _asks_for_time(reading, argument)):
            return _Finding(False, "", question)
        case "date" | "form" if name in pieces.days:
            return _one(pieces.days[name])
        case "list" if name in pieces.lists:
            return _one(pieces.lists[name])
        case "text" if name in pieces.shared or _says_nothing(reading, pieces, argument):
            return _Finding(False, "", _which(reading, argument) if argument.required else "")
        case "text" | "form" if name in pieces.texts:
            row = pieces.texts[name]
            return _Finding({"enum": list(dict.fromkeys(each.value for each in row))}, row[0].why)
        case "form" | "date" if argument.schema.get("format") and argument.required and is_of_day(argument):
            return _Finding(False, "", _which(reading, argument))  # Without a clock nobody knows which day is meant.
        case "form" if found := _of_that_form(reading, argument):
            return _Finding({"enum": found}, OF_ITS_FORM)
        case "text" | "list" | "date":
            return _Finding(None if argument.required else False, FREE)
    named = argument.words & set(stems(reading.request))
    return _Finding(None if named else False, FREE)


def _one(candidate: Candidate) -> _Finding:
    return _Finding({"enum": [candidate.value]}, candidate.why, dealt=candidate)


def _of_options(reading: Reading, argument: Argument) -> _Finding:
    options, ended = argument.schema["enum"], ended_in(reading.request)
    named = [each for each in named_options(options, reading.request) if ended.isdisjoint(stems(each))]
    named = named or options_for(act_of(reading.request), options)
    named = named or switched(options, reading.request)
    if named:
        return _Finding({"enum": named}, "named")
    return _Finding(
        None, "", reading.sentences.which_of.format(argument=_spoken(argument), options=_listed(reading, options))
    )


def _of_number(reading: Reading, pieces: Pieces, argument: Argument) -> _Finding:
    bounds, found = _bounds(reading.sentences, argument.schema), pieces.numbers.get(argument.name)
    if found is not None and found.why != OUTSIDE:
        return _one(found)
    if found is not None or _has_outside(reading, pieces, argument):
        return _Finding(False, "", must_be(argument, reading.request))
    return _Finding(False, "", _which(reading, argument, bounds) if argument.required else "")


def must_be(argument: Argument, request: str) -> str:
    """What is said where a number does not fit its argument."""
    sentences = tongue_in(request).sentences
    bounds = _bounds(sentences, argument.schema) or sentences.whole
    return sentences.must_be.format(argument=_spoken(argument), bounds=bounds)


def _has_outside(reading: Reading, pieces: Pieces, argument: Argument) -> bool:
    """Whether the request has a number for the argument that its schema does not let through."""
    taken = list(pieces.numbers.values())
    free = [each for each in reading.mentions if not any(each.begin < t.end and t.begin < each.end for t in taken)]
    meant = [each for each in free if not is_foreign(argument, each)]
    if not argument.required:
        meant = [each for each in meant if number_weight(each, argument) >= OWN]
    return bool(meant) and not any(fits(argument, float(in_unit_of(argument, each))) for each in meant)


def _asks_for_time(reading: Reading, argument: Argument) -> str:
    """What to ask where an argument is a time, and the request has none, or one that cannot be meant."""
    if not argument.is_time or not reading.is_read:
        return ""
    if not speaks_of_time(reading.request):
        return _which(reading, argument)
    if is_negative(reading.request):
        return reading.sentences.not_negative.format(argument=_spoken(argument))
    if reading.spoken & TO_COME and is_past(reading.request):
        return reading.sentences.not_past.format(argument=_spoken(argument))
    return ""


def _says_nothing(reading: Reading, pieces: Pieces, argument: Argument) -> bool:
    """Whether no part of the request could be a required text."""
    return argument.required and reading.is_read and argument.name not in pieces.texts


def _of_that_form(reading: Reading, argument: Argument) -> list[str]:
    """The word of the request that an optional argument's pattern lets through; none if it lets several through."""
    words = dict.fromkeys(word.text for word in reading.said.words if not word.text.isalpha())
    found = [word for word in words if fits(argument, word)]
    return found if len(found) == 1 else []


# -- in words ------------------------------------------------------------------------------------------------------


def _which(reading: Reading, argument: Argument, bounds: str = "") -> str:
    sentence = reading.sentences.which_within if bounds else reading.sentences.which
    return sentence.format(argument=_spoken(argument), bounds=bounds)


def _spoken(argument: Argument) -> str:
    return argument.name.replace("_", " ")


def _bounds(sentences: SentenceTable, schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return _in_a_row(sentences, [str(each) for each in schema["enum"]])
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return sentences.from_to.format(low=f"{low:g}", high=f"{high:g}")
    if low is not None:
        return sentences.at_least.format(low=f"{low:g}")
    return sentences.at_most.format(high=f"{high:g}") if high is not None else ""


def _listed(reading: Reading, options: Sequence[str]) -> str:
    return _in_a_row(reading.sentences, options)


def _in_a_row(sentences: SentenceTable, options: Sequence[str]) -> str:
    return f"{', '.join(options[:-1])}{sentences.or_}{options[-1]}" if len(options) > 1 else options[0]
