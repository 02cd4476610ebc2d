"""The pure core: one step, and that it does not grow with history."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bench.measure import paired_ratio, ratio, seconds_of
from bench.play import AGENT, CALL, TOKEN_IDS, USAGE, after_turns, turn
from edgeagent.core.events import Event, ModelAnswered, UserSaid
from edgeagent.core.state import State
from edgeagent.core.step import step


def asked(turns: int) -> tuple[State, Event]:
    """A state that waits for the model, and the call that the model answers with: the dearest event there is."""
    state, (ask,) = step(AGENT, after_turns(turns), UserSaid(90_000, "Open the north valve for 30 seconds."))
    return state, ModelAnswered(90_001, ask.effect_id, CALL, "closed", USAGE, TOKEN_IDS)


def four_steps(state: State, events: list[Event]) -> None:
    """One turn: the user's word, a call, its result, the answer."""
    for event in events:
        state, _ = step(AGENT, state, event)


def test_step(benchmark: Callable[..., object], record_figure: Callable[[str, float], None]) -> None:
    """The steps of a turn with one call, after ten such turns."""
    state = after_turns(10)
    _, events = turn(state, 90_000)
    benchmark(four_steps, state, events)
    record_figure("step.turn_ratio", ratio(lambda: four_steps(state, events)))
    record_figure(
        "step.us", 1e6 / len(events) * min(seconds_of(lambda: four_steps(state, events), 50) for _ in range(40))
    )


def test_step_that_admits_a_call(benchmark: Callable[..., object], record_figure: Callable[[str, float], None]) -> None:
    """The dearest step there is: what the model wrote is read, decoded, checked and admitted."""
    state, event = asked(10)
    benchmark(step, AGENT, state, event)
    record_figure("step.call_ratio", ratio(lambda: step(AGENT, state, event)))


def test_step_does_not_grow_with_history(record_figure: Callable[[str, float], None]) -> None:
    """The same step after 10 and after 1,000 turns."""
    young, old = asked(10), asked(1_000)
    record_figure("step.growth", paired_ratio(lambda: step(AGENT, *old), lambda: step(AGENT, *young)))


def test_step_allocations(record_figure: Callable[[str, float], None]) -> None:
    """Memory blocks that one step leaves behind in its state and effects."""
    state, event = asked(10)
    kept = [step(AGENT, state, event)]
    before = sys.getallocatedblocks()
    kept.append(step(AGENT, state, event))
    record_figure("step.blocks_kept", sys.getallocatedblocks() - before)
