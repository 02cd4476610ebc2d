"""What stands between a wanted effect and the world."""

from __future__ import annotations

from functools import partial

import pytest

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskModel, AskUser, CallTool, Finish, Say
from edgeagent.core.events import ModelAnswered, SessionStarted, ToolReturned, UserDecided, UserSaid
from edgeagent.core.state import Finished, State
from edgeagent.core.values import Outcome, Usage
from edgeagent.policy.all_guards import guard_for
from edgeagent.policy.guard import ALLOW, AllowAll, Ask, Halt, Refuse, guarded_step
from edgeagent.policy.ready import confirm_before, guard, halt_when, never, requires_before
from edgeagent.policy.words import arg, confirmed, once


@tool(idempotent=False)
def push(count: int) -> str:
    """Push something."""
    return str(count)


AGENT = Agent(name="tester", tools=(push,), dialect=Plain())
PUSH = '{"name": "push", "arguments": {"count": 1}}'


class Judge(AllowAll):
    """Gives every call the same verdict and remembers what was admitted."""

    def __init__(self, verdict):
        self.verdict = verdict

    def judge(self, memory, state, effect):
        return self.verdict if isinstance(effect, CallTool) else ALLOW

    def admit(self, memory, state, effect):
        return (*(memory or ()), type(effect).__name__)


def play(verdict, *events):
    step = partial(guarded_step, Judge(verdict))
    state, effects = step(AGENT, State(), SessionStarted(0, "tester", AGENT.digest, 1, "plain", 2048, "0"))
    for event in (UserSaid(0, "go"), ModelAnswered(0, 1, PUSH, "end", Usage()), *events):
        state, effects = step(AGENT, state, event)
    return state, effects


def test_an_allowed_call_leaves():
    _, effects = play(ALLOW)
    assert [type(e) for e in effects] == [CallTool]


def test_a_refused_call_never_leaves_and_is_not_admitted():
    state, effects = play(Refuse("not today"))
    assert [type(e) for e in effects] == [AskModel]
    assert "not today" in effects[0].messages[-1].text
    assert "CallTool" not in state.monitors


def test_a_refused_call_does_not_count_as_called():
    state, _ = play(Refuse("not today"))
    assert (state.turn_spent.tool_calls, state.turn_spent.refusals) == (0, 1)


def test_a_turn_that_only_had_refusals_ends_refused():
    state, _ = play(Refuse("not today"), ModelAnswered(0, 3, "I may not.", "end", Usage()))
    assert state.outcome == Outcome("refused", "not today")


def test_a_call_that_must_be_asked_about_leaves_only_after_a_yes():
    state, effects = play(Ask("are you sure"))
    assert [type(e) for e in effects] == [AskUser]
    assert "CallTool" not in state.monitors
    state, effects = play(Ask("are you sure"), UserDecided(0, effects[0].effect_id, approved=True))
    assert [type(e) for e in effects] == [CallTool]


def test_a_halt_ends_the_session_before_anything_leaves():
    state, effects = play(Halt("smoke"))
    assert CallTool not in [type(e) for e in effects]
    assert {Say, Finish} <= {type(e) for e in effects}
    assert state.phase == Finished("smoke")


def test_a_guard_without_rules_changes_nothing():
    step = partial(guarded_step, AllowAll())
    state, _ = step(AGENT, State(), SessionStarted(0, "tester", AGENT.digest, 1, "plain", 2048, "0"))
    state, _ = step(AGENT, state, UserSaid(0, "go"))
    state, (call,) = step(AGENT, state, ModelAnswered(0, 1, PUSH, "end", Usage()))
    state, (ask,) = step(AGENT, state, ToolReturned(0, call.effect_id, "1"))
    assert isinstance(ask, AskModel)
    assert state.monitors is None


@tool(idempotent=False, confirm=True)
def pull(count: int) -> str:
    """Pull something."""
    return str(count)


PULL = '{"name": "pull", "arguments": {"count": 5}}'


def asked_for(*rules, written=PULL):
    """What leaves after a model that keeps to no grammar has written a call of a tool that always asks."""
    agent = Agent(name="tester", tools=(push, pull), dialect=Plain(), policies=rules)
    step = partial(guarded_step, guard_for(agent))
    state, effects = step(agent, State(), SessionStarted(0, "tester", agent.digest, 1, "plain", 2048, "0"))
    for event in (UserSaid(0, "go"), ModelAnswered(0, 1, written, "end", Usage())):
        state, effects = step(agent, state, event)
    return agent, step, state, effects


@pytest.mark.parametrize(
    "rules",
    [
        (never("pull", because="not today"),),
        (guard("pull", arg("count") <= 2, because="not today"),),
        (requires_before("pull", "push", because="not today"),),
        (confirm_before("pull"), never("pull", when=arg("count") > 2, because="not today")),
    ],
)
def test_what_no_yes_can_allow_is_refused_and_nobody_is_asked(rules):
    _, _, state, effects = asked_for(*rules)
    assert [type(e) for e in effects] == [AskModel]
    assert "not today" in effects[0].messages[-1].text
    assert (state.turn_spent.tool_calls, state.turn_spent.refusals) == (0, 1)


def test_a_halt_that_no_yes_can_avert_comes_before_the_question():
    _, _, state, effects = asked_for(never("pull", verdict="halt", because="smoke"))
    assert AskUser not in [type(e) for e in effects]
    assert state.phase == Finished("smoke")


@pytest.mark.parametrize(
    "rule",
    [
        guard("pull", (arg("count") <= 2) | once(confirmed("pull"), "turn")),
        requires_before("pull", confirmed("pull")),
        confirm_before("pull"),
    ],
)
def test_what_a_yes_allows_is_asked_about(rule):
    agent, step, state, effects = asked_for(rule)
    assert [type(e) for e in effects] == [AskUser]
    state, effects = step(agent, state, UserDecided(0, effects[0].effect_id, approved=True))
    assert [type(e) for e in effects] == [CallTool]


def test_a_halt_that_only_a_yes_would_bring_waits_for_the_yes():
    agent, step, state, effects = asked_for(halt_when(once(confirmed("pull"), "turn"), because="done with it"))
    assert [type(e) for e in effects] == [AskUser]
    state, _ = step(agent, state, UserDecided(0, effects[0].effect_id, approved=True))
    assert state.phase == Finished("done with it")


def test_of_a_batch_only_what_may_be_allowed_is_asked_about():
    both = f"[{PULL}, {PULL.replace('5', '1')}]"
    _, _, state, effects = asked_for(guard("pull", arg("count") <= 2, because="too much"), written=both)
    assert [(type(e), e.arguments) for e in effects] == [(AskUser, '{"count":1}')]
    assert "too much" in state.phase.calls[0].answer
