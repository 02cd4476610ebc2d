"""The whole agent: `step(agent, state, event) -> (state, effects)`. Deterministic; touches nothing.

A turn begins with the user's word and always ends: in an answer, in a closing answer that names the limit
that was reached, or in a failure that is said. Every way out goes through `_end_turn`.

    Idle --UserSaid--> AwaitingModel --calls--> AwaitingCalls --last result--> AwaitingModel --answer--> Idle
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import chain
from typing import Any, assert_never, cast

from msgspec.structs import replace

from edgeagent.core.agent import Agent, Answer, Calls, Tool, Unreadable
from edgeagent.core.budget import (
    CLOSING_TOKENS,
    NO_BUDGET,
    Budget,
    Limit,
    Spent,
    after_admission,
    after_answer,
    after_model_call,
    after_wait,
    calls_left,
    completion_left,
    left_ms,
    limit_before_ask,
    limit_before_calls,
    may_close,
    ordinary_tokens,
    prompt_left,
)
from edgeagent.core.condition import why_not_before
from edgeagent.core.context import DENSITY_MAX, density_from, estimate, exchange_of, fit, tokens_of
from edgeagent.core.effects import AskModel, AskUser, CallTool, CancelEffect, Effect, Finish, Say
from edgeagent.core.events import (
    Cancelled,
    EffectLost,
    Event,
    ModelAnswered,
    ModelFailed,
    SessionResumed,
    SessionStarted,
    ToolFailed,
    ToolReturned,
    TraceRepaired,
    UserDecided,
    UserSaid,
)
from edgeagent.core.from_user import Narrowed, why_not_quoted
from edgeagent.core.from_user import narrowed as quotable
from edgeagent.core.quoting import user_texts
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
    outstanding,
)
from edgeagent.core.values import (
    CallMade,
    Choice,
    Message,
    Outcome,
    ToolCall,
    Usage,
    canonical_json,
)
from edgeagent.errors import IllegalTransition, ShapeError

ANSWER_TOKENS_MAX = 256
"""The most one model call may write: about a minute on a Pi 4 with a 135M model."""

RESULT_CHARS_MAX = 2_000
"""The most of a tool's result that the model is shown: about a quarter of a 2,048-token window."""

CALLS_MAX = 8
"""The most calls in one batch."""

REFITS_MAX = 3
"""How often an ask is repeated with a shorter prompt after the model said that it did not fit."""

QUESTION_TIMEOUT_MS = 300_000
"""How long a question to the user stays open; after that the answer is no."""

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
    stopped_ms = state.now_ms
    state = replace(state, now_ms=max(state.now_ms, event.at_ms))
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
        case TraceRepaired():
            return state, ()  # Known to the trace's readers; what was cut off never led to anything.
        case SessionResumed():
            return _on_session_resumed(state, stopped_ms), ()
        case _:
            assert_never(event)


def refuse(agent: Agent, state: State, effect: CallTool, because: str) -> Transition:
    """Answer a wanted call with a refusal, as the guard has judged, inside the same transition."""
    state = _admit(agent, replace(state, trouble=Outcome("refused", because)), (effect.tool,), times=-1)
    wanted = _running(state, effect.effect_id)
    assert wanted is not None, "only a wanted call can be refused"
    return _answer_call(agent, state, wanted, _refusal_text(because), ran=False)


def hold(state: State, effect: CallTool, because: str) -> Transition:
    """Ask a person before a wanted call, as the guard has judged, inside the same transition."""
    state, question_id = _next_id(state)
    call = _call_where(state, lambda c: c.effect_id == effect.effect_id)
    assert call is not None, "only a wanted call can be held"
    timeout_ms = _question_ms(effect)
    held = replace(
        call,
        question_id=question_id,
        because=because,
        asked_ms=min((c.asked_ms for c in _held(state)), default=state.now_ms),
        expires_ms=state.now_ms + timeout_ms,
    )
    state = _change_call(state, call.effect_id, held)
    return state, (AskUser(question_id, effect.tool, effect.arguments, because, timeout_ms),)


def halt(agent: Agent, state: State, because: str) -> Transition:
    """End the session for good, as the guard has judged."""
    state, cancels = _cancel_outstanding(agent, state)
    text = f"Stopped: {because}"
    state, effects = _end_turn(agent, replace(state, queued=()), text, Outcome("halted", because))
    state, finish_id = _next_id(state)
    return replace(state, phase=Finished(because)), (*cancels, *effects, Finish(finish_id, because))


# -- one function for each kind of event ---------------------------------------------------------------------------


def _start_session(state: State, event: SessionStarted) -> State:
    return replace(
        state,
        agent_digest=event.agent_digest,
        seed=event.seed,
        context_tokens=event.context_tokens,
        session_spent=replace(state.session_spent, started_ms=event.at_ms),
        phase=Idle(),
    )


def _on_user_said(agent: Agent, state: State, text: str) -> Transition:
    match state.phase:
        case Idle():
            return _begin_turn(agent, state, text)
        case Finished(reason=reason):
            state, say_id = _next_id(state)
            return state, (Say(say_id, f"This session has ended ({reason}). Start a new one."),)
        case _:
            queued = (*state.queued, text)[:QUEUE_MAX]
            return replace(state, queued=queued), ()


def _on_model_answered(agent: Agent, state: State, event: ModelAnswered) -> Transition:
    phase = state.phase
    if not isinstance(phase, AwaitingModel) or phase.effect_id != event.effect_id:
        return state, ()  # The answer to a question we no longer ask.
    state = _spend_model_call(state, event.usage)
    written = Message("assistant", event.text, event.token_ids)
    if event.stop == "cancelled":
        return _end_turn(agent, state, "", Outcome("cancelled", "interrupted"), written)
    if phase.closing:
        return _end_turn(agent, state, _closing_text(event.text, phase.closing), _closed(phase.closing), written)
    assert agent.dialect is not None, "the wiring gives every running agent its dialect"
    reading = Answer(event.text) if phase.choice == "answer" else agent.dialect.read(event.text)
    match reading:
        case Answer(text=text) if event.stop == "time":
            return _end_turn(agent, state, _closing_text(text, "seconds"), _closed("seconds"), written)
        case Answer(text=text):
            return _end_turn(agent, state, text.strip(), _answered(state), written)
        case Unreadable(because=because):
            return _on_unreadable(agent, _heard(state, written), because)
        case Calls(calls=calls):
            return _on_calls(agent, _heard(state, written), calls)
        case _:
            assert_never(reading)


def _on_model_failed(agent: Agent, state: State, event: ModelFailed) -> Transition:
    phase = state.phase
    if not isinstance(phase, AwaitingModel) or phase.effect_id != event.effect_id:
        return state, ()
    if event.reason == "context_full" and phase.refits < REFITS_MAX:
        counted = density_from(event.prompt_tokens, _prompt_bytes(agent, state))
        state = replace(state, density=min(DENSITY_MAX, max(counted, state.density * 5 // 4)))
        return _ask_model(agent, state, phase.choice, phase.closing, refits=phase.refits + 1)
    if event.reason == "time":
        return _end_turn(agent, state, _closing_text("", "seconds"), _closed("seconds"))
    if event.reason == "context_full" and _window(agent, state) < state.context_tokens:
        return _end_turn(agent, state, _closing_text("", "prompt tokens"), _closed("prompt tokens"))
    return _end_turn(agent, state, f"The model failed: {event.message}", Outcome("failed", event.message))


def _on_tool_returned(agent: Agent, state: State, event: ToolReturned) -> Transition:
    returned = _running(state, event.effect_id)
    if returned is None:
        return state, ()  # Late, twice, or of a call that still waits for its yes.
    return _answer_call(agent, state, returned, event.value, ran=True)


def _on_tool_failed(agent: Agent, state: State, event: ToolFailed) -> Transition:
    failed = _running(state, event.effect_id)
    if failed is None:
        return state, ()
    text = f"{event.reason.replace('_', ' ')}: {event.message}"
    trouble = Outcome("failed", f"{failed.tool} {text}")
    answer = canonical_json({"error": text})
    return _answer_call(agent, state, failed, answer, ran=True, trouble=trouble)


def _on_user_decided(agent: Agent, state: State, event: UserDecided) -> Transition:
    held = _call_where(state, lambda c: c.question_id == event.effect_id and is_held(c))
    if held is None:
        return state, ()
    if not is_yes(held, event, state.now_ms):
        return _deny(agent, state, held, _why_not(held, event, state.now_ms))
    # 1. yes  2. the call leaves  3. the same yes arrives again: `confirmed` says that it has been used up.
    state = _change_call(_waited(state, held), held.effect_id, replace(held, confirmed=True))
    return state, (_call_effect(agent, state, held, confirmation=event.effect_id),)


def _deny(agent: Agent, state: State, held: PendingCall, because: str) -> Transition:
    state = _admit(agent, _waited(state, held), (held.tool,), times=-1)
    state = replace(state, trouble=Outcome("refused", because))
    return _answer_call(agent, state, held, _refusal_text(because), ran=False)


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
        return _ask(agent, _spend_model_call(state, Usage()), phase.choice, phase.closing)
    asked = _call_where(state, lambda c: c.question_id == effect_id and is_held(c))
    if asked is not None:
        return _ask_again(agent, state, asked)
    lost = _running(state, effect_id)
    if lost is None:
        return state, ()
    if agent.by_name[lost.tool].idempotent and lost.lost < LOST_MAX:
        again = _limit_for_calls(agent, state, 1) or _exhausted(agent, state, lost.tool, ())
        if again is None:
            state = _admit(agent, state, (lost.tool,))
            state = _change_call(state, effect_id, replace(lost, lost=lost.lost + 1, confirmed=False))
            if lost.confirmed:  # Its yes is used up; running it again is another question.
                return hold(state, _call_effect(agent, state, lost), lost.because)
            return state, (_call_effect(agent, state, lost),)
    unknown = f"unknown: {lost.tool} was interrupted; it may or may not have happened, check before you repeat it"
    trouble = Outcome("failed", unknown)
    return _answer_call(agent, state, lost, canonical_json({"error": unknown}), ran=True, trouble=trouble)


def _ask_again(agent: Agent, state: State, asked: PendingCall) -> Transition:
    """Put a question anew that a crash took away; a yes to the old one no longer counts."""
    if asked.lost >= LOST_MAX:
        return _deny(agent, state, asked, "the question was interrupted too often")
    state = _change_call(state, asked.effect_id, replace(asked, lost=asked.lost + 1))
    return hold(state, _call_effect(agent, state, asked), asked.because)


def _on_cancelled(agent: Agent, state: State, reason: str) -> Transition:
    if not isinstance(state.phase, AwaitingModel | AwaitingCalls):
        return state, ()
    state, cancels = _cancel_outstanding(agent, state)
    state, effects = _end_turn(agent, replace(state, queued=()), "", Outcome("cancelled", reason))
    return state, (*cancels, *effects)


def _on_session_resumed(state: State, stopped_ms: int) -> State:
    gap_ms = state.now_ms - stopped_ms
    for held in _held(state):
        state = _change_call(state, held.effect_id, replace(held, asked_ms=held.asked_ms + gap_ms))
    return _without(state, gap_ms)


# -- turns ---------------------------------------------------------------------------------------------------------


def _begin_turn(agent: Agent, state: State, text: str) -> Transition:
    state = replace(
        state,
        turn=state.turn + 1,
        current=(Message("user", text),),
        made=(),
        trouble=None,
        outcome=None,
        turn_spent=replace(State().turn_spent, started_ms=state.now_ms),
    )
    return _ask(agent, state, "either" if agent.tools else "answer")


def _end_turn(agent: Agent, state: State, text: str, outcome: Outcome, written: Message | None = None) -> Transition:
    """The one way out of a turn: keep the exchange, say the text, start the next waiting word if there is one."""
    last = written or Message("assistant", text or f"({outcome.kind}: {outcome.detail})")
    exchange = exchange_of((*state.current, last))
    state = replace(
        state, past=(*state.past, exchange), current=(), made=(), outcome=outcome, phase=Idle(), trouble=None
    )
    effects: tuple[Effect, ...] = ()
    if text:
        state, say_id = _next_id(state)
        effects = (Say(say_id, text),)
    limit = _session_limit(agent, state)
    if limit is not None:
        state, finish_id = _next_id(state)
        reason = f"the session's limit of {limit} is reached"
        return replace(state, phase=Finished(reason), queued=()), (*effects, Finish(finish_id, reason))
    if state.queued:
        first, *rest = state.queued
        state, more = _begin_turn(agent, replace(state, queued=tuple(rest)), first)
        effects = (*effects, *more)
    return state, effects


def _ask(agent: Agent, state: State, choice: Choice, closing: str = "") -> Transition:
    """Ask the model, or close the turn when a limit forbids an ordinary ask."""
    if closing:
        return _close(agent, state, closing)
    limit = limit_before_ask(agent.budget, state.turn_spent, state.now_ms) or _session_limit(agent, state)
    if limit is not None:
        return _close(agent, state, limit)
    return _ask_model(agent, state, choice, closing="")


def _close(agent: Agent, state: State, limit: str) -> Transition:
    """Let the model write a closing answer if that still fits; else say it ourselves."""
    fits = may_close(agent.budget, state.turn_spent, state.now_ms) and may_close(
        _session_budget(agent), state.session_spent, state.now_ms
    )
    if fits:
        return _ask_model(agent, state, "answer", closing=limit)
    return _end_turn(agent, state, _closing_text("", limit), _closed(limit))


def _ask_model(agent: Agent, state: State, choice: Choice, closing: str, refits: int = 0) -> Transition:
    own = tokens_of(state.current, state.density) + estimate(agent.prompt_bytes, state.density)
    window = _window(agent, state)
    past = fit(state.past, max(0, window - own - min(ANSWER_TOKENS_MAX, window // 4)), state.density)
    if past is not state.past:
        state = replace(state, dropped=state.dropped + len(state.past) - len(past), past=past)
    state, effect_id = _next_id(state)
    timeout = min(
        (left for left in _each_left_ms(agent, state) if left is not None),
        default=0,
    )
    tools, narrowed = ((), ()) if choice == "answer" else _offered(agent, state)
    ask = AskModel(
        effect_id=effect_id,
        messages=(*chain.from_iterable([exchange.messages for exchange in past]), *state.current),
        tools=tools,
        choice=choice,
        max_tokens=_tokens_to_write(agent, state, closing),
        timeout_ms=timeout,
        seed=_seed_for(state.seed, effect_id),
        closing=closing,
        narrowed=narrowed,
        prompt_tokens_max=window if window < state.context_tokens else 0,
    )
    return replace(state, phase=AwaitingModel(effect_id, choice, closing, refits)), (ask,)


# -- calls ---------------------------------------------------------------------------------------------------------


def _on_unreadable(agent: Agent, state: State, because: str) -> Transition:
    state = _count_answer(state, refused=True)
    state = _heard(state, Message("tool", _refusal_text(because)))
    return _ask(agent, state, "either")


def _on_calls(agent: Agent, state: State, calls: tuple[ToolCall, ...]) -> Transition:
    """Admit the whole batch or none of it, before its first call runs."""
    if len(calls) > CALLS_MAX:
        return _on_unreadable(agent, state, f"{len(calls)} calls at once; {CALLS_MAX} is the most")
    pending: list[PendingCall] = []
    for call in calls:
        state, effect_id = _next_id(state)
        pending.append(_checked(agent, state, call, effect_id, tuple(pending)))
    runnable = [c for c in pending if c.answer is None]
    limit = _limit_for_calls(agent, state, len(runnable))
    if limit is not None:
        return _close(agent, state, limit)
    tools = tuple(c.tool for c in runnable)
    state = replace(
        state,
        phase=AwaitingCalls(tuple(pending)),
        turn_spent=after_admission(agent.budget, state.turn_spent, tools),
        session_spent=after_admission(_session_budget(agent), state.session_spent, tools),
    )
    effects: list[Effect] = []
    for wanted in runnable:
        effect = _call_effect(agent, state, wanted)
        if agent.by_name[wanted.tool].confirm:
            state, asked = hold(state, effect, f"{wanted.tool} always asks first")
            effects.extend(asked)
        else:
            effects.append(effect)
    return (state, tuple(effects)) if effects else _calls_done(agent, state, tuple(pending))


def _checked(agent: Agent, state: State, call: ToolCall, effect_id: int, batch: tuple[PendingCall, ...]) -> PendingCall:
    """Turn a call as written into a pending one: with canonical arguments, or already answered with what is wrong."""
    tool = agent.by_name.get(call.tool)
    if tool is None:
        known = ", ".join(agent.tool_names)
        return PendingCall(effect_id, call.tool, "{}", answer=_refusal_text(f"no tool {call.tool}; {known}"))
    try:
        typed = tool.parameters.decode(call.arguments)
    except ShapeError as error:
        return PendingCall(effect_id, call.tool, "{}", answer=_refusal_text(str(error)))
    arguments = canonical_json(_as_written(tool, call.arguments, typed))
    broken = why_not_quoted(tool.from_user, call.arguments, user_texts(state)) if tool.from_user else ""
    broken = broken or why_not_before(tool, typed)
    if broken:
        return PendingCall(effect_id, call.tool, arguments, answer=_refusal_text(broken))
    repeated = _repeated(agent, state, call.tool, arguments, batch)
    if repeated is not None:
        answer = _refusal_text(f"already called in this turn with the same arguments; the result was {repeated}")
        return PendingCall(effect_id, call.tool, arguments, answer=answer)
    exhausted = _exhausted(agent, state, call.tool, batch)
    if exhausted is not None:
        answer = _refusal_text(f"the limit of {exhausted} is reached")
        return PendingCall(effect_id, call.tool, arguments, answer=answer)
    return PendingCall(effect_id, call.tool, arguments)


def _as_written(tool: Tool, read: dict[str, Any], typed: dict[str, Any]) -> dict[str, Any]:
    """Return the one JSON form of typed arguments: 30 and 30.0 of a float are one call, not two."""
    if tool.writes_as_read and all(type(value) in (str, int, bool) for value in read.values()):
        return read  # Most calls; encoding costs as much as the rest of the check.
    return cast("dict[str, Any]", tool.parameters.encode(typed))


def _exhausted(agent: Agent, state: State, tool: str, batch: tuple[PendingCall, ...]) -> str | None:
    """Name the tool's own limit if one more call of it would pass it."""
    if not agent.budget.calls_of and not _session_budget(agent).calls_of:
        return None
    same = sum(c.tool == tool and c.answer is None for c in batch)
    for budget, spent in _budgets(agent, state):
        left = calls_left(budget, spent, tool)
        if left is not None and left <= same:
            return f"{budget.calls_of[tool]} calls of {tool}"
    return None


def _offered(agent: Agent, state: State) -> tuple[tuple[str, ...], tuple[Narrowed, ...]]:
    """Return the tools that may be called now, and what the user's words leave of their arguments."""
    tools = agent.tool_names
    if agent.budget.calls_of or _session_budget(agent).calls_of:
        tools = tuple(name for name in tools if _exhausted(agent, state, name, ()) is None)
    if not agent.quoting:
        return tools, ()
    texts = user_texts(state)
    left = {t.name: quotable(t.name, t.from_user, texts) for t in agent.quoting if t.name in tools}
    tools = tuple(name for name in tools if left.get(name, ()) is not None)
    return tools, tuple(each for limits in left.values() for each in limits or ())


def _repeated(agent: Agent, state: State, tool: str, arguments: str, batch: tuple[PendingCall, ...]) -> str | None:
    """Return the result that this very call has brought (or will bring) as often as the budget allows."""
    limit = agent.budget.repeats
    if limit is None or not (state.made or batch):
        return None
    results = Counter(m.answer for m in state.made if m.tool == tool and m.arguments == arguments)
    result, times = results.most_common(1)[0] if results else ("not known yet", 0)
    times += sum(c.tool == tool and c.arguments == arguments and c.answer is None for c in batch)
    return result if times >= limit else None


def _answer_call(
    agent: Agent, state: State, call: PendingCall, answer: str, *, ran: bool, trouble: Outcome | None = None
) -> Transition:
    """Note the answer of one call; after the last one, go back to the model."""
    assert isinstance(state.phase, AwaitingCalls), "calls are pending only in this phase"
    answered = replace(call, answer=answer, ran=ran)
    calls = tuple(answered if c.effect_id == call.effect_id else c for c in state.phase.calls)
    state = replace(state, phase=AwaitingCalls(calls), trouble=trouble if ran else state.trouble)
    if any(c.answer is None for c in calls):
        return state, ()
    return _calls_done(agent, state, calls)


def _calls_done(agent: Agent, state: State, calls: tuple[PendingCall, ...]) -> Transition:
    results = tuple(Message("tool", _shown(c.answer or ""), tool=c.tool) for c in calls)
    made = tuple(CallMade(c.tool, c.arguments, _shown(c.answer or "")) for c in calls if c.ran)
    repeated = not made and any((c.tool, c.arguments) in {(m.tool, m.arguments) for m in state.made} for c in calls)
    state = _count_answer(state, refused=not made)
    state = replace(state, current=(*state.current, *results), made=(*state.made, *made))
    # A model that asks for what it already has is in a loop; words are the only way on.
    return _ask(agent, state, "answer" if repeated else "either")


def _call_effect(agent: Agent, state: State, call: PendingCall, confirmation: int = 0) -> CallTool:
    timeout = round(agent.by_name[call.tool].timeout_s * 1000)
    left = [ms for ms in _each_left_ms(agent, state) if ms is not None]
    return CallTool(call.effect_id, call.tool, call.arguments, max(1, min([timeout, *left])), confirmation)


# -- small parts ---------------------------------------------------------------------------------------------------


def _next_id(state: State) -> tuple[State, int]:
    return replace(state, next_effect_id=state.next_effect_id + 1), state.next_effect_id


def _heard(state: State, message: Message) -> State:
    return replace(state, current=(*state.current, message))


def _admit(agent: Agent, state: State, tools: tuple[str, ...], times: int = 1) -> State:
    """Count a batch of calls that may run, or (`times` -1) give back what was refused after all."""
    return replace(
        state,
        turn_spent=after_admission(agent.budget, state.turn_spent, tools, times),
        session_spent=after_admission(_session_budget(agent), state.session_spent, tools, times),
    )


def _count_answer(state: State, *, refused: bool) -> State:
    if not refused and state.turn_spent.refusals == state.session_spent.refusals == 0:
        return state
    turn, session = after_answer(state.turn_spent, refused=refused), after_answer(state.session_spent, refused=refused)
    return replace(state, turn_spent=turn, session_spent=session)


def _spend_model_call(state: State, usage: Usage) -> State:
    turn, session = after_model_call(state.turn_spent, usage), after_model_call(state.session_spent, usage)
    return replace(state, turn_spent=turn, session_spent=session)


def _without(state: State, wait_ms: int) -> State:
    """Do not count this much time."""
    turn, session = after_wait(state.turn_spent, wait_ms), after_wait(state.session_spent, wait_ms)
    return replace(state, turn_spent=turn, session_spent=session)


def _waited(state: State, held: PendingCall) -> State:
    """A question is answered: once no other is open, the time since the first one does not count."""
    return state if len(_held(state)) > 1 else _without(state, state.now_ms - held.asked_ms)


def _held(state: State) -> tuple[PendingCall, ...]:
    return tuple(c for c in state.phase.calls if is_held(c)) if isinstance(state.phase, AwaitingCalls) else ()


def _running(state: State, effect_id: int) -> PendingCall | None:
    """Return the call that is out under this id: admitted, not waiting for a person, not answered."""
    if isinstance(state.phase, AwaitingCalls):
        for call in state.phase.calls:
            if call.effect_id == effect_id:
                return None if call.answer is not None or is_held(call) else call
    return None


def _call_where(state: State, wanted: Callable[[PendingCall], bool]) -> PendingCall | None:
    if not isinstance(state.phase, AwaitingCalls):
        return None
    return next((c for c in state.phase.calls if wanted(c)), None)


def _change_call(state: State, effect_id: int, changed: PendingCall) -> State:
    assert isinstance(state.phase, AwaitingCalls), "calls are pending only in this phase"
    calls = tuple(changed if c.effect_id == effect_id else c for c in state.phase.calls)
    return replace(state, phase=AwaitingCalls(calls))


def _cancel_outstanding(agent: Agent, state: State) -> tuple[State, tuple[Effect, ...]]:
    cancels = []
    targets = outstanding(state)
    state = _admit(agent, state, tuple(c.tool for c in _held(state)), times=-1)  # They were counted and never left.
    for target in targets:
        state, cancel_id = _next_id(state)
        cancels.append(CancelEffect(cancel_id, target))
    return state, tuple(cancels)


def _session_budget(agent: Agent) -> Budget:
    return agent.session_budget or NO_BUDGET


def _budgets(agent: Agent, state: State) -> tuple[tuple[Budget, Spent], tuple[Budget, Spent]]:
    return (agent.budget, state.turn_spent), (_session_budget(agent), state.session_spent)


def _window(agent: Agent, state: State) -> int:
    """Tokens that a prompt may have: the model's window, or less if the budget has less left."""
    if agent.budget.prompt_tokens is None and _session_budget(agent).prompt_tokens is None:
        return state.context_tokens
    lefts = [prompt_left(budget, spent) for budget, spent in _budgets(agent, state)]
    return min([state.context_tokens, *(left for left in lefts if left is not None)])


def _session_limit(agent: Agent, state: State) -> Limit | None:
    return limit_before_ask(_session_budget(agent), state.session_spent, state.now_ms)


def _limit_for_calls(agent: Agent, state: State, calls: int) -> Limit | None:
    return limit_before_calls(agent.budget, state.turn_spent, calls, state.now_ms) or limit_before_calls(
        _session_budget(agent), state.session_spent, calls, state.now_ms
    )


def _each_left_ms(agent: Agent, state: State) -> tuple[int | None, int | None]:
    return (
        left_ms(agent.budget, state.turn_spent, state.now_ms),
        left_ms(_session_budget(agent), state.session_spent, state.now_ms),
    )


def _tokens_to_write(agent: Agent, state: State, closing: str) -> int:
    budgets = ((agent.budget, state.turn_spent), (_session_budget(agent), state.session_spent))
    lefts = [completion_left(b, s) if closing else ordinary_tokens(b, s) for b, s in budgets]
    most = CLOSING_TOKENS if closing else ANSWER_TOKENS_MAX
    return max(1, min([most, state.context_tokens // 4, *(left for left in lefts if left is not None)]))


def _prompt_bytes(agent: Agent, state: State) -> int:
    messages = (*(m for exchange in state.past for m in exchange.messages), *state.current)
    return agent.prompt_bytes + sum(len(m.text.encode()) for m in messages)


def _seed_for(seed: int, effect_id: int) -> int:
    # Knuth's MMIX multiplier spreads neighbouring ids over the 32 bits that samplers take.
    return (seed * 6364136223846793005 + effect_id * 1442695040888963407) >> 16 & 0xFFFF_FFFF


def _question_ms(effect: CallTool) -> int:
    return max(QUESTION_TIMEOUT_MS, effect.timeout_ms)


def _answered(state: State) -> Outcome:
    return state.trouble or Outcome("answered")


def _closed(limit: str) -> Outcome:
    return Outcome("budget", limit)


def _closing_text(text: str, limit: str) -> str:
    note = f"[stopped: the limit of {limit} is reached]"
    return f"{text.strip()}\n{note}" if text.strip() else note


def _refusal_text(because: str) -> str:
    return canonical_json({"refused": because})


def _shown(text: str) -> str:
    if len(text) <= RESULT_CHARS_MAX:
        return text
    return f"{text[:RESULT_CHARS_MAX]}… ({len(text) - RESULT_CHARS_MAX} more characters not shown)"
