"""A tool's real name stands in effects and rules, the written one in prompts and grammars."""

from __future__ import annotations

import pytest

from edgeagent.codec.dialect import DIALECTS, Plain
from edgeagent.core.agent import Agent, Tool
from edgeagent.core.effects import AskModel, CallTool
from edgeagent.core.events import ModelAnswered, SessionStarted, ToolReturned, UserSaid
from edgeagent.core.names import writable
from edgeagent.core.state import State
from edgeagent.core.step import step
from edgeagent.core.values import Usage
from edgeagent.grammar.calls import calls_of

LAMP = Tool.of_schema(
    "home/lamp.set",
    "Switch a lamp.",
    {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]},
    lambda given: given["on"],
    idempotent=True,
    effect="read",
)
AGENT = Agent(name="a", tools=[LAMP], dialect=Plain())


@pytest.mark.parametrize("written", ["home_lamp_set", "home/lamp.set"])
def test_a_call_under_the_written_name_becomes_one_under_the_real_name(written):
    state, _ = step(AGENT, State(), SessionStarted(0, "a", AGENT.digest, 1, "plain", 2048, "0"))
    state, (ask,) = step(AGENT, state, UserSaid(1, "Lamp on."))
    assert isinstance(ask, AskModel) and ask.tools == ("home/lamp.set",)
    text = f'{{"name": "{written}", "arguments": {{"on": true}}}}'
    state, (call,) = step(AGENT, state, ModelAnswered(2, ask.effect_id, text, "end", Usage()))
    assert isinstance(call, CallTool) and (call.tool, call.arguments) == ("home/lamp.set", '{"on":true}')
    state, (ask,) = step(AGENT, state, ToolReturned(3, call.effect_id, "true"))
    assert [m.tool for m in ask.messages][-1] == "home/lamp.set"


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_the_model_is_told_the_written_name_only(dialect):
    text = dialect.system_text("", AGENT.tools)
    assert "home_lamp_set" in text and "home/lamp.set" not in text


def test_the_grammar_holds_the_written_name():
    assert [name for name, _ in calls_of(AGENT.tools)] == ["home_lamp_set"]


@pytest.mark.parametrize(
    ("real", "written"), [("a.b/c", "a_b_c"), ("/x", "t_x"), ("a" * 70, "a" * 64), ("get-time", "get-time")]
)
def test_a_name_is_written_with_what_models_write(real, written):
    assert writable(real) == written
