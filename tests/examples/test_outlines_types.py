"""Types of outlines as argument types: held like our own, or refused with the reason."""

from __future__ import annotations

import warnings

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Not ours: what outlines' own imports warn of.
    types = pytest.importorskip("outlines.types", reason="outlines is missing: its types were NOT tested")

from edgeagent.errors import ShapeError
from edgeagent.shape.lower import lower
from edgeagent.shape.types import shape_of, shape_of_parameters
from examples.outlines_types import argument

TREE = {
    "type": "object",
    "properties": {"name": {"$ref": "#/$defs/name"}, "kids": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"name": {"type": "string", "maxLength": 5}},
}


@pytest.mark.parametrize(
    ("term", "good", "bad"),
    [
        (types.email, "bob@site.org", "bob"),
        (types.Regex("[a-c]+"), "abc", "abcd"),
        (types.Choice(["a", 2]), 2, "2"),
        (types.at_least(2, types.digit) + types.optional("x"), "12x", "1x"),
        (types.either("north", "south"), "north", "west"),
        (types.JsonSchema('{"type": "integer", "minimum": 3}'), 3, 2),
        (types.integer, 3, "3"),
        (types.boolean, True, "True"),
    ],
)
def test_a_term_lets_through_what_it_says(term, good, bad):
    shape = shape_of(argument(term))
    assert shape.decode(good) == shape.encode(good) == good
    with pytest.raises(ShapeError):
        shape.decode(bad)
    lower(shape.schema)


def test_a_json_schema_keeps_its_own_references_as_an_argument():
    def plant(tree: argument(types.JsonSchema(TREE)), other: argument(types.JsonSchema(TREE))) -> None:
        """Plant."""

    plant.__annotations__ = {"tree": argument(types.JsonSchema(TREE)), "other": argument(types.JsonSchema(TREE))}
    shape = shape_of_parameters(plant, where="plant")
    good = {"tree": {"name": "oak", "kids": [{"name": "elm"}]}, "other": {"name": "ash"}}
    assert shape.decode(good) == good
    with pytest.raises(ShapeError, match="tree"):
        shape.decode({**good, "tree": {"name": "oak", "kids": [{"name": "a long name"}]}})
    lowered = lower(shape.schema, where="plant").schema
    assert set(lowered["properties"]) == {"tree", "other"}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ('{"type":"array","items":[{"type":"number"},{"type":"string"}]}', [1, "a"], ["a", 1]),
        ('{"type":"array","items":[{"type":"number"}],"additionalItems":false}', [1], [1, 2]),
        ('{"type":"object","dependencies":{"a":["b"]}}', {"a": 1, "b": 2}, {"a": 1}),
        ('{"definitions":{"n":{"type":"null"}},"$ref":"#/definitions/n"}', None, 1),
    ],
)
def test_a_json_schema_of_draft_7_is_held_as_that_draft_means_it(schema, good, bad):
    shape = shape_of(argument(types.JsonSchema(schema)))
    assert shape.decode(good) == good
    with pytest.raises(ShapeError):
        shape.decode(bad)
    lower(shape.schema)


@pytest.mark.parametrize(
    ("term", "reason"),
    [
        (types.isbn, "pattern"),
        (types.CFG('start: "a"'), "context-free"),
        (types.JsonSchema('{"$ref": "#/nowhere"}'), "points at nothing"),
        (types.Choice([]), "without members"),
    ],
)
def test_what_cannot_be_held_is_refused_when_the_shape_is_made(term, reason):
    with pytest.raises((ShapeError, TypeError), match=reason):
        shape_of(argument(term))
