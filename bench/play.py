"""A realistic session without a model, for the benchmarks: the greenhouse's tools, a long conversation."""

from __future__ import annotations

import dataclasses

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent
from edgeagent.core.budget import Budget
from edgeagent.core.effects import CallTool
from edgeagent.core.events import Event, ModelAnswered, SessionStarted, ToolReturned, UserSaid
from edgeagent.core.replay import Step
from edgeagent.core.state import State
from edgeagent.core.step import step
from edgeagent.core.values import Usage
from examples.greenhouse import agent as greenhouse

CALL = '{"name": "set_valve", "arguments": {"valve": "north", "open": true, "seconds": 30}}'
RESULT = '{"open":true,"seconds":30,"valve":"north"}'
TOKEN_IDS = bytes(3 * 24)
USAGE = Usage(prompt=540, evaluated=20, completion=24, forced=12, micros=180_000)

AGENT: Agent = dataclasses.replace(
    greenhouse, dialect=Plain(), budget=Budget(steps=None, tool_calls=None, completion_tokens=None, seconds=None)
)


def started() -> State:
    """A session that has just started."""
    state, _ = step(AGENT, State(), SessionStarted(1, AGENT.name, AGENT.digest, 1, "plain", 2048, "0"))
    return state


def turn(state: State, at_ms: int, play: Step = step) -> tuple[State, list[Event]]:
    """One turn with one call, by this step; returns the state after it and its four events."""
    events: list[Event] = [UserSaid(at_ms, "Open the north valve for 30 seconds.")]
    state, (ask,) = play(AGENT, state, events[-1])
    events.append(ModelAnswered(at_ms + 1, ask.effect_id, CALL, "closed", USAGE, TOKEN_IDS))
    state, (call,) = play(AGENT, state, events[-1])
    assert isinstance(call, CallTool)
    events.append(ToolReturned(at_ms + 2, call.effect_id, RESULT, 150))
    state, (ask,) = play(AGENT, state, events[-1])
    events.append(ModelAnswered(at_ms + 3, ask.effect_id, "The north valve is open.", "end", USAGE, TOKEN_IDS[:18]))
    state, _ = play(AGENT, state, events[-1])
    return state, events


def after_turns(count: int) -> State:
    """The state after `count` turns of four events each."""
    state = started()
    for number in range(count):
        state, _ = turn(state, 10 * number + 10)
    return state
