"""With rules and limits of every kind: each run ends, no counter passes its limit, and the counts are exact.

Exhaustive over a small world (every answer of model, tools and person), and for any order of events, late, twice,
forged or lost ones too. A model driver keeps to what AskModel grants it: that is its contract, not the state's.
"""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.budget import Budget
from edgeagent.core.effects import AskModel, AskUser, CallTool
from edgeagent.core.events import (
    Cancelled,
    EffectLost,
    ModelAnswered,
    ModelFailed,
    SessionResumed,
    SessionStarted,
    ToolFailed,
    ToolReturned,
    UserDecided,
    UserSaid,
)
from edgeagent.core.state import State, is_resting, outstanding
from edgeagent.core.values import Usage
from edgeagent.policy.guard import RuleGuard, guarded_step
from edgeagent.policy.nested import FamilyStep
from edgeagent.policy.ready import at_most, confirm_before, halt_when, lock_after_no, requires_before
from edgeagent.policy.words import at_least, failed

MODEL_TEXTS = (
    "words",
    "{",
    '{"name": "look", "arguments": {}}',
    '{"name": "push", "arguments": {"count": 1}}',
    '[{"name": "look", "arguments": {}}, {"name": "push", "arguments": {"count": 2}}]',
)


@tool(idempotent=True, effect="read")
def look() -> None:
    """Look."""


@tool(idempotent=False)
def push(count: int) -> None:
    """Push."""


RULES = (
    requires_before("push", "look"),
    confirm_before("push"),
    at_most(1, "push"),
    halt_when(at_least(3, failed())),
)
TURN = Budget(steps=4, tool_calls=3, completion_tokens=60, prompt_tokens=90, seconds=10, refusals=2, repeats=2)
SMALL = Agent(name="small", tools=(look, push), policies=RULES, budget=TURN, dialect=Plain())


def started(agent):
    if len(agent.by_path) > 1:
        step = FamilyStep(agent, lambda each: RuleGuard(each.policies, each))
    else:
        step = partial(guarded_step, RuleGuard(agent.policies, agent))
    state, _ = step(agent, State(), SessionStarted(0, agent.name, agent.digest, 1, "plain", 2048, "0"))
    return step, state


def used_by(ask):
    return Usage(min(20, ask.prompt_tokens_max or 20), 10, min(10, ask.max_tokens))


def answers_to(effect, texts=MODEL_TEXTS):
    each = effect.effect_id
    match effect:
        case AskModel():
            for text in texts:
                yield ModelAnswered(0, each, text, "end", used_by(effect))
            yield ModelFailed(0, each, "engine", "broken")
            yield EffectLost(0, each)
        case CallTool():
            yield ToolReturned(0, each, "1")
            yield ToolFailed(0, each, "raised", "no")
            yield EffectLost(0, each)
        case AskUser():
            yield UserDecided(0, each, approved=True)
            yield UserDecided(0, each, approved=False)
            yield EffectLost(0, each)


def assert_within(budget, spent):
    """No counter above its limit."""
    for name in ("steps", "tool_calls", "prompt_tokens", "completion_tokens", "refusals"):
        limit = getattr(budget, name)
        assert limit is None or 0 <= getattr(spent, name) <= limit, name
    for name, calls in spent.calls_of:
        assert 0 <= calls <= budget.calls_of[name], name


def exhaust(agent, events_max, lost_max, texts=MODEL_TEXTS):
    """Walk every run of one turn; return how many there are."""
    step, state = started(agent)
    state, effects = step(agent, state, UserSaid(0, "go"))
    todo, ended = [(state, effects, 0, 0, 0)], 0
    while todo:
        state, open_effects, depth, lost, calls = todo.pop()
        assert_within(agent.budget, state.turn_spent)
        assert_within(agent.session_budget or Budget(**dict.fromkeys(LIMITS)), state.session_spent)
        if is_resting(state):
            assert state.outcome is not None
            # A sub-agent's call is counted and leaves as what the sub-agent does.
            counted = state.session_spent.tool_calls
            assert calls <= counted if len(agent.by_path) > 1 else calls == counted
            ended += 1
            continue
        assert open_effects, f"nothing is outstanding, yet the turn has not ended: {state.phase}"
        assert depth < events_max, f"a run of {depth} events has not ended: {state}"
        effect, *rest = open_effects
        for event in answers_to(effect, texts):
            is_lost = isinstance(event, EffectLost)
            if is_lost and lost == lost_max:
                continue
            after, more = step(agent, state, event)
            asked = [e for e in more if isinstance(e, AskModel | CallTool | AskUser)]
            left = sum(isinstance(e, CallTool) for e in more)
            todo.append((after, (*rest, *asked), depth + 1, lost + is_lost, calls + left))
    return ended


LIMITS = ("steps", "tool_calls", "completion_tokens", "seconds", "refusals", "repeats")


def test_every_run_under_rules_ends_within_its_limits():
    assert exhaust(SMALL, events_max=24, lost_max=1) > 2_000


@pytest.mark.parametrize(
    "budget",
    [
        Budget(steps=1, tool_calls=0, refusals=1),
        Budget(steps=3, tool_calls=1, prompt_tokens=25, refusals=1),
        Budget(steps=4, tool_calls=4, calls_of={"look": 1, "push": 0}, repeats=None, refusals=2),
        Budget(steps=3, tool_calls=2, completion_tokens=4, seconds=1),
    ],
)
def test_every_run_ends_whatever_the_limits(budget):
    session = Budget(steps=3, tool_calls=2, prompt_tokens=70, completion_tokens=40, calls_of={"look": 1})
    agent = Agent(
        name="limited", tools=(look, push), policies=RULES, budget=budget, session_budget=session, dialect=Plain()
    )
    assert exhaust(agent, events_max=24, lost_max=1) > 5


# -- any order of events -------------------------------------------------------------------------------------------

ids = st.integers(1, 14)
events = st.one_of(
    st.just(("said",)),
    st.tuples(st.just("model"), ids, st.sampled_from(MODEL_TEXTS)),
    st.tuples(st.sampled_from(["full", "broken", "returned", "failed", "yes", "no", "lost"]), ids),
    st.sampled_from([("cancelled",), ("resumed",)]),
    st.tuples(st.sampled_from(["answer", "lose", "refuse"]), st.integers(0, 6)),
)
ANY = Agent(
    name="any",
    tools=(look, push),
    policies=(confirm_before("push"), lock_after_no("push"), requires_before("push", "look")),
    budget=Budget(
        steps=5, tool_calls=3, prompt_tokens=120, completion_tokens=90, refusals=2, repeats=2, calls_of={"push": 1}
    ),
    session_budget=Budget(steps=12, tool_calls=5, prompt_tokens=300, completion_tokens=200, refusals=None),
    dialect=Plain(),
)


def event_of(written, at_ms, open_effects):
    """Return the event that is meant; `answer`, `lose` and `refuse` go to an effect that is really out."""
    kind, *rest = written
    each = rest[0] if rest else 0
    if kind in ("answer", "lose", "refuse"):
        if not open_effects:
            return Cancelled(at_ms)
        effect = open_effects[each % len(open_effects)]
        several = list(answers_to(effect))
        return several[{"answer": each % (len(several) - 1), "lose": -1, "refuse": -2}[kind]]
    ask = next((e for e in open_effects if isinstance(e, AskModel) and e.effect_id == each), None)
    usage = used_by(ask) if ask else Usage(999, 999, 999)
    return {
        "said": lambda: UserSaid(at_ms, "go"),
        "model": lambda: ModelAnswered(at_ms, each, rest[1], "end", usage),
        "full": lambda: ModelFailed(at_ms, each, "context_full", "long", 900),
        "broken": lambda: ModelFailed(at_ms, each, "engine", "broken"),
        "returned": lambda: ToolReturned(at_ms, each, "1"),
        "failed": lambda: ToolFailed(at_ms, each, "raised", "no"),
        "yes": lambda: UserDecided(at_ms, each, approved=True),
        "no": lambda: UserDecided(at_ms, each, approved=False),
        "lost": lambda: EffectLost(at_ms, each),
        "cancelled": lambda: Cancelled(at_ms),
        "resumed": lambda: SessionResumed(at_ms, ANY.digest, "0"),
    }[kind]()


@pytest.mark.long
@given(st.lists(st.tuples(events, st.integers(0, 2_000)), max_size=40))
@settings(max_examples=400)
def test_no_sequence_of_events_passes_a_limit_or_keeps_the_run_from_ending(written):
    step, state = started(ANY)
    at_ms, open_effects, calls, yeses = 0, [], 0, set()
    for each, later in written:
        at_ms += later
        event = event_of(each, at_ms, open_effects)
        if isinstance(event, UserDecided) and event.approved:
            yeses.add(event.effect_id)
        state, effects = step(ANY, state, event)
        open_effects = [e for e in (*open_effects, *effects) if e.effect_id in outstanding(state)]
        pushes = [e for e in effects if isinstance(e, CallTool) and e.tool == "push"]
        for push_ in pushes:
            assert push_.confirmation in yeses, "a push without its own yes"
            yeses.discard(push_.confirmation)
        calls += sum(isinstance(e, CallTool) for e in effects)
        assert_within(ANY.budget, state.turn_spent)
        assert_within(ANY.session_budget, state.session_spent)
        assert calls <= state.session_spent.tool_calls
        assert not is_resting(state) or calls == state.session_spent.tool_calls
    assert_ends(step, state, open_effects)


SUB = Agent(name="sub", tools=(look, push), policies=(at_most(2, "look"),), budget=Budget(steps=3, repeats=None))
FAMILY = Agent(
    name="family",
    tools=(SUB.as_tool(description="Do it."), look, push),
    policies=(confirm_before("push"), lock_after_no("push")),
    budget=Budget(
        steps=6, tool_calls=4, prompt_tokens=120, completion_tokens=90, refusals=2, repeats=2, calls_of={"push": 1}
    ),
    session_budget=Budget(steps=12, tool_calls=7, prompt_tokens=300, completion_tokens=200, refusals=None),
    dialect=Plain(),
)
SUB_CALL = '{"name": "sub", "arguments": {"request": "go"}}'
family_events = st.one_of(events, st.tuples(st.just("ask"), st.sampled_from([SUB_CALL, f"[{SUB_CALL}, {SUB_CALL}]"])))


@pytest.mark.long
@given(st.lists(st.tuples(family_events, st.integers(0, 2_000)), max_size=40))
@settings(max_examples=400)
def test_sub_agents_cannot_pass_the_limits_of_the_agent_above(written):
    step, state = started(FAMILY)
    state, open_effects = step(FAMILY, state, UserSaid(0, "go"))
    open_effects = list(open_effects)
    at_ms, yeses, calls = 0, set(), 0
    for each, later in written:
        at_ms += later
        ask = next((e for e in open_effects if isinstance(e, AskModel)), None)
        if each[0] != "ask":
            event = event_of(each, at_ms, open_effects)
        elif ask is not None:
            event = ModelAnswered(at_ms, ask.effect_id, each[1], "end", used_by(ask))
        else:
            continue
        if isinstance(event, UserDecided) and event.approved:
            yeses.add(event.effect_id)
        state, effects = step(FAMILY, state, event)
        out = outstanding(state)
        open_effects = [e for e in (*open_effects, *effects) if e.effect_id in out]
        assert {e.effect_id for e in open_effects} == set(out), "what is outstanding was asked for"
        for effect in effects:
            calls += isinstance(effect, CallTool)
            if isinstance(effect, CallTool) and effect.tool == "push":
                assert effect.confirmation in yeses, "a push without its own yes"
                yeses.discard(effect.confirmation)
        assert_within(FAMILY.budget, state.turn_spent)
        assert_within(FAMILY.session_budget, state.session_spent)
        for child in state.children:
            if child.state is not None:
                assert_within(child.budget, child.state.session_spent)
        assert calls <= state.session_spent.tool_calls
    assert_ends(step, state, open_effects, FAMILY)


@pytest.mark.long
def test_every_run_with_a_sub_agent_ends_within_its_limits():
    sub = Agent(name="sub", tools=(look,), budget=Budget(steps=2, tool_calls=1))
    above = Agent(
        name="above",
        tools=(sub.as_tool(description="Do it."), push),
        policies=(confirm_before("push"),),
        budget=Budget(steps=5, tool_calls=3, completion_tokens=60, prompt_tokens=90, refusals=2),
        dialect=Plain(),
    )
    assert exhaust(above, events_max=30, lost_max=1, texts=(*MODEL_TEXTS[:4], SUB_CALL)) > 1_000


def assert_ends(step, state, open_effects, agent=ANY):
    """Answer whatever is still out, the model always wanting more: the run must come to rest."""
    for _ in range(400):
        if is_resting(state):
            return
        effect = open_effects.pop(0)
        wants = (
            ModelAnswered(0, effect.effect_id, MODEL_TEXTS[4], "end", used_by(effect))
            if isinstance(effect, AskModel)
            else next(iter(answers_to(effect)))
        )
        state, effects = step(agent, state, wants)
        open_effects = [e for e in (*open_effects, *effects) if e.effect_id in outstanding(state)]
    raise AssertionError(f"400 answers and no end: {state}")
