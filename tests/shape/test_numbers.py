"""Integers are kept exactly, whatever their size, or refused with the reason."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.errors import ShapeError
from edgeagent.shape.foreign import foreign
from edgeagent.shape.parse import parse
from edgeagent.shape.types import shape_of


@pytest.mark.parametrize("number", [2**70, 18446744073709551616, -9223372036854775809, 10**300, 1180591620717411303424])
def test_an_integer_of_any_size_is_kept_exactly(number: int) -> None:
    class Held(pydantic.BaseModel):
        value: Any

    for declared, value in ((int, number), (Any, number), (list[Any], [number]), (dict[str, Any], {"a": number})):
        shape = shape_of(declared)
        assert shape.encode(shape.decode(parse(str(value).replace("'", chr(34))))) == value
    shape = shape_of(Held)
    assert shape.decode({"value": number}).value == number
    assert shape.encode(Held(value=number)) == {"value": number}


@pytest.mark.parametrize("text", ["1e30", "9007199254740993.0", "-1e22", "9007199254740992.0"])
def test_a_number_that_stands_for_several_integers_is_none(text: str) -> None:
    with pytest.raises(ShapeError, match="no integer that is kept exactly: write all its digits"):
        shape_of(int).decode(parse(text))


def test_an_integer_written_as_a_small_float_is_one() -> None:
    assert shape_of(int).decode(parse("1e3")) == 1000


@pytest.mark.parametrize("number", [2**53 + 1, 2**70 + 1, -(2**64) - 1])
def test_an_integer_that_a_float_would_change_is_refused_as_one(number: int) -> None:
    with pytest.raises(ShapeError, match=r"has more digits than a number here keeps; -?\d+ is the nearest"):
        shape_of(float).decode(number)
    assert shape_of(float).decode(2**70) == 2.0**70


def test_a_schema_from_elsewhere_passes_numbers_on_as_they_are() -> None:
    node = foreign({"type": "integer", "maximum": 2**80})
    assert node.why_not(2**70, "") == node.why_not(3.0, "") == node.why_not(1e20, "") == ""
    assert node.why_not(2**80 + 1, "a") == f"a: {2**80 + 1} is above the maximum {2**80}"


@pytest.mark.parametrize(
    "text", ["1e-400", "-1E-400", "[2.5e-324]", '{"a":{"b":0.1e-323}}', "2e-324", "4e-324", "7e-324", f"0.{'0' * 330}1"]
)
def test_a_number_nearer_to_zero_than_can_be_kept_is_refused_and_not_made_another(text: str) -> None:
    with pytest.raises(ShapeError, match=r"nearer to 0 than any number that is kept here|so near to 0 that its digits"):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "0e-400",
        "-0.0E-999",
        "0.000",
        "5e-324",
        "4.9e-324",
        "4.94065645841246544e-324",
        "1e-320",
        "2.2250738585072e-308",
    ],
)
def test_zero_and_what_floats_near_zero_are_written_as_are_kept(text: str) -> None:
    assert parse(text) == float(text)
    assert parse(f'{{"a": [{text}]}}') == {"a": [float(text)]}


def test_a_text_that_looks_like_such_a_number_is_a_text() -> None:
    assert parse('{"part": "X1e-400", "e-": "1e-400"}') == {"part": "X1e-400", "e-": "1e-400"}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_that_a_float_is_is_read_as_itself(number: float) -> None:
    assert parse(repr(number)) == number
    assert parse(f"{number:.17e}") == number
