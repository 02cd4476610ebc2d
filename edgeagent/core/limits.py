"""What turn and session together still allow, and how what is used is counted in the state.

The comparisons themselves are `core.budget`'s; here each is made for both budgets.
"""

from __future__ import annotations

from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.core.budget import (
    CLOSING_TOKENS,
    NO_BUDGET,
    Budget,
    Limit,
    Spent,
    after_admission,
    after_answer,
    after_model_call,
    after_wait,
    calls_left,
    completion_left,
    left_ms,
    limit_before_ask,
    limit_before_calls,
    ordinary_tokens,
    prompt_left,
)
from edgeagent.core.state import PendingCall, State
from edgeagent.core.values import Usage

ANSWER_TOKENS_MAX = 256
"""The most one model call may write: about a minute on a Pi 4 with a 135M model."""


def session_budget(agent: Agent) -> Budget:
    return agent.session_budget or NO_BUDGET


def _budgets(agent: Agent, state: State) -> tuple[tuple[Budget, Spent], ...]:
    """The budgets that hold, each with what was used of it."""
    if agent.session_budget is None:
        return ((agent.budget, state.turn_spent),)
    return ((agent.budget, state.turn_spent), (agent.session_budget, state.session_spent))


def window_left(agent: Agent, state: State) -> int:
    """Tokens that a prompt may have: the model's window, or less if the budget has less left."""
    if agent.budget.prompt_tokens is None and session_budget(agent).prompt_tokens is None:
        return state.context_tokens
    lefts = [prompt_left(budget, spent) for budget, spent in _budgets(agent, state)]
    return min([state.context_tokens, *(left for left in lefts if left is not None)])


def session_limit(agent: Agent, state: State) -> Limit | None:
    """Name the session's own limit that forbids one more ordinary model call, or None."""
    if agent.session_budget is None:
        return None
    return limit_before_ask(agent.session_budget, state.session_spent, state.now_ms)


def limit_for_calls(agent: Agent, state: State, calls: int) -> Limit | None:
    """Name the limit that forbids this whole batch of calls, or None."""
    for budget, spent in _budgets(agent, state):
        limit = limit_before_calls(budget, spent, calls, state.now_ms)
        if limit is not None:
            return limit
    return None


def time_left_ms(agent: Agent, state: State) -> int | None:
    """Wall time that turn and session have left, in ms; None without a limit."""
    lefts = [left for b, s in _budgets(agent, state) if (left := left_ms(b, s, state.now_ms)) is not None]
    return min(lefts, default=None)


def tokens_to_write(agent: Agent, state: State, closing: str) -> int:
    """Tokens that the next model call may write, at least 1."""
    most = min(CLOSING_TOKENS if closing else ANSWER_TOKENS_MAX, state.context_tokens // 4)
    for budget, spent in _budgets(agent, state):
        left = completion_left(budget, spent) if closing else ordinary_tokens(budget, spent)
        most = most if left is None else min(most, left)
    return max(1, most)


def limit_of_tool(agent: Agent, state: State, tool: str, batch: tuple[PendingCall, ...]) -> str | None:
    """Name the tool's own limit if one more call of it would pass it."""
    if not agent.budget.calls_of and not session_budget(agent).calls_of:
        return None
    same = sum(c.tool == tool and c.answer is None for c in batch)
    for budget, spent in _budgets(agent, state):
        left = calls_left(budget, spent, tool)
        if left is not None and left <= same:
            return f"{budget.calls_of[tool]} calls of {tool}"
    return None


def admit(agent: Agent, state: State, tools: tuple[str, ...], times: int = 1) -> State:
    """Count a batch of calls that may run, or (`times` -1) give back what was refused after all."""
    return replace(
        state,
        turn_spent=after_admission(agent.budget, state.turn_spent, tools, times),
        session_spent=after_admission(session_budget(agent), state.session_spent, tools, times),
    )


def count_answer(state: State, *, refused: bool) -> State:
    if not refused and state.turn_spent.refusals == state.session_spent.refusals == 0:
        return state
    turn, session = after_answer(state.turn_spent, refused=refused), after_answer(state.session_spent, refused=refused)
    return replace(state, turn_spent=turn, session_spent=session)


def spend_model_call(state: State, usage: Usage) -> State:
    turn, session = after_model_call(state.turn_spent, usage), after_model_call(state.session_spent, usage)
    return replace(state, turn_spent=turn, session_spent=session)


def without_wait(state: State, wait_ms: int) -> State:
    """Do not count this much time."""
    turn, session = after_wait(state.turn_spent, wait_ms), after_wait(state.session_spent, wait_ms)
    return replace(state, turn_spent=turn, session_spent=session)
