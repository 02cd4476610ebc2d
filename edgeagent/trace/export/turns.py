"""What each turn of a session has used of its budget, how it ended, and what was refused in it and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from edgeagent.core.agent import Agent
from edgeagent.core.budget import Budget, Spent
from edgeagent.core.effects import AskUser, Effect
from edgeagent.core.events import steady_ms
from edgeagent.core.refusals import refusal_in
from edgeagent.core.state import State, is_resting
from edgeagent.trace.record import Record


@dataclass(frozen=True)
class Use:
    """How much of one limit was used; `limit` None is no limit."""

    name: str
    used: float
    limit: float | None

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return min(1.0, self.used / self.limit) if self.limit else 0.0


@dataclass
class Turn:
    """One turn: what was said, what it used, how it ended, and why something was refused or asked."""

    number: int
    text: str
    began_ms: int
    ended_ms: int = 0
    uses: tuple[Use, ...] = ()
    outcome: str = "not ended"
    refusals: list[str] = field(default_factory=list)


def turns_of(agent: Agent, folded: Iterable[tuple[Record, State, tuple[Effect, ...]]]) -> list[Turn]:
    """Return the session's turns."""
    turns: list[Turn] = []
    before = State()
    for record, state, effects in folded:
        if state.turn > before.turn:
            text = _begun_by(state)
            turns.append(Turn(state.turn, text, steady_ms(record.event)))
        if turns:
            _note(turns[-1], record, state, effects, before)
            turns[-1].uses = tuple(uses(agent.budget, state.turn_spent, turns[-1].ended_ms - turns[-1].began_ms))
        before = state
    return turns


def _begun_by(state: State) -> str:
    """The words that the newest turn began with."""
    messages = state.current or (state.past[-1].messages if state.past else ())
    first = next((m for m in messages if m.role != "heard" or m.tool), None)
    if first is None:
        return ""
    return {"heard": f"{first.tool}: ", "note": "timer: "}.get(first.role, "") + first.text


def uses(budget: Budget, spent: Spent, wall_ms: int) -> Iterator[Use]:
    """What a turn has used of each of its limits."""
    yield Use("steps", spent.steps, budget.steps)
    yield Use("tool calls", spent.tool_calls, budget.tool_calls)
    yield Use("prompt tokens", spent.prompt_tokens, budget.prompt_tokens)
    yield Use("written tokens", spent.completion_tokens, budget.completion_tokens)
    yield Use("seconds", round(wall_ms / 1000, 1), budget.seconds)


def _note(turn: Turn, record: Record, state: State, effects: tuple[Effect, ...], before: State) -> None:
    if turn.outcome == "not ended" or not is_resting(state):
        turn.ended_ms = steady_ms(record.event)
    # What the model was told since the last record; refusals of ours begin so.
    new = [*(m for e in state.past[len(before.past) :] for m in e.messages), *state.current]
    for text in (m.text for m in new if m.role == "tool"):
        reason = refusal_in(text)
        if reason and reason not in turn.refusals:
            turn.refusals.append(reason)
    turn.refusals += [f"asked a person: {e.because}" for e in effects if isinstance(e, AskUser)]
    if is_resting(state) and state.outcome is not None:
        turn.outcome = f"{state.outcome.kind}{': ' + state.outcome.detail if state.outcome.detail else ''}"
