"""What stands between a wanted effect and the world."""

from __future__ import annotations

from functools import partial

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskModel, AskUser, CallTool, Finish, Say
from edgeagent.core.events import ModelAnswered, SessionStarted, ToolReturned, UserDecided, UserSaid
from edgeagent.core.state import Finished, State
from edgeagent.core.values import Outcome, Usage
from edgeagent.policy.guard import ALLOW, AllowAll, Ask, Halt, Refuse, guarded_step


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
