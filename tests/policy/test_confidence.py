"""How sure the model is of a call, from its answer to the rules that read it."""

from __future__ import annotations

from functools import partial

import pytest

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskUser, CallTool
from edgeagent.core.events import ModelAnswered, SessionStarted, UserDecided, UserSaid
from edgeagent.core.state import State
from edgeagent.core.values import Usage
from edgeagent.policy.guard import RuleGuard, guarded_step
from edgeagent.policy.nested import FamilyStep
from edgeagent.policy.ready import confirm_below, never
from edgeagent.policy.words import call, confident, once
from edgeagent.trace.record import compact, decode_record, encode_payload


@tool(idempotent=False)
def push(count: int) -> str:
    """Push something."""
    return str(count)


@tool(idempotent=True, effect="read")
def look(where: str) -> str:
    """Look somewhere."""
    return where


AGENT = Agent(name="tester", tools=(push, look), dialect=Plain())
PUSH = '{"name": "push", "arguments": {"count": 1}}'
AGAIN = '{"name": "push", "arguments": {"count": 2}}'
LOOK = '{"name": "look", "arguments": {"where": "up"}}'


def play(rules, *answers, agent=AGENT):
    """The effects of the last answer; each is a text and what the driver thinks of its calls."""
    step = partial(guarded_step, RuleGuard(rules, agent))
    state, effects = step(agent, State(), SessionStarted(0, "tester", agent.digest, 1, "plain", 2048, "0"))
    for at, (text, confidence) in enumerate(answers, 1):
        state, effects = step(agent, state, UserSaid(at, "go"))
        answer = ModelAnswered(at, effects[0].effect_id, text, "end", Usage(), confidence=confidence)
        state, effects = step(agent, state, answer)
    return state, effects, step


@pytest.mark.parametrize(
    ("confidence", "effect"), [((0.9,), CallTool), ((0.6,), CallTool), ((0.5,), AskUser), ((), AskUser)]
)
def test_an_unsure_call_is_asked_about_and_a_sure_one_leaves(confidence, effect):
    _, effects, _ = play([confirm_below(0.6, "push")], (PUSH, confidence))
    assert [type(e) for e in effects] == [effect]


def test_the_persons_yes_lets_an_unsure_call_run():
    state, effects, step = play([confirm_below(0.6)], (PUSH, (0.1,)))
    _, effects = step(AGENT, state, UserDecided(2, effects[0].effect_id, approved=True))
    assert [type(e) for e in effects] == [CallTool]


def test_without_a_named_tool_reads_are_not_asked_about():
    _, effects, _ = play([confirm_below(0.6)], (LOOK, (0.1,)))
    assert [type(e) for e in effects] == [CallTool]


def test_each_call_of_a_batch_has_its_own():
    _, effects, _ = play([confirm_below(0.6)], (f"[{PUSH}, {AGAIN}]", (0.9, 0.5)))
    assert [type(e) for e in effects] == [CallTool, AskUser]


def test_as_many_numbers_as_calls_or_nothing_is_known_of_any():
    _, effects, _ = play([confirm_below(0.6)], (f"[{PUSH}, {AGAIN}]", (0.9,)))
    assert [type(e) for e in effects] == [AskUser, AskUser]


def test_a_rule_can_remember_that_an_unsure_call_was_made():
    rule = never("look", when=once(call("push") & ~confident(0.6)))
    agent = AGENT
    step = partial(guarded_step, RuleGuard([rule], agent))
    state, effects = step(agent, State(), SessionStarted(0, "tester", agent.digest, 1, "plain", 2048, "0"))
    state, effects = step(agent, state, UserSaid(1, "go"))
    unsure = ModelAnswered(1, effects[0].effect_id, f"[{PUSH}, {LOOK}]", "end", Usage(), confidence=(0.2, 0.9))
    state, effects = step(agent, state, unsure)
    assert [e.tool for e in effects if isinstance(e, CallTool)] == ["push"]


def test_a_rule_above_reads_how_sure_a_call_of_a_sub_agent_is():
    helper = Agent(name="helper", tools=(push,), dialect=Plain())
    above = Agent(
        name="above",
        tools=(helper.as_tool(description="Help."),),
        dialect=Plain(),
        policies=(confirm_below(0.6, "push"),),
    )
    for probable, effect in ((0.9, CallTool), (0.1, AskUser)):
        step = FamilyStep(above, lambda each: RuleGuard(each.policies, each))
        state, _ = step(above, State(), SessionStarted(0, "above", above.digest, 1, "plain", 2048, "0"))
        state, effects = step(above, state, UserSaid(1, "go"))
        handed = '{"name": "helper", "arguments": {"request": "push"}}'
        state, effects = step(above, state, ModelAnswered(2, effects[0].effect_id, handed, "end", Usage()))
        asked = ModelAnswered(3, effects[0].effect_id, PUSH, "end", Usage(), confidence=(probable,))
        state, effects = step(above, state, asked)
        assert [type(e) for e in effects] == [effect]


def test_an_answer_that_says_nothing_of_it_is_recorded_as_before():
    assert compact(ModelAnswered(1, 2, PUSH, "end", Usage())) == [3, 1, 2, PUSH, "end", []]


def test_how_sure_it_was_is_in_the_trace():
    told = ModelAnswered(1, 2, PUSH, "end", Usage(), confidence=(0.5, 0.25))

    nothing = b"\0" * 16
    assert decode_record(encode_payload(0, nothing, told, nothing), 0, 0, nothing).event == told
