"""Every type has a short end, in either engine, and it is a value of that type."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("llama_cpp")
pytest.importorskip("llguidance")

from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.grammars import Compiled, Grammars
from edgeagent.errors import ShapeError
from edgeagent.grammar.calls import GrammarEngine
from edgeagent.grammar.gbnf import gbnf
from edgeagent.grammar.llg import value_grammar
from edgeagent.shape.lower import lower
from edgeagent.shape.parse import parse
from edgeagent.shape.types import shape_of
from tests.shape.generated import TYPES

pytestmark = pytest.mark.model

SHORTEST_MAX = 400
"""Tokens; a generated type may ask for a list of long records."""


@pytest.mark.parametrize("kind", ["llguidance", "gbnf"])
@pytest.mark.deep
def test_every_type_has_a_short_end(engine: Engine, grammars: Grammars, kind: GrammarEngine) -> None:
    ours = grammars if kind == "llguidance" else Grammars(engine, kind)

    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def every(data: st.DataObject) -> None:
        shape = shape_of(data.draw(TYPES, label="type"))
        lowered = lower(shape.schema, string_max=200)
        report = list(lowered.relaxations)
        text = gbnf(lowered.schema, relaxed=report) if kind == "gbnf" else value_grammar(lowered.schema)
        compiled: Compiled = ours.compile(text, keep=False)
        assert compiled.shortest is not None
        assert len(compiled.shortest) <= SHORTEST_MAX
        try:
            shape.decode(parse(engine.detokenize(compiled.shortest).decode()))
        except ShapeError:
            assert report, "a text that ends by the grammar is not of the type, and no report says so"

    every()
