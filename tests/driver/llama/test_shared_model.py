"""One loaded model for many sessions of several agents: each is answered as if it were alone."""

from __future__ import annotations

import dataclasses
import queue
import threading

import pytest

pytest.importorskip("llama_cpp")

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel
from edgeagent.core.events import ModelAnswered, ModelFailed
from edgeagent.core.values import Message
from edgeagent.driver.llama.fair import Job
from edgeagent.driver.llama.model import LlamaModel
from examples.greenhouse import agent as greenhouse

pytestmark = pytest.mark.model

GREENHOUSE = dataclasses.replace(greenhouse, dialect=Plain())
VALVES = dataclasses.replace(GREENHOUSE, name="valves", tools=[GREENHOUSE.by_name["set_valve"]])
TALKER = Agent(name="talker", system="You tell short stories.", dialect=Plain())
SAID = {
    "greenhouse": ("Tell the operator that the boiler is cold.", "Open the north valve."),
    "valves": ("The plants are thirsty.", "Do not open it."),
    "talker": ("Tell me a story.", "Who are you?"),
}
SESSIONS = ((GREENHOUSE, 1), (VALVES, 1), (VALVES, 2), (TALKER, 1), (TALKER, 2))


def keep_busy(model):
    """Have the model's thread wait for what is returned to be set."""
    began, until = threading.Event(), threading.Event()
    model.ask(Job(lambda: (began.set(), until.wait(60)), session="busy"))
    assert began.wait(60)
    return until


class Talk:
    """A session as a runtime keeps it: what was said, and what the model wrote."""

    def __init__(self, model, agent, number):
        self.agent, self.seed, self.messages = agent, number, ()
        self.driver = model.driver(agent, session=f"{agent.name} {number}", temperature=0.7)
        self.told = []

    def ask(self, text):
        self.messages += (Message("user", text),)
        ids, tools = len(self.messages), self.agent.tool_names
        return AskModel(ids, self.messages, tools, "either" if tools else "answer", 32, 0, self.seed)

    def take(self, event):
        assert isinstance(event, ModelAnswered), event
        self.messages += (Message("assistant", event.text, event.token_ids),)
        self.told.append((event.text, event.scores))

    def say(self, text):
        self.take(self.driver.answer(self.ask(text)))


@pytest.fixture(scope="module")
def alone(smollm2):
    """What each session of each agent is told where nobody else is served."""
    told = {}
    for agent, number in SESSIONS:
        model = LlamaModel.load(smollm2, threads=1)
        talk = Talk(model, agent, number)
        for text in SAID[agent.name]:
            talk.say(text)
        told[agent.name, number] = talk.told
        model.close()
    return told


@pytest.fixture
def model(smollm2):
    made = LlamaModel.load(smollm2, threads=1)
    yield made
    made.close()


@pytest.mark.deep
def test_sessions_of_three_agents_are_answered_in_turns_as_if_each_were_alone(model, alone):
    talks = {(agent.name, number): Talk(model, agent, number) for agent, number in SESSIONS}
    for turn in range(2):
        for (name, _), talk in talks.items():
            talk.say(SAID[name][turn])
    assert {key: talk.told for key, talk in talks.items()} == alone
    assert model.memories.size_bytes < 128 << 20


@pytest.mark.deep
def test_a_session_whose_memory_had_to_go_is_answered_too_and_memory_stays_bounded(smollm2):
    loaded = LlamaModel.load(smollm2, threads=1)
    model = LlamaModel(loaded.engine, loaded.template, loaded.grammars, memories_bytes_max=20 << 20)
    talks = [Talk(model, agent, number) for number in (1, 2) for agent in (VALVES, TALKER)]
    for turn in range(2):
        for talk in talks:
            talk.say(SAID[talk.agent.name][turn])
            assert model.memories.size_bytes <= 20 << 20
    assert not all(model.holds(talk.driver) for talk in talks)
    model.close()


def test_sessions_that_ask_at_once_are_all_answered_and_those_that_wait_are_told(model):
    places, events = [], queue.Queue()
    drivers = [
        model.driver(TALKER, session=str(number), on_waiting=lambda place, n=number: places.append((n, place)))
        for number in range(4)
    ]
    for driver in drivers:
        driver.submit(AskModel(1, (Message("user", "Hello."),), (), "answer", 4, 0, 1), events.put)
    answered = [events.get(timeout=120) for _ in drivers]
    assert all(isinstance(event, ModelAnswered) for event in answered)
    last = [place for number, place in places if number == 3]
    assert last == sorted(last, reverse=True) and last[-1] == 0 and last[0] >= 1


def test_an_ask_beyond_what_may_wait_fails_at_once_and_says_when_to_come_again(smollm2):
    loaded = LlamaModel.load(smollm2, threads=1)
    model = LlamaModel(loaded.engine, loaded.template, loaded.grammars, waiting_max=1)
    driver, events, busy = model.driver(TALKER), queue.Queue(), keep_busy(model)
    for number in (1, 2):
        driver.submit(AskModel(number, (Message("user", "Hello."),), (), "answer", 1, 0, 1), events.put)
    refused = events.get(timeout=120)
    busy.set()
    assert (type(refused), refused.effect_id, refused.reason) == (ModelFailed, 2, "unavailable")
    assert "try again in about" in refused.message
    assert events.get(timeout=60).effect_id == 1
    model.close()


def test_an_ask_that_is_cancelled_while_it_waits_is_answered_at_once(model):
    driver, events, busy = model.driver(TALKER), queue.Queue(), keep_busy(model)
    driver.submit(AskModel(1, (Message("user", "Hello."),), (), "answer", 1, 0, 1), events.put)
    driver.cancel(1)
    event = events.get(timeout=120)
    busy.set()
    assert (event.effect_id, event.stop) == (1, "cancelled")


def test_a_session_whose_inbox_raises_does_not_end_the_others(model, capfd):
    def raises(event):
        raise RuntimeError("no inbox")

    driver, events = model.driver(TALKER), queue.Queue()
    for post in (raises, events.put):
        driver.submit(AskModel(1, (Message("user", "Hello."),), (), "answer", 1, 0, 1), post)
    assert events.get(timeout=60).effect_id == 1
    assert "no inbox" in capfd.readouterr().err


def test_agents_that_say_the_same_are_prepared_once_and_others_are_not(model):
    one, same = model.driver(TALKER), model.driver(dataclasses.replace(TALKER))
    other = model.driver(dataclasses.replace(TALKER, system="You tell long stories."))
    assert one.prepared is same.prepared is not other.prepared


def test_a_session_that_closes_leaves_the_model_to_the_others(model):
    first, second = Talk(model, TALKER, 1), Talk(model, TALKER, 2)
    first.say("Tell me a story.")
    first.driver.close()
    second.say("Tell me a story.")
    assert second.told


def test_after_the_model_was_closed_an_ask_fails_and_says_so(smollm2):
    model = LlamaModel.load(smollm2, threads=1)
    driver, events = model.driver(TALKER), queue.Queue()
    model.close()
    driver.submit(AskModel(1, (Message("user", "Hello."),), (), "answer", 1, 0, 1), events.put)
    event = events.get(timeout=120)
    assert (event.reason, "was closed" in event.message) == ("unavailable", True)


@pytest.mark.deep
def test_what_sessions_left_on_the_disk_is_found_by_each_of_them(smollm2, tmp_path):
    talking = dataclasses.replace(VALVES, prose=True)  # Words of the model's own are more than the agent's prefix.

    def kept(number):
        driver = model.driver(talking, session=number)
        driver.keep_warm(tmp_path / number / "kv", tmp_path / "kv", bytes(32))
        return driver

    told = {}
    for _ in range(2):
        model = LlamaModel.load(smollm2, threads=1)
        for number, driver in {number: kept(number) for number in "12"}.items():
            told.setdefault(number, []).append((driver.wake(), driver.answer(Talk(model, talking, 7).ask("Hello."))))
            driver.close()
        model.close()
    for before, after in told.values():
        assert before[0] < after[0] and before[1].scores == after[1].scores
