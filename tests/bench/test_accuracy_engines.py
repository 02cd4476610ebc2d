"""The engines of the accuracy bench on the real model: they get the same prompt, and say the same kind of thing."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("llama_cpp")

from bench.accuracy.cases import Case, cases_of
from bench.accuracy.engines import CALL_TOKENS_MAX, ENGINES, Ours
from bench.accuracy.requests import Accepted, Asked, agent_of
from bench.accuracy.run import measure

pytestmark = [pytest.mark.model, pytest.mark.slow]


@pytest.fixture(scope="module")
def answers(smollm2):
    """What every engine answers to one request."""
    subjects = {name: engine(smollm2, threads=1) for name, engine in ENGINES.items()}
    results = measure(subjects, "greenhouse", cases_of("greenhouse", "report", 1))
    for subject in subjects.values():
        subject.close()
    return {name: result for name, (result,) in results.items()}


def test_every_engine_reads_the_same_prompt(answers):
    assert len({each.answered.prompt_tokens for each in answers.values()}) == 1


def test_the_driver_makes_the_call_that_is_wanted(answers):
    assert answers["ours"].right


def test_a_grammar_always_writes_a_call(answers):
    assert answers["llama-cpp-python"].called
    assert not answers["llama-cpp-python"].answered.failed


def test_what_is_written_freely_ends(answers):
    assert 0 < answers["unconstrained"].answered.tokens <= CALL_TOKENS_MAX


def test_a_case_ends_where_it_is_settled_that_there_is_no_call_and_a_loaded_agent_has_read_its_tools(smollm2):
    joke = dataclasses.replace(cases_of("greenhouse", "report", 1)[0], request="Tell me a joke about cats.", wanted=())
    evaluated = {}
    for warm in (False, True):
        subject = Ours(smollm2, threads=1, warm=warm)
        subject.begin(joke)
        event = subject.event(joke)
        subject.close()
        assert event.stop == "end" and event.text.startswith("None of my tools does that. I can: ")
        evaluated[warm] = event.usage.evaluated
    assert evaluated[True] < 40 < 200 < evaluated[False]


def test_every_case_costs_time(answers):
    assert all(each.seconds > 0 and each.cpu_seconds > 0 for each in answers.values())


BELL = agent_of(
    """
from edgeagent import Agent, tool

@tool(idempotent=False, effect="write")
def ring(times: int) -> str:
    '''Ring the bell some times.'''
    return f"rang {times} times"

agent = Agent(name="bell", system="You ring a bell.", tools=[ring])
""",
    "bell",
)


def test_an_agent_of_many_requests_stays_loaded_and_is_told_what_was_said_before(smollm2):
    before = (("Ring it twice", (Accepted("ring", {"times": 2}),)),)
    first = Asked("first", "direct", "en", "Ring the bell 3 times", "call", ((Accepted("ring", {"times": 3}),),))
    later = dataclasses.replace(first, before=before)
    subject, events = Ours(smollm2, threads=1), []
    for asked in (first, later):
        case = Case("bell", asked.text, BELL, checker="accepted", asked=asked)
        subject.begin(case)
        events.append(subject.event(case))
    subject.close()
    assert all(event.usage.evaluated < event.usage.prompt / 2 for event in events)
    assert events[1].usage.prompt > events[0].usage.prompt + 10
