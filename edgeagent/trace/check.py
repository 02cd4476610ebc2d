"""Does the agent still come to the effects that were recorded? Folds a trace again and compares digests."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from edgeagent.core.effects import Effect
from edgeagent.core.events import Event
from edgeagent.core.state import State, Transition
from edgeagent.errors import EdgeAgentError, TraceDisagrees
from edgeagent.trace.record import Record, effects_digest

GuardStep = Callable[[State, Event], Transition]
"""The guarded step of one agent: `functools.partial(guarded_step, guard, agent)`."""


def fold(step: GuardStep, records: Iterable[Record], state: State | None = None) -> tuple[State, tuple[Effect, ...]]:
    """Return the state after all records and the last one's effects. Raises TraceDisagrees at the first difference."""
    state = state or State()
    effects: tuple[Effect, ...] = ()
    for record in records:
        try:
            state, effects = step(state, record.event)
        except (EdgeAgentError, AssertionError, LookupError) as error:  # the agent is not the one that recorded this
            raise TraceDisagrees(f"{_where(record)}: the agent cannot take it any more: {error}", record.seq) from None
        if effects_digest(effects) != record.effects_digest:
            raise TraceDisagrees(
                f"{_where(record)}: now leads to {_names(effects)}, recorded was something else", record.seq
            )
    return state, effects


def _where(record: Record) -> str:
    return f"record {record.seq} ({type(record.event).__name__}, byte {record.offset})"


def _names(effects: tuple[Effect, ...]) -> str:
    return ", ".join(type(e).__name__ for e in effects) or "no effect"
