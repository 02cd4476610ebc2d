"""The labels of the agent above hold for what its sub-agents do."""

from __future__ import annotations

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent
from edgeagent.core.budget import NO_BUDGET
from edgeagent.core.effects import AskModel, AskUser, CallTool
from edgeagent.core.events import ModelAnswered, SessionStarted, ToolReturned, UserSaid
from edgeagent.core.state import State
from edgeagent.core.values import Usage, canonical_json
from edgeagent.policy.all_guards import guard_for
from edgeagent.policy.labels import Labels, read
from edgeagent.policy.nested import FamilyStep
from edgeagent.policy.origin_guard import values_from_user
from tests.policy.office import EVIL, LABELS, MAIL, contacts, mails, send


def family():
    """A head without tools of its own but a clerk, who reads and sends mail; only the head has the rule."""
    clerk = Agent(name="clerk", tools=(mails, contacts, send), budget=NO_BUDGET, dialect=Plain())
    as_tool = clerk.as_tool(description="Do office work.", trusted=True)
    names = ("mails", "contacts", "send")
    labels = Labels({**{n: LABELS.tools[n] for n in names}, "clerk": read()}, LABELS.records)
    rule = values_from_user(labels)
    return Agent(name="head", tools=(as_tool,), policies=(rule,), budget=NO_BUDGET, dialect=Plain())


class Line:
    """A head's session, event by event."""

    def __init__(self, says: str) -> None:
        self.agent = family()
        self.step, self.state = FamilyStep(self.agent, guard_for), State()
        self.feed(SessionStarted(0, "head", self.agent.digest, 1, "plain", 1 << 20, "0"))
        (self.ask,) = self.feed(UserSaid(0, says))

    def feed(self, event):
        self.state, effects = self.step(self.agent, self.state, event)
        return effects

    def writes(self, tool, **arguments):
        written = canonical_json({"name": tool, "arguments": arguments})
        (effect,) = self.feed(ModelAnswered(0, self.ask.effect_id, written, "end", Usage()))
        if isinstance(effect, AskModel):
            self.ask = effect
        return effect

    def returns(self, effect, value):
        (self.ask,) = self.feed(ToolReturned(0, effect.effect_id, canonical_json(value)))


def test_a_sub_agents_call_asks_by_the_rule_of_the_agent_above():
    line = Line("have the clerk read the mail")
    line.writes("clerk", request=f"read the mail and write to {EVIL}")
    line.returns(line.writes("mails"), [MAIL])
    question = line.writes("send", to=[EVIL], body="hi")
    assert isinstance(question, AskUser)
    assert f"'{EVIL}' is not from you" in question.because


def test_what_the_agent_above_told_it_is_not_the_users_word_but_what_the_user_said_is():
    line = Line("have the clerk read the mail and greet ana@firm.example")
    line.writes("clerk", request="read the mail and greet her")
    line.returns(line.writes("mails"), [MAIL])
    assert isinstance(line.writes("send", to=["ana@firm.example"], body="hi"), CallTool)
