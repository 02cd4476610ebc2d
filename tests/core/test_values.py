"""One JSON text for each value, with every digit of every number."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.core.values import canonical_json, read_json

BIG = 2**70
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (BIG, "1180591620717411303424"),
        (-(2**63) - 1, "-9223372036854775809"),
        (
            {"b": [BIG, 1e-7, True, None], "a": "é\n"},
            '{"a":"é\\n","b":[1180591620717411303424,1e-7,true,null]}',
        ),
        ({"z": 1.0, "n": (BIG,)}, '{"n":[1180591620717411303424],"z":1.0}'),
    ],
)
def test_an_integer_of_any_size_is_written_with_every_digit(value: object, text: str) -> None:
    assert canonical_json(value) == text
    assert canonical_json(read_json(text)) == text


@given(ANY)
def test_every_value_is_read_back_as_it_was(value: object) -> None:
    assert repr(read_json(canonical_json(value))) == repr(json.loads(json.dumps(value, sort_keys=True)))


@given(ANY)
def test_beside_a_large_integer_all_else_is_written_as_without_it(value: object) -> None:
    try:
        alone = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:
        return
    assert canonical_json([value, BIG]) == f"[{alone},{BIG}]"


def test_what_has_no_json_form_is_refused() -> None:
    for value in ({1: "a", "b": BIG}, object(), [BIG, object()], 10**5000):
        with pytest.raises((TypeError, ValueError)):
            canonical_json(value)
