"""What one position of a session is: an event or an effect, as formulas see it.

An event that answers nothing the session waits for (late, twice, forged) is a position at which no formula's
atom holds: it changed nothing. A word that waits for its turn belongs to the turn in which it arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from edgeagent.core.agent import Agent, Tool
from edgeagent.core.effects import CallTool, Effect
from edgeagent.core.events import EffectLost, Event, ToolFailed, ToolReturned, UserDecided, UserSaid
from edgeagent.core.state import AwaitingCalls, Idle, PendingCall, State
from edgeagent.policy.formula import Kind

Signature = tuple[Kind, str]
"""Kind and tool: what decides which formulas a position can touch at all."""


class Fact:
    """One position. Arguments and user texts are read only when a formula asks for them."""

    __slots__ = ("_arguments", "_defaults", "_texts", "at_ms", "kind", "text", "tool", "turn", "untrusted")

    def __init__(
        self,
        kind: Kind,
        tool: str = "",
        *,
        at_ms: int = 0,
        turn: int = 0,
        text: str = "",
        untrusted: bool = False,
        arguments: str | dict[str, Any] | None = None,
        defaults: Tool | None = None,
        texts: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self.kind, self.tool, self.at_ms, self.turn = kind, tool, at_ms, turn
        self.text, self.untrusted = text, untrusted
        self._arguments, self._defaults, self._texts = arguments, defaults, texts

    @property
    def signature(self) -> Signature:
        """Kind and tool."""
        return self.kind, self.tool

    @property
    def arguments(self) -> dict[str, Any]:
        """The call's arguments with the declared defaults filled in; empty where there is no call."""
        if not isinstance(self._arguments, dict):
            given = orjson.loads(self._arguments) if self._arguments else {}
            self._arguments = _defaults(self._defaults) | given if isinstance(given, dict) else {}
        return self._arguments

    @property
    def user_texts(self) -> tuple[str, ...]:
        """What the user said in this session, as far as the model can still see it."""
        return self._texts()


def _defaults(tool: Tool | None) -> dict[str, Any]:
    # A rule that never sees a default could be passed by leaving the argument out.
    properties = tool.parameters.schema.get("properties", {}) if tool else {}
    return {name: each["default"] for name, each in properties.items() if "default" in each}


def of_event(agent: Agent, state: State, event: Event) -> Fact:
    """Return the position that this event is; `state` is the one before it."""
    now = state.now_ms if state.now_ms > event.at_ms else event.at_ms
    match event:
        case UserSaid(text=text):
            turn = state.turn + 1 if isinstance(state.phase, Idle) else state.turn
            return Fact("said", at_ms=now, turn=turn, text=text)
        case ToolReturned(effect_id=effect_id):
            return _about(agent, state, "returned", running(state, effect_id), now)
        case ToolFailed(effect_id=effect_id) | EffectLost(effect_id=effect_id):
            return _about(agent, state, "failed", running(state, effect_id), now)
        case UserDecided(effect_id=effect_id):
            kind: Kind = "confirmed" if event.approved else "denied"
            return _about(agent, state, kind, asked(state, effect_id), now)
        case _:
            return Fact("other", at_ms=now, turn=state.turn)


def of_effect(agent: Agent, state: State, effect: Effect) -> Fact:
    """Return the position that this effect is, pending or admitted; `state` is the one that wants it."""
    if not isinstance(effect, CallTool):
        return Fact("other", at_ms=state.now_ms, turn=state.turn)
    return Fact(
        "called",
        effect.tool,
        at_ms=state.now_ms,
        turn=state.turn,
        arguments=effect.arguments,
        defaults=agent.by_name.get(effect.tool),
        texts=lambda: user_texts(state),
    )


def _about(agent: Agent, state: State, kind: Kind, call: PendingCall | None, now: int) -> Fact:
    if call is None:
        return Fact("other", at_ms=now, turn=state.turn)
    tool = agent.by_name.get(call.tool)
    return Fact(
        kind,
        call.tool,
        at_ms=now,
        turn=state.turn,
        untrusted=kind in ("returned", "failed") and not (tool is not None and tool.trusted),
        arguments=call.arguments,
        defaults=tool,
        texts=lambda: user_texts(state),
    )


def user_texts(state: State) -> tuple[str, ...]:
    """Return what the user said, oldest first: the exchanges the model still sees, and the running turn."""
    past = (m for exchange in state.past for m in exchange.messages)
    return tuple(m.text for messages in (past, state.current) for m in messages if m.role == "user")


def running(state: State, effect_id: int) -> PendingCall | None:
    """Return the call that is out under this id."""
    if not isinstance(state.phase, AwaitingCalls):
        return None
    return next((c for c in state.phase.calls if c.effect_id == effect_id and c.answer is None), None)


def asked(state: State, question_id: int) -> PendingCall | None:
    """Return the call that a person is being asked about under this id."""
    if not isinstance(state.phase, AwaitingCalls):
        return None
    return next((c for c in state.phase.calls if c.question_id == question_id and c.answer is None), None)
