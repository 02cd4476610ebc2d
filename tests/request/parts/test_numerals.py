"""Numbers in words."""

from __future__ import annotations

from decimal import Decimal

import pytest

from edgeagent.request.parts.numbers import mentions_in


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("seventy-five percent", "75"),
        ("ninety seconds", "90"),
        ("nineteen degrees", "19"),
        ("two hundred and fifteen grams", "215"),
        ("one hundred twenty rpm", "120"),
        ("half an hour", "0.5"),
        ("a quarter of an hour", "0.25"),
        ("three quarters of an hour", "0.75"),
        ("an hour and a half", "1.5"),
        ("two and a half hours", "2.5"),
        ("a couple of minutes", "2"),
        ("two dozen eggs", "24"),
        ("two thousand", "2000"),
        ("twenty one", "21"),
    ],
)
def test_a_number_in_words_is_one_number(said, value):
    assert [mention.value for mention in mentions_in(f"for {said}")] == [Decimal(value)]


def test_numbers_that_stand_apart_are_two():
    assert [mention.value for mention in mentions_in("twenty, five")] == [20, 5]


def test_a_part_of_a_whole_is_a_percentage_and_no_number_of_its_own():
    (part,) = mentions_in("leave it half open")
    assert part.is_part and part.value == 50
    (three_quarters,) = mentions_in("open it three quarters of the way")
    assert three_quarters.is_part and three_quarters.value == 75
