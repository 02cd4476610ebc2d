"""Three judges of one text (the grammar of each engine, the decoder, the schema) agree, or the report says why not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from bench.acceptors import Acceptor, Gbnf, Llguidance, vocabulary
from edgeagent.errors import ShapeError
from edgeagent.grammar.gbnf import gbnf
from edgeagent.grammar.gbnf_numbers import SIGNIFICANT_MAX
from edgeagent.grammar.gbnf_text import spelled
from edgeagent.grammar.llg import value_grammar
from edgeagent.shape.lower import INTEGER_MAX, Lowered, Relaxation, lower
from edgeagent.shape.parse import parse
from edgeagent.shape.types import Shape, shape_of
from tests.shape.generated import TYPES, values

pytestmark = pytest.mark.model
QUIET = [
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
    HealthCheck.function_scoped_fixture,
]

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def decodes(shape: Shape, text: str) -> bool:
    try:
        shape.decode(parse(text))
    except ShapeError:
        return False
    return True


def outside_what_is_written(text: str) -> bool:
    """Whether a number in the text has more digits than our grammars write, or is -0: policies of docs/grammar.md."""
    for number in _NUMBER.findall(re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)):
        whole, _, fraction = number.removeprefix("-").partition(".")
        if fraction and len(whole + fraction) > SIGNIFICANT_MAX:
            return True
        if abs(int(whole)) > INTEGER_MAX or (number.startswith("-") and float(number) == 0):
            return True
    return False


def compare(grammar: Acceptor, shape: Shape, text: str, relaxations: list[Relaxation], lowered: Lowered) -> None:
    written, decoded = grammar.accepts(text), decodes(shape, text)
    if written and not decoded:
        assert relaxations, f"{text} is written and not decoded, and no report says so"
    if decoded and not written and not outside_what_is_written(text):
        # None of the restrictions can be met by a text of our own spelling, with its keys in the declared order.
        raise AssertionError(f"{text} is decoded and never written; {lowered}")


def judge(data: st.DataObject, model: Path) -> None:
    shape = shape_of(data.draw(TYPES, label="type"))
    lowered = lower(shape.schema)
    relaxations = list(lowered.relaxations)
    grammars: list[tuple[Acceptor, list[Relaxation]]] = [(Llguidance(value_grammar(lowered.schema)), relaxations)]
    more = list(relaxations)
    grammars.append((Gbnf(gbnf(lowered.schema, relaxed=more), vocabulary(model)), more))
    for _ in range(4):
        text = spelled(data.draw(values(shape), label="value"))
        event(f"decodes: {decodes(shape, text)}")
        for grammar, report in grammars:
            compare(grammar, shape, text, report, lowered)


@settings(max_examples=60, suppress_health_check=QUIET)
@given(data=st.data())
def test_grammars_and_decoder_agree_or_the_report_says_why(data: st.DataObject, smollm2: Path) -> None:
    judge(data, smollm2)


@pytest.mark.slow
@pytest.mark.parametrize("thousand", range(10))
@settings(max_examples=1_000, suppress_health_check=QUIET)
@given(data=st.data())
def test_grammars_and_decoder_agree_on_ten_thousand_types(data: st.DataObject, thousand: int, smollm2: Path) -> None:
    judge(data, smollm2)


SPELLED: list[Any] = [1, -1, 0.5, 1e-7, 1e19, "é\n\x7f", [1, [True, None]], {"a": {"b": "c"}}, {}, []]


@pytest.mark.parametrize("value", SPELLED, ids=repr)
def test_any_json_value_as_we_spell_it_is_written_by_both(value: Any, smollm2: Path) -> None:
    assert Llguidance(value_grammar({})).accepts(spelled(value))
    assert Gbnf(gbnf({}), vocabulary(smollm2)).accepts(spelled(value))
