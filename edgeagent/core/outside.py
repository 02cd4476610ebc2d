"""What comes from outside without having been asked for: lines that are heard, timers that fire.

Each begins a turn of its own when the session rests, and else waits in the state, at most `WAITING_MAX` of them.
None of it is the user's word: `user_texts` never gives it, and what was heard taints as a tool's output does.
"""

from __future__ import annotations

from msgspec.structs import replace

from edgeagent.core.agent import SET_TIMER, Agent, Tool
from edgeagent.core.effects import Effect, SetTimer
from edgeagent.core.events import Heard, TimerFired
from edgeagent.core.state import Finished, Idle, PendingCall, State, Timer, Transition, Waiting
from edgeagent.core.turn import begin_turn, has_read_untrusted, next_id
from edgeagent.core.values import Message, read_json

WAITING_MAX = 8
"""Messages that wait while a turn is running, as many as words of the user."""

TIMERS_MAX = 16
"""Timers that may be set at once; a bound against a model that sets one in every turn."""

PIPED = "stdin"
"""The source of text that was piped in beside a user's word. It begins no turn: it is read in the one that follows."""

HEARD_CHARS_MAX = 2_000
"""The most of what is heard that the model is shown."""


def on_heard(agent: Agent, state: State, event: Heard) -> Transition:
    """Let what was heard begin a turn, if the agent listens to its source."""
    if not is_heard(agent, event):
        return state, ()
    text = event.text
    most = max(HEARD_CHARS_MAX, state.context_tokens) if event.source == PIPED else HEARD_CHARS_MAX
    if len(text) > most:
        text = f"{text[:most]}… ({len(text) - most} more characters not shown)"
    came = Waiting(Message("heard", text, tool=event.source))
    if event.source == PIPED and isinstance(state.phase, Idle):
        return replace(state, waiting=(*state.waiting, came)[-WAITING_MAX:]), ()
    return _take_in(agent, state, came)


def is_heard(agent: Agent, event: Heard) -> bool:
    """Whether anybody listens to its source."""
    return event.source == PIPED or event.source in agent.hears


def on_timer_fired(agent: Agent, state: State, event: TimerFired) -> Transition:
    """Let the note of the timer begin a turn. One that is not set, or has fired, changes nothing."""
    fired = next((t for t in state.timers if t.effect_id == event.effect_id), None)
    if fired is None:
        return state, ()
    state = replace(state, timers=tuple(t for t in state.timers if t is not fired))
    return _take_in(agent, state, Waiting(Message("note", fired.note), fired.tainted))


def _take_in(agent: Agent, state: State, came: Waiting) -> Transition:
    match state.phase:
        case Idle():
            return begin_turn(agent, state, came.message)
        case Finished():
            return state, ()
        case _:
            waiting = (*state.waiting, came)
            dropped = max(0, len(waiting) - WAITING_MAX)
            return replace(state, waiting=waiting[dropped:], missed=state.missed + dropped), ()


def taken_up(before: State, after: State) -> tuple[Waiting, ...]:
    """What had waited and has begun its turn between these two states: the model reads it from now on."""
    return before.waiting[: max(0, len(before.waiting) - len(after.waiting))]


def why_no_timer(state: State, tool: Tool) -> str:
    """Say why no timer can be set, or nothing."""
    if tool is not SET_TIMER or len(state.timers) < TIMERS_MAX:
        return ""
    return f"{TIMERS_MAX} timers are set already; wait until one has fired"


def set_timers(agent: Agent, state: State, returned: PendingCall) -> tuple[State, tuple[Effect, ...]]:
    """Set the timer that a call of `set_timer` asked for; nothing for any other call."""
    if agent.by_name.get(returned.tool) is not SET_TIMER:
        return state, ()
    wanted = read_json(returned.arguments)
    after_ms = wanted["seconds"] * 1000
    state, effect_id = next_id(state)
    timer = Timer(effect_id, state.now_ms + after_ms, wanted["note"], has_read_untrusted(agent, state))
    return replace(state, timers=(*state.timers, timer)), (SetTimer(effect_id, after_ms),)
