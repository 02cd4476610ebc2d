"""The guard wraps step: monitors see the event, then every effect that step wants is judged before it may leave.

A refused effect becomes a refusal inside the same transition, and is never counted as having happened.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol, assert_never

import msgspec
from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.core.effects import CallTool, Effect
from edgeagent.core.events import Event
from edgeagent.core.state import State, Transition
from edgeagent.core.step import halt, hold, refuse, step


class Allow(msgspec.Struct, frozen=True, tag=True):
    """The effect may leave."""


class Refuse(msgspec.Struct, frozen=True, tag=True):
    """The effect must not leave; the model and the user are told why."""

    because: str


class Ask(msgspec.Struct, frozen=True, tag=True):
    """The effect may leave once a person has said yes to exactly this."""

    because: str


class Halt(msgspec.Struct, frozen=True, tag=True):
    """The session must end."""

    because: str


Verdict = Allow | Refuse | Ask | Halt

ALLOW = Allow()


class Guard(Protocol):
    """Judges effects by what has happened. Its memory travels in the state (`State.monitors`)."""

    def observe(self, memory: Any, state: State, event: Event) -> Any:
        """Return the memory after this event; `memory` is None at the start, `state` is the one before the event."""

    def judge(self, memory: Any, state: State, effect: Effect) -> Verdict:
        """Judge a pending effect; nothing is remembered."""

    def admit(self, memory: Any, state: State, effect: Effect) -> Any:
        """Return the memory after an effect has been allowed."""

    def narrow(self, memory: Any, state: State, effect: Effect) -> Effect:
        """Return the effect with everything taken out that would be refused anyway (tools of an AskModel)."""


class AllowAll:
    """The guard of an agent without rules."""

    def observe(self, memory: Any, state: State, event: Event) -> Any:
        """Remember nothing."""
        return memory

    def judge(self, memory: Any, state: State, effect: Effect) -> Verdict:
        """Allow everything."""
        return ALLOW

    def admit(self, memory: Any, state: State, effect: Effect) -> Any:
        """Remember nothing."""
        return memory

    def narrow(self, memory: Any, state: State, effect: Effect) -> Effect:
        """Take nothing out."""
        return effect


def guarded_step(guard: Guard, agent: Agent, state: State, event: Event) -> Transition:
    """Like step, but nothing that the guard forbids is among the effects."""
    memory = guard.observe(state.monitors, state, event)
    state, wanted = step(agent, state, event)
    state = replace(state, monitors=memory)
    queue, allowed = deque(wanted), []
    while queue:
        effect = guard.narrow(state.monitors, state, queue.popleft())
        verdict = guard.judge(state.monitors, state, effect)
        if isinstance(verdict, Halt):
            return halt(agent, state, verdict.because)  # Nothing of this transition has left yet, and nothing will.
        if isinstance(effect, CallTool) and not _may_leave(verdict, effect):
            state, instead = _instead(agent, state, effect, verdict)
            queue.extend(instead)
            continue
        state = replace(state, monitors=guard.admit(state.monitors, state, effect))
        allowed.append(effect)
    return state, tuple(allowed)


def _may_leave(verdict: Verdict, effect: CallTool) -> bool:
    return isinstance(verdict, Allow) or (isinstance(verdict, Ask) and effect.confirmation != 0)


def _instead(agent: Agent, state: State, effect: CallTool, verdict: Verdict) -> Transition:
    match verdict:
        case Refuse(because=because):
            return refuse(agent, state, effect, because)
        case Ask(because=because):
            return hold(state, effect, because)
        case Allow() | Halt():
            raise AssertionError("only a refusal or a question takes the place of a call")
        case _:
            assert_never(verdict)
