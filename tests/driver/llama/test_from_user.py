"""Arguments that must be the user's own words, written by the real model and checked by step."""

from __future__ import annotations

import json
import queue
from typing import Annotated

import pytest
from msgspec import Meta
from msgspec.structs import replace

from edgeagent import Agent, FromUser, tool
from edgeagent.codec.dialect import Plain
from edgeagent.core.effects import CallTool
from edgeagent.core.events import ModelAnswered, SessionStarted, UserSaid
from edgeagent.core.state import State
from edgeagent.core.step import step
from edgeagent.driver.llama.model import LlamaDriver

pytestmark = pytest.mark.model


@tool(idempotent=False)
def pay(to: Annotated[str, FromUser()], amount: Annotated[int, Meta(ge=1, le=900), FromUser()]) -> str:
    """Pay somebody."""
    return "paid"


AGENT = Agent(name="bank", system="You pay bills.", tools=[pay], dialect=Plain())


@pytest.fixture(scope="module")
def driver(smollm2, grammar_engine):
    made = LlamaDriver.load(smollm2, AGENT, threads=1, n_ctx=512, engine=grammar_engine)
    yield made
    made.close()


def answered(driver, ask):
    events = queue.Queue()
    driver.submit(ask, events.put)
    event = events.get(timeout=240)
    assert isinstance(event, ModelAnswered), event
    return event


def test_the_model_can_only_quote_and_step_agrees(driver):
    state, _ = step(AGENT, State(), SessionStarted(0, "bank", AGENT.digest, 1, "plain", 512, ""))
    state, (ask,) = step(AGENT, state, UserSaid(1, 'Pay 20 euros to "Bob & Söhne".'))
    event = answered(driver, replace(ask, choice="call"))
    arguments = json.loads(event.text)["arguments"]
    assert arguments["amount"] == 20
    state, (call,) = step(AGENT, state, event)
    assert isinstance(call, CallTool), call


def test_the_prompt_is_the_same_whatever_may_be_quoted(driver):
    state, _ = step(AGENT, State(), SessionStarted(0, "bank", AGENT.digest, 1, "plain", 512, ""))
    state, (ask,) = step(AGENT, state, UserSaid(1, "Pay Bob 20 euros."))
    narrowed = answered(driver, replace(ask, choice="call"))
    free = answered(driver, replace(ask, choice="call", narrowed=()))
    assert free.usage.prompt == narrowed.usage.prompt
    assert free.usage.evaluated <= 2  # As few as are ever evaluated of a prompt that is there.
