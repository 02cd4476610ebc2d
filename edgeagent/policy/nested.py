"""Sub-agents: a call that is a session of its own, inside the state of the agent that made it.

Nothing of it is seen outside but more effects and events: effect ids are counted through, so an event finds its agent
by its id, and a crash, a resume and a replay are what they are without sub-agents. An effect says whose it is.

    agent: CallTool research --> [ AskModel, CallTool fetch, ..., Say (agent=research) ] --> ToolReturned: agent

* Rules: every effect of a sub-agent is judged by its own rules and by those of all agents above, whose monitors
  see its events too. So taint goes up by itself; it goes down because a session that is asked something after the
  agent above has read something untrusted begins tainted.
* Budget: its session gets what the agent above has left, and all it uses is counted above. Sub-agents of one batch
  run one after the other, so that two cannot spend the same rest.
* What it is told is not a person's word: `said` does not hold, and `from_user` looks at what the user said to the
  first agent.
* A halt, by whichever rule, ends the whole session.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from edgeagent.core.agent import Agent, Dialect, family_of
from edgeagent.core.budget import Budget, Spent
from edgeagent.core.effects import AskModel, AskUser, CallTool, CancelEffect, Effect, Finish, Say
from edgeagent.core.events import (
    Cancelled,
    Event,
    SessionResumed,
    SessionStarted,
    ToolFailed,
    ToolReturned,
    UserSaid,
    steady_ms,
)
from edgeagent.core.nesting import budget_below, charged
from edgeagent.core.quoting import user_texts
from edgeagent.core.state import (
    AwaitingCalls,
    Child,
    Finished,
    Idle,
    PendingCall,
    State,
    Transition,
    at_time_of,
    is_resting,
    outstanding,
)
from edgeagent.core.step import halt
from edgeagent.core.turn import has_read_untrusted
from edgeagent.core.values import canonical_json
from edgeagent.policy.all_guards import AllGuards
from edgeagent.policy.guard import Guard, guarded_step
from edgeagent.shape.parse import parse

GuardFor = Callable[[Agent], Guard]


@dataclasses.dataclass(frozen=True)
class Kin:
    """An agent with its guard, where it stands, and the sub-agents it may call."""

    agent: Agent
    guard: Guard
    path: str
    below: Mapping[str, Kin]


class Above(NamedTuple):
    """An agent above the one that acts: its rules watch too."""

    guard: Guard
    memory: Any
    turn: int


class Moved(NamedTuple):
    """What an event has led to. `above` is the memory of the guards above; `halted` is why the session must end."""

    state: State
    effects: tuple[Effect, ...]
    above: tuple[Any, ...]
    halted: str = ""


class FamilyStep:
    """The guarded step of an agent with sub-agents. Pure; what it keeps is only compiled."""

    def __init__(self, agent: Agent, guard_for: GuardFor) -> None:
        self._root = _kin(agent, guard_for, "")
        self._limited: dict[str, tuple[Budget, Agent]] = {}

    def __call__(self, agent: Agent, state: State, event: Event) -> Transition:
        """Return the next state and what to ask of the world."""
        root = dataclasses.replace(self._root, agent=agent)
        moved = _Turn(self, agent.dialect, state).deliver(root, state, event, (), tainted=False)
        if not moved.halted or isinstance(moved.state.phase, Finished):
            return moved.state, moved.effects
        state, effects = halt(agent, moved.state, moved.halted)
        return state, (*moved.effects, *effects)

    def limited(self, kin: Kin, budget: Budget, dialect: Dialect | None) -> Kin:
        """The sub-agent with the limits of its session, and the dialect of the model that they share."""
        known = self._limited.get(kin.path)
        if known is None or known[0] != budget:
            agent = dataclasses.replace(kin.agent, session_budget=budget, dialect=kin.agent.dialect or dialect)
            known = self._limited[kin.path] = (budget, agent)
        return dataclasses.replace(kin, agent=known[1])


def _kin(agent: Agent, guard_for: GuardFor, path: str) -> Kin:
    subs = {t.name: t.agent for t in agent.tools if t.agent is not None}
    below = {name: _kin(sub, guard_for, f"{path}/{name}" if path else name) for name, sub in subs.items()}
    return Kin(agent, guard_for(family_of(agent)), path, below)


class _Turn:
    """One transition. `talk` is the first agent's state: what a person has said is said there."""

    def __init__(self, step: FamilyStep, dialect: Dialect | None, talk: State) -> None:
        self._step, self._dialect, self._talk = step, dialect, talk

    def deliver(self, kin: Kin, state: State, event: Event, above: tuple[Above, ...], *, tainted: bool) -> Moved:
        """Give an event to the agent it is for: this one, or one below."""
        running = state.children[0] if state.children and state.children[0].state else None
        if isinstance(event, Cancelled | SessionResumed):
            moved = Moved(state, (), _memories(above))
            if running is not None:
                moved = self._inside(kin, state, running, event, above)
            state = replace(moved.state, children=()) if isinstance(event, Cancelled) else moved.state
            own = self._own(kin, state, event, _with(above, moved.above), tainted=tainted)
            return own._replace(effects=(*moved.effects, *own.effects))
        effect_id = getattr(event, "effect_id", 0)
        if running is not None and running.state is not None and effect_id in outstanding(running.state):
            return self._below(kin, state, running, event, above, tainted=tainted)
        if any(effect_id == child.effect_id for child in state.children):
            # Only the sub-agent itself answers its call.
            return Moved(
                replace(state, now_ms=max(state.now_ms, steady_ms(event)), skew_ms=event.skew_ms), (), _memories(above)
            )
        return self._own(kin, state, event, above, tainted=tainted)

    def _own(self, kin: Kin, state: State, event: Event, above: tuple[Above, ...], *, tainted: bool) -> Moved:
        """Let the agent itself take the event; start the sub-agents that it calls."""
        guard = _with_those_above(kin.guard, above) if above else kin.guard
        memory = (state.monitors, *_memories(above)) if above else state.monitors
        state, wanted = guarded_step(guard, kin.agent, replace(state, monitors=memory), event)
        mine, others = (state.monitors[0], tuple(state.monitors[1:])) if above else (state.monitors, ())
        calls = [e for e in wanted if isinstance(e, CallTool) and e.tool in kin.below]
        effects = tuple(_signed(e, kin.path) for e in wanted if e not in calls)
        waiting = tuple(Child(c.effect_id, c.tool, str(parse(c.arguments).get("request", ""))) for c in calls)
        state = replace(state, monitors=mine, children=(*state.children, *waiting))
        if isinstance(state.phase, Finished) and state.outcome is not None and state.outcome.kind == "halted":
            return Moved(*_dropped(state, effects), others, state.outcome.detail)
        if not isinstance(state.phase, AwaitingCalls):
            return Moved(*_dropped(state, effects), others)
        started = self._start(kin, state, _with(above, others), tainted=tainted)
        return started._replace(effects=(*effects, *started.effects))

    def _start(self, kin: Kin, state: State, above: tuple[Above, ...], *, tainted: bool) -> Moved:
        """Start the first sub-agent that waits, if none is running."""
        if not state.children or state.children[0].state is not None:
            return Moved(state, (), _memories(above))
        first, lower = state.children[0], kin.below[state.children[0].tool]
        budget = budget_below(kin.agent, state, lower.agent)
        if budget is None:
            state = replace(state, children=state.children[1:])
            none_left = ToolFailed(state.now_ms, first.effect_id, "unavailable", "nothing of the budget is left for it")
            return self._own(kin, state, at_time_of(state, none_left), above, tainted=tainted)
        is_tainted = tainted or has_read_untrusted(kin.agent, state)
        inner = _session(lower, state, first.request, is_tainted)
        inner = replace(inner, heard=user_texts(self._talk), done=state.done)
        child = replace(first, state=inner, budget=budget, tainted=is_tainted)
        state = replace(state, children=(child, *state.children[1:]))
        asked = at_time_of(state, UserSaid(0, first.request))
        return self._below(kin, state, child, asked, above, tainted=tainted)

    def _below(
        self, kin: Kin, state: State, child: Child, event: Event, above: tuple[Above, ...], *, tainted: bool
    ) -> Moved:
        """Let the running sub-agent take the event; when it has come to rest, that is the call's answer."""
        moved = self._inside(kin, state, child, event, above)
        inner = moved.state.children[0].state
        if moved.halted:
            return moved._replace(state=replace(moved.state, children=()))
        assert inner is not None, "the sub-agent that runs stands first"
        if not is_resting(inner):
            return moved
        said = "\n".join(e.text for e in moved.effects if isinstance(e, Say))
        out = tuple(e for e in moved.effects if not isinstance(e, Say | Finish))
        is_tainted = moved.state.tainted or child.tainted or has_read_untrusted(kin.below[child.tool].agent, inner)
        state = replace(moved.state, children=moved.state.children[1:], tainted=is_tainted)
        answer = _answer(state.now_ms, child.effect_id, inner, said)
        after = self._own(kin, state, at_time_of(state, answer), _with(above, moved.above), tainted=tainted)
        return after._replace(effects=(*out, *after.effects))

    def _inside(self, kin: Kin, state: State, child: Child, event: Event, above: tuple[Above, ...]) -> Moved:
        """Run one transition of a sub-agent and take over what it counted and what the guards have seen."""
        assert child.state is not None and child.budget is not None, "only a started session takes events"
        lower = self._step.limited(kin.below[child.tool], child.budget, self._dialect)
        inner = replace(child.state, next_effect_id=state.next_effect_id)
        mine = Above(kin.guard, state.monitors, state.turn)
        moved = self.deliver(lower, inner, event, (mine, *above), tainted=child.tainted)
        after = moved.state
        state = replace(
            charged(kin.agent, state, child.state.session_spent, after.session_spent),
            next_effect_id=after.next_effect_id,
            now_ms=max(state.now_ms, after.now_ms),
            skew_ms=after.skew_ms,
            monitors=moved.above[0],
            children=(replace(child, state=after), *state.children[1:]),
        )
        cancels_only = isinstance(event, Cancelled) or moved.halted
        effects = tuple(e for e in moved.effects if isinstance(e, CancelEffect)) if cancels_only else moved.effects
        return Moved(state, effects, moved.above[1:], moved.halted)


def _session(lower: Kin, state: State, request: str, tainted: bool) -> State:
    """The state of a sub-agent's session before its first word."""
    now = state.now_ms
    begun = SessionStarted(now, lower.agent.name, lower.agent.digest, state.seed, "", state.context_tokens, "")
    memory = lower.guard.observe(None, State(), begun)
    if tainted:
        # Its rules must know, though what came in came in above.
        seen = State(now_ms=now, phase=AwaitingCalls((PendingCall(0, "", "{}"),)))
        memory = lower.guard.observe(memory, seen, ToolFailed(now, 0, "raised", request))
    return State(
        agent_digest=lower.agent.digest,
        seed=state.seed,
        context_tokens=state.context_tokens,
        now_ms=now,
        skew_ms=state.skew_ms,
        next_effect_id=state.next_effect_id,
        phase=Idle(),
        session_spent=Spent(started_ms=now),
        monitors=memory,
    )


def _answer(now_ms: int, effect_id: int, inner: State, said: str) -> ToolReturned | ToolFailed:
    outcome = inner.outcome
    if outcome is not None and outcome.kind in ("answered", "budget"):
        return ToolReturned(now_ms, effect_id, canonical_json(said))
    why = f"{outcome.kind}: {outcome.detail}" if outcome else "it ended without an answer"
    return ToolFailed(now_ms, effect_id, "raised", f"{why}. {said}".strip())


def _dropped(state: State, effects: tuple[Effect, ...]) -> tuple[State, tuple[Effect, ...]]:
    """Let go of the sub-agents of a turn that has ended."""
    targets = [effect_id for c in state.children if c.state for effect_id in outstanding(c.state)]
    first = state.next_effect_id
    cancels = tuple(CancelEffect(first + n, target) for n, target in enumerate(targets))
    return replace(state, children=(), next_effect_id=first + len(targets)), (*cancels, *effects)


def _signed(effect: Effect, path: str) -> Effect:
    return replace(effect, agent=path) if path and isinstance(effect, AskModel | CallTool | AskUser) else effect


def _memories(above: tuple[Above, ...]) -> tuple[Any, ...]:
    return tuple(a.memory for a in above)


def _with(above: tuple[Above, ...], memories: tuple[Any, ...]) -> tuple[Above, ...]:
    return tuple(a._replace(memory=m) for a, m in zip(above, memories, strict=True))


def _with_those_above(own: Guard, above: tuple[Above, ...]) -> Guard:
    """The guard of a sub-agent and those of all agents above it; its memory is theirs, in this order."""
    return AllGuards((own, *(a.guard for a in above)), (None, *(a.turn for a in above)))
