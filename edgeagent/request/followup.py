"""Follow-ups: what a request means that only says what is to be other than in the call before it.

"One degree warmer", "half as long", "and the other one too", "the same for channel 3". Law: all of it comes from the
call before and from the request; where any word of it is left, or one of two values may be meant, it is no follow-up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from edgeagent.core.agent import Tool
from edgeagent.request.evidence import Evidence
from edgeagent.request.findings import evidence_of, must_be
from edgeagent.request.language import ENGLISH
from edgeagent.request.lexical import kin, stem, stem_set, stems, weighted_texts, words_of
from edgeagent.request.parts.declared import Argument, arguments_of
from edgeagent.request.parts.numbers import Mention, in_unit_of, mentions_in, plain
from edgeagent.request.parts.units import DEGREES, UNITS
from edgeagent.request.polarity import counterpart, says
from edgeagent.request.reading import fits

_FOLLOWUP = ENGLISH.followup
_MORE, _LESS = stem_set(_FOLLOWUP.more), stem_set(_FOLLOWUP.less)
_LOW = stem_set(_FOLLOWUP.low) - _LESS
_FILLING, _LONG = stem_set(_FOLLOWUP.filling), stem_set(_FOLLOWUP.long)
_REFERS, _AGAIN = _FOLLOWUP.compiled("refers"), _FOLLOWUP.compiled("points")
_FACTORS = [(_FOLLOWUP.compiled(name), Decimal(factor)) for name, factor in (("half", "0.5"), ("double", "2"))]
_OTHER, _SCALES = "other", ("celsius", "fahrenheit")


class Earlier(NamedTuple):
    """A call that was made before, and worked."""

    tool: str
    arguments: Mapping[str, Any]


def follows(tool: Tool, earlier: Earlier, request: str) -> Evidence | None:
    """What a request says that is another call like an earlier one of this tool; None where it is no such request."""
    arguments = arguments_of(tool.parameters.schema)
    changed = _relative(arguments, earlier, request)
    if changed is None:
        changed = _replaced(tool, arguments, earlier, request)
    if not changed or _has_more(tool, changed, request):
        return None
    held = {**earlier.arguments, **changed}
    if held == dict(earlier.arguments) or not held.keys() <= arguments.keys():
        return None
    wrong = [name for name, value in changed.items() if not fits(arguments[name], value)]
    found = evidence_of(tool, " ", held)
    return replace(found, missing=must_be(arguments[wrong[0]], request)) if wrong else None if found.missing else found


def turned_back(tool: Tool, turned: Tool, earlier: Earlier, request: str) -> Evidence | None:
    """What a request says that undoes the call before by the opposite of its tool: "switch it back on"."""
    found = counterpart(tool, [turned])
    arguments = arguments_of(tool.parameters.schema)
    held = {name: value for name, value in earlier.arguments.items() if name in arguments}
    if found is None or not says(found[1], request) or _AGAIN.search(request) is None or _has_more(tool, held, request):
        return None
    evidence = evidence_of(tool, " ", held)
    return None if evidence.missing else evidence


def filled(tool: Tool, earlier: Earlier, request: str, found: Evidence) -> Evidence:
    """What a request says of a tool, with what it only points back to: "close it again", after the same thing."""
    if _AGAIN.search(request) is None or not found.missing:
        return found
    arguments = arguments_of(tool.parameters.schema)
    said = {name for _, name, text in found.narrowed if text != "false"}
    shared = {name: value for name, value in earlier.arguments.items() if name in arguments and name not in said}
    shared = {name: value for name, value in shared.items() if arguments[name].schema.get("enum")}
    return evidence_of(tool, request, shared) if shared else found


def _replaced(
    tool: Tool, arguments: Mapping[str, Argument], earlier: Earlier, request: str
) -> Mapping[str, Any] | None:
    """The values that the request names instead of those of the call before."""
    if _REFERS.search(request) is None:
        return None
    found = evidence_of(tool, request)
    if found.has_unused:
        return None
    changed = {}
    for _, name, text in found.narrowed:
        values = _values(text)
        if len(values) == 1 and name in arguments:
            changed[name] = values[0]
    if _OTHER in words_of(request):
        for name, value in earlier.arguments.items():
            left = (
                [each for each in arguments[name].schema.get("enum", ()) if each != value] if name in arguments else []
            )
            if len(left) == 1 and name not in changed:
                changed[name] = left[0]
    return changed


def _values(text: str) -> list[Any]:
    told = json.loads(text)
    return list(told.get("enum", ())) if isinstance(told, dict) else []


def _relative(arguments: Mapping[str, Argument], earlier: Earlier, request: str) -> Mapping[str, Any] | None:
    """The number of the call before with so much more or less; None where nothing relative is said."""
    said = set(map(stem, words_of(request)))
    numbers = {
        name: Decimal(str(value))
        for name, value in earlier.arguments.items()
        if name in arguments and arguments[name].kind == "number" and "enum" not in arguments[name].schema
    }
    is_long = bool(said & _LONG)
    for pattern, factor in _FACTORS:
        if pattern.search(request) is not None:
            timed = [name for name in numbers if _is_time(arguments[name])] if is_long else list(numbers)
            return {timed[0]: plain(numbers[timed[0]] * factor)} if len(timed) == 1 else {}
    sign = bool(said & _MORE) - bool(said & _LESS)
    sign = -sign if said & _LOW else sign  # "more cold"
    mentions = [each for each in mentions_in(request) if not each.is_weak]
    if not sign or len(mentions) != 1 or not _is_by(mentions[0]):
        return None
    fitting = [name for name in numbers if _is_of(arguments[name], mentions[0])]
    if len(fitting) != 1:
        return {}
    (name,) = fitting
    return {name: plain(numbers[name] + sign * _delta(arguments[name], mentions[0]))}


def _is_by(mention: Mention) -> bool:
    """Whether the number says by how much: what compares stands right behind it and its unit."""
    return any(word in _MORE | _LESS for word in mention.behind[:3])


def _is_time(argument: Argument) -> bool:
    return argument.unit is not None and argument.unit.kind in ("time", "days")


def _is_of(argument: Argument, mention: Mention) -> bool:
    """Whether a difference is one of this argument: in its unit, or in a word of its own."""
    unit, own = mention.unit, argument.unit
    if unit is None:
        between = mention.behind[0] if mention.behind else ""
        return between in argument.words or between in _MORE | _LESS
    if own is None:
        return bool({each for each in UNITS if UNITS[each] == unit} & argument.words)
    return unit.kind == own.kind or (unit.kind == DEGREES and own.kind in _SCALES)


def _delta(argument: Argument, mention: Mention) -> Decimal:
    is_same = mention.unit is not None and argument.unit is not None and mention.unit.kind == argument.unit.kind
    return abs(in_unit_of(argument, mention)) if is_same else abs(mention.value)


def _has_more(tool: Tool, changed: Mapping[str, Any], request: str) -> bool:
    """Whether the request has words that neither the tool nor what changes explains."""
    known = {word for text, _ in weighted_texts(tool) for word in stems(text)} | _FILLING | _MORE | _LESS | _LONG | _LOW
    known |= {word for value in changed.values() for word in stems(str(value))} | UNITS.keys()
    known |= stem_set(" ".join([*ENGLISH.numbers.words, *ENGLISH.polarity.on.split(), *ENGLISH.polarity.off.split()]))
    return any(word not in known and not kin(word) & known for word in stems(request))
