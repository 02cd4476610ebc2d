"""What comes from outside unasked: it begins a turn or waits, is bounded and counted, and is never the user's word."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.codec.dialect import DIALECTS, Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskModel, CallTool, SetTimer
from edgeagent.core.events import (
    Cancelled,
    Heard,
    ModelAnswered,
    SessionStarted,
    TimerFired,
    ToolReturned,
    UserSaid,
)
from edgeagent.core.outside import HEARD_CHARS_MAX, TIMERS_MAX, WAITING_MAX
from edgeagent.core.quoting import user_texts
from edgeagent.core.state import State, is_resting, outstanding
from edgeagent.core.step import step
from edgeagent.core.values import Message, Usage
from edgeagent.errors import ConfigError


@tool(idempotent=True)
def look() -> str:
    """Look."""
    return "sky"


AGENT = Agent("watcher", tools=(look,), dialect=Plain(), hears=("pump",), timers=True)
TIMER = '{"name": "set_timer", "arguments": {"seconds": 60, "note": "look"}}'


def started(agent: Agent = AGENT) -> State:
    return step(agent, State(), SessionStarted(0, agent.name, agent.digest, 1, "plain", 2048, "0"))[0]


def with_timer(state: State) -> tuple[State, SetTimer]:
    state, _ = step(AGENT, state, UserSaid(1, "later"))
    state, (call,) = step(AGENT, state, ModelAnswered(2, outstanding(state)[0], TIMER, "end", Usage()))
    state, (timer, _) = step(AGENT, state, ToolReturned(3, call.effect_id, '"set"'))
    state, _ = step(AGENT, state, ModelAnswered(4, outstanding(state)[0], "Yes.", "end", Usage()))
    return state, timer


def test_a_long_message_from_outside_is_cut_and_the_cut_is_said() -> None:
    _, (ask,) = step(AGENT, started(), Heard(1, "pump", "x" * (HEARD_CHARS_MAX + 7)))
    assert ask.messages[-1].text.endswith("… (7 more characters not shown)")


def test_a_timer_is_due_after_its_seconds_and_the_state_holds_its_note() -> None:
    state, timer = with_timer(started())
    assert timer.after_ms == 60_000
    assert [(t.due_ms, t.note, t.tainted) for t in state.timers] == [(60_003, "look", False)]
    state, (ask,) = step(AGENT, state, TimerFired(60_003, timer.effect_id))
    assert ask.messages[-1] == Message("note", "look")
    assert state.timers == ()


def test_more_timers_than_allowed_are_refused_with_the_reason() -> None:
    state = started()
    for _ in range(TIMERS_MAX):
        state, _ = with_timer(state)
    state, _ = step(AGENT, state, UserSaid(1, "later"))
    state, (ask,) = step(AGENT, state, ModelAnswered(2, outstanding(state)[0], TIMER, "end", Usage()))
    assert f"{TIMERS_MAX} timers are set already" in ask.messages[-1].text


def test_only_an_agent_with_timers_has_the_tool() -> None:
    assert Agent("plain", tools=(look,)).tool_names == ("look",)
    assert AGENT.tool_names == ("look", "set_timer")
    assert Agent("again", tools=AGENT.tools, timers=True).tool_names == AGENT.tool_names


@pytest.mark.parametrize("more", [{"hears": ("pump",)}, {"timers": True}])
def test_a_sub_agent_can_neither_hear_nor_wait(more: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="its session ends with its answer"):
        Agent("below", tools=(look,), **more).as_tool(description="Look.")


def test_a_source_needs_a_name_like_every_other() -> None:
    with pytest.raises(ConfigError, match="hears a source whose name"):
        Agent("odd", hears=("pump\x1b[2J",))


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_every_dialect_says_that_a_message_is_not_from_the_user(dialect) -> None:
    (heard,) = dialect.chat([Message("heard", "dry", tool="pump")])
    (note,) = dialect.chat([Message("note", "look")])
    assert heard == {"role": "user", "content": "Message from pump (not from the user): dry"}
    assert note == {"role": "user", "content": "Your timer has fired: look"}


INPUTS = st.lists(
    st.sampled_from(["said", "heard", "stranger", "fired", "words", "look", "timer", "cancel"]), max_size=60
)


def event_of(word: str, state: State, number: int, timers: list[int]):
    out = outstanding(state)
    match word:
        case "said":
            return UserSaid(number, f"said {number}")
        case "heard":
            return Heard(number, "pump", f"heard {number}")
        case "stranger":
            return Heard(number, "door", f"heard {number}")
        case "fired":
            return TimerFired(number, timers[number % len(timers)]) if timers else None
        case "cancel":
            return Cancelled(number)
    if not out:
        return None
    if getattr(state.phase, "calls", None):
        return ToolReturned(number, out[0], '"sky"')
    text = {"words": "Words.", "look": '{"name": "look", "arguments": {}}', "timer": TIMER}[word]
    return ModelAnswered(number, out[0], text, "end", Usage(10, 10, 10))


@given(INPUTS)
def test_whatever_comes_is_bounded_counted_never_said_and_replayed(words: list[str]) -> None:
    state, timers, events, told, heard, dropped = started(), [], [], [], 0, 0
    for number, word in enumerate(words, 1):
        event = event_of(word, state, number, timers)
        if event is None:
            continue
        events.append(event)
        state = msgspec.json.decode(msgspec.json.encode(state), type=State)  # As after a crash.
        missed, (state, effects) = state.missed, step(AGENT, state, event)
        if state.missed < missed:
            dropped += missed
            assert f"{missed} earlier messages were dropped" in effects[-1].messages[-2].text
        timers += [e.effect_id for e in effects if isinstance(e, SetTimer)]
        told.append(effects)
        heard += isinstance(event, Heard) and event.source == "pump"
        assert len(state.waiting) <= WAITING_MAX
        assert len(state.timers) <= TIMERS_MAX
        assert all(text.startswith("said ") for text in user_texts(state))
        assert is_resting(state) == (not outstanding(state))
        assert not (is_resting(state) and state.waiting), "what waits begins a turn as soon as the session rests"
        asked = [e for e in effects if isinstance(e, AskModel | CallTool)]
        assert len({e.effect_id for e in asked}) == len(asked)
    seen = {m.text for effects in told for e in effects if isinstance(e, AskModel) for m in e.messages}
    read = sum(text.startswith("heard ") for text in seen)
    waits = sum(w.message.role == "heard" for w in state.waiting)
    assert heard <= read + waits + dropped + state.missed, "a message is neither read nor counted"
    again = started()
    for event, effects in zip(events, told, strict=True):
        again, same = step(AGENT, again, event)
        assert same == effects
