"""What one position of a session is: an event or an effect, as formulas see it.

An event that answers nothing the session waits for (late, twice, forged) is a position at which no formula's
atom holds: it changed nothing. A word that waits for its turn belongs to the turn in which it arrived.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from edgeagent.core.agent import Agent, Tool
from edgeagent.core.effects import CallTool, Effect
from edgeagent.core.events import (
    EffectLost,
    Event,
    Heard,
    TimerFired,
    ToolFailed,
    ToolReturned,
    UserDecided,
    UserSaid,
    steady_ms,
)
from edgeagent.core.quoting import user_texts as user_texts  # Others of this layer have it from here.
from edgeagent.core.state import AwaitingCalls, Idle, PendingCall, State, is_held, is_yes
from edgeagent.core.values import read_json
from edgeagent.policy.formula import Kind

Signature = tuple[Kind, str]
"""Kind and tool: what decides which formulas a position can touch at all."""

TOOLS_WORDS = "descriptions of tools"
"""The source of what outsiders wrote about tools: the model hears it at the beginning of every turn."""


class Fact:
    """One position. Arguments and user texts are read only when a formula asks for them.

    `at_ms` is steady time, as in the state; the wall clock shows `skew_ms` more.
    """

    __slots__ = (
        "_arguments",
        "_state",
        "_tool",
        "at_ms",
        "confidence",
        "kind",
        "skew_ms",
        "text",
        "tool",
        "turn",
        "untrusted",
    )

    def __init__(
        self,
        kind: Kind,
        tool: str = "",
        at_ms: int = 0,
        turn: int = 0,
        *,
        text: str = "",
        untrusted: bool = False,
        skew_ms: int = 0,
    ) -> None:
        self.kind = kind
        self.tool = tool
        self.at_ms = at_ms
        self.skew_ms = skew_ms
        self.turn = turn
        self.text = text
        self.untrusted = untrusted
        self.confidence: float | None = None
        self._arguments: str | dict[str, Any] = {}
        self._tool: Tool | None = None
        self._state: State | None = None

    def with_call(
        self,
        arguments: str | dict[str, Any],
        tool: Tool | None,
        state: State | None,
        confidence: float | None = None,
    ) -> Fact:
        """Say which call this is about (itself changed, for use right after making it)."""
        self._arguments, self._tool, self._state, self.confidence = arguments, tool, state, confidence
        return self

    @property
    def signature(self) -> Signature:
        """Kind and tool."""
        return self.kind, self.tool

    @property
    def arguments(self) -> dict[str, Any]:
        """The call's arguments with the declared defaults filled in; empty where there is no call."""
        if not isinstance(self._arguments, dict):
            given = read_json(self._arguments)
            self._arguments = _defaults(self._tool) | given if isinstance(given, dict) else {}
        return self._arguments

    @property
    def user_texts(self) -> tuple[str, ...]:
        """What the user said in this session, as far as the model can still see it."""
        return user_texts(self._state) if self._state else ()


def _defaults(tool: Tool | None) -> dict[str, Any]:
    # A rule that never sees a default could be passed by leaving the argument out.
    properties = tool.parameters.schema.get("properties", {}) if tool else {}
    return {name: each["default"] for name, each in properties.items() if "default" in each}


def what_happened(state: State, event: Event) -> tuple[Kind, PendingCall | None]:
    """Return what kind of position an event is, and the call it is about; `state` is the one before it.

    What reads on in a tool's result is that tool's word.
    """
    match event:
        case UserSaid():
            return "said", None
        case ToolReturned(effect_id=effect_id):
            call = running(state, effect_id)
            if call is not None and call.of:
                call = replace(call, tool=call.of, arguments="{}")
            return ("returned" if call else "other"), call
        case ToolFailed(effect_id=effect_id) | EffectLost(effect_id=effect_id):
            call = running(state, effect_id)
            return ("failed" if call else "other"), call
        case UserDecided(effect_id=effect_id):
            call = asked(state, effect_id)
            if call is None:
                return "other", None
            return ("confirmed" if is_yes(call, event, max(state.now_ms, steady_ms(event))) else "denied"), call
        case Heard():
            return "heard", None
        case TimerFired(effect_id=effect_id):
            return ("heard" if any(t.effect_id == effect_id and t.tainted for t in state.timers) else "other"), None
        case _:
            return "other", None


def of_event(agent: Agent, state: State, event: Event, kind: Kind, call: PendingCall | None) -> Fact:
    """Return the position that this event is; the last two as `what_happened` has found them."""
    now, skew = max(state.now_ms, steady_ms(event)), event.skew_ms
    if call is not None:
        tool = agent.by_name.get(call.tool)
        came_in = kind in ("returned", "failed") and not (tool is not None and tool.trusted)
        fact = Fact(kind, call.tool, now, state.turn, untrusted=came_in, skew_ms=skew)
        return fact.with_call(call.arguments, tool, state, call.confidence)
    if isinstance(event, UserSaid | Heard | TimerFired):
        turn = state.turn + 1 if isinstance(state.phase, Idle) else state.turn
        text = event.text if isinstance(event, UserSaid) else ""
        return Fact(kind, "", now, turn, text=text, untrusted=kind == "heard", skew_ms=skew)
    return Fact(kind, "", now, state.turn, skew_ms=skew)


def of_effect(agent: Agent, state: State, effect: Effect) -> Fact:
    """Return the position that this effect is, pending or admitted; `state` is the one that wants it."""
    if not isinstance(effect, CallTool):
        return Fact("other", "", state.now_ms, state.turn, skew_ms=state.skew_ms)
    fact = Fact("called", effect.tool, state.now_ms, state.turn, skew_ms=state.skew_ms)
    call = running(state, effect.effect_id)
    tool = agent.by_name.get(effect.tool)
    return fact.with_call(effect.arguments, tool, state, call.confidence if call else None)


def running(state: State, effect_id: int) -> PendingCall | None:
    """Return the call that is out under this id."""
    phase = state.phase
    if isinstance(phase, AwaitingCalls):
        for call in phase.calls:
            if call.effect_id == effect_id:
                return None if call.answer is not None or is_held(call) else call
    return None


def asked(state: State, question_id: int) -> PendingCall | None:
    """Return the call that a person is being asked about under this id."""
    phase = state.phase
    if isinstance(phase, AwaitingCalls):
        for call in phase.calls:
            if call.question_id == question_id:
                return call if is_held(call) else None
    return None
