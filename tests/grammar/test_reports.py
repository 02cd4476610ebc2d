"""Faults that people reported of other runtimes, each as a promise of ours. The report's own number stands beside it.

Most are about what the grammar of a schema lets through, and hold for both engines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pydantic
import pytest
from msgspec import Meta

from bench.acceptors import Acceptor, Gbnf
from edgeagent.codec.dialects.family import CallFrame
from edgeagent.errors import GrammarError
from edgeagent.grammar.gbnf import gbnf, gbnf_calls
from edgeagent.grammar.llg import value_grammar
from edgeagent.shape.lower import lower
from edgeagent.shape.parse import parse
from edgeagent.shape.types import shape_of, shape_of_parameters

Hold = Callable[..., Acceptor]


def open_object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def test_digits_and_word_characters_in_a_pattern(held: Hold) -> None:  # llama.cpp#27580
    digits, words = held({"pattern": "^\\d+$", "type": "string"}), held({"pattern": "^[\\w-]+$", "type": "string"})
    assert digits.accepts('"0123"')
    assert not digits.accepts('"a"')
    assert words.accepts('"a_B-9"')
    assert not words.accepts('"a b"')


def test_an_escaped_slash_in_a_pattern_is_a_slash(held: Hold) -> None:  # llama.cpp#27397
    grammar = held({"type": "string", "pattern": "^a\\/b$"})
    assert grammar.accepts('"a/b"')
    assert not grammar.accepts('"a\\/b"')


@pytest.mark.parametrize("most", [1999, 2000, 2001])
def test_a_greatest_length_around_two_thousand(held: Hold, most: int) -> None:  # llama.cpp#27087
    grammar = held({"type": "string", "maxLength": most})
    assert grammar.accepts('"' + "x" * most + '"')
    assert not grammar.accepts('"' + "x" * (most + 1) + '"')


def test_no_items_at_most_is_the_empty_array(held: Hold) -> None:  # llama.cpp#13116
    grammar = held(shape_of(Annotated[list[str], Meta(max_length=0)]).schema)
    assert grammar.accepts("[]")
    assert not grammar.accepts('["a"]')


def test_a_property_without_a_type_is_any_json_value(held: Hold) -> None:  # llama.cpp#19716
    grammar = held(open_object({"x": {"description": "whatever"}}, "x"))
    for value in ("1", '"a"', "null", "[1, {}]", '{"a": [true]}'):
        assert grammar.accepts(f'{{"x": {value}}}')


def test_items_by_reference_keep_their_enumeration(held: Hold) -> None:  # llama.cpp#8073
    kind = {"type": "object", "properties": {"k": {"$ref": "#/$defs/T/$defs/K"}}, "required": ["k"]}
    schema = {
        "type": "array",
        "items": {"$ref": "#/$defs/T"},
        "$defs": {"T": {**kind, "$defs": {"K": {"enum": ["a", "b"]}}}},
    }
    grammar = held(schema)
    assert grammar.accepts('[{"k": "a"}]')
    assert not grammar.accepts('[{"k": "c"}]')
    assert not grammar.accepts('[{"z": 1}]')


def test_the_order_of_definitions_does_not_matter(held: Hold) -> None:  # ollama#8444
    parts = {"C": {"enum": ["c"]}, "B": {"$ref": "#/$defs/C"}, "A": {"$ref": "#/$defs/B"}}
    for order in (parts, dict(reversed(parts.items()))):
        grammar = held({"$ref": "#/$defs/A", "$defs": order})
        assert grammar.accepts('"c"')
        assert not grammar.accepts('"x"')


@pytest.mark.parametrize("keyword", ["enum", "const"])
def test_a_backslash_in_a_constant_is_a_valid_escape(held: Hold, keyword: str) -> None:  # llama.cpp#17306
    path = "C:\\temp"
    grammar = held({keyword: [path] if keyword == "enum" else path})
    assert grammar.accepts('"C:\\\\temp"')
    assert parse('"C:\\\\temp"') == path
    assert not grammar.accepts('"C:\\temp"')


def test_a_line_feed_in_a_string_is_only_the_escape(held: Hold) -> None:  # llama-cpp-python#1259
    grammar = held({"type": "string"})
    assert grammar.accepts('"a\\nb"')
    assert not grammar.accepts('"a\nb"')


def test_an_enumeration_or_null_works(held: Hold) -> None:  # llama-cpp-python#1097
    grammar = held({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]})
    assert grammar.accepts('"b"')
    assert grammar.accepts("null")
    assert not grammar.accepts('"null"')


def test_an_array_or_null_keeps_its_items(held: Hold) -> None:  # llama.cpp PR#7863
    grammar = held({"type": ["array", "null"], "items": {"type": "string"}})
    assert grammar.accepts('["123"]')
    assert grammar.accepts("null")
    assert not grammar.accepts("[123]")


def test_properties_and_anyof_in_one_object_both_hold(held: Hold) -> None:  # llama.cpp#7703
    either = [{"properties": {"b": {"type": "null"}}, "required": ["b"]}, {"properties": {"c": {"type": "null"}}}]
    schema = {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"], "anyOf": either}
    grammar = held(schema)
    assert grammar.accepts('{"a": 1, "b": null}')
    assert grammar.accepts('{"a": 1, "c": null}')
    assert not grammar.accepts('{"a": 2, "b": null}')
    assert not grammar.accepts('{"b": null}')


def test_bounds_of_53_bits_do_not_overflow(held: Hold) -> None:  # llama.cpp#16622
    grammar = held({"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991})
    assert grammar.accepts("9007199254740991")
    assert grammar.accepts("-9007199254740991")
    assert not grammar.accepts("9007199254740992")
    assert not grammar.accepts("99999999999999999")


def test_a_bounded_integer_has_no_leading_zero(held: Hold) -> None:  # llama.cpp PR#7797
    grammar = held({"type": "integer", "minimum": 3})
    assert grammar.accepts("10")
    assert not grammar.accepts("01")
    assert not grammar.accepts("03")


@pytest.mark.parametrize(("least", "good", "bad"), [(100, "1000", "19"), (110, "1099", "109")])
def test_a_lower_bound_alone_is_exact(
    held: Hold, least: int, good: str, bad: str
) -> None:  # llama.cpp, one-sided ranges
    grammar = held({"type": "integer", "minimum": least})
    assert grammar.accepts(good)
    assert not grammar.accepts(bad)


@pytest.mark.model
def test_a_repeat_without_measure_is_an_error_in_bounded_time(parsed: Hold) -> None:  # llama.cpp#17352
    with pytest.raises(GrammarError):
        parsed('root ::= "a"{2000000000,2147483647}\n')


def test_a_length_without_measure_compiles_small() -> None:  # llama.cpp#17352, as a schema
    schema = lower({"type": "string", "minLength": 1_000_000_000, "maxLength": 2_147_483_647}).schema
    assert len(gbnf(schema)) < 2_000


def test_a_schema_nested_sixty_thousand_deep_is_an_error() -> None:  # llama.cpp#26600
    schema: Any = {"type": "null"}
    for _ in range(60_000):
        schema = {"type": "array", "items": schema}
    with pytest.raises(GrammarError, match="nested too deep"):
        lower(schema, where="t")


@pytest.mark.model
def test_a_grammar_that_does_not_parse_fails_closed(parsed: Hold) -> None:  # llama.cpp#19051
    with pytest.raises(GrammarError, match="refused the grammar"):
        parsed("root ::= ((")


def test_a_description_has_no_effect() -> None:  # llama.cpp#27619
    def texts(description: str) -> tuple[str, str]:
        member = {"type": "string", "maxLength": 9, "description": description}
        lowered = lower(open_object({"a": {"type": "null"}, "b": member}, "a")).schema
        return gbnf(lowered), value_grammar(lowered)

    assert texts("x") == texts('"}, {" ::= | \\ [^"] {0,-1} \U0001f600')


def test_a_constant_beside_an_enumeration_is_the_plain_string(held: Hold) -> None:  # llama.cpp#22240
    grammar = held({"anyOf": [{"enum": ["a"]}, {"const": "b"}]})
    assert grammar.accepts('"b"')
    assert not grammar.accepts('"\\"b\\""')
    assert parse('"b"') == "b"


def test_an_optional_argument_before_a_required_one_is_read(held: Hold) -> None:  # llama.cpp#27363
    def tool(act: str, thought: str = "") -> None: ...

    shape = shape_of_parameters(tool, where="tool")
    assert shape.decode(parse('{"thought": "x", "act": "y"}')) == {"thought": "x", "act": "y"}
    grammar = held(shape.schema)
    assert grammar.accepts('{"act": "y", "thought": "x"}')  # What is written keeps the declared order.
    assert not grammar.accepts('{"thought": "x", "act": "y"}')


@pytest.mark.model
def test_one_tool_alone_is_that_tool(parsed: Hold) -> None:  # llama.cpp#26535
    call = ("second", lower(open_object({})).schema)
    grammar = parsed(gbnf_calls([call], CallFrame('{"name": "', '", "arguments": ', "}")))
    assert grammar.accepts('{"name": "second", "arguments": {}}')
    assert not grammar.accepts('{"name": "first", "arguments": {}}')


def test_a_quote_in_a_string_of_code_needs_no_backslash(held: Hold) -> None:  # llama.cpp#17928
    grammar = held({"type": "string", "maxLength": 20})
    assert grammar.accepts("\"print('hi')\"")
    assert not grammar.accepts('"\\\'"')


def test_a_number_that_is_not_negative(held: Hold) -> None:  # outlines-core#147
    grammar = held({"type": "number", "minimum": 0})
    assert grammar.accepts("0.5")
    assert not grammar.accepts("-0.5")
    assert not grammar.accepts("-1")


def test_a_choice_is_followed_byte_by_byte(held: Hold) -> None:  # outlines#820
    grammar = held({"enum": ["skirt", "dress", "größe"]})
    assert all(grammar.accepts(f'"{word}"') for word in ("skirt", "dress", "größe"))
    assert not grammar.accepts('"gr"')


def test_several_lengths_compile_to_a_grammar_of_modest_size(held: Hold) -> None:  # outlines#658
    members = {f"f{length}": {"type": "string", "maxLength": length} for length in range(20, 201, 10)}
    grammar = held(open_object(members, *members))
    assert grammar.accepts("{" + ", ".join(f'"{key}": "x"' for key in members) + "}")
    assert len(gbnf(lower(open_object(members, *members)).schema)) < 5_000


def test_patterns_of_keys_that_overlap_a_declared_key(held: Hold) -> None:  # llguidance#265
    schema = {"type": "object", "properties": {"ab": {"type": "integer"}}, "patternProperties": {"^a": {"minimum": 5}}}
    grammar = held(schema)
    assert grammar.accepts('{"ab": 5}')
    assert grammar.accepts("{}")
    assert not grammar.accepts('{"ab": 4}')
    assert not grammar.accepts("{ ")


def test_a_pattern_and_a_length_both_hold(held: Hold) -> None:  # xgrammar#895
    grammar = held({"type": "string", "pattern": "^[a-z]+$", "maxLength": 3})
    assert grammar.accepts('"abc"')
    assert not grammar.accepts('"abcd"')
    assert not grammar.accepts('"ABC"')


def test_white_space_is_bounded(held: Hold) -> None:  # xgrammar#412
    grammar = held(open_object({"a": {"type": "array", "items": {}}}, "a"))
    assert grammar.accepts('{"a": [1, {"b": 2}]}')
    for text in ('{ "a": []}', '{"a":  []}', '{"a": [ ]}', '{"a": [] }', '{"a": [1,  2]}', '{"a": [{"b":  2}]}', " {}"):
        assert not grammar.accepts(text)


def test_an_integer_field_has_no_leading_zero(held: Hold) -> None:  # cactus-compute/needle#85
    grammar = held(open_object({"n": {"type": "integer"}}, "n"))
    assert grammar.accepts('{"n": 2}')
    assert not grammar.accepts('{"n": 02}')


@pytest.mark.model
def test_names_with_underscores_make_rules_that_the_parser_takes(parsed: Hold) -> None:  # seen
    document = open_object({"a_b": {"$ref": "#/$defs/x_y"}, "ü": {"enum": ["_"]}}, "a_b")
    document["$defs"] = {"x_y": {"type": "array", "items": {"enum": ["_", 1]}}}
    schema = lower(document).schema
    assert parsed(gbnf(schema)).accepts('{"a_b": ["_"], "ü": "_"}')


class Node(pydantic.BaseModel):
    """A recursive model at the root."""

    value: int
    below: list["Node"] = []  # noqa: UP037  # pydantic resolves it as written


def test_a_recursive_model_at_the_root_is_the_models_own_shape(held: Hold) -> None:  # seen
    for schema in (shape_of(Node).schema, Node.model_json_schema()):
        grammar = held(schema)
        assert grammar.accepts('{"value": 1, "below": [{"value": 2, "below": []}]}')
        assert not grammar.accepts('{"anything": 1}')
        assert not grammar.accepts('{"value": 1, "below": [{}]}')


def test_a_string_without_a_bound_gets_one(held: Hold) -> None:  # seen
    schema = open_object({"s": {"type": "string"}, "t": {}}, "s")
    grammar = held(schema, string_max=10)
    assert grammar.accepts('{"s": "0123456789"}')
    assert not grammar.accepts('{"s": "01234567890"}')
    assert not grammar.accepts('{"s": "", "t": ["01234567890"]}')
    bounds = [note.reason for note in lower(schema, string_max=10).restrictions if note.keyword == "maxLength"]
    assert bounds == ["at most 10 characters, for nothing else bounds it"]


@pytest.mark.model
def test_both_engines_print_a_grammar_that_is_only_text(parsed: Hold) -> None:
    schema = lower(shape_of(Node).schema).schema
    assert isinstance(parsed(gbnf(schema)), Gbnf)
    assert value_grammar(schema).startswith("start: value")
