"""A tool's own conditions: before the call on its typed arguments, after it on its typed result."""

from __future__ import annotations

import datetime
import queue
from dataclasses import replace

import pytest

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.condition import why_not_after, why_not_before
from edgeagent.core.effects import AskModel, CallTool
from edgeagent.core.events import ModelAnswered, SessionStarted, ToolFailed, UserSaid
from edgeagent.core.state import State
from edgeagent.core.step import step
from edgeagent.core.values import Usage
from edgeagent.driver.tool import ToolDriver


def is_weekday(day, hours):
    """a working day"""
    return day.weekday() < 5


def is_cold(result):
    return result < 30


def matches_hours(result, hours, **_):
    return True if result == hours else f"ran {result} hours, not {hours}"


@tool(idempotent=True, pre=is_weekday, post=is_cold)
def heat(day: datetime.date, hours: int = 2) -> int:
    """Heat on a day."""
    return hours * 10


def play(arguments):
    agent = Agent(name="heater", tools=(heat,), dialect=Plain())
    state, _ = step(agent, State(), SessionStarted(0, agent.name, agent.digest, 1, "plain", 2048, "0"))
    state, _ = step(agent, state, UserSaid(0, "go"))
    text = f'{{"name": "heat", "arguments": {arguments}}}'
    return step(agent, state, ModelAnswered(0, 1, text, "end", Usage()))[1]


def test_a_call_whose_condition_holds_leaves():
    assert isinstance(play('{"day": "2026-11-30"}')[0], CallTool)


def test_a_call_whose_condition_does_not_hold_never_leaves_and_the_model_learns_why():
    [ask] = play('{"day": "2026-11-29"}')
    assert isinstance(ask, AskModel)
    assert "heat needs a working day" in ask.messages[-1].text


def test_a_condition_sees_typed_values_and_defaults():
    seen = {}
    look = replace(heat, pre=lambda **arguments: seen.update(arguments) or True)
    assert why_not_before(look, {"day": datetime.date(2026, 11, 30)}) == ""
    assert seen == {"day": datetime.date(2026, 11, 30), "hours": 2}


@pytest.mark.parametrize("wrong", [lambda **_: None, lambda **_: 1, lambda **_: 1 / 0, lambda: True])
def test_whatever_a_condition_does_wrong_counts_as_not_kept(wrong):
    assert why_not_before(replace(heat, pre=wrong), {})


def test_a_result_can_be_held_against_the_arguments():
    assert why_not_after(replace(heat, post=matches_hours), {"hours": 3}, 3) == ""
    assert why_not_after(replace(heat, post=matches_hours), {"hours": 3}, 4).endswith("ran 4 hours, not 3")


def test_a_result_that_breaks_its_condition_is_a_failure_that_says_that_the_tool_ran():
    answers = queue.Queue()
    driver = ToolDriver({"heat": heat})
    driver.submit(CallTool(1, "heat", '{"day":"2026-11-30","hours":4}', 60_000), answers.put)
    answer = answers.get(timeout=60)
    assert isinstance(answer, ToolFailed)
    assert answer.message == "heat did run, but its result breaks is_cold"


def test_a_condition_enters_the_digest():
    with_, without = (Agent(name="a", tools=(t,)) for t in (heat, replace(heat, pre=None)))
    assert with_.digest != without.digest
