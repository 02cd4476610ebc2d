"""What is made of orders: questions and denials about them, and numbers that no tool takes."""

from __future__ import annotations

import pytest

pytest.importorskip("llama_cpp")

from bench.accuracy.cases import cases_of, is_set
from bench.accuracy.requests import Accepted, Asked, agent_of
from bench.accuracy.turned import turned
from edgeagent.errors import EdgeAgentError

AGENT = agent_of(
    '''
from typing import Annotated
from msgspec import Meta
from edgeagent import Agent, tool

@tool(idempotent=True, effect="write")
def heat(celsius: Annotated[float, Meta(ge=5, le=60)], minutes: Annotated[int, Meta(ge=1, le=90)] | None = None) -> str:
    """Heat the hut."""

@tool(idempotent=True, effect="read")
def measure(sensor: int) -> str:
    """Measure."""

agent = Agent(name="hut", system="", tools=[heat, measure])
''',
    "hut",
)


def order(text, lang="en", category="direct", **arguments):
    call = Accepted("heat", arguments or {"celsius": 20})
    return Asked("one", category, lang, text, "call", ((call,),))


def made(turn, *orders):
    return [asked.text for _, asked in turned(turn, [(AGENT, orders)])]


def test_an_order_becomes_questions_about_it():
    assert made("questions", order("Heat it to 20 degrees!")) == [
        "How do I heat it to 20 degrees?",
        "When did you last heat it to 20 degrees?",
        "Did somebody heat it to 20 degrees yesterday?",
        "Why would I heat it to 20 degrees?",
        'What happens when I say "Heat it to 20 degrees"?',
    ]


def test_an_order_becomes_denials_of_it():
    assert "Whatever you do, do not heat it." in made("denials", order("Heat it."))
    assert made("denials", order("Heiz ein", "de")) == [
        "Tu das auf keinen Fall: Heiz ein.",
        "Heiz ein? Nein, lieber nicht.",
    ]


def test_what_is_no_imperative_is_only_quoted():
    assert made("questions", order("20 degrees, please")) == ['What happens when I say "20 degrees, please"?']


def test_two_orders_are_not_put_behind_one_negation():
    assert made("denials", order("Heat it and go", category="two")) == ["Heat it and go? No, better not."]


def test_numbers_that_the_argument_takes_not_stand_where_one_stood():
    told = made("bounds", order("Heat to 20 for 30 minutes", celsius=20, minutes=30))
    assert "Heat to 600 for 30 minutes" in told
    assert "Heat to 20 for 99 minutes" in told
    assert "Heat to -5 for 30 minutes" in told
    for text in told:
        _, _, celsius, _, minutes, _ = text.split()
        with pytest.raises(EdgeAgentError):
            AGENT.by_name["heat"].parameters.decode({"celsius": float(celsius), "minutes": int(minutes)})


@pytest.mark.parametrize("text", ["Heat to twenty", "Heat 20, I mean 20", "Heat at 20:30", "Heat to 20.5", "Heat b20"])
def test_a_number_that_does_not_stand_alone_is_left_alone(text):
    assert made("bounds", order(text)) == []


def test_only_orders_that_change_something_are_turned():
    read = Asked("one", "direct", "en", "Measure 3", "call", ((Accepted("measure", {"sensor": 3}),),))
    asks = order("Could you heat it?")
    denied = Asked("two", "negation", "en", "Heat it not", "none", ((),))
    assert made("questions", read, asks, denied) == []


@pytest.mark.parametrize(("turn", "least"), [("questions", 200), ("denials", 200), ("bounds", 90), ("talk", 120)])
def test_there_are_enough_of_each_and_none_wants_a_call(turn, least):
    assert is_set(f"own:{turn}")
    cases = cases_of(f"own:{turn}", "report")
    assert len(cases) >= least
    assert {case.asked.want for case in cases} == {"none"}
    assert len({case.id for case in cases}) == len(cases)
