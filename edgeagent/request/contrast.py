"""Contrast: what a request takes out of itself: "the left door, not the right one", "all lamps except one".

Law: what is taken out is never done. Where it is not certain how far it reaches, nothing is taken out, and the request
stays one that denies something, which is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from edgeagent.core.agent import Tool
from edgeagent.request.language import ENGLISH
from edgeagent.request.lexical import stems, words_of
from edgeagent.request.parts.declared import Argument, arguments_of
from edgeagent.request.parts.options import named_options
from edgeagent.request.parts.words import begins_with_verb
from edgeagent.request.said import part_of, without

SEVERAL_MAX = 4
"""The most calls that one sentence with several objects asks for."""

NEAR = 3
"""Words behind "all" among which the thing is named of which all are meant."""

_PATTERNS = ENGLISH.patterns
_FIRST, _BEHIND = _PATTERNS.compiled("contrasts_first"), _PATTERNS.compiled("contrasts_behind")
_DENIED_FIRST = _PATTERNS.compiled("denies_first")
_EXCEPTS, _ALL = _PATTERNS.compiled("excepts"), _PATTERNS.compiled("all_of")
_TEXT_BEFORE = re.compile(r"[:\"“„«]|\bthat\b")


class Of(NamedTuple):
    """The argument that has several values in a request, these, and what is left of the request for each."""

    argument: str
    values: Sequence[Any]
    request: str
    is_rest: bool = False
    """Whether they are what an exception leaves."""


NOT_SEVERAL = Of("", (), "")


def contrasted(request: str) -> tuple[str, str]:
    """The request without what it says is not meant, where it says besides what is; and what tells the tool.

    "Not the desk lamp, the bedside one" speaks of lamps only in what is not meant.
    """
    match = _DENIED_FIRST.search(request)
    if match is not None and not _TEXT_BEFORE.search(request[: match.end()]):
        rest = without(request, match.start("out"), match.end("out"))
        if begins_with_verb(rest) and not _DENIED_FIRST.search(rest):
            return rest, rest
    for pattern in (_FIRST, _BEHIND):
        match = pattern.search(request)
        if match is not None and not _TEXT_BEFORE.search(request[: match.start()]):
            rest = without(request, match.start("out"), match.end("out"))
            if stems(rest) and not pattern.search(rest) and not _ALL.search(rest):
                return rest, request if pattern is _FIRST else rest
    return request, request


def all_of(tool: Tool, request: str) -> Of:
    """The argument of which the request means all values, or all but some that it excepts."""
    excepts = _EXCEPTS.search(request)
    rest = request if excepts is None else part_of(request, 0, excepts.start())
    match = _ALL.search(rest)
    if match is None:
        return NOT_SEVERAL
    near = set(stems(" ".join(words_of(rest[match.end() :])[:NEAR])))
    for argument in arguments_of(tool.parameters.schema).values():
        values = argument.schema.get("enum", ())
        is_meant = argument.required and near & {*argument.words, *stems(tool.name), *stems(tool.description)}
        if is_meant and len(values) > 1 and not _named(argument, rest):
            out = _named(argument, request[excepts.start() :]) if excepts is not None else []
            left = [each for each in values if each not in out]
            is_certain = bool(out) is (excepts is not None) and (match[0].casefold() != "both" or len(values) == 2)
            if is_certain and left and len(left) <= SEVERAL_MAX:
                return Of(argument.name, left, rest, excepts is not None)
    return NOT_SEVERAL


def _named(argument: Argument, request: str) -> list[Any]:
    """The values that a part of a request names."""
    values = argument.schema["enum"]
    if all(isinstance(each, str) for each in values):
        return named_options(values, request)
    said = set(words_of(request))
    return [each for each in values if str(each) in said or _in_words(each) & said]


def _in_words(value: Any) -> set[str]:
    return {word for word, number in {"one": 1, **ENGLISH.numbers.words}.items() if number == value}
