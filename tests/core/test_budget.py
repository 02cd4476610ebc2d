"""Limits, and what is kept back for the closing answer."""

from __future__ import annotations

import pytest

from edgeagent.core.budget import (
    Budget,
    Spent,
    after_admission,
    after_answer,
    after_model_call,
    calls_left,
    left_ms,
    limit_before_ask,
    limit_before_calls,
    may_close,
    money_left,
    ordinary_tokens,
)
from edgeagent.core.values import Usage
from edgeagent.errors import ConfigError


@pytest.mark.parametrize(
    ("spent", "limit"),
    [
        (Spent(steps=7), "steps"),
        (Spent(prompt_tokens=500), "prompt tokens"),
        (Spent(completion_tokens=960), "completion tokens"),
        (Spent(refusals=3), "refusals in a row"),
        (Spent(), None),
    ],
)
def test_the_limit_that_is_reached_is_named(spent, limit):
    assert limit_before_ask(Budget(prompt_tokens=500, seconds=None), spent, 0) == limit


def test_one_step_is_kept_back_for_the_closing_answer():
    budget = Budget(steps=3)
    assert limit_before_ask(budget, Spent(steps=2), 0) == "steps"
    assert may_close(budget, Spent(steps=2), 0)
    assert not may_close(budget, Spent(steps=3), 0)


def test_tokens_are_kept_back_for_the_closing_answer():
    assert ordinary_tokens(Budget(completion_tokens=1024), Spent(completion_tokens=900)) == 60


def test_a_batch_counts_as_a_whole():
    assert limit_before_calls(Budget(tool_calls=2), Spent(tool_calls=1), 2, 0) == "tool calls"
    assert limit_before_calls(Budget(tool_calls=2), Spent(tool_calls=1), 1, 0) is None


def test_a_call_that_runs_ends_a_row_of_refusals():
    assert after_answer(after_answer(Spent(), refused=True), refused=False).refusals == 0


def test_calls_are_counted_in_all_and_for_tools_with_a_limit_of_their_own():
    budget = Budget(calls_of={"look": 3})
    spent = after_admission(budget, Spent(), ("look", "push", "look"))
    assert (spent.tool_calls, spent.calls_of) == (3, (("look", 2),))
    assert (calls_left(budget, spent, "look"), calls_left(budget, spent, "push")) == (1, None)


def test_a_call_that_was_refused_after_all_is_given_back():
    budget = Budget(calls_of={"look": 3})
    spent = after_admission(budget, after_admission(budget, Spent(), ("look", "push")), ("look",), times=-1)
    assert (spent.tool_calls, spent.calls_of) == (1, (("look", 0),))


def test_time_left_is_never_negative():
    assert left_ms(Budget(seconds=1), Spent(started_ms=0), 5_000) == 0


def test_the_call_that_passes_the_money_is_the_last_and_no_closing_answer_is_bought():
    budget = Budget(money=0.01)
    spent = after_model_call(Spent(), Usage(cost=9_999))
    assert (money_left(budget, spent), limit_before_ask(budget, spent, 0)) == (1, None)
    spent = after_model_call(spent, Usage(cost=500))
    assert (money_left(budget, spent), limit_before_ask(budget, spent, 0)) == (0, "money")
    assert not may_close(budget, spent, 0)


@pytest.mark.parametrize(
    "wrong", [{"steps": 0}, {"money": -0.1}, {"tool_calls": -1}, {"completion_tokens": 0}, {"seconds": -1}]
)
def test_a_budget_that_cannot_be_kept_is_refused_by_name(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Budget(**wrong)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), "5", [1], True, 10**400])
@pytest.mark.parametrize("name", ["steps", "tool_calls", "completion_tokens", "seconds", "repeats", "money"])
def test_a_limit_that_is_no_number_of_its_kind_is_refused_by_name(name, value):
    with pytest.raises(ConfigError, match=rf"Budget\({name}="):
        Budget(**{name: value})


@pytest.mark.parametrize("value", [["a"], {"a": 1.5}, {"a": True}, {"a": "1"}, {1: 1}])
def test_limits_of_tools_that_are_none_are_refused(value):
    with pytest.raises(ConfigError, match=r"Budget\(calls_of="):
        Budget(calls_of=value)
