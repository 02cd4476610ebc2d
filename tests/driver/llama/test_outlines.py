"""Our engine handed to `outlines.Generator`: what it asks for is what it gets, whole."""

from __future__ import annotations

import datetime
import json
import re
import warnings
from dataclasses import dataclass
from typing import Literal

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Not ours: what outlines' own imports warn of.
    outlines = pytest.importorskip("outlines", reason="outlines is missing: its generators were NOT tested")

from edgeagent.errors import GrammarError, ModelError
from examples.outlines_adapter import OutlinesModel

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def model(shared_engine):
    return OutlinesModel(shared_engine)


@dataclass
class Plant:
    name: str
    height_cm: int


def test_a_class_comes_as_its_json(model):
    text = outlines.Generator(model, Plant)("A tomato plant as JSON: ", max_tokens=40)
    plant = json.loads(text)
    assert isinstance(plant["name"], str) and isinstance(plant["height_cm"], int)


def test_a_json_schema_is_held(model):
    schema = outlines.types.JsonSchema({"type": "object", "properties": {"n": {"enum": [3, 5]}}, "required": ["n"]})
    assert json.loads(outlines.Generator(model, schema)("A number: ", max_tokens=20)) in ({"n": 3}, {"n": 5})


@pytest.mark.parametrize(
    ("output_type", "pattern"),
    [
        (Literal["north bed", "south/bed"], "north bed|south/bed"),
        (outlines.types.Choice(["yes", "no"]), "yes|no"),
        (outlines.types.Regex(r"[a-f]{2}/\d{2}"), "[a-f]{2}/[0-9]{2}"),
        (outlines.types.ipv4, r"\d+\.\d+\.\d+\.\d+"),
        (int, r"[+-]?\d+"),
        (datetime.date, r"\d{4}-\d\d-\d\d"),
    ],
)
def test_a_text_is_of_its_pattern(model, output_type, pattern):
    text = outlines.Generator(model, output_type)("The answer is ", max_tokens=24)
    assert re.fullmatch(pattern, text), text


def test_free_text_and_a_chat(model):
    chat = outlines.inputs.Chat([{"role": "user", "content": "Say hello."}])
    assert outlines.Generator(model)(chat, max_tokens=4)


def test_a_stream_is_the_text_in_pieces(model):
    generator = outlines.Generator(model, outlines.types.Regex("[a-z ]{12}"))
    pieces = list(generator.stream("Once upon ", max_tokens=20))
    assert "".join(pieces) == generator("Once upon ", max_tokens=20)
    assert len(pieces) > 1


def test_who_stops_reading_stops_the_model(model):
    stream = outlines.Generator(model).stream("Once upon a time", max_tokens=200)
    next(stream)
    stream.close()
    assert model.generate("One more", max_tokens=1) is not None


def test_a_batch_is_one_after_the_other(model):
    assert len(outlines.Generator(model, outlines.types.digit).batch(["1", "2"], max_tokens=4)) == 2


def test_what_does_not_fit_is_an_error_and_not_half_an_output(model):
    with pytest.raises(ModelError, match="fits into 2 tokens"):
        outlines.Generator(model, outlines.types.Regex("[xq]{30}"))("x", max_tokens=2)


def test_a_grammar_of_outlines_own_is_refused(model):
    with pytest.raises(GrammarError, match="context-free"):
        outlines.Generator(model, outlines.types.CFG('start: "a"'))("x")
