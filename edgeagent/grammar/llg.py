"""Which text may a model write? A grammar for llguidance, from lowered schemas. Text in, text out.

One alternative per admissible tool: `before + name + between + arguments + after`, as the dialect writes a call. A tool
that is not among `calls` cannot be spelled. An answer in words may stand beside the calls, but may not begin like one.
Regular expressions, numbers and string escapes are llguidance's work (`%json`), never written by hand here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import orjson

from edgeagent.errors import GrammarError
from edgeagent.grammar.decimals import with_short_decimals
from edgeagent.grammar.frame import Answer, Call, Frame, Schema, checked
from edgeagent.grammar.gemma_notation import marked_rules


def calls_grammar(
    calls: Sequence[Call],
    frame: Frame,
    *,
    answer: Answer = "never",
    specials: Mapping[str, int] = MappingProxyType({}),
) -> str:
    """The grammar of one call to any of `calls`, or of an answer in words, or of either.

    `specials` are the texts that this vocabulary holds as one special token each, with its id; they are matched as that
    token. With a `string_mark` the arguments are in the notation of `gemma_notation.py` instead of JSON.
    Raises GrammarError when nothing at all could be written, or a name cannot stand in a call.
    """
    before, trigger = frame.before, frame.trigger
    if answer in ("only", "line") or (answer == "allowed" and not calls):
        return f"start: ANSWER\nANSWER: {_answer_pattern(before, '', one_line=answer == 'line')}\n"
    if not calls:
        raise GrammarError("no tool is admissible and no answer is allowed: there is nothing the model may write")
    head, opening = _head(before, trigger if answer == "allowed" else "", specials)
    lines = [_start(len(calls), answer), *head]
    for index, (name, schema) in enumerate(calls):
        parts = [*opening, *_literal(checked(name) + frame.between, specials), f"args_{index}"]
        lines.append(f"call_{index}: {' '.join([*parts, *_literal(frame.after, specials)])}")
        if frame.string_mark:
            lines += marked_rules(f"args_{index}", schema, " ".join(_literal(frame.string_mark, specials)))
        else:
            lines.append(f"args_{index}: {_json(schema, frame.item_separator, frame.key_separator)}")
    if answer == "allowed":
        lines.append(f"ANSWER: {_answer_pattern(before, trigger)}")
    return "\n".join(lines) + "\n"


def value_grammar(schema: Schema, *, item_separator: str = ", ", key_separator: str = ": ") -> str:
    """The grammar of one JSON value of `schema`."""
    return f"start: value\nvalue: {_json(schema, item_separator, key_separator)}\n"


def text_grammar(schema: Schema) -> str:
    """The grammar of the bare text, without quotes, that a lowered schema of a string with a pattern lets through."""
    pattern = schema["pattern"].removeprefix("^").removesuffix("$").replace("/", "\\/")
    return f"start: TEXT\nTEXT: /{pattern}/\n"


def suspects(schema: Schema) -> list[tuple[str, Schema]]:
    """Each field of an object schema as a schema of its own, so that a refused one can be named. Empty for others."""
    fields = schema.get("properties")
    if not isinstance(fields, Mapping):
        return []
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return [(name, {**field, **shared} if isinstance(field, Mapping) else {}) for name, field in fields.items()]


def _start(count: int, answer: Answer) -> str:
    options = [f"call_{index}" for index in range(count)]
    if answer == "allowed":
        options.append("ANSWER")
    return f"start: {' | '.join(options)}"


def _head(before: str, trigger: str, specials: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Rules that a call needs in front, and how each call opens."""
    if not trigger:
        return [], _literal(before, specials)
    rest = _literal(before[len(trigger) :], specials) if before.startswith(trigger) else _literal(before, specials)
    if trigger in specials:
        return ["WORDS: /(?s:.)*/"], ["WORDS", *_literal(trigger, specials), *rest]
    # A lazy lexeme ends at the first trigger: from there on only a call can follow.
    return [f"head[lazy]: /(?s:.)*/ {_quoted(trigger)}"], ["head", *rest]


def _answer_pattern(before: str, trigger: str, *, one_line: bool = False) -> str:
    if trigger:
        return "/(?s:.)+/"
    first = before.lstrip()[:1]
    # White space in front would hide that a call follows, so words begin with a word.
    return r"/[^\s" + re.escape(first) + ("][^\\n]*/" if one_line else r"](?s:.)*/")


def _literal(text: str, specials: Mapping[str, int]) -> list[str]:
    if not text:
        return []
    if not specials:
        return [_quoted(text)]
    longest_first = sorted(specials, key=len, reverse=True)
    pieces = re.split("(" + "|".join(map(re.escape, longest_first)) + ")", text)
    return [f"<[{specials[piece]}]>" if piece in specials else _quoted(piece) for piece in pieces if piece]


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()


def _json(schema: Schema, item_separator: str, key_separator: str) -> str:
    spaced = {"whitespace_flexible": False, "item_separator": item_separator, "key_separator": key_separator}
    return "%json " + orjson.dumps({**with_short_decimals(schema), "x-guidance": spaced}).decode()
