"""Is a call meant at all? How evidence is weighed, and where a threshold is put."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.core.agent import tool
from edgeagent.request.call_odds import (
    EXAMPLES_REFUSED,
    MARGIN_MAX,
    UNRELATED_REFUSED,
    Weights,
    probability,
    sureness,
    threshold,
    words_shared,
)

odds = st.floats(-50, 50)
scores = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), odds), min_size=1, max_size=3, unique_by=lambda s: s[0])


@tool(idempotent=True)
def open_valve(seconds: int) -> None:
    """Open a water valve for some seconds."""


def test_more_of_what_speaks_for_a_call_never_makes_it_less_likely():
    weights = Weights(0.5, {"for": (2.0, 1.0), "against": (-1.0, 0.0)})
    assert weights.log_odds({"for": 2.0, "against": 0.0}) > weights.log_odds({"for": 1.0, "against": 0.0})
    assert weights.log_odds({"for": 1.0, "against": 1.0}) < weights.log_odds({"for": 1.0, "against": 0.0})


def test_evidence_that_is_missing_counts_as_the_mean_and_a_piece_without_a_weight_as_nothing():
    weights = Weights(0.5, {"for": (2.0, 3.0)})
    assert weights.log_odds({}) == weights.log_odds({"for": 3.0}) == weights.log_odds({"other": 9.0}) == 0.5


@given(odds, odds)
def test_a_probability_is_one_and_keeps_the_order(one, other):
    assert 0 <= probability(one) <= 1
    assert (one <= other) <= (probability(one) <= probability(other))
    assert math.isclose(probability(one) + probability(-one), 1)


def test_what_the_request_has_of_a_tool_is_told_in_shares():
    found = words_shared(open_valve, "Open the north valve for 30 seconds.")
    assert found["name"] == 1
    assert found["description"] == pytest.approx(3 / 4)  # open, valve, seconds; not water
    assert found["arguments"] == 0  # north is none of its words, and the others it has by name and description


def test_what_only_the_arguments_of_a_tool_say_is_told_apart():
    @tool(idempotent=True)
    def forecast(city: str, unit: Literal["celsius", "kelvin"]) -> None:
        """Tomorrow's weather."""

    assert words_shared(forecast, "Weather in the city of Lund in kelvin")["arguments"] == pytest.approx(2 / 4)


def test_the_authors_examples_say_what_a_tool_is_for_but_none_speaks_for_itself():
    example = "Water the roses."
    watering = dataclasses.replace(open_valve, examples=(example, "Give the roses a drink."))
    assert words_shared(watering, "A drink for the roses!")["arguments"] == 1
    assert words_shared(watering, example)["arguments"] == 0.5  # roses are in the other example
    assert words_shared(dataclasses.replace(open_valve, examples=(example,)), example)["arguments"] == 0


def test_a_request_that_shares_no_word_has_nothing_of_a_tool():
    assert set(words_shared(open_valve, "Tell me a joke.").values()) == {0.0}
    assert set(words_shared(open_valve, "").values()) == {0.0}


def test_between_two_groups_that_lie_apart_the_threshold_is_in_the_middle():
    assert threshold([-5.0, -3.0, -4.0], [1.0, 2.0, 3.0]) == -1.0


def test_without_examples_nearly_all_unrelated_requests_lie_below():
    unrelated = [float(n) for n in range(100)]
    assert sum(each < threshold(unrelated, []) for each in unrelated) == 100 * UNRELATED_REFUSED


@given(st.lists(odds, min_size=1, max_size=60), st.lists(odds, min_size=1, max_size=60))
def test_no_threshold_refuses_more_of_the_authors_examples_than_is_allowed(unrelated, examples):
    needed = threshold(unrelated, examples)
    assert sum(each < needed for each in examples) <= EXAMPLES_REFUSED * len(examples)


def test_a_tool_that_leads_makes_its_call_surer_and_an_only_one_leads():
    assert sureness((("a", 3.0), ("b", 1.0)), ())["margin"] == 2
    assert sureness((("a", 3.0),), ())["margin"] == sureness((("a", 99.0), ("b", 1.0)), ())["margin"] == MARGIN_MAX


def test_the_odds_of_a_call_are_no_tools_score():
    found = sureness((("a", 3.0), ("b", 1.0), ("(call)", 1.5), ("(needed)", 0.5)), (-0.5, -0.1))
    assert found == {"margin": 2, "written": 2, "mean": -0.3, "least": -0.5}


def test_an_engine_that_does_not_tell_what_was_forced_says_nothing_of_the_tokens():
    assert sureness((("a", 3.0),), None).keys() == {"margin"}


@given(scores, st.lists(st.floats(-30, 0), max_size=9))
def test_what_says_how_sure_a_call_is_is_always_finite(told, shares):
    assert all(math.isfinite(value) for value in sureness(tuple(told), shares).values())
