"""Values that stay on this device: from the first one on, whatever is asked of a model says so."""

from __future__ import annotations

import pytest

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskModel, CallTool
from edgeagent.core.events import (
    Heard,
    ModelAnswered,
    SessionStarted,
    ToolFailed,
    ToolReturned,
    UserSaid,
)
from edgeagent.core.state import State
from edgeagent.core.values import Usage
from edgeagent.errors import ConfigError
from edgeagent.policy.labels import Labels, read
from edgeagent.policy.rules import stays_here, values_from_user
from edgeagent.runtime.wiring import step_of


@tool(idempotent=True, effect="read", trusted=True, sensitive=True)
def read_pin() -> str:
    """Read the pin."""
    return ""


@tool(idempotent=True, effect="read", trusted=True)
def read_sensor() -> str:
    """Read a sensor."""
    return ""


@tool(idempotent=True, effect="read")
def fetch() -> str:
    """Fetch a page."""
    return ""


TOOLS = (read_pin, read_sensor, fetch)


def asks_after(events, *policies, tools=TOOLS) -> list[AskModel]:
    """What is asked of a model, in a session of these events."""
    agent = Agent("safe", tools=tools, policies=policies, hears=["door"], dialect=dialect_called("plain"))
    step, state, asked = step_of(agent), State(), []
    begun = SessionStarted(1, "safe", agent.digest, 0, "plain", 4096, "0")
    for make in (lambda _: begun, *events):
        state, effects = step(agent, state, make(last_id(asked_all)) if asked_all else make(0))
        asked_all.extend(effects)
        asked.extend(e for e in effects if isinstance(e, AskModel))
    return asked


asked_all: list = []


@pytest.fixture(autouse=True)
def nothing_asked():
    asked_all.clear()


def last_id(effects) -> int:
    return next((e.effect_id for e in reversed(effects) if isinstance(e, AskModel | CallTool)), 0)


def said(text):
    return lambda _: UserSaid(1, text)


def calls(name):
    return lambda n: ModelAnswered(1, n, f'{{"name": "{name}", "arguments": {{}}}}', "end", Usage())


def returned(n):
    return ToolReturned(1, n, '"4711"')


def failed(n):
    return ToolFailed(1, n, "raised", "4711 is no pin")


def answered(n):
    return ModelAnswered(1, n, "It is there.", "end", Usage())


def stays(events, *policies, **more) -> list[bool]:
    return [bool(each.stays) for each in asks_after(events, *policies, **more)]


def test_before_anything_sensitive_came_a_model_elsewhere_may_be_asked():
    assert stays([said("hi"), calls("read_sensor"), returned], stays_here()) == [False, False]


@pytest.mark.parametrize("result", [returned, failed], ids=["returned", "failed"])
def test_what_a_sensitive_tool_brings_stays(result):
    assert stays([said("hi"), calls("read_pin"), result], stays_here(of="sensitive")) == [False, True]


def test_it_stays_in_every_turn_that_follows():
    told = [said("hi"), calls("read_pin"), returned, answered, said("and now?"), calls("read_sensor"), returned]
    assert stays(told, stays_here()) == [False, True, True, True]


def test_what_is_untrusted_stays_where_the_rule_says_tainted():
    events = [said("hi"), calls("fetch"), returned]
    assert stays(events, stays_here(of="tainted")) == [False, True]
    assert stays(events, stays_here(of="sensitive")) == [False, False]


def test_what_is_heard_stays_where_the_rule_says_tainted():
    events = [lambda _: Heard(1, "door", "someone is there")]
    assert stays(events, stays_here(of="tainted")) == [True]
    assert stays(events, stays_here(of="sensitive")) == [False]


def test_a_tool_may_be_named():
    events = [said("hi"), calls("read_sensor"), returned]
    assert stays(events, stays_here(of=(), tools=["read_sensor"])) == [False, True]


def test_what_a_label_calls_confidential_is_sensitive():
    labels = Labels({"read_pin": read(), "read_sensor": read(trusted=True, confidential=True), "fetch": read()})
    events = [said("hi"), calls("read_sensor"), returned]
    assert stays(events, stays_here(of="sensitive"), values_from_user(labels)) == [False, True]


def test_without_the_rule_nothing_is_said():
    assert stays([said("hi"), calls("read_pin"), returned]) == [False, False]


def test_what_a_sub_agent_reads_stays_in_the_agent_above():
    sub = Agent("clerk", tools=[read_pin]).as_tool(description="Ask the clerk.", effect="read", trusted=True)
    ask = '{"name": "clerk", "arguments": {"request": "the pin"}}'
    events = [said("hi"), lambda n: ModelAnswered(1, n, ask, "end", Usage()), calls("read_pin"), returned, answered]
    assert stays(events, stays_here(of="sensitive"), tools=[sub, read_sensor]) == [False, False, True, True]


def test_the_reason_is_told():
    (_, ask) = asks_after([said("hi"), calls("read_pin"), returned], stays_here(because="it opens the safe"))
    assert ask.stays == "what read_pin was given or gave stays on this device (it opens the safe)"


def test_a_tool_that_there_is_not_is_refused_by_name():
    with pytest.raises(ConfigError, match="names the tool open_safe; its tools are: read_pin"):
        asks_after([], stays_here(tools=["open_safe"]))
    with pytest.raises(ConfigError, match="'sensitive', 'tainted' or both"):
        stays_here(of="secret")
