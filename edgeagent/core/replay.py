"""Fold recorded events again. Given the same events, the same states and effects come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from edgeagent.core.agent import Agent
from edgeagent.core.effects import Effect
from edgeagent.core.events import Event
from edgeagent.core.state import State, Transition

Step = Callable[[Agent, State, Event], Transition]


def replay(agent: Agent, events: Iterable[Event], step: Step) -> Iterator[tuple[Event, State, tuple[Effect, ...]]]:
    """Yield each event with the state after it and the effects it asked for."""
    state = State()
    for event in events:
        state, effects = step(agent, state, event)
        yield event, state, effects
