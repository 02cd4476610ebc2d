"""A run always ends: every answer that model, tools and user can give, up to a depth, in a small world."""

from __future__ import annotations

import dataclasses

import pytest

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.budget import Budget
from edgeagent.core.effects import AskModel, AskUser, CallTool
from edgeagent.core.events import (
    Cancelled,
    EffectLost,
    ModelAnswered,
    ModelFailed,
    SessionStarted,
    ToolFailed,
    ToolReturned,
    UserDecided,
    UserSaid,
)
from edgeagent.core.state import State, is_resting
from edgeagent.core.step import step
from edgeagent.core.values import Usage

MODEL_TEXTS = (
    "words",
    "{",
    '{"name": "look", "arguments": {}}',
    '{"name": "push", "arguments": {"count": 1}}',
    '[{"name": "look", "arguments": {}}, {"name": "push", "arguments": {"count": 2}}]',
)


@tool(idempotent=True)
def look() -> None:
    """Look."""


@tool(idempotent=False, confirm=True)
def push(count: int) -> None:
    """Push."""


AGENT = Agent(
    name="small",
    tools=(look, push),
    budget=Budget(steps=4, tool_calls=2, completion_tokens=40, seconds=10, refusals=2),
    dialect=Plain(),
)


def answers_to(effect, at_ms, refits=True):
    """Every event that may answer this effect in the small world."""
    each = effect.effect_id
    match effect:
        case AskModel():
            usage = Usage(prompt=10, completion=10)
            for text in MODEL_TEXTS:
                yield ModelAnswered(at_ms, each, text, "end", usage)
            yield ModelAnswered(at_ms, each, "wor", "time", usage)
            if refits:
                yield ModelFailed(at_ms, each, "context_full", "too long", 900)
            yield ModelFailed(at_ms, each, "engine", "broken")
            yield EffectLost(at_ms, each)
        case CallTool():
            yield ToolReturned(at_ms, each, "1")
            yield ToolFailed(at_ms, each, "raised", "no")
            yield EffectLost(at_ms, each)
        case AskUser():
            yield UserDecided(at_ms, each, approved=True)
            yield UserDecided(at_ms, each, approved=False)


def within_limits(budget, spent):
    return (
        spent.steps <= budget.steps
        and spent.tool_calls <= budget.tool_calls
        and spent.completion_tokens <= budget.completion_tokens
        and spent.refusals <= budget.refusals
    )


def exhaust(agent, events_max, lost_max, refits=True):
    """Walk every run of one turn. Return how many runs ended; fail on one that passes a limit or does not end."""
    state, _ = step(agent, State(), SessionStarted(0, agent.name, agent.digest, 1, "plain", 2048, "0"))
    state, effects = step(agent, state, UserSaid(0, "go"))
    todo = [(state, tuple(effects), 0, 0)]
    ended = 0
    while todo:
        state, open_effects, depth, lost = todo.pop()
        assert within_limits(agent.budget, state.turn_spent), state
        if is_resting(state):
            assert state.outcome is not None
            ended += 1
            continue
        assert open_effects, f"nothing is outstanding, yet the turn has not ended: {state.phase}"
        assert depth < events_max, f"a run of {depth} events has not ended: {state}"
        effect, *rest = open_effects
        for event in answers_to(effect, depth, refits):
            is_lost = isinstance(event, EffectLost)
            if is_lost and lost == lost_max:
                continue
            after, more = step(agent, state, event)
            still = [e for e in rest if not is_resting(after)]
            asked = [e for e in more if isinstance(e, AskModel | CallTool | AskUser)]
            todo.append((after, (*still, *asked), depth + 1, lost + is_lost))
    return ended


def test_every_run_in_the_small_world_ends_within_its_limits():
    assert exhaust(AGENT, events_max=16, lost_max=1, refits=False) > 6_000


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_every_run_ends_whatever_the_step_limit(steps):
    agent = dataclasses.replace(AGENT, budget=Budget(steps=steps, tool_calls=1, completion_tokens=30, refusals=1))
    assert exhaust(agent, events_max=24, lost_max=1, refits=steps < 3) > 10


def test_cancelling_any_reachable_state_ends_the_turn():
    state, _ = step(AGENT, State(), SessionStarted(0, AGENT.name, AGENT.digest, 1, "plain", 2048, "0"))
    state, effects = step(AGENT, state, UserSaid(0, "go"))
    todo, seen = [(state, effects)], 0
    while todo and seen < 2_000:
        state, effects = todo.pop()
        seen += 1
        cancelled, _ = step(AGENT, state, Cancelled(0))
        assert is_resting(cancelled)
        for effect in effects[:1]:
            for event in answers_to(effect, 0):
                if not isinstance(event, EffectLost):
                    todo.append(step(AGENT, state, event))
    assert seen > 100
