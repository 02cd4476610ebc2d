"""Answers in plain words after a call, or where no tool fits: nothing of them is a model's.

Law: what a tool has returned is told, and nothing that it has not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from edgeagent.core.agent import Tool
from edgeagent.request.language import SentenceTable

OFFERED_MAX = 5
"""Tools that are named to who asks for something else: more is a list, not a sentence."""

LINE_VALUES_MAX = 3
"""Values of a result that stand in one line."""


def told(tool: Tool | None, name: str, given: Mapping[str, Any], result: str, sentences: SentenceTable) -> str:
    """What is said of one call that has returned, with its arguments, and its result as JSON."""
    value = _read(result)
    named = name.replace("_", " ")
    match value:
        case {"error": str(why)} if len(value) == 1:
            return sentences.failed.format(tool=named, why=why)
        case {"refused": str(why)} if len(value) == 1:
            return sentences.refused.format(tool=named, why=why)
    if tool is not None and tool.say:
        shown = {key: spoken(each, sentences) for key, each in given.items()}
        try:
            return tool.say.format_map({**shown, "result": spoken(value, sentences)})
        except (KeyError, IndexError, ValueError, AttributeError):
            pass  # It names an optional argument that was not given: the plain words are right, too.
    if value is None:
        of = ", ".join(f"{key.replace('_', ' ')} {spoken(each, sentences)}" for key, each in given.items())
        return sentences.done.format(call=f"{named} ({of})" if of else named)
    if isinstance(value, str) and value.strip():
        return value.strip()
    text = spoken(value, sentences)
    return f"{named}:\n{text}" if "\n" in text else f"{named}: {text}"


def spoken(value: Any, sentences: SentenceTable) -> str:
    """A value as one reads it: lists and tables in lines, and no brackets."""
    match value:
        case bool():
            return sentences.yes if value else sentences.no
        case None:
            return "–"
        case Mapping():
            rows = [f"{str(key).replace('_', ' ')}: {_inline(each, sentences)}" for key, each in value.items()]
            return ("\n" if len(rows) > LINE_VALUES_MAX else ", ").join(rows) or "–"
        case list():
            flat = [_inline(each, sentences) for each in value]
            is_plain = not any(isinstance(each, list | Mapping) for each in value)
            return (", ".join(flat) if is_plain else "\n".join(flat)) or "–"
        case _:
            return str(value)


def cannot(tools: Sequence[Tool], sentences: SentenceTable) -> str:
    """What is said where no tool does what is asked: those that come nearest, first."""
    named = [each.name.replace("_", " ") for each in tools[:OFFERED_MAX]]
    more = ", …" if len(tools) > OFFERED_MAX else ""
    return f"{sentences.no_tool} {sentences.can.format(tools=', '.join(named) + more)}" if named else sentences.no_tool


def _inline(value: Any, sentences: SentenceTable) -> str:
    return spoken(value, sentences).replace("\n", ", ")


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
