"""What is counted of decisions, and when a call is accepted: each rule on one row of our own making."""

from __future__ import annotations

import pytest

pytest.importorskip("llama_cpp")

from bench.accuracy.accepting import accepted, opposite
from bench.accuracy.cases import Case
from bench.accuracy.conversation import asks, messages_of, with_yes
from bench.accuracy.decisions import decisions
from bench.accuracy.report import categories_table, decisions_table
from bench.accuracy.requests import Accepted, Asked, agent_of
from bench.accuracy.tally import Answered, judged
from edgeagent.core.values import ToolCall

AGENT = agent_of(
    '''
import datetime as dt
from typing import Annotated, Literal
from msgspec import Meta
from edgeagent import Agent, tool

@tool(idempotent=True, effect="write")
def open_gate(gate: Literal["east", "west"], wait: dt.timedelta = dt.timedelta(0), note: str | None = None) -> str:
    """Open a gate."""
    return f"{gate} open"

@tool(idempotent=True, effect="write")
def shut_gate(gate: Literal["east", "west"]) -> str:
    """Shut a gate."""
    return f"{gate} shut"

@tool(idempotent=True, effect="write")
def heat(celsius: Annotated[float, Meta(ge=-20, le=60)], on: bool = True) -> str:
    """Heat the hut."""
    return "heating"

@tool(idempotent=False, effect="write")
def note(of: str, on: bool) -> str:
    """Note what is on."""
    return "noted"

@tool(idempotent=True, effect="read")
def state() -> str:
    """Tell which gates are open."""
    return "all shut"

agent = Agent(name="gates", system="", tools=[open_gate, shut_gate, heat, note, state])
''',
    "gates",
)

OPEN = Accepted("open_gate", {"gate": "east"})
SHUT = Accepted("shut_gate", {"gate": "east"})


def asked(*ways, category="direct", want="call", before=()):
    opposites = (frozenset(("open_gate", "shut_gate")), frozenset(("east", "west")))
    return Asked("one", category, "de", "Öffne das Osttor", want, ways or ((),), before, opposites)


def case(*ways, **more):
    told = asked(*ways, **more)
    return Case(told.id, told.text, AGENT, checker="accepted", group=told.category, asked=told)


def call(name, **arguments):
    return ToolCall(name, arguments)


EAST, WEST, SHUT_EAST = call("open_gate", gate="east"), call("open_gate", gate="west"), call("shut_gate", gate="east")


@pytest.mark.parametrize(
    ("wanted", "arguments", "right"),
    [
        ({"gate": "east"}, {"gate": "east"}, True),
        ({"gate": "east"}, {"gate": "east", "wait": "PT0S", "note": None}, True),  # the defaults
        ({"gate": "east"}, {"gate": "east", "wait": "PT5S"}, False),
        ({"gate": "east"}, {"gate": "east", "note": "hm"}, False),
        ({"gate": "east", "wait": "PT1M"}, {"gate": "east", "wait": "PT60S"}, True),
        ({"gate": "east", "wait": "PT1M"}, {"gate": "east"}, False),
        ({"gate": "east", "note": {"has": ["cold", "wet"]}}, {"gate": "east", "note": "It is WET and cold"}, True),
        ({"gate": "east", "note": {"has": ["cold", "wet"]}}, {"gate": "east", "note": "cold"}, False),
        ({"gate": "east", "note": {"any": ["cold"]}}, {"gate": "east", "note": "Cold."}, True),
        ({"gate": "east", "note": {"any": ["cold"]}}, {"gate": "east"}, False),
        ({"gate": "east", "note": {"opt": "*"}}, {"gate": "east", "note": "hm"}, True),
        ({"gate": "east", "note": {"opt": "cold"}}, {"gate": "east"}, True),
        ({"gate": "east", "note": {"opt": "cold"}}, {"gate": "east", "note": "hm"}, False),
        ({"gate": "east"}, {"gate": "north"}, False),
        ({"gate": "east"}, {}, False),
    ],
)
def test_an_argument_is_told_by_its_value_or_by_matchers(wanted, arguments, right):
    assert accepted(AGENT, asked((Accepted("open_gate", wanted),)), [ToolCall("open_gate", arguments)]) is right


@pytest.mark.parametrize(
    ("wanted", "celsius", "right"),
    [(20, 20.0, True), (21.11, 21.1, False), (20, 20.1, False), ({"ge": 4, "le": 6}, 5, True), ({"ge": 4}, 3, False)],
)
def test_a_number_is_the_very_one_or_lies_between_bounds(wanted, celsius, right):
    assert accepted(AGENT, asked((Accepted("heat", {"celsius": wanted}),)), [call("heat", celsius=celsius)]) is right


def test_a_truth_value_is_no_number():
    assert not accepted(AGENT, asked((Accepted("heat", {"celsius": 1, "on": True}),)), [call("heat", celsius=1, on=1)])


def test_several_calls_are_wanted_each_once_in_any_order():
    both = asked((OPEN, SHUT))
    assert accepted(AGENT, both, [SHUT_EAST, EAST])
    assert not accepted(AGENT, both, [EAST])
    assert not accepted(AGENT, both, [EAST, EAST])


def test_any_of_several_ways_is_right():
    either = asked((OPEN,), ())
    assert accepted(AGENT, either, [EAST])
    assert accepted(AGENT, either, [])
    assert not accepted(AGENT, either, [WEST])


@pytest.mark.parametrize(
    ("way", "made", "turned"),
    [
        ((OPEN,), SHUT_EAST, True),
        ((OPEN,), WEST, True),
        ((OPEN,), EAST, False),
        ((OPEN,), call("state"), False),
        ((Accepted("heat", {"celsius": 5}),), call("heat", celsius=-5), True),
        ((Accepted("heat", {"celsius": 5, "on": True}),), call("heat", celsius=5, on=False), True),
        ((Accepted("heat", {"celsius": 5}),), call("heat", celsius=6), False),
        ((OPEN, SHUT), SHUT_EAST, False),  # half of it is not its opposite
        ((Accepted("note", {"on": True, "of": "oak"}),), call("note", on=False, of="elm"), False),  # another one's
    ],
)
def test_the_opposite_is_the_other_tool_option_truth_value_or_sign(way, made, turned):
    assert opposite(AGENT, asked(way), [made]) is turned


def made(*calls, **more):
    return Answered(calls, "", **more)


def told(*results):
    return {name: counted(figure) for name, figure in decisions(results)["decisions"].items()}


def counted(figure):
    return (figure["count"], figure["of"]) if isinstance(figure, dict) else figure


def test_acts_and_wrong_acts_are_counted_over_all_rows():
    results = told(judged(case((OPEN,)), made(EAST)), judged(case((), want="none"), made(EAST)))
    assert results["right call"] == (1, 1)
    assert results["wrong acts, of acts"] == (1, 2)


def test_a_wrong_read_is_no_wrong_write():
    results = told(judged(case((OPEN,)), made(call("state"))), judged(case((OPEN,)), made(WEST)))
    assert (results["wrong acts, of acts"], results["wrong writes, of acts"]) == ((2, 2), (1, 2))


def test_opposites_are_counted_among_acts():
    assert told(judged(case((OPEN,)), made(SHUT_EAST)), judged(case((OPEN,)), made(EAST)))["opposites, of acts"] == (
        1,
        2,
    )


def test_a_question_where_a_call_was_wanted_is_told_with_what_a_yes_leads_to():
    right, wrong = Answered((), "Shall I?", proposed=(EAST,)), Answered((), "Shall I?", proposed=(WEST,))
    results = told(judged(case((OPEN,)), right), judged(case((OPEN,)), wrong), judged(case((OPEN,)), made(EAST)))
    assert results["asked where a call was wanted"] == (2, 3)
    assert results["of these a yes leads to the right call"] == (1, 2)


def test_words_that_ask_nothing_decline():
    results = told(judged(case((OPEN,)), Answered((), "I cannot do that.")))
    assert results["declined where a call was wanted"] == (1, 1)


@pytest.mark.parametrize("category", ["negation", "prohibition", "except"])
def test_a_wrong_act_on_a_negation_is_told(category):
    results = told(judged(case((), category=category, want="none"), made(EAST)), judged(case((OPEN,)), made(WEST)))
    assert results["wrong acts on negations"] == (1, 1)


@pytest.mark.parametrize("category", ["smalltalk", "unrelated"])
def test_any_act_on_talk_is_told(category):
    results = told(judged(case((), category=category, want="none"), made(call("state"))))
    assert results["acts on talk"] == (1, 1)


@pytest.mark.parametrize("category", ["question", "nowrite"])
def test_a_question_may_lead_to_a_read_but_not_to_a_write(category):
    read = case((Accepted("state", {}),), category=category)
    assert told(judged(read, made(call("state"))), judged(read, made(EAST)))["wrong writes on questions"] == (1, 2)


def test_any_act_on_a_value_out_of_bounds_is_told():
    out = case((), category="bounds", want="none")
    results = told(judged(out, made(call("heat", celsius=60))), judged(out, Answered((), "At most 60.")))
    assert results["acts on a value out of bounds"] == (1, 2)


def test_a_missing_value_is_asked_for_by_a_question():
    gap = case((), category="missing", want="ask")
    results = told(judged(gap, Answered((), "Which gate: east or west?")), judged(gap, Answered((), "Done.")))
    assert results["missing value asked for"] == (1, 2)


def test_confidence_is_judged_by_how_often_a_right_act_is_surer_than_a_wrong_one():
    rows = [(EAST, 0.9), (EAST, 0.5), (WEST, 0.5), (WEST, 0.2)]
    results = told(*(judged(case((OPEN,)), made(c, confidence=(sure,))) for c, sure in rows))
    assert results["AUROC of confidence"] == 0.875
    assert told(judged(case((OPEN,)), made(EAST)))["AUROC of confidence"] is None


def test_the_median_second_is_told():
    results = told(*(judged(case((OPEN,)), made(EAST), seconds) for seconds in (0.1, 0.2, 5.0)))
    assert results["seconds, median"] == 0.2


@pytest.mark.parametrize("text", ["Which gate?", "Shall I open it? [y/N]", "¿Cuál?", "(Really?)"])
def test_a_question_ends_as_one(text):
    assert asks(text)


@pytest.mark.parametrize("text", ["No.", "You asked: why? I cannot say.", "", "[1]"])
def test_words_that_end_otherwise_are_none(text):
    assert not asks(text)


def test_earlier_calls_are_told_with_what_their_tools_return():
    spoken = messages_of(case((SHUT,), before=(("Öffne Ost", (OPEN,)),)))
    assert [(each.role, each.text) for each in spoken] == [
        ("user", "Öffne Ost"),
        ("assistant", '{"name": "open_gate", "arguments": {"gate": "east"}}'),
        ("tool", '"east open"'),
        ("assistant", "east open"),
        ("user", "Öffne das Osttor"),
    ]


def test_yes_is_said_in_the_language_of_the_request():
    assert [each.text for each in with_yes(case((OPEN,)), "Soll ich?")][-2:] == ["Soll ich?", "Ja."]


def test_the_tables_name_measures_and_categories():
    results = [judged(case((OPEN,)), made(EAST)), judged(case((), category="bounds", want="none"), made(EAST))]
    told = {"set": "own:de", "engine": "ours"} | decisions(results)
    assert "| right call " in decisions_table([told])
    assert "1/1 100 %" in decisions_table([told])
    assert [line.split("|")[1:4] for line in categories_table([told]).splitlines()[2:]] == [
        [" bounds   ", " ours   ", " 1    "],
        [" direct   ", " ours   ", " 1    "],
    ]
