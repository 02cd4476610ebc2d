"""What is to be done about a request, by words alone and with a judge that is written down."""

from __future__ import annotations

from typing import Literal

from edgeagent.core.agent import tool
from edgeagent.core.events import CALL_ODDS, CALL_ODDS_NEEDED
from edgeagent.request.language import ENGLISH
from edgeagent.request.plan import plan
from edgeagent.request.tools import WRITER, Tools


@tool(idempotent=True)
def set_valve(valve: Literal["north", "south"], open: bool, seconds: int = 10) -> str:
    """Open or close a valve of the greenhouse."""
    return ""


@tool(idempotent=True, effect="read")
def read_soil(bed: Literal["roses", "herbs"]) -> str:
    """Measure how wet the soil of a bed is."""
    return ""


@tool(idempotent=True)
def send_note(text: str) -> str:
    """Send a note to the gardener."""
    return ""


TOOLS = Tools.of([set_valve, read_soil, send_note])


class Scripted:
    """A judge with the answers that it was given; it keeps what it was asked."""

    def __init__(self, likeliest="", value=""):
        self.likeliest, self.value, self.asked = likeliest, value, []

    def request_behind(self, request, texts):
        self.asked.append(request)
        return {name: -10.0 if name == self.likeliest else -30.0 for name in texts}

    def values_of(self, tool, argument, values):
        self.asked.append(argument)
        return [-1.0 if each == self.value else -40.0 for each in values]


def test_without_a_judge_the_words_alone_plan_the_call():
    planned = plan("Open the north valve for 30 seconds.", TOOLS)
    assert [call.tools for call in planned.calls] == [("set_valve",)]
    assert dict(planned.why) == {"set_valve.valve": "named", "set_valve.open": "said so", "set_valve.seconds": "number"}


def test_only_tools_that_may_be_called_are_planned():
    planned = plan("Open the north valve.", TOOLS.only(["read_soil", "send_note"]), is_open=False)
    assert [name for name, _ in planned.scores] == ["read_soil", "send_note"]
    assert set(planned.calls[0].tools) <= {"read_soil", "send_note"}


def test_where_words_speak_of_no_tool_the_judge_does():
    planned = plan("The roses look thirsty.", TOOLS, Scripted("read_soil"), is_open=False)
    assert planned.calls[0].tools == ("read_soil",)


def test_a_text_that_words_leave_open_is_what_the_judge_finds_likeliest():
    request = "Send a note about the broken pump in the cellar"
    judge = Scripted("send_note", "broken pump in the cellar")
    first = plan(request, TOOLS, judge, needed=-99).calls[0].evidence.narrowed
    other = plan(request, TOOLS, Scripted("send_note", "broken pump"), needed=-99).calls[0].evidence.narrowed
    assert "text" in judge.asked
    assert first != other and "broken pump in the cellar" in first[0][2]


def test_a_judge_that_has_no_time_says_nothing_either_way():
    class Busy:
        def request_behind(self, request, texts):
            return None

        def values_of(self, tool, argument, values):
            return None

    request = "Send a note about the broken pump in the cellar"
    assert plan(request, TOOLS, Busy(), needed=-99) == plan(request, TOOLS, needed=-99)


def test_what_is_forbidden_and_what_no_tool_does_is_said():
    assert plan("Don't open the north valve.", TOOLS).text == ENGLISH.sentences.nothing_done
    assert plan("Delete the soil of the roses", TOOLS.only(["read_soil"])).text == ENGLISH.sentences.no_tool


def test_a_missing_value_is_asked_for():
    assert plan("Measure the soil", TOOLS, needed=-99).text == "Which bed: roses or herbs?"


def test_two_acts_in_a_sentence_are_two_calls_and_the_least_clear_counts():
    planned = plan("Open the north valve and measure the soil of the herbs.", TOOLS, needed=-99)
    assert [call.tools for call in planned.calls] == [("set_valve",), ("read_soil",)]
    odds = [dict(call.scores)[CALL_ODDS] for call in planned.calls]
    assert dict(planned.scores)[CALL_ODDS] == min(odds)


def test_under_the_odds_that_are_needed_nothing_is_planned():
    planned = plan("Open the north valve.", TOOLS, needed=99.0)
    assert planned.calls == () and planned.text == "" and dict(planned.scores)[CALL_ODDS_NEEDED] == 99


def test_no_tool_can_have_the_name_of_the_text_that_says_nothing():
    assert WRITER in TOOLS.texts(["set_valve"]) and "(" in WRITER
