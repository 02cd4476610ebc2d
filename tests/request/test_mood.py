"""Mood of a request: orders, questions, and what denies."""

from __future__ import annotations

import pytest

from edgeagent.request.mood import agrees, is_qualified, is_question, points_back, refuses


@pytest.mark.parametrize(
    "said",
    [
        "What is channel 1 drawing?",
        "what's the voltage",
        "Is the valve open",
        "How about turning on the light?",
        "I'd like to know whether the pump runs",
        "Do you know how warm it is",
        "Can you tell me what the temperature is?",
        "The door is open, isn't it?",
        "It is cold. Is the heater on?",
        "Who is on the network right now?",
    ],
)
def test_what_wants_to_know_something_is_a_question(said):
    assert is_question(said)


@pytest.mark.parametrize(
    "said",
    [
        "Can you open the valve?",
        "could you please set it to 4",
        "Open the valve, will you?",
        "Would you mind closing the door?",
        "Open the valve, please?",
        "Do it now",
        "Have the pump run for 5 minutes",
        "Turn on what is in the kitchen",
    ],
)
def test_an_order_is_no_question_however_polite(said):
    assert not is_question(said)


@pytest.mark.parametrize("said", ["all except A", "hold on", "open it unless it rains", "start B but not A", "Wait!"])
def test_what_denies_excepts_or_makes_conditional_is_seen_anywhere(said):
    assert is_qualified(said)


@pytest.mark.parametrize(
    "said", ["Don't forget to close the valve", "Stop the pump", "I can't wait: open it", "Why don't you open the door"]
)
def test_what_only_sounds_like_it_is_not(said):
    assert not is_qualified(said)


def test_an_answer_is_a_yes_or_a_no_only_if_it_is_nothing_else():
    assert all(map(agrees, ("yes", "Yes, please.", "ok", "go ahead", "y")))
    assert all(map(refuses, ("no", "No, thanks", "don't do that", "never mind")))
    assert not any(agrees(said) or refuses(said) for said in ("yes but later", "no, the other", "", "stop", "maybe"))


def test_it_behind_the_verb_was_named_before():
    assert points_back("please block it now") and points_back("ok let it back online")
    assert not points_back("block the tablet, it is late")
