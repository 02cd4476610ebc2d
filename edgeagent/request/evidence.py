"""What does a request say of a tool's arguments? What it names narrows them; what it lacks must be asked for.

Law: only what stands in the request counts as evidence, and no value is outside the argument's schema. The pieces of a
request (numbers, days, parts, lists; `said/`) are dealt out together, so that none is given twice while another would
do. Where words do not decide between texts, the candidates stay open for the model to compare (`settled`). An argument
with a form of its own (a pattern), or with room for more than `QUOTED_CHARS_MAX` characters by its own declaration,
stays free: a small model copies far better than it writes, but what is asked for there is written. English only; in
another language a request has numbers, names and parts, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from edgeagent.core.agent import Tool
from edgeagent.core.from_user import Narrowed
from edgeagent.core.values import canonical_json
from edgeagent.request.lexical import stems, weighted_texts
from edgeagent.request.parts.assign import LEAD_MAX, Candidate, dealt
from edgeagent.request.parts.dates import (
    When,
    is_negative,
    is_past,
    spans_in,
    speaks_of_time,
    whens_in,
    written,
)
from edgeagent.request.parts.declared import Argument, arguments_of
from edgeagent.request.parts.lists import list_candidates
from edgeagent.request.parts.numbers import (
    OWN,
    in_unit_of,
    is_foreign,
    mentions_in,
    number_candidates,
    number_weight,
)
from edgeagent.request.parts.options import named_options, yes_or_no
from edgeagent.request.parts.texts import GIVEN, Part, parts_of, text_candidates
from edgeagent.request.parts.words import Words
from edgeagent.request.verbs import act_of, options_for
from edgeagent.shape.admits import admits
from edgeagent.shape.pointer import Document

REQUEST_WORDS_MAX, REQUEST_CHARS_MAX = 120, 2_000
"""The longest request of which texts and lists are taken; a longer one is a document, and they are free."""

LISTED = 1.5
"""Nats from which on a list is taken from the request; below, a required one is the model's to fill."""

LEFT_OVER = 1.5
"""Nats for an optional number if there is just one number in the request that nothing else takes."""

SPELLED_OUT = 2.0
"""Nats for a day with a number over one without: "next month (April 2031)"."""

LIKELIHOOD_WEIGHT, WORD_BONUS = 0.6, 0.5
"""What a nat of the model's log-probability of a value counts beside the weights of the words, and nats for each word
of it, since of two texts the longer one is always less likely. Chosen on the even rows of BFCL."""

ENGLISH = 1 / 3
"""The share of function words, commands and the tool's words from which on a request is read as English."""

OPTION, OF_ITS_FORM = "option", "of its form"

WEIGHT_OF_NONE = 3.0
"""Nats that speak for a call of which nothing had to be taken from the request: as for a value that is named."""

FREE, LEFT_OUT = "free", "left out"
"""Why an argument is not held to anything: the model fills it, or its default stands."""

TO_COME = frozenset(stems("remind reminder alarm timer schedule appointment upcoming future"))
"""Words of tools that have to do with what is to come."""

_FORBIDS = re.compile(r"\W*(?:please\W+|no\W+)?(?:do\s+not|don['’]?t|never|under no circumstances)\b", re.IGNORECASE)
_STILL_ASKS = re.compile(r"\W*(?:please\W+)?(?:do\s+not|don['’]?t|never)\s+(?:forget|fail|hesitate)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Open:
    """A text argument and the parts of the request that it may be, best first by their words."""

    argument: str
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Evidence:
    """What a request says: limits on arguments, optional ones that it gives, and what it leaves open (or nothing).

    `open` are the texts, if words have not decided what one of them is; until they are settled, `narrowed` holds them
    to all of their parts. `why` tells for each argument what its limit comes from, and `dealt` has what was taken from
    the request. `asked` are the request's stems, `unknown` those of which the tool does not speak.
    """

    narrowed: tuple[Narrowed, ...] = ()
    given: tuple[str, ...] = ()
    missing: str = ""
    open: tuple[Open, ...] = ()
    why: tuple[tuple[str, str], ...] = ()
    dealt: Mapping[str, Candidate] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def sure(self) -> dict[str, float]:
        """What says how sure the values are; nothing of no request.

        `lead` and `said`: by how many nats the least sure value leads, and how many speak for the least said one;
        `unsaid`: the share of the request that neither the tool nor the values have; `left_out`: optional arguments.
        """
        if not self.asked:
            return {}
        said = {word for _, _, text in self.narrowed for word in stems(text)}
        return {
            "lead": min((each.lead for each in self.dealt.values()), default=LEAD_MAX),
            "said": min((each.weight for each in self.dealt.values()), default=WEIGHT_OF_NONE),
            "unsaid": sum(word not in said for word in self.unknown) / len(self.asked),
            "left_out": float(sum(why == LEFT_OUT for _, why in self.why)),
        }


@dataclass(frozen=True)
class _Finding:
    """What is left of an argument (a schema, False for nothing, None for everything), why, and what to ask for."""

    left: Any
    why: str
    question: str = ""
    dealt: Candidate | None = None


def forbids(request: str) -> bool:
    """Whether the request begins by saying that something must not be done."""
    return _FORBIDS.match(request) is not None and _STILL_ASKS.match(request) is None


def evidence_of(tool: Tool, request: str) -> Evidence:
    """What the request says of the tool's arguments."""
    reading = _Reading(tool, request)
    narrowed, given, questions, why = [], [], [], []
    dealt: dict[str, Candidate] = {}
    for argument in reading.arguments.values():
        finding, is_required = reading.finding(argument), argument.required
        left = finding.left
        if finding.question and (is_required or left is False):
            questions.append(finding.question)
            continue
        if finding.question:
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
    asked = tuple(dict.fromkeys(stems(request)))
    known = {word for text, _ in weighted_texts(tool) if text != request for word in stems(text)}
    return Evidence(
        tuple(narrowed),
        tuple(given),
        " ".join(questions),
        tuple(reading.open),
        tuple(why),
        dealt,
        asked,
        tuple(word for word in asked if word not in known),
    )


def settled(evidence: Evidence, likelihoods: Mapping[str, Sequence[float]]) -> Evidence:
    """The evidence with each open argument held to one part, by its words and the log-probabilities of its candidates.

    `likelihoods` has for an open argument one number a candidate, in their order. Where it has none, the words alone
    decide.
    """
    if not evidence.open:
        return evidence
    rows = {each.argument: _weighed(each, likelihoods.get(each.argument)) for each in evidence.open}
    chosen = dealt(rows)
    narrowed = tuple(
        (tool, name, canonical_json({"enum": [chosen[name].value]}) if name in chosen else text)
        for tool, name, text in evidence.narrowed
    )
    compared = {each.argument: len(each.candidates) for each in evidence.open}
    why = tuple(
        (name, f"{chosen[name].why}, compared with {compared[name] - 1}" if name in chosen else reason)
        for name, reason in evidence.why
    )
    return replace(evidence, narrowed=narrowed, open=(), why=why, dealt={**evidence.dealt, **chosen})


def _weighed(question: Open, likelihoods: Sequence[float] | None) -> Sequence[Candidate]:
    """The candidates with what the model's log-probability of each, and its length, count beside the words."""
    if likelihoods is None:
        return question.candidates
    return [
        replace(each, weight=each.weight + LIKELIHOOD_WEIGHT * likely + WORD_BONUS * len(each.value.split()))
        for each, likely in zip(question.candidates, likelihoods, strict=True)
    ]


class _Reading:
    """One request, read for one tool."""

    def __init__(self, tool: Tool, request: str) -> None:
        self._request = request
        self._spoken = frozenset(stems(f"{tool.name} {tool.description}"))
        self.arguments = arguments_of(tool.parameters.schema)
        self._said = _words_of(request)
        self._is_read = _is_english(self._said, self._spoken)
        self._whens = list(whens_in(request))
        self._mentions = mentions_in(request)
        self._numbers = self._deal_numbers()
        self._days = self._deal_days()
        self._lists = self._deal_lists()
        self._texts_wanted = sum(each.kind == "text" for each in self.arguments.values())
        self._shared: set[str] = set()
        self._texts = self._deal_texts()
        is_open = any(len({each.value for each in row}) > 1 for row in self._texts.values())
        self.open = [Open(name, tuple(row)) for name, row in self._texts.items()] if is_open else []

    def finding(self, argument: Argument) -> _Finding:
        """What is left of the argument."""
        match argument.kind:
            case "option":
                return self._of_options(argument)
            case "truth":
                said = yes_or_no(argument, self._request, self._spoken)
                return _Finding(False, "") if said is None else _Finding({"enum": [said]}, "said so")
            case "number":
                return self._of_number(argument)
            case "text" | "date" if argument.required and (question := self._asks_for_time(argument)):
                return _Finding(False, "", question)
            case "date" if argument.name in self._days:
                return _one(self._days[argument.name])
            case "list" if argument.name in self._lists:
                return _one(self._lists[argument.name])
            case "text" if argument.name in self._shared or self._says_nothing(argument):
                return _Finding(False, "", f"Which {_spoken(argument.name)}?" if argument.required else "")
            case "text" | "form" if argument.name in self._texts:
                row = self._texts[argument.name]
                return _Finding({"enum": list(dict.fromkeys(each.value for each in row))}, row[0].why)
            case "form" if found := self._of_that_form(argument):
                return _Finding({"enum": found}, OF_ITS_FORM)
            case "text" | "list" | "date":
                return _Finding(None if argument.required else False, FREE)
        named = argument.words & set(stems(self._request))
        return _Finding(None if named else False, FREE)

    def _of_options(self, argument: Argument) -> _Finding:
        options = argument.schema["enum"]
        named = named_options(options, self._request) or options_for(act_of(self._request), options)
        if named:
            return _Finding({"enum": named}, "named")
        return _Finding(None, "", f"Which {_spoken(argument.name)}: {_listed(options)}?")

    def _asks_for_time(self, argument: Argument) -> str:
        """What to ask where an argument is a time, and the request has none, or one that cannot be meant."""
        if not argument.is_time or not self._is_read:
            return ""
        if not speaks_of_time(self._request):
            return f"Which {_spoken(argument.name)}?"
        if is_negative(self._request):
            return f"{_spoken(argument.name)} must not be negative."
        if self._spoken & TO_COME and is_past(self._request):
            return f"{_spoken(argument.name)} must not be in the past."
        return ""

    def _says_nothing(self, argument: Argument) -> bool:
        """Whether no part of the request could be a required text."""
        return argument.required and self._is_read and argument.name not in self._texts

    def _of_that_form(self, argument: Argument) -> list[str]:
        """The word of the request that an optional argument's pattern lets through; none if it lets several through."""
        words = dict.fromkeys(word.text for word in self._said.words if not word.text.isalpha())
        found = [word for word in words if _admits(argument, word)]
        return found if len(found) == 1 else []

    # -- numbers ---------------------------------------------------------------------------------------------------

    def _deal_numbers(self) -> dict[str, Candidate]:
        """The number of each argument that has one; optional ones only where something speaks for them."""
        rows = {each.name: number_candidates(each, self._mentions) for each in self._of_kind("number")}
        rows = {name: row for name, row in rows.items() if row}
        required = {name: row for name, row in rows.items() if self.arguments[name].required}
        for _ in rows:
            dealt = _dealt(required)
            extra = self._next_optional(rows, required, dealt)
            if extra is None:
                return dealt
            required = {name: row for name, row in rows.items() if name in required or name == extra}
        return _dealt(required)

    def _next_optional(
        self, rows: Mapping[str, list[Candidate]], held: Mapping[str, list[Candidate]], dealt: Mapping[str, Candidate]
    ) -> str | None:
        """The optional argument that has most reason to be given one of the numbers, if any has."""
        taken = list(dealt.values())
        best, chosen = 0.0, None
        for name, row in rows.items():
            if name not in held:
                free = [each for each in row if not any(each.overlaps(other) for other in taken)]
                weight = max((each.weight for each in free), default=0.0)
                weight += LEFT_OVER * (len(free) == 1 and len(taken) == len(self._mentions) - 1)
                if weight >= OWN and weight > best:
                    best, chosen = weight, name
        return chosen

    def _of_number(self, argument: Argument) -> _Finding:
        if argument.name in self._numbers:
            return _one(self._numbers[argument.name])
        bounds = _bounds(argument.schema)
        if self._has_outside(argument):
            return _Finding(False, "", f"{_spoken(argument.name)} must be {bounds or 'a whole number'}.")
        asked = f"Which {_spoken(argument.name)}{f' ({bounds})' if bounds else ''}?"
        return _Finding(False, "", asked if argument.required else "")

    def _has_outside(self, argument: Argument) -> bool:
        """Whether the request has a number for the argument that its schema does not let through."""
        taken = list(self._numbers.values())
        free = [each for each in self._mentions if not any(each.begin < t.end and t.begin < each.end for t in taken)]
        meant = [each for each in free if not is_foreign(argument, each)]
        if not argument.required:
            meant = [each for each in meant if number_weight(each, argument) >= OWN]
        return bool(meant) and not any(_admits(argument, float(in_unit_of(argument, each))) for each in meant)

    # -- days, lists, texts ----------------------------------------------------------------------------------------

    def _deal_days(self) -> dict[str, Candidate]:
        """Each day of the request to one argument that is a date, required ones first."""
        ordered = sorted(self._of_kind("date"), key=lambda each: not each.required)
        rows = {}
        for argument in ordered[: len(self._whens)]:
            row = [day for when in self._whens if (day := _day(argument, when)) is not None]
            rows[argument.name] = [day for day in row if _admits(argument, day.value)]
        in_order = {name: rows[name] for name in self.arguments if rows.get(name)}
        return _dealt(in_order)

    def _deal_lists(self) -> dict[str, Candidate]:
        rows = {each.name: list_candidates(each, self._said, self._mentions) for each in self._of_kind("list")}
        return _dealt({name: row for name, row in rows.items() if row and row[0].weight >= LISTED})

    def _deal_texts(self) -> dict[str, list[Candidate]]:
        """The parts that each text argument may be; optional ones only where one speaks for them by itself."""
        texts = [each for each in self.arguments.values() if each.kind == "text" or _is_of_pattern(each)]
        if not texts:
            return {}
        parts = parts_of(self._said, [*self._whens, *spans_in(self._request)])
        required = [each for each in texts if each.required]
        options = [option for each in self._of_kind("option") for option in each.schema["enum"]]
        quoted = [each for each in parts if each.kind == "quoted" and not named_options(options, each.text)]
        if quoted and len(quoted) == len(required):
            parts = quoted
        taken = [*self._numbers.values(), *self._days.values(), *self._lists.values(), *self._named()]
        rows = {each.name: self._fitting(each, parts, taken) for each in required}
        rows = {name: row for name, row in rows.items() if row}
        own = _dealt(rows)
        self._shared = rows.keys() - own.keys() if self._is_read else set()
        taken += own.values()
        for argument in texts:
            if not argument.required:
                free = [each for each in self._fitting(argument, parts, taken) if each.weight >= GIVEN]
                free = [each for each in free if not any(each.overlaps(other) for other in taken)]
                rows |= {argument.name: free} if free else {}
        return {name: rows[name] for name in self.arguments if name in rows and name not in self._shared}

    def _named(self) -> Iterator[Candidate]:
        """The options that the request names, where they stand in it."""
        for argument in self._of_kind("option"):
            named = named_options(argument.schema["enum"], self._request)
            begin = self._request.casefold().find(named[0].casefold()) if len(named) == 1 else -1
            if begin >= 0:
                yield Candidate(named[0], begin, begin + len(named[0]), why=OPTION)

    def _fitting(self, argument: Argument, parts: Sequence[Part], taken: Sequence[Candidate]) -> list[Candidate]:
        found = text_candidates(argument, self._said, parts, self._spoken, taken, is_only=self._texts_wanted == 1)
        options = [each for each in taken if each.why == OPTION]
        found = [each for each in found if not any(each.overlaps(option) for option in options)]
        fitting = [each for each in found if _admits(argument, each.value)]
        if argument.kind == "form":
            words = [replace(each, why=OF_ITS_FORM) for each in fitting if " " not in each.value]
            return words or fitting
        return fitting

    def _of_kind(self, kind: str) -> Iterator[Argument]:
        return (each for each in self.arguments.values() if each.kind == kind)


def _is_english(said: Words, spoken: frozenset[str]) -> bool:
    """Whether so many words are known that what is not found is not there. Never of no words."""
    known = sum(word.is_cut or word.is_article or word.stem in spoken for word in said.words)
    return bool(said.words) and known >= ENGLISH * len(said.words)


def _is_of_pattern(argument: Argument) -> bool:
    """Whether it is a required text with a pattern, which a part of the request may have."""
    return argument.kind == "form" and argument.required and "pattern" in argument.schema


def _words_of(request: str) -> Words:
    """The words of a request that is not too long for parts to be taken from it; else none."""
    said = Words.of(request if len(request) <= REQUEST_CHARS_MAX else "")
    return said if len(said.words) <= REQUEST_WORDS_MAX else Words.of("")


def _dealt(rows: Mapping[str, Sequence[Candidate]]) -> dict[str, Candidate]:
    """What each argument gets; nothing for one that could only get a piece of another."""
    found: dict[str, Candidate] = {}
    for name, candidate in dealt(rows).items():
        if not any(candidate.overlaps(each) for each in found.values()):
            found[name] = candidate
    return found


def _one(candidate: Candidate) -> _Finding:
    return _Finding({"enum": [candidate.value]}, candidate.why, dealt=candidate)


def _day(argument: Argument, when: When) -> Candidate | None:
    """The day as the argument wants it; None where it wants a form that the request does not settle."""
    value = written(when, argument.description, form=argument.schema.get("format"))
    if value is None:
        return None
    weight = SPELLED_OUT if any(char.isdecimal() for char in when.text) else 0.0
    return Candidate(value, when.begin, when.end, weight, "day" if value == when.text else "day, converted")


def _admits(argument: Argument, value: Any) -> bool:
    return admits(argument.schema, value, Document(argument.schema))


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
