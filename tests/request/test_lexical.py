"""Which tool do the words of a request speak of?"""

from __future__ import annotations

import dataclasses

import pytest

from edgeagent.core.agent import tool
from edgeagent.request.lexical import Lexicon, purpose, stem, stems
from examples.gateway import agent as gateway
from examples.greenhouse import agent as greenhouse

REQUESTS = [
    ("Open the north valve for 30 seconds.", "set_valve"),
    ("Set the temperature of channel 2 to 18 degrees.", "set_setpoint"),
    ("Is the soil too dry?", "read_sensor"),
    ("Tell the operator that the boiler is cold.", "notify"),
    ("Ask the climate controller for its status.", "send_line"),
]


def best(agent, request, names=None):
    scores = Lexicon.of(agent.tools).scores(request, names or agent.tool_names)
    return max(scores, key=lambda scored: scored[1])[0]


@pytest.mark.parametrize(("request_text", "name"), REQUESTS)
def test_the_tool_that_is_spoken_of_scores_best(request_text, name):
    assert best(greenhouse, request_text) == name


def test_it_holds_for_another_agent():
    assert best(gateway, "How much free space is on /var?") == "disk"
    assert best(gateway, "Show the last 3 lines of the kernel log.") == "log_tail"


def test_only_the_tools_of_the_ask_are_scored():
    scores = Lexicon.of(greenhouse.tools).scores("Open the north valve.", ("notify", "send_line"))
    assert [name for name, _ in scores] == ["notify", "send_line"]


def test_a_request_that_shares_no_word_speaks_of_none():
    assert {score for _, score in Lexicon.of(greenhouse.tools).scores("Who wrote Hamlet?", greenhouse.tool_names)} == {
        0.0
    }


def test_the_order_of_the_tools_does_not_matter():
    names = greenhouse.tool_names
    one = Lexicon.of(greenhouse.tools).scores("Send a message.", names)
    other = Lexicon.of(greenhouse.tools[::-1]).scores("Send a message.", names)
    assert dict(one) == pytest.approx(dict(other))


def test_an_authors_examples_lend_a_tool_their_words():
    @tool(idempotent=True, examples=["Is it stuffy in here?"])
    def co2() -> int:
        """Measure the gas."""
        return 0

    @tool(idempotent=True)
    def light() -> int:
        """Measure the brightness."""
        return 0

    (_, gas), (_, brightness) = Lexicon.of([co2, light]).scores("How stuffy is it?", ("co2", "light"))
    assert gas > brightness == 0


def test_a_shorter_form_of_a_word_is_half_a_match():
    scores = dict(Lexicon.of(greenhouse.tools).scores("temperature", greenhouse.tool_names))
    assert 0 < scores["read_sensor"] < scores["set_setpoint"]


@pytest.mark.parametrize(
    ("word", "stemmed"),
    [
        ("valves", "valv"),
        ("valve", "valv"),
        ("opened", "open"),
        ("heating", "heat"),
        ("batteries", "battery"),
        ("running", "run"),
        ("is", "is"),
        ("gas", "gas"),
        ("co2", "co2"),
        ("status", "status"),
        ("press", "press"),
    ],
)
def test_an_english_ending_is_stripped(word, stemmed):
    assert stem(word) == stemmed


def test_names_are_cut_into_their_words_and_numbers_left_out():
    assert stems("setValve set_setpoint 30 the CO2") == ["set", "valv", "set", "setpoint", "co2"]


def test_an_agent_of_no_tools_has_no_scores():
    assert Lexicon.of([]).scores("anything", ()) == ()


@pytest.mark.parametrize(
    ("description", "kept"),
    [
        ("Log a meal. Use log_expense for money spent on food.", "Log a meal."),
        ("Set the volume. This never pauses or skips anything.", "Set the volume."),
        ("Play music. Use the playback tools for pausing.", "Play music."),
        ("Send a file_path to the printer.", "Send a file_path to the printer."),  # its own argument
        ("Log in. Share a file with others.", "Log in. Share a file with others."),
        ("Never use this.", "Never use this."),  # nothing else is said
    ],
)
def test_what_other_tools_are_for_says_nothing_of_this_one(description, kept):
    @tool(idempotent=True)
    def act(file_path: str) -> None:
        """Act."""

    assert purpose(dataclasses.replace(act, description=description)) == kept
