"""GBNF says exactly what the lowered schema says, and llama.cpp's own parser takes it."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.acceptors import Acceptor
from edgeagent.codec.dialects.family import CallFrame
from edgeagent.errors import GrammarError
from edgeagent.grammar.gbnf import gbnf, gbnf_calls
from edgeagent.grammar.gbnf_numbers import integers
from edgeagent.grammar.gbnf_text import spelled
from edgeagent.shape.lower import Relaxation, lower
from edgeagent.shape.types import shape_of
from tests.shape.generated import TYPES

pytestmark = pytest.mark.model
Parse = Callable[[str], Acceptor]


def of_integers(low: int, high: int) -> str:
    return f"root ::= {' | '.join(integers(low, high))}\n"


def of_schema(schema: Any) -> str:
    return gbnf(lower(schema).schema, relaxed=[])


@pytest.mark.parametrize("low", [-120, -19, -10, -1, 0, 1, 7, 10, 42, 99, 100])
def test_integer_ranges_are_exact_on_small_ranges(low: int, parsed: Parse) -> None:
    for high in range(low, 131, 11):
        grammar = parsed(of_integers(low, high))
        accepted = [number for number in range(-140, 140) if grammar.accepts(str(number))]
        assert accepted == list(range(low, high + 1))
        assert not any(grammar.accepts(text) for text in ("-0", "00", "01", "+1", "", "-"))


@pytest.mark.parametrize(
    ("low", "high"), [(0, 2**53 - 1), (-(2**63), 2**63 - 1), (110, 2**63 - 1), (999, 1000), (123_456, 987_654)]
)
def test_integer_ranges_are_exact_up_to_64_bits(low: int, high: int, parsed: Parse) -> None:
    grammar = parsed(of_integers(low, high))
    chance = random.Random(low ^ high)
    near = [low - 1, low, low + 1, high - 1, high, high + 1, 0, 1, 10, 99, 100, 109, 111, high * 10, high // 10]
    for number in near + [chance.randint(-(10**20), 10**20) for _ in range(40)] + [chance.randint(low, high)]:
        assert grammar.accepts(str(number)) == (low <= number <= high)


@pytest.mark.parametrize(
    "bounds",
    [
        {"minimum": 0},
        {"exclusiveMinimum": 0},
        {"maximum": 0},
        {"minimum": -1.336},
        {"exclusiveMinimum": 0.5, "maximum": 12.25},
        {"minimum": -0.25, "exclusiveMaximum": 0.3},
        {"minimum": 5, "maximum": 5},
        {"exclusiveMinimum": 4.99, "exclusiveMaximum": 5},
        {"minimum": -40, "maximum": -39.5},
        {"minimum": 1e-3, "maximum": 1e6},
    ],
)
def test_number_ranges_are_exact(bounds: dict[str, float], parsed: Parse) -> None:
    grammar = parsed(of_schema({"type": "number", **bounds}))
    chance = random.Random(repr(bounds))
    samples = [str(number) for number in range(-45, 45)]
    samples += [f"{chance.uniform(-45, 45):.{chance.randint(1, 5)}f}" for _ in range(40)]
    for bound in bounds.values():
        for step in ("0", "0.1", "0.001", "-0.1", "-0.001"):
            samples.append(format(Decimal(repr(bound)) + Decimal(step), "f"))
    for text in samples:
        number = Decimal(text)
        fits = not (text.startswith("-") and number == 0)
        fits &= number >= Decimal(repr(bounds.get("minimum", -1e9)))
        fits &= number <= Decimal(repr(bounds.get("maximum", 1e9)))
        fits &= number > Decimal(repr(bounds.get("exclusiveMinimum", -1e9)))
        fits &= number < Decimal(repr(bounds.get("exclusiveMaximum", 1e9)))
        assert grammar.accepts(text) == fits, text
    assert not any(grammar.accepts(text) for text in ("01", "1.", ".5", "-0", "1e3", "00.1"))


@pytest.mark.parametrize(
    ("least", "most"), [(0, 1999), (0, 2000), (0, 2001), (5, 2500), (1000, 1000), (3000, 3001), (2500, None)]
)
def test_lengths_are_exact_beyond_the_repeats_that_the_parser_takes(
    least: int, most: int | None, parsed: Parse
) -> None:
    limits = {"minLength": least} if most is None else {"minLength": least, "maxLength": most}
    grammar = parsed(of_schema({"type": "string", **limits}))
    for count in {0, least - 1, least, least + 1, 999, 1000, 1001, 2000, (most or 0) - 1, most or 7, (most or 0) + 1}:
        if count >= 0:
            fits = least <= count and (most is None or count <= most)
            assert grammar.accepts('"' + "a" * count + '"') == fits, count


def test_a_length_of_two_thousand_million_costs_little_text(parsed: Parse) -> None:
    text = of_schema({"type": "string", "maxLength": 2_000_000_000})
    assert len(text) < 1_000
    assert parsed(text).accepts('"a"')


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_counts_of_items_are_exact(count: int, parsed: Parse) -> None:
    item = {"enum": [1]}
    for least in range(3):
        for most in (*range(least, 4), None):
            limits = {"minItems": least} if most is None else {"minItems": least, "maxItems": most}
            for places in range(3):
                schema = {"type": "array", "items": item, "prefixItems": [item] * places, **limits}
                fits = least <= count and (most is None or count <= most)
                assert parsed(of_schema(schema)).accepts(f"[{', '.join('1' * count)}]") == fits, schema


@pytest.mark.parametrize("others", [False, {"type": "null"}])
def test_every_subset_of_optional_keys_in_order_and_no_other(others: Any, parsed: Parse) -> None:
    members = {key: {"enum": [1]} for key in "abcd"}
    schema = {"type": "object", "properties": members, "required": ["c"], "additionalProperties": others}
    grammar = parsed(of_schema(schema))
    for mask in range(16):
        keys = [key for index, key in enumerate("abcd") if mask >> index & 1]
        text = "{" + ", ".join(f'"{key}": 1' for key in keys) + "}"
        assert grammar.accepts(text) == ("c" in keys), text
        assert not grammar.accepts("{" + ", ".join(f'"{key}": 1' for key in [*keys, "b"]) + "}") or "b" not in keys
    assert grammar.accepts('{"c": 1, "x": null}') == bool(others)


@pytest.mark.parametrize(
    ("key", "fits"),
    [
        ("a", True),
        ("ab", False),
        ("abc", False),
        ("abcd", True),
        ("abd", True),
        ("", True),
        ("b", True),
        ('a"', False),
        ("é", False),
        ("è", True),
    ],
)
def test_other_keys_are_all_but_the_declared(key: str, fits: bool, parsed: Parse) -> None:
    members = {name: {"enum": [1]} for name in ("ab", "abc", 'a"', "é")}
    grammar = parsed(of_schema({"type": "object", "properties": members, "additionalProperties": {"type": "null"}}))
    assert grammar.accepts("{" + spelled(key) + ": null}") == fits


ODD_TEXTS = [
    '"',
    "\\",
    "C:\\temp",
    "\n\t\r\b\f",
    "\x00\x1f",
    "\x7f",
    "é☃\U0001f600",
    "[a-z]",
    "^]-[",
    "' or \" 1=1",
    "::= |",
    "#",
]


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_constants_are_escaped_once_for_json_and_once_for_the_grammar(text: str, parsed: Parse) -> None:
    grammar = parsed(of_schema({"enum": [text, "other"]}))
    written = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    assert json.loads(written) == text
    assert spelled(text) == written
    if "\x00" not in text:
        assert grammar.accepts(written)
    assert not grammar.accepts('"' + text + 'x"')


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_keys_are_escaped_too(text: str, parsed: Parse) -> None:
    schema = {"type": "object", "properties": {text: {"enum": [1]}}, "required": [text], "additionalProperties": False}
    assert parsed(of_schema(schema)).accepts("{" + json.dumps(text, ensure_ascii=False) + ": 1}")


def test_strings_hold_no_raw_control_character(parsed: Parse) -> None:
    grammar = parsed(of_schema({"type": "string"}))
    assert not any(grammar.accepts(f'"{chr(code)}"') for code in (0, 9, 10, 13, 31, 34, 92, 127))
    assert all(grammar.accepts(spelled(chr(code))) for code in (*range(0x20, 0x80), 9, 10, 13, 0, 11, 31, 0x7F, 0xE9))


def test_many_constants_are_a_tree_of_what_they_begin_with(parsed: Parse) -> None:
    words = [f"{first}{second}" for first in ("", "ab", "abc", "é", "x") for second in ("", "1", "12", "2")]
    grammar = parsed(of_schema({"enum": words}))
    assert all(grammar.accepts(spelled(word)) for word in words)
    assert not any(grammar.accepts(spelled(word)) for word in ("a", "ab3", "abc11", "é3", "xx", "21"))


def test_steps_between_two_bounds_are_written_out(parsed: Parse) -> None:
    grammar = parsed(of_schema({"type": "number", "minimum": 5, "maximum": 35, "multipleOf": 0.5}))
    accepted = [number for number in range(400) if grammar.accepts(spelled(number / 10))]
    assert accepted == list(range(50, 351, 5))


@pytest.mark.parametrize(
    "text", ["^(?:ab)*$", "^[a-z]+(?:-[a-z]+)*$", "a", "^(?:a|bb)*c?$", "^(?:a?b?){2,4}$", "^(?:a*)*$"]
)
@pytest.mark.parametrize(("least", "most"), [(0, 5), (2, 4), (3, 3), (4, None)])
def test_a_length_beside_a_pattern_is_counted(text: str, least: int, most: int | None, parsed: Parse) -> None:
    limits = {"minLength": least} if most is None else {"minLength": least, "maxLength": most}
    relaxed: list[Relaxation] = []
    try:
        schema = lower({"type": "string", "pattern": text, **limits}).schema
    except GrammarError:
        return  # No text of that length: nothing to compare.
    grammar = parsed(gbnf(schema, relaxed=relaxed))
    assert relaxed == []
    search = re.compile(text)
    for count in range(7):
        for letters in itertools.product("ab-c", repeat=count):
            word = "".join(letters)
            fits = search.search(word) is not None and least <= count and (most is None or count <= most)
            if count < 5 or fits:
                assert grammar.accepts(f'"{word}"') == fits, word


def test_separators_are_the_callers(parsed: Parse) -> None:
    schema = lower({"type": "object", "properties": {"a": {"type": "array", "items": {}}}, "required": ["a"]}).schema
    grammar = parsed(gbnf(schema, item_separator=",", key_separator=":"))
    assert grammar.accepts('{"a":[1,{"b":2}]}')
    assert not grammar.accepts('{"a": [1, {"b": 2}]}')


def test_recursion_is_a_rule_of_its_own(parsed: Parse) -> None:
    node = {"type": "object", "properties": {"n": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["n"]}
    grammar = parsed(of_schema(node))
    assert grammar.accepts('{"n": {"n": {"n": null}}}')
    assert not grammar.accepts('{"n": {"n": 1}}')


def test_what_it_cannot_say_goes_into_the_callers_list() -> None:
    relaxed: list[Relaxation] = []
    schema = {"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 7}}, "required": ["n"]}
    gbnf(lower(schema).schema, relaxed=relaxed)
    assert [(note.path, note.keyword) for note in relaxed] == [("n", "multipleOf")]


def test_without_a_list_it_is_an_error_naming_tool_and_field() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 7}}, "required": ["n"]}
    with pytest.raises(GrammarError, match=r"tool t, field n: multipleOf"):
        gbnf(lower(schema).schema, where="t")


# --- calls ---------------------------------------------------------------------------------------------------------

CALLS = [
    (
        "open_valve",
        lower(
            {"type": "object", "properties": {"s": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["s"]}
        ).schema,
    ),
    ("read-probe", lower({"type": "object", "properties": {}, "additionalProperties": False}).schema),
]
FRAME = CallFrame('{"name": "', '", "arguments": ', "}")


def test_a_call_is_its_frame_its_name_and_its_arguments(parsed: Parse) -> None:
    grammar = parsed(gbnf_calls(CALLS, FRAME))
    assert grammar.accepts('{"name": "open_valve", "arguments": {"s": 5}}')
    assert grammar.accepts('{"name": "read-probe", "arguments": {}}')
    assert not grammar.accepts('{"name": "read-probe", "arguments": {"s": 5}}')
    assert not grammar.accepts('{"name": "open", "arguments": {}}')
    assert not grammar.accepts("hello")


def test_a_tool_that_is_not_given_cannot_be_spelt(parsed: Parse) -> None:
    grammar = parsed(gbnf_calls(CALLS[:1], FRAME))
    assert not grammar.accepts('{"name": "read-probe", "arguments": {}}')


def test_an_answer_in_words_may_stand_beside_the_calls(parsed: Parse) -> None:
    grammar = parsed(gbnf_calls(CALLS, FRAME, answer="allowed"))
    assert grammar.accepts("Hello there.")
    assert grammar.accepts('{"name": "read-probe", "arguments": {}}')
    assert not grammar.accepts('{"name": "x", "arguments": {}}')
    assert not grammar.accepts(' {"name": "x"}')


def test_free_text_goes_on_until_the_trigger(parsed: Parse) -> None:
    frame = CallFrame('<call>{"name": "', '", "arguments": ', "}</call>", trigger="<call>")
    text = gbnf_calls(CALLS, frame, answer="allowed")
    grammar = parsed(text)
    assert grammar.accepts("a < b and <cal and <<call then")
    assert grammar.accepts('I will look.\n<<call>{"name": "read-probe", "arguments": {}}</call>')
    assert not grammar.accepts("now <call>anything")


def test_only_an_answer_is_words_that_do_not_begin_like_a_call(parsed: Parse) -> None:
    grammar = parsed(gbnf_calls(CALLS, FRAME, answer="only"))
    assert grammar.accepts('Say {"name": "x"} or nothing.')
    assert not grammar.accepts('{"name": "x"')


def test_no_tool_and_no_answer_is_an_error() -> None:
    with pytest.raises(GrammarError, match="nothing the model may write"):
        gbnf_calls([], FRAME)


def test_a_name_that_would_need_escaping_is_an_error() -> None:
    with pytest.raises(GrammarError, match="a name that a model calls"):
        gbnf_calls([('a"b', {})], FRAME)


# --- every grammar -------------------------------------------------------------------------------------------------


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)
@given(kind=TYPES, bounded=st.booleans())
def test_every_rule_name_is_letters_digits_and_hyphens_and_the_parser_takes_it(
    kind: Any, bounded: bool, parsed: Parse
) -> None:
    lowered = lower(shape_of(kind).schema, string_max=200 if bounded else None)
    text = gbnf(lowered.schema, relaxed=[])
    names = [line.partition(" ::= ")[0] for line in text.splitlines()]
    assert all(re.fullmatch("[A-Za-z0-9-]+", name) for name in names)
    assert len(names) == len(set(names))
    parsed(text)
