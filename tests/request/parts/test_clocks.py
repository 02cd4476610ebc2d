"""Times of day that are said in words."""

from __future__ import annotations

import pytest

from edgeagent.request.parts.dates import whens_in
from edgeagent.request.said import said_of


@pytest.mark.parametrize(
    ("said", "minutes"),
    [
        ("wake me at half past six", 6 * 60 + 30),
        ("start it at half past ten tonight", 22 * 60 + 30),
        ("at a quarter to eight in the evening", 19 * 60 + 45),
        ("quarter past five in the morning", 5 * 60 + 15),
        ("at twenty past six in the evening", 18 * 60 + 20),
        ("at ten to nine tonight", 20 * 60 + 50),
        ("every evening at seven thirty", 19 * 60 + 30),
        ("eight in the morning, please", 8 * 60),
        ("tomorrow evening at 8", 20 * 60),
        ("tonight at nine", 21 * 60),
        ("tomorrow at 5:15 am", 5 * 60 + 15),
        ("abends um Viertel nach neun", 21 * 60 + 15),
    ],
)
def test_a_time_in_words_is_one_in_digits(said, minutes):
    assert [when.minutes for when in whens_in(said_of(said)) if when.minutes is not None] == [minutes]


@pytest.mark.parametrize(
    "said",
    [
        "wake me at seven",
        "open it a quarter of the way",
        "set channel two to five volts",
        "dim lamp 2 tonight",
        "from ten to eleven degrees",
        "half past the gate",
        "at five twenty degrees are enough",
    ],
)
def test_what_is_no_certain_time_is_none(said):
    assert [when.minutes for when in whens_in(said_of(said)) if when.minutes is not None] == []
