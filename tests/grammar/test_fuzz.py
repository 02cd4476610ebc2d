"""Schemas that nobody wrote make a grammar or an error; what it writes the decoder takes, or the report says why."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from bench.acceptors import Acceptor, Gbnf, Llguidance, vocabulary
from edgeagent.errors import GrammarError, ShapeError
from edgeagent.grammar.gbnf import gbnf
from edgeagent.grammar.gbnf_text import spelled
from edgeagent.grammar.llg import value_grammar
from edgeagent.shape import formats
from edgeagent.shape.admits import admits
from edgeagent.shape.lower import Relaxation, lower
from edgeagent.shape.parse import parse
from edgeagent.shape.pointer import Document
from edgeagent.shape.types import shape_of
from tests.grammar.test_acceptors import outside_what_is_written
from tests.shape.generated import JSON, PATTERNS, TYPES

pytestmark = pytest.mark.model
QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
KEYS = st.sampled_from(["a", "b", "ab", "c", 'q"', "é"])
COUNTS = st.integers(0, 3)
NUMBERS = st.one_of(st.integers(-30, 30), st.sampled_from([0.5, -2.25, 1e3, 2**53, -(2**63), 1e300]))


def _some(draw: st.DrawFn, choices: dict[str, st.SearchStrategy[Any]], most: int) -> dict[str, Any]:
    if not choices:
        return {}
    names = draw(st.lists(st.sampled_from(sorted(choices)), max_size=most, unique=True))
    return {name: draw(choices[name]) for name in names}


@st.composite
def _schemas(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Any:
    members = st.dictionaries(KEYS, inner, max_size=3)
    parts = st.lists(inner, min_size=1, max_size=3)
    kinds: dict[str, dict[str, st.SearchStrategy[Any]]] = {
        "number": {
            "minimum": NUMBERS,
            "maximum": NUMBERS,
            "exclusiveMinimum": NUMBERS,
            "exclusiveMaximum": NUMBERS,
            "multipleOf": st.sampled_from([1, 3, 0.5, 2.5, 7]),
        },
        "string": {
            "minLength": COUNTS,
            "maxLength": COUNTS,
            "pattern": st.sampled_from([*PATTERNS, "(?=a)", "["]),
            "format": st.sampled_from([*sorted(formats.PATTERNS), "iri"]),
        },
        "array": {
            "items": inner,
            "prefixItems": parts,
            "minItems": COUNTS,
            "maxItems": COUNTS,
            "uniqueItems": st.booleans(),
            "contains": inner,
        },
        "object": {
            "properties": members,
            "required": st.lists(KEYS, max_size=2, unique=True),
            "additionalProperties": inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$", "^[a-c]{1,2}$"]), inner, max_size=2),
            "propertyNames": inner,
            "minProperties": COUNTS,
            "maxProperties": COUNTS,
        },
    }
    kinds["integer"] = kinds["number"]
    combiners = {"allOf": parts, "anyOf": parts, "oneOf": parts, "not": inner, "enum": st.lists(JSON, max_size=3)}
    name = draw(st.sampled_from([*sorted(kinds), "null", "boolean"]))
    schema = _some(draw, kinds.get(name, {}), 3)
    if draw(st.integers(0, 5)):
        schema["type"] = draw(st.sampled_from([name, name, name, [name, "null"]]))
    if not draw(st.integers(0, 3)):
        schema |= _some(draw, combiners, 2)
    if not draw(st.integers(0, 9)):
        schema["$ref"] = draw(st.sampled_from(["#", "#/$defs/x", "#/$defs/missing", "#/properties/a"]))
    return schema


SCHEMAS = st.recursive(
    st.booleans() | st.just({"type": "null"}) | JSON.map(lambda value: {"const": value}), _schemas, max_leaves=6
)


class Wanderer:
    """Chooses at random, but goes for the end once the text is long."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def __call__(self, allowed: list[int], may_end: bool, written: int) -> int | None:
        if may_end and (written > 40 or self._chance.random() < 0.3):
            return None
        if written > 40:
            closing = [byte for byte in allowed if byte in b'"}]']
            allowed = closing or [byte for byte in allowed if byte < 128] or allowed
        # The vocabulary that llama.cpp is tried with lacks two bytes, which begin characters of no living script.
        return self._chance.choice([byte for byte in allowed if byte not in (0xF1, 0xF2)] or allowed)


def admitted(schema: Any, text: str) -> bool:
    try:
        return admits(schema, parse(text), Document(schema))
    except ShapeError:
        return False


def check(schema: Any, seeds: list[int], model: Path) -> None:
    try:
        lowered = lower(schema, where="t", string_max=30)
    except GrammarError as error:
        assert str(error).startswith("tool t")
        event("refused")
        return
    event("held")
    exact: list[Relaxation] = list(lowered.relaxations)
    looser = list(exact)
    grammars: list[tuple[Acceptor, list[Relaxation]]] = [
        (Llguidance(value_grammar(lowered.schema)), exact),
        (Gbnf(gbnf(lowered.schema, relaxed=looser), vocabulary(model)), looser),
    ]
    for grammar, report in grammars:
        for seed in seeds:
            text = grammar.walk(Wanderer(seed))
            if text is None:
                event("no end")
                continue
            event("text")
            assert grammar.accepts(text), text
            assert report or admitted(schema, text), f"{text} is written, is not of the schema, and no report says so"
            if exact == looser and admitted(schema, text):
                assert_written_by_all([grammar for grammar, _ in grammars], text)


def assert_written_by_all(grammars: list[Acceptor], text: str) -> None:
    """What one engine writes the other writes too, in our own spelling of constants, escapes and numbers."""
    ours = spelled(parse(text))
    # A declared key holds DEL as it is, a free one escapes it.
    spellings = {text, ours, ours.replace("\x7f", "\\u007f")}
    for grammar in grammars:
        assert any(map(grammar.accepts, spellings)) or outside_what_is_written(ours), (type(grammar), text)


@settings(max_examples=60, suppress_health_check=QUIET)
@given(schema=SCHEMAS, seeds=st.lists(st.integers(0, 2**32), min_size=2, max_size=2))
def test_a_schema_nobody_wrote_makes_a_grammar_or_an_error(schema: Any, seeds: list[int], smollm2: Path) -> None:
    whole = {**schema, "$defs": {"x": {"type": "boolean"}}} if isinstance(schema, dict) else schema
    check(whole, seeds, smollm2)


@settings(max_examples=40, suppress_health_check=QUIET)
@given(kind=TYPES, seeds=st.lists(st.integers(0, 2**32), min_size=2, max_size=2))
def test_what_a_grammar_writes_the_decoder_takes(kind: Any, seeds: list[int], smollm2: Path) -> None:
    check(shape_of(kind).schema, seeds, smollm2)


@pytest.mark.slow
@settings(max_examples=3_000, suppress_health_check=QUIET)
@given(schema=SCHEMAS, seeds=st.lists(st.integers(0, 2**32), min_size=2, max_size=2))
def test_three_thousand_schemas_nobody_wrote(schema: Any, seeds: list[int], smollm2: Path) -> None:
    whole = {**schema, "$defs": {"x": {"type": "boolean"}}} if isinstance(schema, dict) else schema
    check(whole, seeds, smollm2)
