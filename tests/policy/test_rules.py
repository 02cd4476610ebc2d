"""The ready rules, the guard that asks them, and what it leaves the model to write."""

from __future__ import annotations

import dataclasses
import itertools

import orjson
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskModel, CallTool, Finish, Say
from edgeagent.core.state import Finished, State
from edgeagent.errors import ConfigError
from edgeagent.policy.fact import Fact
from edgeagent.policy.guard import ALLOW, Ask, Halt, Refuse, RuleGuard
from edgeagent.policy.ready import (
    Rule,
    at_most,
    confirm_before,
    confirm_below,
    cooldown,
    guard,
    halt_when,
    lock_after_no,
    never,
    no_effect_after_untrusted,
    only_between,
    quorum,
    requires_before,
    rule,
)
from edgeagent.policy.words import arg, at_least, call, confident, confirmed, failed, once, returned, said, since


@tool(idempotent=False)
def pay(amount: int, to: str = "bob") -> None:
    """Pay."""


@tool(idempotent=True, effect="read")
def fetch(page: str) -> str:
    """Fetch."""
    return page


AGENT = Agent(name="tester", tools=(pay, fetch))
ASK = AskModel(1, (), ("pay", "fetch"), "either", 64, 0, 0)


def judged(*rules, effect=None, facts=()):
    watch = RuleGuard(rules, AGENT)
    memory = watch.monitor.start()
    for fact in facts:
        memory = watch.monitor.append(memory, fact)
    return watch.judge(memory, State(turn=1), effect or CallTool(9, "pay", '{"amount":5}', 1))


def narrowed(*rules, facts=()):
    watch = RuleGuard(rules, AGENT)
    memory = watch.monitor.start()
    for fact in facts:
        memory = watch.monitor.append(memory, fact)
    return watch.narrow(memory, State(turn=1), ASK)


EVERY = (
    guard("pay", arg("amount") <= 100),
    requires_before("pay", "fetch", within="turn"),
    at_most(3, "fetch", per="turn"),
    never("pay", when=arg("amount") > 5),
    confirm_before("pay"),
    confirm_below(0.6),
    no_effect_after_untrusted(),
    cooldown("pay", 60),
    only_between("pay", "08:00", "18:00"),
    only_between("pay", said("begin"), said("end")),
    quorum(1, "pay", once(returned("fetch")), said()),
    lock_after_no("pay"),
    halt_when(at_least(3, call("fetch"))),
    rule(call("pay").implies(since(~said(), confirmed("pay"))), because="it must be fresh", name="fresh"),
)


@pytest.mark.parametrize("each", EVERY, ids=lambda r: r.name)
def test_every_rule_says_why_and_reads_as_a_sentence(each):
    assert each.because
    assert each.explain().startswith(each.name)


def test_a_rule_enters_the_digest_of_the_agent():
    digests = {dataclasses.replace(AGENT, policies=(each,)).digest for each in EVERY}
    assert len(digests) == len(EVERY)


def test_the_strictest_verdict_wins_whatever_the_order():
    rules = (
        confirm_before("pay", because="ask"),
        never("pay", because="refuse"),
        never("pay", because="halt", verdict="halt"),
    )
    assert all(judged(*order) == Halt("halt") for order in itertools.permutations(rules))
    assert all(judged(*order) == Refuse("refuse") for order in itertools.permutations(rules[:2]))
    assert judged(rules[0]) == Ask("ask")
    assert judged(never("fetch")) == ALLOW


def test_among_equal_verdicts_the_first_rule_says_why():
    assert judged(never("pay", because="one"), never("pay", because="two")) == Refuse("one")


def test_the_pending_call_counts_as_if_it_had_happened():
    twice = [Fact("called", "pay", turn=1)] * 2
    assert judged(at_most(3, "pay"), facts=twice) == ALLOW
    assert judged(at_most(2, "pay"), facts=twice) != ALLOW
    assert judged(at_most(0, "pay")) != ALLOW


def test_a_judged_call_that_is_not_admitted_has_not_happened():
    watch = RuleGuard((at_most(1, "pay"),), AGENT)
    memory, effect = watch.monitor.start(), CallTool(9, "pay", '{"amount":5}', 1)
    for _ in range(5):
        assert watch.judge(memory, State(turn=1), effect) == ALLOW
    assert watch.judge(watch.admit(memory, State(turn=1), effect), State(turn=1), effect) != ALLOW


def test_a_new_turn_begins_a_new_window():
    assert judged(at_most(1, "pay"), facts=[Fact("called", "pay", turn=0)]) == ALLOW


def test_effects_that_are_no_calls_are_only_stopped_by_a_halt():
    refuses_all = rule(said("magic"), because="never")
    assert judged(refuses_all, effect=Say(1, "hello")) == ALLOW
    assert judged(halt_when(~said("magic"), because="end"), effect=Say(1, "hello")) == Halt("end")
    assert judged(halt_when(~said("magic"), because="end"), effect=Finish(1, "over")) == ALLOW


def test_a_session_that_has_ended_is_not_ended_again():
    watch = RuleGuard((halt_when(~said("magic")),), AGENT)
    assert watch.judge(watch.monitor.start(), State(phase=Finished("over")), Say(1, "over")) == ALLOW


def test_a_tool_is_offered_while_nobody_knows_how_sure_its_call_will_be():
    assert narrowed(guard("pay", confident(0.6))).tools == ("pay", "fetch")


def test_a_tool_that_no_arguments_could_get_through_is_not_offered():
    assert narrowed(requires_before("pay", "fetch")).tools == ("fetch",)
    assert narrowed(requires_before("pay", "fetch"), facts=[Fact("returned", "fetch")]).tools == ("pay", "fetch")
    assert narrowed(never("pay"), never("fetch")).choice == "answer"


def test_a_tool_that_a_person_can_allow_stays_offered():
    assert narrowed(confirm_before("pay")).tools == ("pay", "fetch")


@pytest.mark.parametrize(
    ("condition", "schema"),
    [
        (arg("amount") <= 100, {"maximum": 100}),
        (arg("amount") < 100, {"exclusiveMaximum": 100}),
        (arg("amount") >= 1, {"minimum": 1}),
        (~(arg("amount") > 100), {"maximum": 100}),
        (arg("amount").among(1, 2), {"enum": [1, 2]}),
        (arg("amount") == 7, {"enum": [7]}),
    ],
)
def test_what_a_rule_demands_of_an_argument_is_handed_to_the_grammar(condition, schema):
    [(named, argument, text)] = narrowed(guard("pay", condition)).narrowed
    assert (named, argument, orjson.loads(text)) == ("pay", "amount", schema)


def test_a_demand_falls_away_when_something_else_satisfies_the_rule():
    either = guard("pay", (arg("amount") <= 100) | once(confirmed("pay")))
    assert narrowed(either).narrowed
    assert not narrowed(either, facts=[Fact("confirmed", "pay")]).narrowed


def test_never_when_too_much_becomes_a_maximum():
    assert narrowed(never("pay", when=arg("amount") > 5)).narrowed == (("pay", "amount", '{"maximum":5}'),)


conditions = st.recursive(
    st.one_of(
        st.tuples(st.sampled_from("<>"), st.integers(0, 4)).map(
            lambda p: arg("amount") <= p[1] if p[0] == "<" else arg("amount") > p[1]
        ),
        st.sampled_from([once(said()), call("pay"), at_least(2, call()), arg("to") == "bob"]),
    ),
    lambda c: st.one_of(c.map(lambda f: ~f), st.tuples(c, c).map(lambda p: p[0] & p[1] | ~p[0])),
    max_leaves=5,
)


@given(conditions, st.lists(st.sampled_from([Fact("said"), Fact("called", "pay"), Fact("other")]), max_size=3))
@settings(max_examples=300)
def test_what_is_taken_out_or_narrowed_away_would_have_been_refused(condition, facts):
    try:
        watch = RuleGuard((guard("pay", condition),), AGENT)
    except ConfigError:  # It can never object, as `call("pay")` cannot.
        assume(False)
    memory = watch.monitor.start()
    for fact in facts:
        memory = watch.monitor.append(memory, fact)
    left = watch.narrow(memory, State(), ASK)
    for amount, to in itertools.product(range(6), ("bob", "eve")):
        arguments = orjson.dumps({"amount": amount, "to": to}).decode()
        if watch.judge(memory, State(), CallTool(9, "pay", arguments, 1)) == ALLOW:
            assert "pay" in left.tools
            assert all(fits({"amount": amount, "to": to}[n], orjson.loads(schema)) for _, n, schema in left.narrowed)


def fits(value, schema):
    return (
        value in schema.get("enum", [value])
        and value == schema.get("const", value)
        and ("maximum" not in schema or value <= schema["maximum"])
        and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
    )


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (never("sell"), "names the tool sell; its tools are: pay, fetch"),
        (guard("pay", arg("sum") <= 5), "pay has no sum; it has: amount, to"),
        ("at most three", "which is not a rule"),
    ],
)
def test_a_rule_about_what_the_agent_does_not_have_is_refused(wrong, says):
    with pytest.raises(ConfigError, match=says):
        RuleGuard((wrong,), AGENT)


@pytest.mark.parametrize(
    "wrong",
    [
        never,
        confirm_before,
        lambda: at_most(-1, "pay"),
        lambda: only_between("pay", "08:00", said()),
        lambda: quorum(3, "pay", said()),
        lambda: Rule("x", said(), ""),
        lambda: Rule("x", said(), "y", "perhaps"),
        lambda: Rule("x", "said", "y"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_when_it_is_written(wrong):
    with pytest.raises(ConfigError):
        wrong()


def test_a_halt_that_no_effect_could_trigger_is_refused_with_the_remedy():
    with pytest.raises(ConfigError, match=r"once\(failed\('fetch'\)\)"):
        halt_when(failed("fetch"))
