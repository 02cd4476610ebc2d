"""What becomes of the calls that a model wrote: checked, admitted as a batch, asked about, answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from msgspec.structs import replace

from edgeagent.core.agent import RESULT_MORE, Agent, Tool
from edgeagent.core.budget import after_admission
from edgeagent.core.condition import why_not_before
from edgeagent.core.effects import AskUser, CallTool, CancelEffect, Effect
from edgeagent.core.from_user import why_not_quoted
from edgeagent.core.limits import (
    admit,
    count_answer,
    limit_for_calls,
    limit_of_tool,
    session_budget,
    time_left_ms,
    without_wait,
)
from edgeagent.core.more import is_cut, place_wanted
from edgeagent.core.outside import why_no_timer
from edgeagent.core.quoting import user_texts
from edgeagent.core.refusals import refusal_text as refusal_text
from edgeagent.core.results import with_results
from edgeagent.core.state import AwaitingCalls, PendingCall, State, Transition, is_held, outstanding
from edgeagent.core.turn import ask_or_close, close_turn, heard, next_id
from edgeagent.core.values import CallMade, Message, Outcome, ToolCall, call_digest, canonical_json, read_json
from edgeagent.errors import ShapeError

CALLS_MAX = 8
"""The most calls in one batch."""

QUESTION_TIMEOUT_MS = 300_000
"""How long a question to the user stays open; after that the answer is no."""


def answer_unreadable(agent: Agent, state: State, because: str) -> Transition:
    state = count_answer(state, refused=True)
    state = heard(state, Message("tool", refusal_text(because)))
    return ask_or_close(agent, state, "either")


def admit_calls(
    agent: Agent, state: State, calls: tuple[ToolCall, ...], confidence: tuple[float, ...] = ()
) -> Transition:
    """Admit the whole batch or none of it, before its first call runs.

    `confidence` is the driver's, one for each call; another number of them says nothing of any.
    """
    if len(calls) > CALLS_MAX:
        return answer_unreadable(agent, state, f"{len(calls)} calls at once; {CALLS_MAX} is the most")
    pending: list[PendingCall] = []
    told = confidence if len(confidence) == len(calls) else (None,) * len(calls)
    for call, probable in zip(calls, told, strict=True):
        state, effect_id = next_id(state)
        checked = _checked(agent, state, agent.as_declared(call), effect_id, tuple(pending))
        pending.append(checked if probable is None else replace(checked, confidence=probable))
    runnable = [c for c in pending if c.answer is None]
    limit = limit_for_calls(agent, state, len(runnable))
    if limit is not None:
        return close_turn(agent, state, limit)
    tools = tuple(c.tool for c in runnable)
    state = replace(
        state,
        phase=AwaitingCalls(tuple(pending)),
        turn_spent=after_admission(agent.budget, state.turn_spent, tools),
        session_spent=after_admission(session_budget(agent), state.session_spent, tools),
    )
    effects: list[Effect] = []
    for wanted in runnable:
        effect = call_effect(agent, state, wanted)
        because = _why_asked(agent, state, wanted)
        if because:
            state, asked = hold(state, effect, because)
            effects.extend(asked)
        else:
            effects.append(effect)
    return (state, tuple(effects)) if effects else _calls_done(agent, state, tuple(pending))


def _why_asked(agent: Agent, state: State, call: PendingCall) -> str:
    """Say why a person is asked before this call whatever the rules say, or nothing."""
    if state.done and call_digest(call.tool, call.arguments) in state.done:
        return f"the session that this one was forked from has made exactly this call of {call.tool} already"
    return f"{call.tool} always asks first" if agent.by_name[call.tool].confirm else ""


def must_not_repeat(agent: Agent, tool: str) -> bool:
    """Whether a call of this tool, of this agent or one below, must not happen twice."""
    declared = agent.family.get(tool)
    return declared is None or not declared.idempotent


def hold(state: State, effect: CallTool, because: str) -> Transition:
    """Ask a person before a wanted call, as the guard has judged, inside the same transition."""
    state, question_id = next_id(state)
    call = call_where(state, lambda c: c.effect_id == effect.effect_id)
    assert call is not None, "only a wanted call can be held"
    timeout_ms = _question_ms(effect)
    held = replace(
        call,
        question_id=question_id,
        because=because,
        asked_ms=min((c.asked_ms for c in held_calls(state)), default=state.now_ms),
        expires_ms=state.now_ms + timeout_ms,
    )
    state = change_call(state, call.effect_id, held)
    return state, (AskUser(question_id, effect.tool, effect.arguments, because, timeout_ms),)


def _checked(agent: Agent, state: State, call: ToolCall, effect_id: int, batch: tuple[PendingCall, ...]) -> PendingCall:
    """Turn a call as written into a pending one: with canonical arguments, or already answered with what is wrong."""
    tool = agent.by_name.get(call.tool)
    if tool is None or (tool is RESULT_MORE and not is_cut(state)):
        known = ", ".join(t.written for t in agent.tools)
        return PendingCall(effect_id, call.tool, "{}", answer=refusal_text(f"no tool {call.tool}; {known}"))
    try:
        typed = tool.parameters.decode(call.arguments)
    except ShapeError as error:
        return PendingCall(effect_id, call.tool, "{}", answer=refusal_text(str(error)))
    of, goes_on = "", False
    if tool is RESULT_MORE:
        place = place_wanted(agent, state, typed)
        if isinstance(place, str):
            return PendingCall(effect_id, call.tool, "{}", answer=refusal_text(place))
        of, typed = place[0].tool, place[1]
        # A part that had to be cut again moves the place back: what goes on from there is no repetition.
        goes_on = typed["at"] == place[0].at and not any(each.tool == call.tool for each in batch)
    arguments = canonical_json(typed if of else as_written(tool, call.arguments, typed))
    broken = why_not_quoted(tool.from_user, call.arguments, user_texts(state)) if tool.from_user else ""
    broken = broken or why_not_before(tool, typed) or why_no_timer(state, tool)
    if broken:
        return PendingCall(effect_id, call.tool, arguments, answer=refusal_text(broken))
    repeated = None if goes_on else _repeated(agent, state, call.tool, arguments, batch)
    if repeated is not None:
        answer = refusal_text(f"already called in this turn with the same arguments; the result was {repeated}")
        return PendingCall(effect_id, call.tool, arguments, answer=answer)
    exhausted = limit_of_tool(agent, state, call.tool, batch)
    if exhausted is not None:
        answer = refusal_text(f"the limit of {exhausted} is reached")
        return PendingCall(effect_id, call.tool, arguments, answer=answer)
    return PendingCall(effect_id, call.tool, arguments, of=of)


def as_written(tool: Tool, read: dict[str, Any], typed: dict[str, Any]) -> dict[str, Any]:
    """Return the one JSON form of typed arguments: 30 and 30.0 of a float are one call, not two."""
    if tool.writes_as_read and all(type(value) in (str, int, bool) for value in read.values()):
        return read  # Most calls; encoding costs as much as the rest of the check.
    return cast("dict[str, Any]", tool.parameters.encode(typed))


def _repeated(agent: Agent, state: State, tool: str, arguments: str, batch: tuple[PendingCall, ...]) -> str | None:
    """Return the result that this very call has brought (or will bring) as often as the budget allows."""
    limit = agent.budget.repeats
    if limit is None or not (state.made or batch):
        return None
    key = _as_compared(arguments)
    results = Counter(m.answer for m in state.made if m.tool == tool and _as_compared(m.arguments) == key)
    result, times = results.most_common(1)[0] if results else ("not known yet", 0)
    times += sum(c.tool == tool and _as_compared(c.arguments) == key and c.answer is None for c in batch)
    return result if times >= limit else None


def _as_compared(arguments: str) -> str:
    """Arguments as calls are compared by: a zero is a zero, whatever its sign."""
    return canonical_json(_unsigned(read_json(arguments))) if "-0.0" in arguments else arguments


def _unsigned(value: Any) -> Any:
    if isinstance(value, list):
        return [_unsigned(each) for each in value]
    if isinstance(value, dict):
        return {name: _unsigned(each) for name, each in value.items()}
    return 0.0 if isinstance(value, float) and value == 0 else value


def answer_call(
    agent: Agent, state: State, call: PendingCall, answer: str, *, ran: bool, trouble: Outcome | None = None
) -> Transition:
    """Note the answer of one call; after the last one, go back to the model."""
    assert isinstance(state.phase, AwaitingCalls), "calls are pending only in this phase"
    answered = replace(call, answer=answer, ran=ran)
    calls = tuple(answered if c.effect_id == call.effect_id else c for c in state.phase.calls)
    state = with_trouble(state, trouble) if ran else state
    state = replace(state, phase=AwaitingCalls(calls))
    if any(c.answer is None for c in calls):
        return state, ()
    return _calls_done(agent, state, calls)


def with_trouble(state: State, trouble: Outcome | None) -> State:
    """Note how the turn ends if the model only talks now; what is unknown is not made good by what works later."""
    if state.trouble is not None and state.trouble.kind == "unknown":
        return state
    return replace(state, trouble=trouble)


def _calls_done(agent: Agent, state: State, calls: tuple[PendingCall, ...]) -> Transition:
    state = with_results(agent, state, calls)
    shown = state.current[-len(calls) :]
    made = tuple(CallMade(c.tool, c.arguments, m.text) for c, m in zip(calls, shown, strict=True) if c.ran)
    repeated = not made and _were_made(state, calls)
    state = count_answer(state, refused=not made)
    state = replace(state, made=(*state.made, *made))
    # A model that asks for what it already has is in a loop; words are the only way on.
    return ask_or_close(agent, state, "answer" if repeated else "either")


def _were_made(state: State, calls: tuple[PendingCall, ...]) -> bool:
    known = {(m.tool, _as_compared(m.arguments)) for m in state.made}
    return any((c.tool, _as_compared(c.arguments)) in known for c in calls)


def call_effect(agent: Agent, state: State, call: PendingCall, confirmation: int = 0) -> CallTool:
    timeout = round(agent.by_name[call.tool].timeout_s * 1000)
    left = time_left_ms(agent, state)
    timeout = timeout if left is None else max(1, min(timeout, left))
    return CallTool(call.effect_id, call.tool, call.arguments, timeout, confirmation)


def after_question(state: State, held: PendingCall) -> State:
    """A question is answered: once no other is open, the time since the first one does not count."""
    return state if len(held_calls(state)) > 1 else without_wait(state, state.now_ms - held.asked_ms)


def held_calls(state: State) -> tuple[PendingCall, ...]:
    return tuple(c for c in state.phase.calls if is_held(c)) if isinstance(state.phase, AwaitingCalls) else ()


def running_call(state: State, effect_id: int) -> PendingCall | None:
    """Return the call that is out under this id: admitted, not waiting for a person, not answered."""
    if isinstance(state.phase, AwaitingCalls):
        for call in state.phase.calls:
            if call.effect_id == effect_id:
                return None if call.answer is not None or is_held(call) else call
    return None


def call_where(state: State, wanted: Callable[[PendingCall], bool]) -> PendingCall | None:
    if not isinstance(state.phase, AwaitingCalls):
        return None
    return next((c for c in state.phase.calls if wanted(c)), None)


def change_call(state: State, effect_id: int, changed: PendingCall) -> State:
    assert isinstance(state.phase, AwaitingCalls), "calls are pending only in this phase"
    calls = tuple(changed if c.effect_id == effect_id else c for c in state.phase.calls)
    return replace(state, phase=AwaitingCalls(calls))


def cancel_outstanding(agent: Agent, state: State) -> tuple[State, tuple[Effect, ...]]:
    cancels = []
    targets = outstanding(state)
    state = admit(agent, state, tuple(c.tool for c in held_calls(state)), times=-1)  # They were counted and never left.
    for target in targets:
        state, cancel_id = next_id(state)
        cancels.append(CancelEffect(cancel_id, target))
    return state, tuple(cancels)


def _question_ms(effect: CallTool) -> int:
    return max(QUESTION_TIMEOUT_MS, effect.timeout_ms)
