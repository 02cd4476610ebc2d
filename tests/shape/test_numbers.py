"""Integers are kept exactly, whatever their size, or refused with the reason."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

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
