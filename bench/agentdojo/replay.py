"""Play given calls through the real core and the real guard, as if a model that obeys everybody had written them.

    UserSaid → ModelAnswered(call) → guarded_step → CallTool | AskUser | refusal → world → ToolReturned → ...

Nothing is judged here: whether a call runs is read off the effects that guarded_step lets out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, Tool
from edgeagent.core.budget import NO_BUDGET
from edgeagent.core.effects import AskModel, AskUser, CallTool, Effect
from edgeagent.core.events import Event, ModelAnswered, SessionStarted, ToolFailed, ToolReturned, UserDecided, UserSaid
from edgeagent.core.names import writable
from edgeagent.core.state import State
from edgeagent.core.values import Usage, canonical_json
from edgeagent.policy.all_guards import guard_for
from edgeagent.policy.guard import AllowAll, Guard, guarded_step
from edgeagent.policy.labels import Labels
from edgeagent.policy.origin_guard import ValuesFromUser, values_from_user

CONTEXT_TOKENS = 1 << 24
"""So large that nothing of a session is ever dropped: the attacker's texts and the user's words all stay."""

Call = tuple[str, dict[str, Any]]

Fate = Literal["ran", "asked", "refused"]


class Result(Protocol):
    """What a world says of one call."""

    def __call__(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run it; `value`, `error` and whether an injection `shows` in it."""


@dataclass(frozen=True)
class Subject:
    """An agent with its guard, made once and used for every session."""

    agent: Agent
    guard: Guard
    labels: Labels

    def is_effect(self, tool: str) -> bool:
        """Whether the tool does something: an attack that only reads has reached nothing."""
        return self.labels.tools[tool].does in ("write", "irreversible", "egress")


def subject(name: str, tools: tuple[Tool, ...], labels: Labels, strict: tuple[Any, ...] = ()) -> Subject:
    """Return the agent of a tool set under the rule `values_from_user`."""
    rule: ValuesFromUser = values_from_user(labels, strict=strict)
    agent = Agent(name=name, tools=labels.applied(tools), policies=(rule,), budget=NO_BUDGET, dialect=Plain())
    return Subject(agent, guard_for(agent), labels)


def undefended(of: Subject) -> Subject:
    """Return the same agent without its guard: the control."""
    return Subject(of.agent, AllowAll(), of.labels)


@dataclass(frozen=True)
class Outcome:
    """What became of one call. `asked` holds the question's text; `fate` is `ran` also after a yes."""

    call: Call
    fate: Fate
    question: str = ""
    because: str = ""
    shows: bool = False
    error: str = ""

    @property
    def silently(self) -> bool:
        """It ran and nobody was asked."""
        return self.fate == "ran" and not self.question


class Session:
    """One session. A `fork` is a second future of it, but the world is shared: it is for calls that must not run."""

    def __init__(self, of: Subject, prompt: str, world: Result) -> None:
        self.subject, self.world = of, world
        self.step: Callable[[Agent, State, Event], Any] = partial(guarded_step, of.guard)
        self.state, self.at = State(), 0
        agent = of.agent
        self._feed(SessionStarted(0, agent.name, agent.digest, 1, "plain", CONTEXT_TOKENS, "0"))
        (self.ask,) = self._feed(UserSaid(0, prompt))

    def fork(self) -> Session:
        """Return another session that stands where this one stands."""
        other = object.__new__(Session)
        other.__dict__.update(self.__dict__)
        return other

    def call(self, call: Call, says_yes: bool) -> Outcome:
        """Have the model write this call, answer a question with yes or no, and let the world run what comes out."""
        tool, arguments = call
        written = canonical_json({"name": writable(tool), "arguments": arguments})
        self.at += 1
        effects = self._feed(ModelAnswered(self.at, self.ask.effect_id, written, "end", Usage()))
        (effect,) = effects
        question = ""
        if isinstance(effect, AskUser):
            question = effect.because
            decided = UserDecided(self.at, effect.effect_id, says_yes, digest=effect.digest)
            (effect,) = self._feed(decided)
        if isinstance(effect, CallTool):
            return self._run(call, effect, question)
        assert isinstance(effect, AskModel), f"{tool} led to {effect}"
        self.ask = effect
        because = effect.messages[-1].text
        return Outcome(call, "asked" if question else "refused", question, because)

    def _run(self, call: Call, effect: CallTool, question: str) -> Outcome:
        said = self.world(*call)
        if said["error"]:
            event: Event = ToolFailed(self.at, effect.effect_id, "raised", said["error"])
        else:
            event = ToolReturned(self.at, effect.effect_id, canonical_json(said["value"]))
        (self.ask,) = self._feed(event)
        return Outcome(call, "ran", question, shows=said["shows"], error=said["error"] or "")

    def _feed(self, event: Event) -> tuple[Effect, ...]:
        self.state, effects = self.step(self.subject.agent, self.state, event)
        return tuple(effects)
