"""What a request wants done, and which tools cannot serve it."""

from __future__ import annotations

import dataclasses
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent import tool
from edgeagent.request.verbs import act_of, acts_of, excludes, options_for


@tool(idempotent=True)
def create_reminder(message: str) -> None:
    """Create a reminder."""


@tool(idempotent=True)
def dismiss_alert(sender: str) -> None:
    """Dismiss an alert. Never use this to create one."""


@tool(idempotent=True)
def pump(action: Literal["start", "stop"]) -> None:
    """Drive the pump."""


@tool(idempotent=True)
def weather(city: str) -> None:
    """Tomorrow's weather."""


@pytest.mark.parametrize(
    ("request_text", "act"),
    [
        ("Delete the reminder about the oil.", "remove"),
        ("Could you please clear the alert?", "remove"),
        ("I want to add a reminder.", "make"),
        ("check the oven", "read"),
        ("Check in at the hotel.", None),
        ("Start brewing coffee.", None),  # it is about brewing
        ("Get me a taxi.", None),
        ("How dry is the soil?", None),
        ("deleteReminder 3", "remove"),
        ("", None),
    ],
)
def test_the_act_is_that_of_the_first_word_that_says_something(request_text, act):
    assert act_of(request_text) == act


@given(
    st.text(max_size=60) | st.lists(st.sampled_from(["set", "Valve", "check", "in", "_", "Übung", "3"])).map("".join)
)
def test_any_text_has_an_act_or_none(request_text):
    assert act_of(request_text) in (None, "read", "make", "change", "remove", "start", "stop")


def test_a_tool_does_what_its_name_its_first_word_and_its_options_say():
    assert acts_of(create_reminder) == {"make"}
    assert acts_of(dismiss_alert) == {"remove"}
    assert acts_of(pump) == {"start", "stop"}
    assert acts_of(weather) == frozenset()


@pytest.mark.parametrize(
    ("request_text", "served", "not_served"),
    [
        ("Delete the reminder.", dismiss_alert, create_reminder),
        ("Add a reminder.", create_reminder, dismiss_alert),
        ("Show my reminders.", weather, create_reminder),
        ("Stop the pump.", pump, create_reminder),
    ],
)
def test_a_tool_that_only_does_the_opposite_is_excluded(request_text, served, not_served):
    act = act_of(request_text)
    assert (excludes(act, acts_of(served)), excludes(act, acts_of(not_served))) == (False, True)


def test_an_authors_example_says_that_a_tool_serves_an_act():
    served = dataclasses.replace(create_reminder, examples=("Show me how to call Bo at six.",))
    assert not excludes(act_of("Show the number of Bo at noon."), acts_of(served))


@pytest.mark.parametrize("known", [create_reminder, dismiss_alert, pump, weather])
def test_a_request_without_a_certain_act_excludes_nothing(known):
    assert not excludes(act_of("The reminder about the oil, again?"), acts_of(known))


def test_an_option_that_is_a_verb_of_the_act_is_meant():
    options = ["add", "delete", "running"]
    assert options_for("remove", options) == ["delete"]
    assert options_for("start", options) == []  # running is a sport as well
    assert options_for(None, options) == []
