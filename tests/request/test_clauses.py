"""Where a request may fall into several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.request.clauses import PLACES_MAX, divisions


@pytest.mark.parametrize(
    ("request_", "parts"),
    [
        ("Set the oven to 180 and start a timer.", [("Set the oven to 180", "start a timer.")]),
        ("Close the valve; tell Ann.", [("Close the valve", "tell Ann.")]),
        ("Open it, then close it.", [("Open it", "close it.")]),
        ("Read the sensor, and then tell the operator.", [("Read the sensor", "tell the operator.")]),
        ("Open the valve. Also warm the house.", [("Open the valve", "warm the house.")]),
        ("Open the valve for 2.5 minutes.", []),
        ("Open the north valve.", []),
        ("Clear the message of Dr. Patel.", []),
        ("a and b and c", [("a", "b and c"), ("a and b", "c")]),
    ],
)
def test_a_request_is_parted_where_something_new_may_begin(request_, parts):
    assert list(divisions(request_)) == parts


def test_a_long_text_is_not_parted():
    assert list(divisions(" and ".join("abcdefgh"))) == []


@given(st.text(alphabet="ab ;,.", max_size=30) | st.lists(st.sampled_from(["and", "x", "then", ";"])).map(" ".join))
def test_both_parts_are_words_of_the_request(text):
    found = list(divisions(text))
    assert len(found) <= PLACES_MAX
    for first, rest in found:
        assert first and rest and text.strip().startswith(first) and text.strip().endswith(rest)
