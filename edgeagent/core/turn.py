"""How a turn begins, asks the model, and ends. Every way out goes through `end_turn`."""

from __future__ import annotations

from itertools import chain

from msgspec.structs import replace

from edgeagent.core.agent import RESULT_MORE, Agent
from edgeagent.core.budget import limit_before_ask, may_close
from edgeagent.core.context import estimate, exchange_of, fit, tokens_of
from edgeagent.core.effects import AskModel, Effect, Finish, Say
from edgeagent.core.from_user import Narrowed
from edgeagent.core.from_user import narrowed as quotable
from edgeagent.core.limits import (
    ANSWER_TOKENS_MAX,
    limit_of_tool,
    session_budget,
    session_limit,
    time_left_ms,
    tokens_to_write,
    window_left,
)
from edgeagent.core.more import is_offered, without_dropped
from edgeagent.core.quoting import user_texts
from edgeagent.core.state import AwaitingModel, Finished, Idle, State, Transition
from edgeagent.core.values import Choice, Message, Outcome


def begin_turn(agent: Agent, state: State, first: Message, beside: tuple[Message, ...] = ()) -> Transition:
    """Begin a turn with the user's word, or with what came from outside; first of all say what was missed.

    `beside` is what was handed over with the user's word and is not theirs.
    """
    missed = (Message("heard", f"{state.missed} earlier messages were dropped: too many at once"),)
    state = replace(
        state,
        turn=state.turn + 1,
        current=(*missed, *beside, first) if state.missed else (*beside, first),
        missed=0,
        made=(),
        trouble=None,
        outcome=None,
        turn_spent=replace(State().turn_spent, started_ms=state.now_ms),
    )
    return ask_or_close(agent, state, "either" if agent.tools else "answer")


def end_turn(agent: Agent, state: State, text: str, outcome: Outcome, written: Message | None = None) -> Transition:
    """The one way out of a turn: keep the exchange, say the text, start the next waiting word if there is one."""
    last = written or Message("assistant", text or f"({outcome.kind}: {outcome.detail})")
    exchange = exchange_of((*state.current, last))
    state = replace(
        state, past=(*state.past, exchange), current=(), made=(), outcome=outcome, phase=Idle(), trouble=None
    )
    effects: tuple[Effect, ...] = ()
    if text:
        state, say_id = next_id(state)
        effects = (Say(say_id, text),)
    limit = session_limit(agent, state)
    if limit is not None:
        state, finish_id = next_id(state)
        reason = f"the session's limit of {limit} is reached"
        return replace(state, phase=Finished(reason), queued=(), waiting=()), (*effects, Finish(finish_id, reason))
    if state.queued:
        first, *rest = state.queued
        state, more = begin_turn(agent, replace(state, queued=tuple(rest)), Message("user", first))
        effects = (*effects, *more)
    elif state.waiting:
        message, waiting = state.waiting[0].message, state.waiting[1:]
        state, more = begin_turn(agent, replace(state, waiting=waiting), message)
        effects = (*effects, *more)
    return state, effects


def ask_or_close(agent: Agent, state: State, choice: Choice, closing: str = "") -> Transition:
    """Ask the model, or close the turn when a limit forbids an ordinary ask."""
    if closing:
        return close_turn(agent, state, closing)
    limit = limit_before_ask(agent.budget, state.turn_spent, state.now_ms) or session_limit(agent, state)
    if limit is not None:
        return close_turn(agent, state, limit)
    return ask_model(agent, state, choice, closing="")


def close_turn(agent: Agent, state: State, limit: str) -> Transition:
    """Let the model write a closing answer if that still fits; else say it ourselves."""
    fits = may_close(agent.budget, state.turn_spent, state.now_ms) and may_close(
        session_budget(agent), state.session_spent, state.now_ms
    )
    if fits:
        return ask_model(agent, state, "answer", closing=limit)
    return end_turn(agent, state, closing_text("", limit), closed_by(limit))


def ask_model(agent: Agent, state: State, choice: Choice, closing: str, refits: int = 0) -> Transition:
    own = tokens_of(state.current, state.density) + estimate(agent.prompt_bytes, state.density)
    window = window_left(agent, state)
    past = fit(state.past, max(0, window - own - min(ANSWER_TOKENS_MAX, window // 4)), state.density)
    if past is not state.past:
        state = without_dropped(replace(state, dropped=state.dropped + len(state.past) - len(past), past=past))
    state, effect_id = next_id(state)
    tools, narrowed = ((), ()) if choice == "answer" else _offered(agent, state)
    ask = AskModel(
        effect_id=effect_id,
        messages=(*chain.from_iterable([exchange.messages for exchange in past]), *state.current),
        tools=tools,
        choice=choice,
        max_tokens=tokens_to_write(agent, state, closing),
        timeout_ms=time_left_ms(agent, state) or 0,
        seed=_seed_for(state.seed, effect_id),
        closing=closing,
        narrowed=narrowed,
        prompt_tokens_max=window if window < state.context_tokens else 0,
    )
    return replace(state, phase=AwaitingModel(effect_id, choice, closing, refits)), (ask,)


def _offered(agent: Agent, state: State) -> tuple[tuple[str, ...], tuple[Narrowed, ...]]:
    """Return the tools that may be called now, and what the user's words leave of their arguments."""
    tools = (*agent.tool_names, RESULT_MORE.name) if state.kept and is_offered(agent, state) else agent.tool_names
    if agent.budget.calls_of or session_budget(agent).calls_of:
        tools = tuple(name for name in tools if limit_of_tool(agent, state, name, ()) is None)
    if not agent.quoting:
        return tools, ()
    texts = user_texts(state)
    left = {t.name: quotable(t.name, t.from_user, texts) for t in agent.quoting if t.name in tools}
    tools = tuple(name for name in tools if left.get(name, ()) is not None)
    return tools, tuple(each for limits in left.values() for each in limits or ())


def heard(state: State, message: Message) -> State:
    return replace(state, current=(*state.current, message))


def has_read_untrusted(agent: Agent, state: State) -> bool:
    """Whether the model may have seen something untrusted; what was dropped is taken to have been."""
    messages = (*(m for exchange in state.past for m in exchange.messages), *state.current)
    read = (agent.by_name.get(m.tool) if m.role == "tool" else None for m in messages if m.role in ("tool", "heard"))
    seen = state.tainted or state.dropped > 0 or has_outsiders_words(agent)
    return seen or any(t is None or not t.trusted for t in read)


def has_outsiders_words(agent: Agent) -> bool:
    """Whether every prompt holds words of outsiders: those that describe a tool."""
    return any(t.outsiders for t in agent.tools)


def prompt_bytes(agent: Agent, state: State) -> int:
    messages = (*(m for exchange in state.past for m in exchange.messages), *state.current)
    return agent.prompt_bytes + sum(len(m.text.encode()) for m in messages)


def _seed_for(seed: int, effect_id: int) -> int:
    # Knuth's MMIX multiplier spreads neighbouring ids over the 32 bits that samplers take.
    return (seed * 6364136223846793005 + effect_id * 1442695040888963407) >> 16 & 0xFFFF_FFFF


def outcome_of(state: State) -> Outcome:
    return state.trouble or Outcome("answered")


def closed_by(limit: str) -> Outcome:
    return Outcome("budget", limit)


def closing_text(text: str, limit: str) -> str:
    note = f"[stopped: the limit of {limit} is reached]"
    return f"{text.strip()}\n{note}" if text.strip() else note


def next_id(state: State) -> tuple[State, int]:
    return replace(state, next_effect_id=state.next_effect_id + 1), state.next_effect_id
