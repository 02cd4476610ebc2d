"""Schemas in the subset that a server takes: never narrower, but where strict servers want all members."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from edgeagent.codec.subset import within, without_nulls

VALVE = {
    "type": "object",
    "properties": {
        "valve": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2},
        "seconds": {"type": "integer", "minimum": 1, "maximum": 60, "default": 5},
        "mode": {"oneOf": [{"const": "slow"}, {"const": "fast"}]},
        "steps": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
        "note": {"$ref": "#/$defs/Note"},
    },
    "required": ["valve"],
    "additionalProperties": False,
    "$defs": {
        "Note": {"type": "object", "properties": {"text": {"type": ["string", "null"]}}, "additionalProperties": False}
    },
}
VALUES: list[dict[str, Any]] = [
    {"valve": "north"},
    {"valve": "north", "seconds": 30, "mode": "slow"},
    {"valve": "north", "steps": [1, "a"], "note": {"text": None}},
]


def words(schema: Any) -> set[str]:
    """Every keyword in a schema; names of members are none."""
    if isinstance(schema, list):
        return set().union(*map(words, schema))
    if not isinstance(schema, dict):
        return set()
    inner = [each for key, each in schema.items() if key not in ("properties", "enum")]
    return set(schema) | set().union(*map(words, [*inner, *schema.get("properties", {}).values()]))


def test_plain_is_made_of_the_words_that_every_server_knows_and_takes_all_that_was_taken():
    plain = within(VALVE, "plain")
    assert words(plain) <= {
        "type",
        "description",
        "enum",
        "required",
        "properties",
        "items",
        "anyOf",
        "additionalProperties",
    }
    for value in VALUES:
        jsonschema.validate(value, VALVE)
        jsonschema.validate(value, plain)
    assert plain["additionalProperties"] is False


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"allOf": [{"type": "object"}], "not": {"required": ["y"]}},
        True,
    ],
)
def test_what_plain_cannot_say_is_left_open(schema):
    whole = {"type": "object", "properties": {"map": schema}}
    jsonschema.validate({"map": {"x": 1}}, within(whole, "plain"))


def test_a_schema_that_refers_to_itself_comes_to_an_end():
    tree = {"$ref": "#/$defs/Tree", "$defs": {"Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
    jsonschema.validate([[], [[]]], within(tree, "plain"))


def test_strict_requires_every_member_and_null_stands_for_what_was_left_out():
    strict = within(VALVE, "strict")
    assert strict["required"] == list(VALVE["properties"])
    given = {"valve": "north", "seconds": None, "mode": None, "steps": None, "note": {"text": None}}
    jsonschema.validate(given, strict)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"valve": "north"}, strict)
    assert json.loads(without_nulls(json.dumps(given), VALVE)) == {"valve": "north", "note": {"text": None}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
        {"type": "object", "properties": {"a": {"type": "array"}}, "additionalProperties": False},
        {"type": "object", "properties": {"a": {"type": "string"}}},
    ],
)
def test_what_strict_cannot_say_is_not_strict(schema):
    assert within(schema, "strict") is None


@pytest.mark.parametrize("written", ["", "[1]", "{", '{"valve": null}', '{"new": null}'])
def test_arguments_that_are_no_object_or_must_be_judged_stay_as_they_are(written):
    assert without_nulls(written, VALVE) == written
