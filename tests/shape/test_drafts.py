"""One thing spelled in any draft is one schema; what nobody would check is refused by name, when it is declared."""

from __future__ import annotations

from typing import Any

import jsonschema_specifications
import pytest

from bench import draft_suite
from edgeagent.core.agent import Agent, Tool
from edgeagent.errors import ShapeError
from edgeagent.grammar.calls import lowered_call
from edgeagent.shape.drafts import renewed
from edgeagent.shape.foreign import foreign
from edgeagent.shape.keywords import DRAFTS, KEYWORDS
from edgeagent.shape.lower import lower

OPEN = {"type": "object", "properties": {"a": {}}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"items": [{"minimum": 3}, {}]}, {"prefixItems": [{"minimum": 3}, {}]}),
        ({"items": [{}], "additionalItems": {"type": "null"}}, {"prefixItems": [{}], "items": {"type": "null"}}),
        ({"items": {"type": "null"}, "additionalItems": False}, {"items": {"type": "null"}}),
        ({"minimum": 0, "exclusiveMinimum": True, "maximum": 9}, {"exclusiveMinimum": 0, "maximum": 9}),
        ({"exclusiveMaximum": True, "maximum": 9}, {"exclusiveMaximum": 9}),
        ({"minimum": 0, "exclusiveMinimum": False}, {"minimum": 0}),
        ({"exclusiveMinimum": True}, {}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"], "nullable": True}),
        (
            {"type": "string", "enum": ["a"], "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None], "nullable": True},
        ),
        ({"dependencies": {"a": ["b"], "c": "d"}}, {"dependentRequired": {"a": ["b"], "c": ["d"]}}),
        (
            {"dependencies": {"a": {"required": ["b"]}, "c": ["d"]}},
            {"dependentRequired": {"c": ["d"]}, "dependentSchemas": {"a": {"required": ["b"]}}},
        ),
        (
            {"$ref": "#/definitions/T", "definitions": {"T": {"id": "#t", "items": [{"$ref": "#t"}]}}},
            {"$ref": "#/definitions/T", "definitions": {"T": {"prefixItems": [{"$ref": "#/definitions/T"}]}}},
        ),
        (
            {"items": [{"type": "null"}], "additionalItems": {"$ref": "#/items/0"}},
            {"prefixItems": [{"type": "null"}], "items": {"$ref": "#/prefixItems/0"}},
        ),
        (
            {"dependencies": {"a": {"type": "null"}}, "properties": {"b": {"$ref": "#/dependencies/a"}}},
            {
                "dependentSchemas": {"a": {"type": "null"}},
                "properties": {"b": {"$ref": "#/dependentSchemas/a"}},
            },
        ),
        (
            {"$id": "https://a.test/t", "$defs": {"x": {}}, "items": {"$ref": "https://a.test/t#/$defs/x"}},
            {"$defs": {"x": {}}, "items": {"$ref": "#/$defs/x"}},
        ),
        (
            {"$dynamicAnchor": "n", "properties": {"next": {"$dynamicRef": "#n"}}},
            {"properties": {"next": {"$ref": "#"}}},
        ),
        ({"$recursiveAnchor": True, "items": {"$recursiveRef": "#"}}, {"items": {"$ref": "#"}}),
        ({"properties": {"a": {"required": True}, "b": {}}}, {"properties": {"a": {}, "b": {}}, "required": ["a"]}),
        ({"properties": {"a": {"required": False}}}, {"properties": {"a": {}}}),
        ({"extends": {"type": "null"}}, {"allOf": [{"type": "null"}]}),
        ({"type": ["null", {"minimum": 3}]}, {"anyOf": [{"type": ["null"]}, {"minimum": 3}]}),
        ({"type": "any"}, {}),
        ({"format": "host-name"}, {"format": "hostname"}),
        ({"$schema": DRAFTS["4"] + "#", "type": "integer"}, {"type": "integer", "x-whole": True}),
        (
            {"$schema": DRAFTS["7"], "$ref": "#/$defs/x", "minimum": 3, "$defs": {"x": {}}},
            {"$ref": "#/$defs/x", "$defs": {"x": {}}},
        ),
        ({"enum": [{"items": [1]}], "const": {"$ref": "no"}}, {"enum": [{"items": [1]}], "const": {"$ref": "no"}}),
        ({"properties": {"items": {}, "$ref": {"id": "x"}}}, {"properties": {"items": {}, "$ref": {}}}),
    ],
)  # fmt: skip
def test_an_older_spelling_is_the_same_schema(old: Any, new: Any) -> None:
    assert renewed(old) == new
    assert renewed(new) == {key: value for key, value in new.items() if key != "x-whole"}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"divisibleBy": 2}, "divisibleBy is not kept to here: write `multipleOf`"),
        ({"disallow": "string"}, "disallow is not kept to"),
        ({"$vocabulary": {}}, r"\$vocabulary is not kept to"),
        ({"$schema": "https://a.test/own"}, r"\$schema is 'https://a.test/own'; known are the drafts 3, 4"),
        ({"$schema": DRAFTS["4"], "const": 1}, "const is no keyword of draft 4"),
        ({"$schema": DRAFTS["7"], "dependentRequired": {}}, "dependentRequired is no keyword of draft 7"),
        ({"$schema": DRAFTS["6"], "minimum": 1, "exclusiveMinimum": True}, "since draft 6 it must be a number"),
        ({"$schema": DRAFTS["4"], "properties": {"a": {"required": True}}}, "field a: required is True"),
        ({"$schema": DRAFTS["4"], "type": "any"}, "type is 'any', as only draft 3"),
        ({"properties": {"a": {"$id": "x", "items": {"$ref": "#"}}}}, r"field a: \$id makes a document of its own"),
        ({"$ref": "https://a.test/x"}, "leaves the schema"),
        ({"$ref": "#nobody"}, "no anchor has that name"),
        ({"$ref": "#/$defs/x"}, r"there is no '\$defs'"),
        ({"$ref": "#/x-parts/a", "x-parts": {"a": {}}}, "points into 'x-parts', which holds no schema"),
        ({"$ref": "#/properties", "properties": {}}, "points at no schema"),
        ({"$ref": "#", "$dynamicRef": "#"}, "write one of them"),
        ({"$ref": 3}, r"\$ref is 3; it must be a text"),
        (
            {"$schema": DRAFTS["2019-09"], "contains": {}, "unevaluatedItems": False},
            "unevaluatedItems is not kept to beside contains",
        ),
        ({"properties": {"n": {"minLength": -1}}}, "field n: minLength is -1; it must be a whole number, 0 or more"),
        ({"properties": {"n": {"maxItems": 1.5}}}, "field n: maxItems is 1.5"),
        ({"multipleOf": 0}, "multipleOf is 0; it must be a number above 0"),
        ({"multipleOf": -2}, "multipleOf is -2"),
        ({"minimum": "3"}, "minimum is '3'; it must be a number"),
        ({"type": "int"}, "type is 'int'; it must be one of null, boolean"),
        ({"type": []}, r"type is \[\]"),
        ({"enum": "abc"}, "enum is 'abc'; it must be a list"),
        ({"required": "a"}, "required is 'a'; it must be a list of names"),
        ({"required": [1]}, r"required is \[1\]"),
        ({"properties": []}, r"properties is \[\]; it must be an object"),
        ({"anyOf": []}, r"anyOf is \[\]; it must be a list of at least one schema"),
        ({"allOf": [3]}, "field allOf.0: 3 is no schema"),
        ({"items": 3}, "3 is no schema"),
        ({"uniqueItems": "yes"}, "uniqueItems is 'yes'; it must be true or false"),
        ({"pattern": "("}, "pattern (: not a regular expression".replace("(", r"\(")),
        ({"patternProperties": {"(?=a)": {}}}, "patternProperties .*look-ahead"),
        ({"dependentRequired": {"a": "b"}}, "dependentRequired is"),
        ({"x-from-user": "yes"}, "x-from-user is 'yes'"),
    ],
)  # fmt: skip
def test_what_nobody_would_check_is_refused_naming_tool_field_and_keyword(schema: Any, reason: str) -> None:
    declared = {"type": "object", **schema}
    if "type" in schema:  # What arguments are of is not to choose: the type of one of them is.
        declared = {**{k: v for k, v in schema.items() if k != "type"}, "properties": {"x": {"type": schema["type"]}}}
    with pytest.raises(ShapeError, match=f"^tool lamp: .*{reason}"):
        Tool.of_schema("lamp", "Switch.", declared, print, idempotent=True)


KEEPS: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "$anchor": ({"items": {"$ref": "#x"}, "$defs": {"x": {"$anchor": "x", "type": "null"}}}, [None], [3]),
    "$ref": ({"items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"type": "null"}}}, [None], [3]),
    "$recursiveRef": ({"type": "array", "items": {"$recursiveRef": "#"}}, [[]], [3]),
    "$dynamicRef": ({"type": "array", "$dynamicAnchor": "n", "items": {"$dynamicRef": "#n"}}, [[]], [3]),
    "$dynamicAnchor": ({"type": "array", "$dynamicAnchor": "n", "items": {"$dynamicRef": "#n"}}, [[]], [3]),
    "type": ({"type": "integer"}, 3, "3"),
    "enum": ({"enum": ["a", 1]}, 1, 2),
    "const": ({"const": {"a": 1}}, {"a": 1}, {"a": 2}),
    "multipleOf": ({"type": "integer", "multipleOf": 3}, 9, 10),
    "minimum": ({"type": "number", "minimum": 3}, 3, 2.9),
    "maximum": ({"type": "number", "maximum": 3}, 3, 3.1),
    "exclusiveMinimum": ({"type": "integer", "exclusiveMinimum": 3}, 4, 3),
    "exclusiveMaximum": ({"type": "integer", "exclusiveMaximum": 3}, 2, 3),
    "minLength": ({"type": "string", "minLength": 2}, "ab", "a"),
    "maxLength": ({"type": "string", "maxLength": 2}, "ab", "abc"),
    "pattern": ({"type": "string", "pattern": "^a{,3}$"}, "a{,3}", "aaa"),
    "format": ({"type": "string", "format": "date"}, "2024-02-29", "2023-02-29"),
    "items": ({"type": "array", "items": {"type": "null"}}, [None], [1]),
    "prefixItems": ({"type": "array", "prefixItems": [{"type": "null"}]}, [None, 3], [3]),
    "additionalItems": ({"type": "array", "items": [True], "additionalItems": {"type": "null"}}, [1, None], [1, 2]),
    "minItems": ({"type": "array", "minItems": 1}, [1], []),
    "maxItems": ({"type": "array", "maxItems": 1}, [1], [1, 2]),
    "uniqueItems": ({"type": "array", "uniqueItems": True}, [1, 2], [1, 1.0]),
    "contains": ({"type": "array", "contains": {"type": "null"}}, [1, None], [1]),
    "minContains": ({"type": "array", "contains": {"type": "null"}, "minContains": 2}, [None, None], [None]),
    "maxContains": ({"type": "array", "contains": {"type": "null"}, "maxContains": 1}, [None], [None, None]),
    "unevaluatedItems": ({"type": "array", "prefixItems": [True], "unevaluatedItems": False}, [1], [1, 2]),
    "properties": ({"type": "object", "properties": {"a": {"type": "null"}}}, {"a": None}, {"a": 1}),
    "required": ({**OPEN, "required": ["a"]}, {"a": 1}, {}),
    "additionalProperties": ({**OPEN, "additionalProperties": False}, {"a": 1}, {"b": 1}),
    "patternProperties": ({"type": "object", "patternProperties": {"^a$": {"type": "null"}}}, {"a": None}, {"a": 1}),
    "propertyNames": ({"type": "object", "propertyNames": {"enum": ["a"]}}, {"a": 1}, {"b": 1}),
    "minProperties": ({**OPEN, "minProperties": 1}, {"a": 1}, {}),
    "maxProperties": ({**OPEN, "maxProperties": 0}, {}, {"a": 1}),
    "dependentRequired": ({**OPEN, "dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 1}, {"a": 1}),
    "dependentSchemas": ({**OPEN, "dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1, "b": 1}, {"a": 1}),
    "dependencies": ({**OPEN, "dependencies": {"a": {"required": ["b"]}}}, {"a": 1, "b": 1}, {"a": 1}),
    "unevaluatedProperties": ({"allOf": [OPEN], "unevaluatedProperties": False}, {"a": 1}, {"b": 1}),
    "allOf": ({"allOf": [{"type": "string"}, {"maxLength": 1}]}, "a", "ab"),
    "anyOf": ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, 1),
    "oneOf": ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, 1, None),
    "not": ({"type": "string", "not": {"const": "a"}}, "b", "a"),
    "if": ({"type": "string", "if": {"maxLength": 1}, "then": {"pattern": "a"}}, "bb", "b"),
    "then": ({"type": "string", "if": {"maxLength": 1}, "then": {"pattern": "a"}}, "a", "b"),
    "else": ({"type": "string", "if": {"maxLength": 1}, "else": {"pattern": "a"}}, "ab", "bb"),
    "extends": ({"extends": [{"type": "string"}, {"maxLength": 1}]}, "a", "ab"),
}


@pytest.mark.parametrize("keyword", [name for name, each in KEYWORDS.items() if each.held in ("grammar", "decoder")])
def test_a_keyword_that_is_said_to_be_kept_to_is(keyword: str) -> None:
    schema, good, bad = KEEPS[keyword]
    node = foreign(schema)
    assert node.why_not(good, "") == ""
    assert node.why_not(bad, "") != ""
    draft = KEYWORDS[keyword].until
    if draft in draft_suite.JUDGES and keyword not in ("pattern", "format"):
        judge = draft_suite.JUDGES[draft](draft_suite.named(schema, draft))
        assert (judge.is_valid(good), judge.is_valid(bad)) == (True, keyword == "dependencies")
    relaxed = {note.keyword for note in lower(node.schema).relaxations}
    words = {"dependencies": "dependentSchemas", "then": "if", "else": "if", "minContains": "contains"}
    named = words.get(keyword, keyword).replace("maxContains", "contains")
    assert (named in relaxed) == (KEYWORDS[keyword].held == "decoder")


@pytest.mark.parametrize("draft", DRAFTS)
def test_every_keyword_of_every_draft_is_listed(draft: str) -> None:
    uri = DRAFTS[draft]
    found = {
        name
        for resource in jsonschema_specifications.REGISTRY
        if resource.rstrip("#") == uri or resource.startswith(uri.removesuffix("schema") + "meta/")
        for name in jsonschema_specifications.REGISTRY.contents(resource).get("properties", {})
    }
    gone = {"$recursiveRef", "$recursiveAnchor"} if draft == "2020-12" else set()  # Named there as what is no more.
    missing = {name for name in found - gone if name not in KEYWORDS or not KEYWORDS[name].is_of(draft)}
    assert len(found) > 25 and not missing
    spare = {name for name, each in KEYWORDS.items() if each.is_of(draft) and each.held != "note"} - found
    assert spare <= {"$ref"}  # Which the meta-schemas of 4 leave to another document.


def test_grammar_schema_and_decoder_agree_on_bounds_of_draft_4() -> None:
    level = {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 9}
    made = Tool.of_schema(
        "set", "Set.", {"properties": {"level": level}, "required": ["level"]}, print, idempotent=True
    )
    held = lowered_call(made).schema["properties"]["level"]
    assert held == {"type": "number", "exclusiveMinimum": 0, "maximum": 9}
    assert made.parameters.decode({"level": 0.5}) == {"level": 0.5}
    with pytest.raises(ShapeError, match="level: 0 is not above the minimum 0"):
        made.parameters.decode({"level": 0})


def test_a_tuple_of_draft_7_is_told_and_held_as_a_tuple() -> None:
    pair = {"type": "array", "items": [{"type": "number"}, {"type": "string"}], "minItems": 2, "additionalItems": False}
    made = Tool.of_schema("put", "Put.", {"properties": {"pair": pair}, "required": ["pair"]}, print, idempotent=True)
    assert Agent(name="a", tools=[made]).digest
    assert len(lowered_call(made).schema["properties"]["pair"]["prefixItems"]) == 2
    with pytest.raises(ShapeError, match=r"pair\[1\]: 3 is no string"):
        made.parameters.decode({"pair": [1, 3]})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"rooms": ["hall", 3]}, r"rooms\[1\]: 3 is no string"),
        ({"rooms": ["hall"], "colour": "red"}, "colour: unknown key; the keys are: rooms, level"),
        ({"level": 3}, "rooms: missing"),
        ({"rooms": [], "level": 101}, "level: 101 is above the maximum 100"),
    ],
)
def test_a_refusal_names_the_place_and_what_was_found(value: Any, reason: str) -> None:
    schema = {
        "properties": {"rooms": {"type": "array", "items": {"type": "string"}}, "level": {"maximum": 100}},
        "required": ["rooms"],
        "additionalProperties": False,
    }
    made = Tool.of_schema("dim", "Dim.", schema, print, idempotent=True)
    with pytest.raises(ShapeError, match=reason):
        made.parameters.decode(value)


@pytest.mark.deep
def test_the_decoder_never_accepts_what_the_official_suite_rejects() -> None:
    try:
        tests = draft_suite.suite()
    except draft_suite.SuiteMissing as missing:
        pytest.skip(f"the official test suite is missing and was NOT run: {missing}")
    found, wrong = draft_suite.figures(tests)
    assert wrong == []
    assert all(count["accepted by both"] > 250 for count in found.values())
    assert draft_suite.figures_table(found) in draft_suite.PAGE.read_text(), "run python -m bench.draft_suite --write"


def test_the_page_lists_every_keyword_as_it_is_kept_to() -> None:
    assert draft_suite.keywords_table() in draft_suite.PAGE.read_text(), "run python -m bench.draft_suite --write"


def test_a_schema_that_is_nested_without_end_is_refused() -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"items": deep}
    with pytest.raises(ShapeError, match=r"deep|recursion|Recursion"):
        foreign(deep)
