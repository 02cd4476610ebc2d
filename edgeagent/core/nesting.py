"""What a sub-agent may use, and how what it has used is counted for the agent above it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.core.budget import (
    MONEY_PARTS,
    NO_BUDGET,
    Budget,
    Spent,
    calls_left,
    left_ms,
    money_left,
    ordinary_tokens,
    prompt_left,
)
from edgeagent.core.state import State


def budget_below(agent: Agent, state: State, below: Agent) -> Budget | None:
    """Return the limits of a sub-agent's session: what turn and session have left, and its own. None: nothing is left.

    The agent above keeps a step and its reserve of tokens back, to close with.
    """
    own = below.session_budget or NO_BUDGET
    pairs = ((agent.budget, state.turn_spent), (agent.session_budget or NO_BUDGET, state.session_spent))
    steps = _least([own.steps, *(b.steps - 1 - s.steps for b, s in pairs if b.steps is not None)])
    written = _least([own.completion_tokens, *(ordinary_tokens(b, s) for b, s in pairs)])
    read = _least([own.prompt_tokens, *(prompt_left(b, s) for b, s in pairs)])
    calls = _least(
        [own.tool_calls, *(max(0, b.tool_calls - s.tool_calls) for b, s in pairs if b.tool_calls is not None)]
    )
    ms = _least(
        [None if own.seconds is None else round(own.seconds * 1000), *(left_ms(b, s, state.now_ms) for b, s in pairs)]
    )
    money = _least(
        [None if own.money is None else round(own.money * MONEY_PARTS), *(money_left(b, s) for b, s in pairs)]
    )
    if any(left is not None and left < 1 for left in (steps, written, read, ms, money)):
        return None
    names = {name for b in (own, agent.budget, agent.session_budget or NO_BUDGET) for name in b.calls_of}
    lefts = {n: _least([own.calls_of.get(n), *(calls_left(b, s, n) for b, s in pairs)]) for n in sorted(names)}
    return Budget(
        steps=steps,
        tool_calls=calls,
        prompt_tokens=read,
        completion_tokens=written,
        seconds=None if ms is None else ms / 1000,
        refusals=own.refusals,
        repeats=own.repeats,
        calls_of={name: left for name, left in lefts.items() if left is not None},
        money=None if money is None else money / MONEY_PARTS,
    )


def charged(agent: Agent, state: State, before: Spent, after: Spent) -> State:
    """Count for turn and session what a sub-agent has used since `before`."""
    session = agent.session_budget or NO_BUDGET
    return replace(
        state,
        turn_spent=_sum(agent.budget, state.turn_spent, before, after),
        session_spent=_sum(session, state.session_spent, before, after),
    )


def _sum(budget: Budget, spent: Spent, before: Spent, after: Spent) -> Spent:
    count = dict(spent.calls_of)
    earlier = dict(before.calls_of)
    for tool, calls in after.calls_of:
        if tool in budget.calls_of:
            count[tool] = count.get(tool, 0) + calls - earlier.get(tool, 0)
    return replace(
        spent,
        started_ms=spent.started_ms + after.started_ms - before.started_ms,
        steps=spent.steps + after.steps - before.steps,
        tool_calls=spent.tool_calls + after.tool_calls - before.tool_calls,
        prompt_tokens=spent.prompt_tokens + after.prompt_tokens - before.prompt_tokens,
        completion_tokens=spent.completion_tokens + after.completion_tokens - before.completion_tokens,
        calls_of=tuple(sorted(count.items())),
        cost=spent.cost + after.cost - before.cost,
    )


def _least(limits: Iterable[int | None]) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
