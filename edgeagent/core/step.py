"""The whole agent: `step(agent, state, event) -> (state, effects)`. Deterministic; touches nothing.

A turn begins with the user's word, or with what comes from outside, and always ends: in an answer, in a closing
answer that names the limit that was reached, or in a failure that is said. Every way out goes through `turn.end_turn`.

    Idle --UserSaid--> AwaitingModel --calls--> AwaitingCalls --last result--> AwaitingModel --answer--> Idle
    Idle --Heard, TimerFired--> AwaitingModel
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from edgeagent.core import outside
from edgeagent.core.agent import Agent
from edgeagent.core.budget import after_admission
from edgeagent.core.calls import (
    admit_calls,
    after_question,
    answer_call,
    answer_unreadable,
    call_effect,
    call_where,
    cancel_outstanding,
    change_call,
    held_calls,
    hold,
    must_not_repeat,
    refusal_text,
    running_call,
    with_trouble,
)
from edgeagent.core.context import DENSITY_MAX, density_from
from edgeagent.core.effects import CallTool, Finish, Say
from edgeagent.core.events import (
    Cancelled,
    EffectLost,
    Event,
    Forked,
    Heard,
    ModelAnswered,
    ModelFailed,
    Reconfigured,
    SessionResumed,
    SessionStarted,
    TimerFired,
    ToolFailed,
    ToolReturned,
    TraceRepaired,
    UserDecided,
    UserSaid,
)
from edgeagent.core.limits import (
    admit,
    limit_for_calls,
    limit_of_tool,
    session_budget,
    spend_model_call,
    window_left,
    without_wait,
)
from edgeagent.core.more import gone, part_told
from edgeagent.core.reading import Answer, Calls, Unreadable
from edgeagent.core.results import told, with_shorter_results
from edgeagent.core.state import (
    AwaitingCalls,
    AwaitingModel,
    Finished,
    Idle,
    PendingCall,
    State,
    Transition,
    Unstarted,
    is_held,
    is_yes,
)
from edgeagent.core.turn import (
    ask_model,
    ask_or_close,
    begin_turn,
    closed_by,
    closing_text,
    end_turn,
    heard,
    next_id,
    outcome_of,
    prompt_bytes,
)
from edgeagent.core.values import Message, Outcome, Usage, call_digest, canonical_json
from edgeagent.errors import IllegalTransition

REFITS_MAX = 3
"""How often an ask is repeated with a shorter prompt after the model said that it did not fit."""

LOST_MAX = 3
"""How many crashes one call or its question survives before it is given up: the crash may be its doing."""

QUEUE_MAX = 8
"""Words of the user that wait while a turn is running."""


def step(agent: Agent, state: State, event: Event) -> Transition:
    """Return the next state and what to ask of the world.

    A late answer to an effect that is no longer awaited changes nothing but the clock.
    Raises IllegalTransition for an event that only a bug of ours could produce.
    """
    if isinstance(state.phase, Unstarted) != isinstance(event, SessionStarted):
        raise IllegalTransition(f"{type(event).__name__} cannot follow in phase {type(state.phase).__name__}")
    stopped_ms, steady_ms = state.now_ms, event.at_ms - event.skew_ms
    state = replace(state, now_ms=steady_ms if steady_ms > stopped_ms else stopped_ms, skew_ms=event.skew_ms)
    match event:
        case SessionStarted():
            return _start_session(state, event), ()
        case UserSaid():
            return _on_user_said(agent, state, event.text)
        case ModelAnswered():
            return _on_model_answered(agent, state, event)
        case ModelFailed():
            return _on_model_failed(agent, state, event)
        case ToolReturned():
            return _on_tool_returned(agent, state, event)
        case ToolFailed():
            return _on_tool_failed(agent, state, event)
        case UserDecided():
            return _on_user_decided(agent, state, event)
        case EffectLost():
            return _on_effect_lost(agent, state, event.effect_id)
        case Cancelled():
            return _on_cancelled(agent, state, event.reason)
        case TraceRepaired() | Reconfigured():
            return state, ()  # Told to the trace's readers: what was cut off, or who answers from now on.
        case SessionResumed():
            return _on_session_resumed(state, stopped_ms), ()
        case TimerFired():
            return outside.on_timer_fired(agent, state, event)
        case Heard():
            return outside.on_heard(agent, state, event)
        case Forked():
            return _on_forked(agent, state, event), ()
        case _:
            assert_never(event)


def refuse(agent: Agent, state: State, effect: CallTool, because: str) -> Transition:
    """Answer a wanted call with a refusal, as the guard has judged, inside the same transition."""
    state = admit(agent, with_trouble(state, Outcome("refused", because)), (effect.tool,), times=-1)
    wanted = running_call(state, effect.effect_id)
    assert wanted is not None, "only a wanted call can be refused"
    return answer_call(agent, state, wanted, refusal_text(because), ran=False)


def halt(agent: Agent, state: State, because: str) -> Transition:
    """End the session for good, as the guard has judged."""
    state, cancels = cancel_outstanding(agent, state)
    text = f"Stopped: {because}"
    state = replace(state, queued=(), waiting=(), timers=())
    state, effects = end_turn(agent, state, text, Outcome("halted", because))
    state, finish_id = next_id(state)
    return replace(state, phase=Finished(because)), (*cancels, *effects, Finish(finish_id, because))


def _start_session(state: State, event: SessionStarted) -> State:
    return replace(
        state,
        agent_digest=event.agent_digest,
        session=event.session,
        seed=event.seed,
        context_tokens=event.context_tokens,
        session_spent=replace(state.session_spent, started_ms=state.now_ms),
        phase=Idle(),
    )


def _on_user_said(agent: Agent, state: State, text: str) -> Transition:
    match state.phase:
        case Idle():
            piped = tuple(each.message for each in state.waiting)  # Nothing else waits while nothing runs.
            return begin_turn(agent, replace(state, waiting=()), Message("user", text), piped)
        case Finished(reason=reason):
            state, say_id = next_id(state)
            return state, (Say(say_id, f"This session has ended ({reason}). Start a new one."),)
        case _:
            queued = (*state.queued, text)[:QUEUE_MAX]
            return replace(state, queued=queued), ()


def _on_model_answered(agent: Agent, state: State, event: ModelAnswered) -> Transition:
    phase = state.phase
    if not isinstance(phase, AwaitingModel) or phase.effect_id != event.effect_id:
        return state, ()  # The answer to a question we no longer ask.
    state = spend_model_call(state, event.usage)
    written = Message("assistant", event.text, event.token_ids)
    if event.stop == "cancelled":
        return end_turn(agent, state, "", Outcome("cancelled", "interrupted"), written)
    if phase.closing:
        return end_turn(agent, state, closing_text(event.text, phase.closing), closed_by(phase.closing), written)
    assert agent.dialect is not None, "the wiring gives every running agent its dialect"
    reading = Answer(event.text) if phase.choice == "answer" else agent.dialect.read(event.text)
    match reading:
        case Answer(text=text) if event.stop == "time":
            return end_turn(agent, state, closing_text(text, "seconds"), closed_by("seconds"), written)
        case Answer(text=text):
            return end_turn(agent, state, text.strip(), outcome_of(state), written)
        case Unreadable(because=because):
            return answer_unreadable(agent, heard(state, written), because)
        case Calls(calls=calls):
            return admit_calls(agent, heard(state, written), calls, event.confidence)
        case _:
            assert_never(reading)


def _on_model_failed(agent: Agent, state: State, event: ModelFailed) -> Transition:
    phase = state.phase
    if not isinstance(phase, AwaitingModel) or phase.effect_id != event.effect_id:
        return state, ()
    if event.spent is not None:
        state = spend_model_call(state, event.spent)
    if event.reason == "context_full" and phase.refits < REFITS_MAX:
        counted = density_from(event.prompt_tokens, prompt_bytes(agent, state))
        state = replace(state, density=min(DENSITY_MAX, max(counted, state.density * 5 // 4)))
        state = with_shorter_results(agent, state, least=phase.refits + 1 == REFITS_MAX)
        return ask_model(agent, state, phase.choice, phase.closing, refits=phase.refits + 1)
    if event.reason == "time":
        return end_turn(agent, state, closing_text("", "seconds"), closed_by("seconds"))
    if event.reason == "context_full" and window_left(agent, state) < state.context_tokens:
        return end_turn(agent, state, closing_text("", "prompt tokens"), closed_by("prompt tokens"))
    return end_turn(agent, state, f"The model failed: {event.message}", Outcome("failed", event.message))


def _on_tool_returned(agent: Agent, state: State, event: ToolReturned) -> Transition:
    returned = running_call(state, event.effect_id)
    if returned is None:
        return state, ()  # Late, twice, or of a call that still waits for its yes.
    state, timers = outside.set_timers(agent, state, returned)
    answer = told(event.value, event.total) if event.total else event.value
    if event.kept:
        returned = replace(returned, kept=event.kept)
    if event.unshown:
        answer = canonical_json({"done": f"its result cannot be shown, because {event.unshown}"})
    if returned.of:
        state = gone(state, returned) if event.unshown else state
        answer = part_told(state, returned, answer)
    state, effects = answer_call(agent, state, returned, answer, ran=True)
    return state, (*timers, *effects)


def _on_tool_failed(agent: Agent, state: State, event: ToolFailed) -> Transition:
    failed = running_call(state, event.effect_id)
    if failed is None:
        return state, ()
    text = f"{event.reason.replace('_', ' ')}: {event.message}"
    trouble = Outcome("failed", f"{failed.tool} {text}")
    answer = canonical_json({"error": text})
    return answer_call(agent, state, failed, answer, ran=True, trouble=trouble)


def _on_user_decided(agent: Agent, state: State, event: UserDecided) -> Transition:
    held = call_where(state, lambda c: c.question_id == event.effect_id and is_held(c))
    if held is None:
        return state, ()
    if not is_yes(held, event, state.now_ms):
        return _deny(agent, state, held, _why_not(held, event, state.now_ms))
    # 1. yes  2. the call leaves  3. the same yes arrives again: `confirmed` says that it has been used up.
    state = change_call(after_question(state, held), held.effect_id, replace(held, confirmed=True))
    return state, (call_effect(agent, state, held, confirmation=event.effect_id),)


def _deny(agent: Agent, state: State, held: PendingCall, because: str) -> Transition:
    state = admit(agent, after_question(state, held), (held.tool,), times=-1)
    state = with_trouble(state, Outcome("refused", because))
    return answer_call(agent, state, held, refusal_text(because), ran=False)


def _why_not(held: PendingCall, event: UserDecided, now_ms: int) -> str:
    if not event.approved:
        return f"the user said no{': ' + event.text if event.text else ''}"
    if now_ms > held.expires_ms:
        return "the user's yes came too late"
    return "the user's yes was to another call"


def _on_effect_lost(agent: Agent, state: State, effect_id: int) -> Transition:
    phase = state.phase
    if isinstance(phase, AwaitingModel) and phase.effect_id == effect_id:
        # The model did work, so it counts: or a device that crashes in every answer would ask for ever.
        return ask_or_close(agent, spend_model_call(state, Usage()), phase.choice, phase.closing)
    asked = call_where(state, lambda c: c.question_id == effect_id and is_held(c))
    if asked is not None:
        return _ask_again(agent, state, asked)
    lost = running_call(state, effect_id)
    if lost is None:
        return state, ()
    if agent.by_name[lost.tool].idempotent and lost.lost < LOST_MAX:
        again = limit_for_calls(agent, state, 1) or limit_of_tool(agent, state, lost.tool, ())
        if again is None:
            state = admit(agent, state, (lost.tool,))
            state = change_call(state, effect_id, replace(lost, lost=lost.lost + 1, confirmed=False))
            if lost.confirmed:  # Its yes is used up; running it again is another question.
                return hold(state, call_effect(agent, state, lost), lost.because)
            return state, (call_effect(agent, state, lost),)
    unknown = f"unknown: {lost.tool} was interrupted; it may or may not have happened, check before you repeat it"
    trouble = Outcome("unknown", f"{lost.tool} {lost.arguments} was interrupted; it may or may not have happened")
    return answer_call(agent, state, lost, canonical_json({"error": unknown}), ran=True, trouble=trouble)


def _ask_again(agent: Agent, state: State, asked: PendingCall) -> Transition:
    """Put a question anew that a crash took away; a yes to the old one no longer counts."""
    if asked.lost >= LOST_MAX:
        return _deny(agent, state, asked, "the question was interrupted too often")
    state = change_call(state, asked.effect_id, replace(asked, lost=asked.lost + 1))
    return hold(state, call_effect(agent, state, asked), asked.because)


def _on_cancelled(agent: Agent, state: State, reason: str) -> Transition:
    if not isinstance(state.phase, AwaitingModel | AwaitingCalls):
        return state, ()
    state, cancels = cancel_outstanding(agent, state)
    # What has waited is counted as missed and said at the next turn: who stops a flood must not get the next wave.
    state = replace(state, queued=(), waiting=(), missed=state.missed + len(state.waiting))
    state, effects = end_turn(agent, state, "", Outcome("cancelled", reason))
    return state, (*cancels, *effects)


def _on_session_resumed(state: State, stopped_ms: int) -> State:
    gap_ms = state.now_ms - stopped_ms
    for held in held_calls(state):
        state = change_call(state, held.effect_id, replace(held, asked_ms=held.asked_ms + gap_ms))
    return without_wait(state, gap_ms)


def _on_forked(agent: Agent, state: State, event: Forked) -> State:
    """What the other session has made counts for this one, and what must not be made twice is asked about."""
    once = (call_digest(tool, arguments) for tool, arguments in event.made if must_not_repeat(agent, tool))
    done = tuple(dict.fromkeys((*state.done, *once)))
    spent = after_admission(session_budget(agent), state.session_spent, tuple(tool for tool, _ in event.made))
    below = tuple(replace(c, state=replace(c.state, done=done)) if c.state else c for c in state.children)
    return replace(state, session_spent=spent, done=done, children=below)
