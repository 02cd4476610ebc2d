"""What the rules cost: the same turn with 20 rules and without, after 1,000 events, and that it does not grow."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial

from bench.measure import seconds_of
from bench.play import AGENT, turn
from edgeagent.core.agent import Agent
from edgeagent.core.events import Event, SessionStarted
from edgeagent.core.replay import Step
from edgeagent.core.state import State
from edgeagent.core.step import step
from edgeagent.policy.guard import RuleGuard, guarded_step
from edgeagent.policy.rules import (
    Rule,
    arg,
    at_least,
    at_most,
    call,
    confirm_before,
    confirmed,
    cooldown,
    failed,
    guard,
    halt_when,
    lock_after_no,
    never,
    no_effect_after_untrusted,
    only_between,
    quorum,
    requires_before,
    returned,
    rule,
    said,
    since,
)

READ, VALVE, SET, TELL, SEND = "read_sensor", "set_valve", "set_setpoint", "notify", "send_line"

RULES: tuple[Rule, ...] = (
    *(at_most(900, tool, per="session") for tool in (READ, SET, TELL, SEND)),
    at_most(3, VALVE, per="turn"),
    guard(VALVE, arg("seconds") <= 600),
    guard(SET, (arg("channel") >= 1) & (arg("channel") <= 8)),
    requires_before(SEND, READ),
    requires_before(TELL, said(), within="turn"),
    never(SEND, when=arg("line").matches("format.*")),
    confirm_before(SEND),
    cooldown(SET, 60),
    cooldown(VALVE, 0.001),
    no_effect_after_untrusted(TELL, within="10 events"),
    only_between(TELL, "00:00", "23:59"),
    quorum(1, SET, returned(READ), said()),
    lock_after_no(SEND),
    halt_when(at_least(900, failed())),
    halt_when(at_least(20, call(), "turn")),
    rule(call(SEND).implies(since(~failed(), confirmed(SEND))), because="a fresh yes is needed"),
)
RULED: Agent = dataclasses.replace(AGENT, policies=RULES)


def after_events(play: Step, agent: Agent, count: int) -> tuple[State, list[Event]]:
    """The state after at least `count` events of turns with one call, and the events of one more turn."""
    state, _ = play(agent, State(), SessionStarted(1, agent.name, agent.digest, 1, "plain", 2048, "0"))
    for number in range(count // 4):
        state, _ = turn(state, 10 * number + 10, play)
    return state, turn(state, 10 * count, play)[1]


def through(play: Step, agent: Agent, state: State, events: list[Event]) -> None:
    """The four steps of a turn."""
    for event in events:
        state, _ = play(agent, state, event)


def test_twenty_rules_after_a_thousand_events(record_figure: Callable[[str, float], None]) -> None:
    """Microseconds a step that the rules add: best of 100, guarded and unguarded in turn."""
    assert len(RULES) == 20
    guarded = partial(guarded_step, RuleGuard(RULES, RULED))
    plain, ruled = after_events(step, AGENT, 1_000), after_events(guarded, RULED, 1_000)
    one, other = best_of(lambda: through(step, AGENT, *plain), lambda: through(guarded, RULED, *ruled))
    record_figure("guard.extra_us", 1e6 * (other - one) / 4)


def test_the_cost_of_rules_does_not_grow_with_history(record_figure: Callable[[str, float], None]) -> None:
    """The same guarded turn after 1,000 and after 100 events."""
    guarded = partial(guarded_step, RuleGuard(RULES, RULED))
    young, old = after_events(guarded, RULED, 100), after_events(guarded, RULED, 1_000)
    one, other = best_of(lambda: through(guarded, RULED, *young), lambda: through(guarded, RULED, *old))
    record_figure("guard.growth", other / one)


def best_of(one: Callable[[], None], other: Callable[[], None]) -> tuple[float, float]:
    """The best seconds of each, measured in turn: what else runs here can only add."""
    best = [1.0, 1.0]
    for _ in range(100):
        best = [min(best[0], seconds_of(one, 10)), min(best[1], seconds_of(other, 10))]
    return best[0], best[1]
