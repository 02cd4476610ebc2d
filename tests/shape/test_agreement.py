"""The decoder and the schema let the same values through; the `jsonschema` package is the judge."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeagent.errors import ShapeError
from edgeagent.shape import formats
from edgeagent.shape.admits import admits
from edgeagent.shape.pointer import Document
from edgeagent.shape.types import Shape, shape_of
from tests.shape.generated import TYPES, values

pytestmark = pytest.mark.long

QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def decoded(shape: Shape, value: Any) -> tuple[bool, Any]:
    try:
        return True, shape.decode(value)
    except ShapeError:
        return False, None


def with_our_formats(schema: Any) -> Any:
    """The schema with formats spelled as the patterns we document, and patterns in ASCII, as JSON Schema means them.

    The judge's own ideas of both differ: it searches with Python's `re`.
    """
    if isinstance(schema, list):
        return [with_our_formats(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    told = {
        key: part if key in ("enum", "const", "default") else with_our_formats(part) for key, part in schema.items()
    }
    if isinstance(told.get("pattern"), str):
        told["pattern"] = f"(?a:{told['pattern']})"
    if isinstance(told.get("format"), str):
        told["pattern"] = f"^(?:{formats.PATTERNS[told.pop('format')]})$"
    return told


def trailing_line_feed(value: Any) -> bool:
    """In Python's `re`, which the judge uses, $ also matches before a last line feed; in JSON Schema it does not."""
    if isinstance(value, str):
        return value.endswith("\n")
    if isinstance(value, dict):
        return any(map(trailing_line_feed, [*value, *value.values()]))
    return isinstance(value, list) and any(map(trailing_line_feed, value))


def beyond_floats(value: Any) -> bool:
    """Integers from 2^53 on are kept exactly or refused; the judge, which changes no value, need not mind."""
    if isinstance(value, int | float):
        return abs(value) >= 2**53
    if isinstance(value, dict):
        return any(map(beyond_floats, value.values()))
    return isinstance(value, list) and any(map(beyond_floats, value))


def agree(data: st.DataObject) -> None:
    shape = shape_of(data.draw(TYPES, label="type"))
    jsonschema.Draft202012Validator.check_schema(shape.schema)
    judge = jsonschema.Draft202012Validator(with_our_formats(shape.schema))
    for _ in range(5):
        value = data.draw(values(shape), label="value")
        before = copy.deepcopy(value)
        fits, typed = decoded(shape, value)
        assert value == before
        if beyond_floats(value):
            assert not fits or judge.is_valid(value)
        else:
            assert fits == judge.is_valid(value) or trailing_line_feed(value)
            assert admits(shape.schema, value, Document(shape.schema)) == fits
        if fits:
            written = shape.encode(typed)
            assert shape.encode(shape.decode(written)) == written


@settings(max_examples=100, suppress_health_check=QUIET)
@given(st.data())
def test_decoder_schema_and_judge_let_the_same_values_through(data: st.DataObject) -> None:
    agree(data)


@pytest.mark.slow
@pytest.mark.parametrize("thousand", range(10))
@settings(max_examples=1_000, suppress_health_check=QUIET)
@given(data=st.data())
def test_decoder_schema_and_judge_agree_on_ten_thousand_types(data: st.DataObject, thousand: int) -> None:
    agree(data)
