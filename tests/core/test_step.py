"""The turn: what each event leads to."""

from __future__ import annotations

import dataclasses
from typing import Literal

import pytest

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.budget import Budget
from edgeagent.core.calls import as_written
from edgeagent.core.effects import AskModel, AskUser, CallTool, CancelEffect, Finish, Say
from edgeagent.core.events import (
    Cancelled,
    EffectLost,
    ModelAnswered,
    ModelFailed,
    SessionStarted,
    ToolFailed,
    ToolReturned,
    UserDecided,
    UserSaid,
)
from edgeagent.core.state import AwaitingModel, Finished, Idle, State
from edgeagent.core.step import step
from edgeagent.core.values import Outcome, Usage, canonical_json
from edgeagent.errors import IllegalTransition


@tool(idempotent=True, effect="read")
def look(where: str) -> str:
    """Look somewhere."""
    return where


@tool(idempotent=False)
def push(count: int) -> str:
    """Push something."""
    return str(count)


@tool(idempotent=False, confirm=True)
def erase(count: int) -> str:
    """Erase something."""
    return str(count)


AGENT = Agent(name="tester", system="Test.", tools=(look, push, erase), dialect=Plain())
LOOK = '{"name": "look", "arguments": {"where": "up"}}'
PUSH = '{"name": "push", "arguments": {"count": 1}}'
ERASE = '{"name": "erase", "arguments": {"count": 1}}'


USAGE = Usage(prompt=10, completion=5)


class Play:
    """Feeds events to step, one millisecond apart, and remembers the last effects."""

    def __init__(self, agent: Agent = AGENT, context_tokens: int = 2048) -> None:
        self.agent, self.state, self.effects, self.at_ms = agent, State(), (), 1_000
        self.feed(SessionStarted(self.at_ms, agent.name, agent.digest, 7, "plain", context_tokens, "0"))

    def feed(self, event):
        self.state, self.effects = step(self.agent, self.state, event)
        return self.effects

    def say(self, text="Do it."):
        return self.feed(UserSaid(self.at_ms, text))

    def answer(self, text, stop="end", usage=USAGE):
        self.at_ms += 1
        return self.feed(ModelAnswered(self.at_ms, self.state.phase.effect_id, text, stop, usage))

    def limits(self, **limits):
        self.agent = dataclasses.replace(self.agent, budget=Budget(**limits))
        return self


def test_a_word_of_the_user_asks_the_model():
    play = Play()
    (ask,) = play.say("Hello")
    assert isinstance(ask, AskModel)
    assert ask.messages[-1].text == "Hello"
    assert ask.tools == ("look", "push", "erase")


def test_a_call_an_answer_and_four_effects_make_a_turn():
    play = Play()
    effects = [*play.say(), *play.answer(LOOK)]
    effects += play.feed(ToolReturned(2_000, effects[-1].effect_id, '"sky"'))
    effects += play.answer("It is the sky.")
    assert [type(e) for e in effects] == [AskModel, CallTool, AskModel, Say]
    assert [e.effect_id for e in effects] == [1, 2, 3, 4]
    assert play.state.phase == Idle()
    assert play.state.outcome == Outcome("answered")


def test_late_answer_changes_nothing():
    play = Play()
    play.say()
    before = play.state
    play.feed(ModelAnswered(1_000, 99, "late", "end", Usage()))
    assert (play.state, play.effects) == (before, ())


def test_arguments_reach_the_tool_as_canonical_json():
    play = Play()
    play.say()
    (call,) = play.answer('{"name": "look", "arguments": {"where":   "up"}}')
    assert call.arguments == '{"where":"up"}'


@pytest.mark.parametrize(
    ("written", "because"),
    [
        ('{"name": "fly", "arguments": {}}', "no tool fly"),
        ('{"name": "push", "arguments": {"count": "one"}}', "count"),
        ('{"name": "push", "arguments": {}}', "count"),
        ('{"name": "push", "arguments": {"count": 1, "extra": 2}}', "extra"),
        ('{"name": "push"}', "name"),
        ('{"name": "push", "arguments": {"count": 1}', "JSON"),
    ],
)
def test_a_wrong_call_never_runs_and_the_model_is_told_why(written, because):
    play = Play()
    play.say()
    (ask,) = play.answer(written)
    assert isinstance(ask, AskModel)
    assert because in ask.messages[-1].text
    assert play.state.turn_spent.refusals == 1
    assert play.state.turn_spent.tool_calls == 0


def test_refusals_in_a_row_end_the_turn_with_the_reason():
    play = Play().limits(refusals=2)
    play.say()
    play.answer("{")
    (ask,) = play.answer("{")
    assert (ask.choice, ask.closing) == ("answer", "refusals in a row")
    (say,) = play.answer("I could not.")
    assert say.text == "I could not.\n[stopped: the limit of refusals in a row is reached]"
    assert play.state.outcome == Outcome("budget", "refusals in a row")


def test_the_very_same_call_is_not_run_twice_and_words_must_follow():
    play = Play()
    play.say()
    (call,) = play.answer(PUSH)
    play.feed(ToolReturned(2_000, call.effect_id, "1"))
    (ask,) = play.answer(PUSH)
    assert isinstance(ask, AskModel)
    assert ask.choice == "answer"
    assert "already called" in ask.messages[-1].text


def test_interleaving_does_not_hide_a_repeat():
    play = Play()
    play.say()
    for written in (PUSH, LOOK):
        (call,) = play.answer(written)
        play.feed(ToolReturned(2_000, call.effect_id, "1"))
    (ask,) = play.answer(PUSH)
    assert isinstance(ask, AskModel)


def test_a_batch_is_admitted_whole_or_not_at_all():
    play = Play().limits(tool_calls=1)
    play.say()
    (ask,) = play.answer(f"[{LOOK}, {PUSH}]")
    assert (type(ask), ask.closing) == (AskModel, "tool calls")


def test_the_model_is_asked_again_only_after_the_last_call_of_a_batch():
    play = Play()
    play.say()
    first, second = play.answer(f"[{LOOK}, {PUSH}]")
    assert play.feed(ToolReturned(2_000, second.effect_id, "2")) == ()
    (ask,) = play.feed(ToolReturned(2_001, first.effect_id, "1"))
    assert [m.tool for m in ask.messages[-2:]] == ["look", "push"]


def test_a_failed_tool_is_told_to_the_model_and_is_the_outcome_if_nothing_works_after_it():
    play = Play()
    play.say()
    (call,) = play.answer(PUSH)
    (ask,) = play.feed(ToolFailed(2_000, call.effect_id, "raised", "ValueError: stuck"))
    assert "stuck" in ask.messages[-1].text
    play.answer("It is stuck.")
    assert play.state.outcome == Outcome("failed", "push raised: ValueError: stuck")


def test_a_tool_that_confirms_asks_before_it_runs():
    play = Play()
    play.say()
    (question,) = play.answer(ERASE)
    assert isinstance(question, AskUser)
    assert (question.tool, question.arguments) == ("erase", '{"count":1}')
    (call,) = play.feed(UserDecided(2_000, question.effect_id, approved=True))
    assert isinstance(call, CallTool)
    assert call.confirmation == question.effect_id


def test_a_no_is_told_to_the_model_and_the_turn_ends_refused():
    play = Play()
    play.say()
    (question,) = play.answer(ERASE)
    (ask,) = play.feed(UserDecided(2_000, question.effect_id, approved=False))
    assert "said no" in ask.messages[-1].text
    play.answer("I left it.")
    assert play.state.outcome == Outcome("refused", "the user said no")


def test_a_second_yes_to_the_same_question_runs_nothing():
    play = Play()
    play.say()
    (question,) = play.answer(ERASE)
    (call,) = play.feed(UserDecided(2_000, question.effect_id, approved=True))
    assert play.feed(UserDecided(2_001, question.effect_id, approved=True)) == ()
    play.feed(ToolReturned(2_002, call.effect_id, "1"))
    assert play.feed(UserDecided(2_003, question.effect_id, approved=True)) == ()


def test_cancel_stops_the_model_and_keeps_the_session():
    play = Play()
    play.say()
    (cancel,) = play.feed(Cancelled(2_000))
    assert cancel == CancelEffect(2, 1)
    assert play.state.outcome == Outcome("cancelled", "interrupted")
    assert isinstance(play.say("Go on.")[0], AskModel)


def test_words_said_during_a_turn_wait_for_its_end():
    play = Play()
    play.say("one")
    assert play.feed(UserSaid(2_000, "two")) == ()
    say, ask = play.answer("first answer")
    assert say.text == "first answer"
    assert ask.messages[-1].text == "two"


def test_time_is_up_before_the_next_ask():
    play = Play().limits(seconds=1)
    play.say()
    (call,) = play.answer(LOOK)
    (say,) = play.feed(ToolReturned(9_000, call.effect_id, '"sky"'))
    assert say.text == "[stopped: the limit of seconds is reached]"
    assert play.state.outcome == Outcome("budget", "seconds")


def test_a_tool_gets_no_more_time_than_the_turn_has_left():
    play = Play().limits(seconds=1)
    play.say()
    (call,) = play.answer(LOOK)
    assert call.timeout_ms <= 1_000


def test_the_clock_going_backwards_gives_no_time_back():
    play = Play().limits(seconds=10)
    play.say()
    play.at_ms = 9_000
    (call,) = play.answer(LOOK)
    (ask,) = play.feed(ToolReturned(1, call.effect_id, '"sky"'))
    assert ask.timeout_ms <= 2_000


def test_a_prompt_that_does_not_fit_is_asked_again_shorter():
    play = Play(context_tokens=600)
    for number in range(3):
        play.say(f"{number} " + "word " * 60)
        play.answer("yes " * 20)
    (ask,) = play.say("and now?")
    (again,) = play.feed(ModelFailed(2_000, ask.effect_id, "context_full", "too long", prompt_tokens=900))
    assert len(again.messages) < len(ask.messages)
    assert again.messages[-1].text == "and now?"
    assert play.state.dropped > 0


def test_a_prompt_that_never_fits_fails_aloud():
    play = Play(context_tokens=600)
    (ask,) = play.say("word " * 400)
    for _ in range(9):
        if not isinstance(ask, AskModel):
            break
        (ask,) = play.feed(ModelFailed(2_000, ask.effect_id, "context_full", "too long", prompt_tokens=900))
    assert ask == Say(ask.effect_id, "The model failed: too long")
    assert play.state.outcome.kind == "failed"


def test_a_session_budget_ends_the_session():
    play = Play(dataclasses.replace(AGENT, session_budget=Budget(steps=2)))
    play.say()
    say, finish = play.answer("hello")
    assert isinstance(say, Say)
    assert isinstance(finish, Finish)
    assert isinstance(play.state.phase, Finished)
    (refusal,) = play.say("more")
    assert "ended" in refusal.text


def test_a_lost_call_that_must_not_be_repeated_is_unknown():
    play = Play()
    play.say()
    (call,) = play.answer(PUSH)
    (ask,) = play.feed(EffectLost(2_000, call.effect_id))
    assert isinstance(ask, AskModel)
    assert "may or may not have happened" in ask.messages[-1].text


def test_a_lost_idempotent_call_is_made_again():
    play = Play()
    play.say()
    (call,) = play.answer(LOOK)
    assert play.feed(EffectLost(2_000, call.effect_id)) == (call,)


def test_a_lost_question_is_asked_again():
    play = Play()
    play.say()
    (question,) = play.answer(ERASE)
    (again,) = play.feed(EffectLost(2_000, question.effect_id))
    assert (again.tool, again.arguments) == (question.tool, question.arguments)
    assert play.feed(UserDecided(2_001, question.effect_id, approved=True)) == ()


def test_an_agent_without_tools_only_answers():
    play = Play(Agent(name="talker", dialect=Plain()))
    (ask,) = play.say()
    assert ask.choice == "answer"
    (say,) = play.answer('{"name": "look"}')
    assert say.text == '{"name": "look"}'


def test_an_event_before_the_session_has_started_is_our_bug():
    with pytest.raises(IllegalTransition, match="UserSaid"):
        step(AGENT, State(), UserSaid(0, "hi"))


def test_the_same_events_give_the_same_states_and_effects():
    plays = [Play(), Play()]
    for play in plays:
        play.say()
        (call,) = play.answer(LOOK)
        play.feed(ToolReturned(2_000, call.effect_id, '"sky"'))
    assert plays[0].state == plays[1].state
    assert plays[0].effects == plays[1].effects


def test_waiting_for_the_model_remembers_which_ask():
    play = Play()
    (ask,) = play.say()
    assert play.state.phase == AwaitingModel(ask.effect_id, "either")


def test_one_call_has_one_text_however_its_numbers_are_written():
    @tool(idempotent=True)
    def heat(celsius: float, hours: int = 1, room: Literal["a", "b"] = "a") -> None:
        """Heat."""

    for read in ({"celsius": 30}, {"celsius": 30.0}, {"celsius": 30, "hours": 2, "room": "b"}):
        typed = heat.parameters.decode(read)
        assert as_written(heat, read, typed) == heat.parameters.encode(typed)
    assert canonical_json(as_written(heat, {"celsius": 30}, {"celsius": 30.0})) == '{"celsius":30.0}'


@tool(idempotent=True)
def warm(degrees: float) -> None:
    """Warm something."""


def test_minus_zero_is_the_same_call_as_zero():
    play = Play(Agent("z", tools=(warm,), dialect=Plain()))
    play.say()
    (call,) = play.answer('{"name": "warm", "arguments": {"degrees": 0.0}}')
    play.feed(ToolReturned(2_000, call.effect_id, "null"))
    (ask,) = play.answer('{"name": "warm", "arguments": {"degrees": -0.0}}')
    assert "already called in this turn" in ask.messages[-1].text


def test_a_result_that_cannot_be_shown_is_told_as_done_and_is_no_trouble():
    play = Play()
    play.say()
    (call,) = play.answer(PUSH)
    (ask,) = play.feed(ToolReturned(2_000, call.effect_id, "null", unshown="a generator has no JSON form"))
    told = ask.messages[-1].text
    assert told == '{"done":"its result cannot be shown, because a generator has no JSON form"}'
    play.answer("It is pushed.")
    assert play.state.outcome == Outcome("answered")


def test_what_an_answer_that_broke_off_has_used_counts():
    play = Play()
    (ask,) = play.say()
    play.feed(ModelFailed(2_000, ask.effect_id, "engine", "cut off", spent=Usage(prompt=9, completion=2, cost=70)))
    spent = play.state.session_spent
    assert (spent.steps, spent.prompt_tokens, spent.completion_tokens, spent.cost) == (1, 9, 2, 70)
