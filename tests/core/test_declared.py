"""A field of another kind than it must be is named where it was declared, with what it must be."""

from __future__ import annotations

from typing import Any

import pytest

from edgeagent.core.agent import Agent, Tool, tool
from edgeagent.errors import ConfigError, ShapeError


@tool(idempotent=True)
def look() -> str:
    """Look."""
    return ""


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"system": b"x"}, "system is b'x'; it must be a text"),
        ({"system": "y\udfff"}, "system holds half of a surrogate pair"),
        ({"tools": look}, "it must be a list of tools"),
        ({"tools": "look"}, "tools is 'look'; it must be a list of tools"),
        ({"policies": None}, "policies is None; it must be a list of rules"),
        ({"hears": 5}, "hears is 5; it must be a list of names"),
        ({"budget": {"steps": 3}}, r"budget is \{'steps': 3\}; it must be a Budget\(...\)"),
        ({"budget": None}, r"budget is None; it must be a Budget\(...\)"),
        ({"session_budget": 7}, r"session_budget is 7; it must be a Budget\(...\), or None"),
        ({"timers": "yes"}, "timers is 'yes'; it must be True or False"),
        ({"language": None}, "language is None; it must be a text"),
    ],
)
def test_a_field_of_another_kind_is_named_with_what_it_must_be(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=f"agent a: .*{told}"):
        Agent("a", **fields)


def test_a_name_that_is_no_text_is_told() -> None:
    with pytest.raises(ConfigError, match="an agent: name is 3; it must be a text"):
        Agent(3)  # type: ignore[arg-type] # as who does not check types may write


@pytest.mark.parametrize("schema", [{"properties": {"p\udcff": {}}}, {"const": "\ud800"}, {"default": object()}])
def test_a_schema_that_has_no_json_text_is_refused_by_the_tool_s_name(schema: dict[str, Any]) -> None:
    with pytest.raises(ShapeError, match="tool t: its schema cannot be written as JSON"):
        Tool.of_schema("t", "x", {"type": "object", **schema}, lambda given: 1, idempotent=True)


def test_a_description_that_is_no_text_is_refused_by_the_tool_s_name() -> None:
    made = Tool.of_schema("t", "x \ud800", {"type": "object"}, lambda given: 1, idempotent=True)
    with pytest.raises(ConfigError, match="tool t: its description holds half of a surrogate pair"):
        Agent("a", tools=(made,))
