"""What llguidance leaves out of a bounded number can be written nevertheless."""

from __future__ import annotations

from typing import Any

import pytest

from bench.acceptors import Llguidance
from edgeagent.grammar.decimals import with_short_decimals
from edgeagent.grammar.llg import value_grammar


@pytest.mark.parametrize(
    "bounds",
    [
        {"exclusiveMinimum": 0, "exclusiveMaximum": 0.25},
        {"minimum": -0.25, "maximum": 1.255},
        {"exclusiveMinimum": 1.5, "maximum": 1.75},
        {"minimum": 0.15, "maximum": 0.25},
    ],
    ids=str,
)
def test_every_decimal_within_the_bounds_is_written_and_no_other(bounds: dict[str, float]) -> None:
    pytest.importorskip("llguidance")
    grammar = Llguidance(value_grammar({"type": "number", **bounds}))
    for thousandths in range(-500, 2000):
        value = thousandths / 1000
        least, most = bounds.get("minimum", -9.0), bounds.get("maximum", 9.0)
        within = least <= value <= most
        within = within and bounds.get("exclusiveMinimum", -9.0) < value < bounds.get("exclusiveMaximum", 9.0)
        assert grammar.accepts(repr(value)) == within, value


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number", "minimum": 0, "maximum": 0.5},
        {"type": "integer", "minimum": 0, "maximum": 25},
        {"enum": [0.25]},
        {"type": "object", "properties": {"type": {"const": "number"}, "maximum": {"type": "number"}}},
    ],
    ids=str,
)
def test_what_needs_nothing_stays_as_it_is(schema: dict[str, Any]) -> None:
    assert with_short_decimals(schema) == schema
