"""What tests of grammars may use: both engines, asked byte by byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.acceptors import Acceptor, Gbnf, Llguidance, vocabulary
from edgeagent.grammar.gbnf import gbnf
from edgeagent.grammar.llg import value_grammar
from edgeagent.shape.lower import lower


@pytest.fixture(params=["llguidance", pytest.param("gbnf", marks=pytest.mark.model)])
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine in turn."""
    return str(request.param)


@pytest.fixture
def parsed(request: pytest.FixtureRequest) -> Callable[[str], Acceptor]:
    """Text of a GBNF grammar -> llama.cpp's reading of it."""
    smollm2: Path = request.getfixturevalue("smollm2")
    return lambda text: Gbnf(text, vocabulary(smollm2))


@pytest.fixture
def held(engine: str, request: pytest.FixtureRequest) -> Callable[[Any], Acceptor]:
    """A schema -> the grammar that the engine of this test makes of it."""

    def hold(schema: Any, **options: Any) -> Acceptor:
        lowered = lower(schema, **options).schema
        if engine == "llguidance":
            return Llguidance(value_grammar(lowered))
        return Gbnf(gbnf(lowered, relaxed=[]), vocabulary(request.getfixturevalue("smollm2")))

    return hold
