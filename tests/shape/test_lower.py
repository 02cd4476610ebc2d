"""A lowered schema is one that engines can hold; each difference from the original is in the report."""

from __future__ import annotations

from typing import Any

import pytest

from edgeagent.errors import GrammarError
from edgeagent.shape.admits import admits
from edgeagent.shape.lower import INTEGER_MAX, Lowered, lower
from edgeagent.shape.pointer import Document

INTEGER = {"type": "integer", "minimum": -INTEGER_MAX, "maximum": INTEGER_MAX}


def relaxed(lowered: Lowered) -> list[tuple[str, str]]:
    return [(note.path, note.keyword) for note in lowered.relaxations]


def restricted(lowered: Lowered) -> list[tuple[str, str]]:
    return [(note.path, note.keyword) for note in lowered.restrictions]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer", "minimum": 3}, {"type": "integer", "minimum": 3, "maximum": INTEGER_MAX}),
        ({"type": "integer", "exclusiveMinimum": 3, "maximum": 5.5}, {"type": "integer", "minimum": 4, "maximum": 5}),
        (
            {"type": "integer", "minimum": 0, "maximum": 9, "multipleOf": 1.5},
            {"type": "integer", "minimum": 0, "maximum": 9, "multipleOf": 3},
        ),
        (
            {"type": "integer", "maximum": 9007199254740991, "minimum": 0},
            {"type": "integer", "minimum": 0, "maximum": 9007199254740991},
        ),
        ({"type": "number", "minimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.3}, {"enum": [0, 0.3, 0.6, 0.9]}),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": 0}, {"type": "number", "exclusiveMinimum": 0}),
        (
            {"type": ["string", "null"], "maxLength": 3},
            {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]},
        ),
        (
            {"type": ["array", "null"], "items": {"type": "string"}},
            {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        ),
        ({"type": "string", "const": "a"}, {"enum": ["a"]}),
        ({"type": "string", "enum": ["a", 1, "b"]}, {"enum": ["a", "b"]}),
        ({"enum": [1, 1.0, 2]}, {"enum": [1, 2]}),
        ({"type": "string", "pattern": "^\\d+$", "maxLength": 3}, {"type": "string", "pattern": "^[0-9]{1,3}$"}),
        (
            {"type": "string", "pattern": "^(ab)*$", "maxLength": 3},
            {"type": "string", "pattern": "^(?:ab)*$", "maxLength": 3},
        ),
        (
            {"allOf": [{"type": "integer", "minimum": 0}, {"maximum": 5}]},
            {"type": "integer", "minimum": 0, "maximum": 5},
        ),
        ({"anyOf": [{"enum": ["a"]}, {"type": "null"}]}, {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({}, {}),
        (True, {}),
        ({"description": "anything"}, {}),
        ({"type": "array", "maxItems": 0, "items": {"type": "string"}}, {"type": "array", "items": False}),
        (
            {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "null"}}},
            {"$ref": "#/$defs/a-1b", "$defs": {"a-1b": {"type": "null"}}},
        ),
        (
            {"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "null"}}},
            {"$ref": "#/$defs/here", "$defs": {"here": {"type": "null"}}},
        ),
    ],
)
def test_a_schema_is_lowered_to_what_engines_hold(schema: Any, expected: Any) -> None:
    assert lower(schema).schema == expected


def test_an_open_object_with_declared_keys_is_closed_and_said_so() -> None:
    lowered = lower({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]})
    assert lowered.schema["additionalProperties"] is False
    assert ("", "additionalProperties") in restricted(lowered)


def test_an_object_that_says_it_is_open_stays_open() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": True}
    assert lower(schema).schema["additionalProperties"] == {}


def test_properties_and_anyof_both_hold() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 0}, "b": {"type": "null"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"a": {"maximum": 5}}}],
    }
    first, second = lower(schema).schema["anyOf"]
    assert first["required"] == ["a"]
    assert second["required"] == ["b"]
    assert second["properties"]["a"] == {"type": "integer", "minimum": 0, "maximum": 5}


def test_a_closed_part_of_allof_keeps_the_others_keys_out() -> None:
    parts = [{"type": "object", "properties": {"a": {}}, "additionalProperties": False}, {"properties": {"b": {}}}]
    assert list(lower({"allOf": parts}).schema["properties"]) == ["a"]


def test_keys_by_pattern_join_the_declared_key_they_match() -> None:
    schema = {
        "type": "object",
        "properties": {"aa": {"type": "integer", "minimum": 0}},
        "patternProperties": {"^a": {"maximum": 9}},
    }
    lowered = lower(schema)
    assert lowered.schema["properties"] == {"aa": {"type": "integer", "minimum": 0, "maximum": 9}}
    assert ("", "patternProperties") in restricted(lowered)


def test_a_map_with_enumerated_keys_becomes_optional_keys() -> None:
    schema = {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "null"}}
    assert lower(schema).schema["properties"] == {"a": {"type": "null"}, "b": {"type": "null"}}


def test_a_map_with_keys_of_a_pattern_keeps_the_pattern() -> None:
    schema = {"type": "object", "propertyNames": {"pattern": "^[a-c]$"}, "additionalProperties": {"type": "null"}}
    assert lower(schema).schema["patternProperties"] == {"^[a-c]$": {"type": "null"}}


def test_recursion_is_kept_as_a_reference() -> None:
    schema = {
        "$ref": "#/$defs/N",
        "$defs": {
            "N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}, "additionalProperties": False}
        },
    }
    lowered = lower(schema).schema
    assert lowered["$ref"] == "#/$defs/N"
    assert lowered["$defs"]["N"]["properties"]["next"] == {"$ref": "#/$defs/N"}


def test_recursion_through_a_merged_part_ends() -> None:
    schema = {
        "$ref": "#/$defs/N",
        "$defs": {
            "N": {
                "type": "object",
                "properties": {"next": {"allOf": [{"$ref": "#/$defs/N"}, {"maxProperties": 1}]}},
                "additionalProperties": False,
            }
        },
    }
    assert lower(schema).schema["$defs"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "array", "items": {"type": "null"}, "uniqueItems": True}, ("", "uniqueItems")),
        ({"type": "number", "multipleOf": 0.5, "minimum": 0}, ("", "multipleOf")),
        ({"type": "number", "multipleOf": 0.01, "minimum": 0, "maximum": 100}, ("", "multipleOf")),
        ({"type": "number"}, ("", "number")),
        ({"type": "object", "properties": {"a": {"type": "string", "format": "iri"}}}, ("a", "format")),
        ({"type": "string", "not": {"const": "a"}}, ("", "not")),
        ({"type": "string", "if": {"maxLength": 1}, "then": {"pattern": "a"}}, ("", "if")),
        ({"type": "array", "contains": {"type": "null"}}, ("", "contains")),
        ({"type": "object", "properties": {"a": {}}, "dependentRequired": {"a": ["b"]}}, ("", "dependentRequired")),
        ({"type": "object", "properties": {"a": {}}, "minProperties": 1}, ("", "minProperties")),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, ("", "oneOf")),
        ({"type": "string", "pattern": "^a", "format": "date"}, ("", "format")),
        ({"allOf": [{"type": "string", "pattern": "^a"}, {"pattern": "b$"}]}, ("", "pattern")),
        ({"type": "string", "x-decoder": "is a prime"}, ("", "x-decoder")),
        ({"type": "object", "additionalProperties": {"type": "null"}}, ("", "keys")),
        ({"type": "string", "frobnicate": 1}, ("", "frobnicate")),
    ],
)
def test_what_accepts_more_is_a_relaxation(schema: Any, expected: tuple[str, str]) -> None:
    assert expected in relaxed(lower(schema))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, ("", "integer")),
        ({"type": "number", "minimum": 0}, ("", "number")),
        ({"type": "number", "minimum": 0.30000000000000004}, ("", "minimum")),
        ({"type": "string", "format": "date-time"}, ("", "format")),
        ({"properties": {"a": {"type": "null"}}}, ("", "type")),
        ({"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": False}, ("", "properties")),
    ],
)
def test_what_accepts_less_is_a_restriction(schema: Any, expected: tuple[str, str]) -> None:
    assert expected in restricted(lower(schema))


def test_the_same_schema_in_another_order_of_definitions_is_lowered_the_same() -> None:
    parts = {"A": {"enum": ["x"]}, "B": {"type": "array", "items": {"$ref": "#/$defs/A"}}}
    one = {"$ref": "#/$defs/B", "$defs": parts}
    other = {"$ref": "#/$defs/B", "$defs": dict(reversed(parts.items()))}
    assert lower(one) == lower(other)


def test_disjoint_options_of_oneof_need_no_report() -> None:
    def tagged(tag: str) -> dict[str, Any]:
        members = {"type": {"const": tag}, "x": {"type": "boolean"}}
        return {"type": "object", "properties": members, "required": ["type"], "additionalProperties": False}

    assert lower({"oneOf": [tagged("a"), tagged("b")]}).relaxations == ()


def test_strings_get_a_bound_when_one_is_given() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "string", "pattern": "^x+$"},
            "c": {"type": "string", "maxLength": 9},
            "d": {},
        },
        "additionalProperties": False,
    }
    lowered = lower(schema, string_max=50)
    members = lowered.schema["properties"]
    assert members["a"] == {"type": "string", "maxLength": 50}
    assert members["b"] == {"type": "string", "pattern": "^x{1,50}$"}
    assert members["c"] == {"type": "string", "maxLength": 9}
    assert members["d"] == {"$ref": "#/$defs/any-json"}
    assert {("a", "maxLength"), ("b", "pattern")} <= set(restricted(lowered))


@pytest.mark.parametrize("plain", [{"format": "json-pointer"}, {"pattern": "^(ab)*$"}])
def test_a_least_length_stays_where_an_endless_pattern_is_bounded(plain: dict[str, str]) -> None:
    lowered = lower({"type": "string", "minLength": 3, **plain}, where="t", string_max=30).schema
    assert isinstance(lowered, dict)
    assert lowered["minLength"] == 3


def test_narrowing_holds_beside_the_declared_type() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 600}, "v": {"enum": ["a", "b", "c"]}},
        "required": ["n", "v"],
        "additionalProperties": False,
    }
    lowered = lower(schema, narrowed={"n": {"maximum": 30}, "v": {"enum": ["b", "z"]}})
    assert lowered.schema["properties"] == {
        "n": {"type": "integer", "minimum": 0, "maximum": 30},
        "v": {"enum": ["b"]},
    }


def test_narrowing_to_nothing_is_an_error() -> None:
    schema = {"type": "object", "properties": {"v": {"enum": ["a"]}}, "required": ["v"]}
    with pytest.raises(GrammarError, match="tool t: no value fits"):
        lower(schema, where="t", narrowed={"v": {"enum": ["b"]}})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (
            {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=x)"}}},
            "tool t, field a: the pattern",
        ),
        ({"$ref": "#/$defs/none"}, "points at nothing"),
        ({"$ref": "https://example.org/x.json"}, "leaves the document"),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}}},
            "leads only back to itself|no value",
        ),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "no value fits"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "no value fits"),
        (False, "no value fits"),
        ({"enum": []}, "no value fits"),
        ({"type": "integer", "minimum": 2, "maximum": 1}, "no value fits"),
        ({"type": "integer", "minimum": 1, "maximum": 4, "multipleOf": 5}, "no value fits"),
        ({"const": 12345678901234567}, "write it as a string"),
        ({"type": "object", "minProperties": 2, "maxProperties": 1}, "no value fits"),
        ({"type": "array", "contains": {"$ref": "#/$defs/none"}}, "points at nothing"),
        ({"const": 9.043576139883087e-14}, "write it as a string"),
        ({"type": "frob"}, "no type of JSON Schema"),
        ({"type": "object", "properties": 5}, "not a well-formed JSON Schema"),
        ({"allOf": [{"anyOf": [{"minLength": i}, {"maxLength": i}]} for i in range(30)]}, "multiply to more than"),
    ],
)
def test_what_cannot_be_held_is_an_error_with_tool_and_field(schema: Any, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        lower(schema, where="t")


def test_a_schema_nested_without_measure_is_an_error() -> None:
    schema: Any = {"type": "null"}
    for _ in range(60_000):
        schema = {"type": "array", "items": schema}
    with pytest.raises(GrammarError, match="nested too deep"):
        lower(schema)


def test_an_impossible_option_is_left_out() -> None:
    schema = {"anyOf": [{"type": "integer", "minimum": 2, "maximum": 1}, {"type": "null"}]}
    assert lower(schema).schema == {"type": "null"}


def test_an_integer_bound_that_no_double_holds_is_moved_inward() -> None:
    lowered = lower({"type": "integer", "minimum": -(2**63), "maximum": 2**53 + 1})
    assert lowered.schema == {"type": "integer", "minimum": -INTEGER_MAX, "maximum": 2**53}
    assert ("", "integer") in restricted(lowered)


def test_a_schema_that_denies_itself_lets_nothing_through() -> None:
    schema = {"type": "null", "not": {"$ref": "#"}}
    assert not admits(schema, None, Document(schema))
    assert ("", "not") in relaxed(lower(schema))
