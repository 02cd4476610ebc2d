"""Texts are read as JSON strictly: whatever two readers could understand differently is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.errors import ShapeError
from edgeagent.shape.parse import DEPTH_MAX, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 1.5, "x", null, true]}', {"a": [1, 1.5, "x", None, True]}),
        (b'"\xc3\xa9"', "é"),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ('{"a": {"b": 1}, "c": [{"b": 2}, {"b": 3}]}', {"a": {"b": 1}, "c": [{"b": 2}, {"b": 3}]}),
        ('{"a:b": "{:,:[", "c": "\\":"}', {"a:b": "{:,:[", "c": '":'}),
        ("[" * DEPTH_MAX + "]" * DEPTH_MAX, None),
    ],
)
def test_a_text_that_all_readers_understand_alike_is_read(text: str | bytes, value: Any) -> None:
    found = parse(text)
    assert value is None or found == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "a": 2}', 'the key "a" appears twice'),
        ('{"a": 1, "\\u0061": 2}', "appears twice"),
        ('[{"x": {"k": 1, "k": 1}}]', 'the key "k" appears twice'),
        ('"\\ud800"', "not readable"),
        ('"\\udc00x"', "not readable"),
        ('"\\ud800\\u0041"', "not readable"),
        ('"\ud800"', "not UTF-8"),
        (b'"\xff"', "not UTF-8"),
        ("NaN", "not readable"),
        ("-Infinity", "not readable"),
        ("1e400", "out of range"),
        ("01", "not readable"),
        ("1.", "not readable"),
        ("+1", "not readable"),
        ("1 2", "trailing"),
        ("", "not readable"),
        ('{"a": 1,}', "not readable"),
        ("{'a': 1}", "not readable"),
        ('"a\nb"', "not readable"),
        ("\ufeff1", "not readable"),
        ("[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1), "nested deeper than 64"),
        ("[" * 1_000_000, "nested deeper than 64"),
        ("9" * 5_000, "digits"),
    ],
)
def test_a_text_that_could_be_read_in_two_ways_is_refused(text: str | bytes, reason: str) -> None:
    with pytest.raises(ShapeError, match=reason):
        parse(text)


@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_a_value_or_a_shape_error(text: bytes) -> None:
    try:
        parse(text)
    except ShapeError as error:
        assert str(error).startswith("not readable as JSON: ")


@given(st.text(alphabet='{}[]":,ab\\ ', max_size=14))
def test_a_text_made_of_structure_is_a_value_or_a_shape_error(text: str) -> None:
    try:
        parse(text)
    except ShapeError as error:
        assert str(error).startswith("not readable as JSON: ")
