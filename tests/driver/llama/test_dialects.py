"""A dialect with a trigger, on the real model: words are free until it, and only a call can follow."""

from __future__ import annotations

import dataclasses
import queue

import pytest

from edgeagent.codec.dialect import CallFrame, dialect_called
from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel
from edgeagent.core.events import ModelAnswered
from edgeagent.core.reading import Answer, Calls
from edgeagent.core.values import Message
from edgeagent.driver.llama.grammars import Grammars
from edgeagent.driver.llama.model import LlamaDriver
from edgeagent.grammar.calls import calls_of, grammar_of
from examples.greenhouse import agent as greenhouse

pytestmark = pytest.mark.model

HERMES = dialect_called("hermes")
AGENT = dataclasses.replace(greenhouse, dialect=HERMES)


@pytest.fixture(scope="module")
def driver(smollm2, grammar_engine):
    made = LlamaDriver.load(smollm2, AGENT, threads=1, engine=grammar_engine)
    yield made
    made.close()


def answer(driver, text, *, choice="either", tools=AGENT.tool_names, max_tokens=64):
    events = queue.Queue()
    driver.submit(AskModel(1, (Message("user", text),), tools, choice, max_tokens, 0, 7), events.put)
    event = events.get(timeout=240)
    assert isinstance(event, ModelAnswered), event
    return event


def test_a_call_in_the_familys_own_format_is_held_and_read(driver):
    event = answer(driver, "Open the north valve for 30 seconds.", choice="call")
    reading = HERMES.read(event.text)
    assert isinstance(reading, Calls), event.text
    (call,) = reading.calls
    AGENT.by_name[call.tool].parameters.decode(call.arguments)
    assert event.text.startswith('<tool_call>\n{"name": "') and event.text.endswith("}\n</tool_call>")


def test_where_both_may_come_the_model_decides_as_it_writes(driver):
    event = answer(driver, "Open the north valve for 30 seconds.")
    assert isinstance(HERMES.read(event.text), Calls | Answer), event.text


def test_after_the_trigger_nothing_but_a_call_can_follow(driver):
    grammar = driver.prepared.grammar(AGENT.tool_names, (), "allowed")
    engine = driver._engine
    engine.forget()
    begun = grammar.fresh()
    said = engine.tokenize("Let me do that. <tool_call>", special=False, bos=False)
    begun.consume(said[: begun.accepted(said, end=False)])
    assert begun.accepted(engine.tokenize("whatever", special=False, bos=False), end=False) == 0
    rest = engine.tokenize(
        '\n{"name": "send_line", "arguments": {"line": "x"}}\n</tool_call>', special=False, bos=False
    )
    assert begun.accepted(rest, end=True) == len(rest) + 1


@pytest.mark.parametrize("kind", ["llguidance", "gbnf"])
def test_a_trigger_that_is_one_special_token_is_written_as_that_token(engine, kind):
    (mark,) = engine.tokenize("<repo_name>", special=True, bos=False)
    frame = CallFrame('<repo_name>{"name": "', '", "arguments": ', "}", trigger="<repo_name>")
    calls = calls_of([greenhouse.by_name["send_line"]])
    text = grammar_of(calls, frame, answer="allowed", engine=kind, specials={"<repo_name>": mark})
    held = Grammars(engine, kind).compile(text).fresh()
    call = engine.tokenize('{"name": "send_line", "arguments": {"line": "x"}}', special=False, bos=False)
    words = engine.tokenize("Well. ", special=False, bos=False)
    assert held.accepted([*words, mark, *call], end=True) == len(words) + len(call) + 2
    assert held.accepted([mark, *words], end=False) == 1


@pytest.mark.deep
def test_a_drawn_text_of_words_and_calls_is_always_readable(smollm2):
    driver = LlamaDriver.load(smollm2, AGENT, threads=1, temperature=1.5)
    texts = [answer(driver, f"{n}. Call send_line.", max_tokens=24).text for n in range(3)]
    driver.close()
    assert all(isinstance(HERMES.read(text), Calls | Answer) for text in texts), texts


@pytest.mark.deep
def test_an_agent_without_tools_talks_in_any_dialect(smollm2):
    driver = LlamaDriver.load(smollm2, Agent(name="talker", dialect=HERMES), n_ctx=512, threads=1)
    event = answer(driver, "Say hello.", choice="answer", tools=(), max_tokens=5)
    driver.close()
    assert event.text
