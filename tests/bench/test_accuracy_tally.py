"""What the accuracy bench counts, and where a threshold lies, on results of our own."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("llama_cpp")

from bench.accuracy.cases import Case, Wanted
from bench.accuracy.engines import answered
from bench.accuracy.refusal import margins, operating_point
from bench.accuracy.report import text_of
from bench.accuracy.run import points, summaries
from bench.accuracy.tally import Answered, judged, summary, wilson
from edgeagent.codec.dialect import Plain
from edgeagent.core.events import CALL_ODDS, CALL_ODDS_NEEDED, ModelAnswered, ModelFailed
from edgeagent.core.values import ToolCall, Usage
from examples.greenhouse import agent

WANTS = Case("wants", "Open it.", agent, (Wanted("set_valve", {"valve": ["north"], "open": [True]}),), group="positive")
DENIES = Case("denies", "Do not open it.", agent, group="negation", critical=True)
NORTH = ToolCall("set_valve", {"valve": "north", "open": True})
SOUTH = ToolCall("set_valve", {"valve": "south", "open": True})
WORDS = Answered((), "No.")


def made(call, **more):
    return Answered((call,), "", **more)


def count(share):
    return share["count"], share["of"]


def test_tools_calls_and_refusals_are_counted_among_those_that_want_a_call():
    told = summary([judged(WANTS, made(NORTH)), judged(WANTS, made(SOUTH)), judged(WANTS, WORDS)])
    assert count(told["right_tool"]) == (2, 3)
    assert count(told["right_call"]) == (1, 3)
    assert count(told["wrongly_refused"]) == (1, 3)
    assert "wrongly_called" not in told


def test_the_tool_that_fits_best_counts_whether_it_is_called_or_not():
    refused, spoke_of_another = Answered((), "No.", best="set_valve"), made(SOUTH, best="notify")
    told = summary([judged(WANTS, refused), judged(WANTS, spoke_of_another)])
    assert count(told["right_tool_best"]) == (1, 2)
    assert "right_tool_best" not in summary([judged(WANTS, WORDS)])


def test_wrong_calls_are_counted_among_those_that_want_none():
    told = summary([judged(DENIES, made(NORTH)), judged(DENIES, WORDS)])
    assert count(told["wrongly_called"]) == (1, 2)
    assert "right_call" not in told


def test_what_is_right_is_told_by_group():
    told = summary([judged(WANTS, made(NORTH)), judged(DENIES, made(NORTH)), judged(DENIES, WORDS)])
    assert {name: count(share) for name, share in told["groups"].items()} == {"positive": (1, 1), "negation": (1, 2)}
    assert count(told["right"]) == (2, 3)


def test_a_wrong_call_that_does_harm_is_told_apart_when_a_person_would_have_been_asked():
    told = summary([judged(DENIES, made(NORTH, confidence=(0.3,))), judged(DENIES, made(NORTH))])
    assert count(told["critical_wrong"]) == (2, 2)
    assert count(told["critical_wrong_unasked"]) == (1, 2)


def test_the_least_sure_of_several_calls_is_what_counts():
    assert not judged(WANTS, Answered((NORTH, SOUTH), "", confidence=(0.9, 0.5))).sure


def test_promises_are_compared_with_what_was_right():
    told = summary([judged(WANTS, made(NORTH, confidence=(0.8,))), judged(WANTS, made(SOUTH, confidence=(0.4,)))])
    confidence = told["confidence"]
    assert (confidence["promised"], confidence["brier"]) == (0.6, 0.1)
    assert count(confidence["right_when_sure"]) == (1, 1)
    assert count(confidence["right_when_unsure"]) == (0, 1)


def test_failures_are_told_and_count_as_refused():
    told = summary([judged(WANTS, Answered((), "", failed="no room"))])
    assert told["failed"] == 1
    assert count(told["wrongly_refused"]) == (1, 1)


def test_costs_are_means():
    told = summary([judged(WANTS, made(NORTH, tokens=10), 1.0, 2.0), judged(WANTS, made(NORTH, tokens=20), 2.0, 3.0)])
    assert (told["seconds_a_case"], told["cpu_seconds_a_case"], told["tokens_a_case"]) == (1.5, 2.5, 15)


def test_wilsons_interval():
    low, high = wilson(34, 40)
    assert (round(low, 3), round(high, 3)) == (0.709, 0.929)
    assert wilson(0, 10)[0] == 0
    assert wilson(0, 0) == (0, 1)


def test_the_threshold_refuses_no_more_of_the_wanted_than_is_allowed():
    point = operating_point([-3.0, *range(1, 10)], [-5.0, 0.0, 0.5, 2.0], share=0.1)
    assert (point.threshold, point.wrongly_refused, point.refused, point.unwanted) == (1, 1, 3, 4)


def test_equal_margins_are_refused_together_or_not_at_all():
    point = operating_point([0.0] * 5 + [1.0] * 5, [0.0, -1.0], share=0.1)
    assert (point.wrongly_refused, point.refused) == (0, 1)


def test_what_the_rules_refuse_stays_refused_even_if_it_is_too_much():
    point = operating_point([-math.inf, -math.inf, 1.0], [-math.inf, 0.0], share=0.1)
    assert (point.wrongly_refused, point.refused) == (2, 1)
    assert point.summary()["threshold"] is None


def event(text, *scores):
    return ModelAnswered(0, 1, text, "end", Usage(), scores=scores)


CALL = '{"name": "set_valve", "arguments": {}}'


@pytest.mark.parametrize(
    ("event", "margin"),
    [
        (event(CALL, (CALL_ODDS, 2.0), (CALL_ODDS_NEEDED, 0.5)), 1.5),
        (event("No.", (CALL_ODDS, -2.0), (CALL_ODDS_NEEDED, 0.5)), -2.5),
        (event("Which valve?", (CALL_ODDS, 2.0), (CALL_ODDS_NEEDED, 0.5)), -math.inf),
        (event("Understood."), -math.inf),
        (event(CALL), None),
        (ModelFailed(0, 1, "engine", "no room"), -math.inf),
    ],
)
def test_the_margin_is_that_over_what_was_needed_and_a_rule_overrules_it(event, margin):
    assert answered(event, Plain()).margin == margin


def test_one_unknown_margin_leaves_a_set_without_a_threshold():
    assert margins([judged(WANTS, made(NORTH, margin=1.0)), judged(WANTS, made(NORTH))]) is None


def test_the_tables_name_sets_engines_groups_and_points():
    wanted = {"ours": [judged(WANTS, made(NORTH, margin=1.0, confidence=(0.9,)))]}
    unwanted = {"ours": [judged(DENIES, Answered((), "", margin=-1.0)), judged(WANTS, made(NORTH, margin=1.0))]}
    told = points(["a/b"], {"a": wanted, "b": unwanted})
    text = text_of([*summaries("a", wanted), *summaries("b", unwanted)], told)
    assert "| a/b" in text
    assert "| negation" in text
    assert "1/1 100 % (21-100)" in text
    for table in text.split("\n\n"):
        assert len({len(line) for line in table.splitlines()}) == 1
