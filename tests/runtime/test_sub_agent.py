"""A sub-agent through the real loop, tools and trace: it runs, is recorded, replays, and resumes from a snapshot."""

from __future__ import annotations

import itertools

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskModel
from edgeagent.core.events import ModelAnswered, SessionStarted, ToolReturned, UserSaid
from edgeagent.core.replay import replay
from edgeagent.core.state import State
from edgeagent.core.values import Usage
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.policy.ready import at_most, no_effect_after_untrusted
from edgeagent.runtime.loop import Loop
from edgeagent.runtime.wiring import drivers_of, step_of
from edgeagent.trace.snapshot import decode_state, encode_state


@tool(idempotent=True, effect="read")
def look(page: str) -> str:
    """Look."""
    return f"{page} is dry"


SCOUT = Agent(name="scout", tools=(look,), policies=(at_most(1, "look"), no_effect_after_untrusted()))
AGENT = Agent(
    name="boss", tools=(SCOUT.as_tool(description="Find out."),), policies=(at_most(2, "look"),), dialect=Plain()
)
ASK = '{"name": "scout", "arguments": {"request": "how is bed a?"}}'
LOOK = '{"name": "look", "arguments": {"page": "bed a"}}'


class Kept:
    """A recorder that keeps events."""

    def __init__(self):
        self.events = []

    def append(self, event, effects, *, sync):
        self.events.append((event, effects))


def test_a_sub_agent_runs_in_the_loop_and_its_trace_replays():
    kept, answers = Kept(), [ASK, LOOK, "It is dry.", "The scout says it is dry."]
    loop = Loop(AGENT, step_of(AGENT), kept, drivers_of(AGENT, ScriptedModel(answers)), itertools.count(1).__next__)
    loop.post(SessionStarted(0, AGENT.name, AGENT.digest, 1, "plain", 2048, "0"))
    loop.post(UserSaid(0, "how is bed a?"))
    state = loop.run()
    assert state.outcome.kind == "answered"
    asked_by = [e.agent for _, effects in kept.events for e in effects if isinstance(e, AskModel)]
    assert asked_by == ["", "scout", "scout", ""]
    again = [(event, effects) for event, _, effects in replay(AGENT, [e for e, _ in kept.events], step_of(AGENT))]
    assert again == kept.events


def test_a_session_inside_survives_its_snapshot_at_every_event():
    events = [
        SessionStarted(0, AGENT.name, AGENT.digest, 1, "plain", 2048, "0"),
        UserSaid(0, "how is bed a?"),
        ModelAnswered(0, 1, ASK, "end", Usage()),
        ModelAnswered(0, 3, LOOK, "end", Usage()),
        ToolReturned(0, 4, '"bed a is dry"'),
        ModelAnswered(0, 5, "It is dry.", "end", Usage()),
        ModelAnswered(0, 7, "Dry.", "end", Usage()),
    ]
    step, state = step_of(AGENT), State()
    for event in events:
        restored = decode_state(encode_state(state))
        assert restored == state
        state, effects = step(AGENT, state, event)
        assert step(AGENT, restored, event) == (state, effects)
    assert state.outcome.kind == "answered"
