"""Arguments in Gemma's notation: what the grammar writes is read into the declared types."""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from bench.acceptors import Llguidance
from edgeagent import GrammarError, tool
from edgeagent.codec.dialect import dialect_called
from edgeagent.core.reading import Calls, Unreadable
from edgeagent.grammar.calls import calls_of, grammar_of
from edgeagent.grammar.gemma_notation import marked_rules


@dataclass
class When:
    day: datetime.date | None
    urgent: bool = False
    again: list[When] = field(default_factory=list)


@tool(idempotent=True)
def tell(
    to: Literal["Bob", "the crew, all"],
    text: Annotated[str, Meta(min_length=1, max_length=12)],
    times: Annotated[int, Meta(ge=1, le=20)] = 1,
    when: When | None = None,
    codes: Annotated[list[Annotated[str, Meta(pattern="^[A-Z]/[0-9]$")]], Meta(max_length=2)] = [],  # noqa: B006 # read
    more: dict[str, float] = {},  # noqa: B006 # only read
    pair: tuple[int, str] = (1, ""),
) -> None:
    """Tell somebody something."""


@tool(idempotent=True)
def store(value: Any) -> None:
    """Store anything."""


def grammar(name, *tools):
    return Llguidance(grammar_of(calls_of(tools), dialect_called(name).frame, answer="never", engine="llguidance"))


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        ("to:<escape>Bob<escape>,text:<escape>a {b}, c:<escape>", True),
        ("to:<escape>the crew, all<escape>,text:<escape>x<escape>,times:20", True),
        ("to:<escape>Bob<escape>,text:<escape>x<escape>,when:{day:<escape>2024-02-29<escape>,urgent:true}", True),
        ("to:<escape>Bob<escape>,text:<escape>x<escape>,when:{day:null,again:[{day:null},{day:null}]}", True),
        ("to:<escape>Bob<escape>,text:<escape>x<escape>,codes:[<escape>A/1<escape>],pair:[3,<escape><escape>]", True),
        ("to:<escape>Bob<escape>,text:<escape>x<escape>,more:{a b:1}", False),
        ("to:<escape>Bob<escape>,text:<escape>x<escape>,more:{a-b:-1.5}", True),
        ("to:<escape>Ann<escape>,text:<escape>x<escape>", False),
        ("to:<escape>Bob<escape>,text:<escape><escape>", False),
        ("to:<escape>Bob<escape>,text:<escape>x<escape>,times:21", False),
        ("to:<escape>Bob<escape>,text:<escape>x<escape>,", False),
        ("text:<escape>x<escape>", False),
        (
            "to:<escape>Bob<escape>,text:<escape>x<escape>,codes:[<escape>A/1<escape>,<escape>A/1<escape>,<escape>A/1<escape>]",
            False,
        ),
        ('"to":"Bob","text":"x"', False),
    ],
)
def test_only_the_declared_arguments_can_be_written(arguments, fits):
    text = f"<start_function_call>call:tell{{{arguments}}}<end_function_call>"
    assert grammar("functiongemma", tell).accepts(text) == fits
    if fits:
        (call,) = dialect_called("functiongemma").read(text).calls
        tell.parameters.decode(call.arguments)


@pytest.mark.parametrize("name", ["gemma", "functiongemma"])
def test_whatever_the_grammar_writes_is_read_into_the_types(name):
    held = grammar(name, tell, store)
    for seed in range(40):
        chance = random.Random(seed)

        def wander(allowed, may_end, written, chance=chance):
            short = [byte for byte in allowed if byte in b"<|}]"]
            return None if may_end else chance.choice(short if short and written > 90 else allowed)

        text = held.walk(wander)
        if text is None:
            continue
        reading = dialect_called(name).read(text)
        if isinstance(reading, Unreadable) and any(why in reading.because for why in ("out of range", "to 0")):
            continue  # The one relaxation here, as in JSON: a number may be too large for a float, or too near to 0.
        assert isinstance(reading, Calls), (text, reading)
        (call,) = reading.calls
        (tell if call.tool == "tell" else store).parameters.decode(call.arguments)


def test_a_key_that_cannot_be_bare_is_an_error_that_names_it():
    with pytest.raises(GrammarError, match="a:b"):
        marked_rules("args", {"type": "object", "properties": {"a:b": {}}, "additionalProperties": False}, '"<escape>"')


def test_gbnf_holds_such_calls_in_json_which_the_reader_takes():
    text = grammar_of(calls_of([tell]), dialect_called("gemma").frame, answer="never", engine="gbnf")
    assert r"\x22to\x22:" in text
