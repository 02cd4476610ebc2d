"""How much a turn and a session may use, and which limit is reached. The one place where limits are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from edgeagent.core.values import Usage
from edgeagent.errors import ConfigError

Limit = Literal["steps", "tool calls", "prompt tokens", "completion tokens", "seconds", "refusals in a row", "money"]

MONEY_PARTS = 1_000_000
"""Costs are counted in millionths, in whole numbers: the same sum on every CPU."""

CLOSING_TOKENS = 64
"""Kept back from `completion_tokens` for the closing answer: two or three short sentences."""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a turn (or of a session). None means no limit.

    `steps` counts model calls, `tool_calls` admitted calls, `prompt_tokens` all prompt tokens of all model
    calls, `completion_tokens` all written tokens, `seconds` wall time, `refusals` refused or unreadable
    answers in a row, `repeats` how often the very same call (tool and arguments) may bring the same result in one
    turn, whatever runs in between. When a limit is reached the turn ends in a closing answer that names it.
    `calls_of` limits single tools by name; an exhausted tool is not offered any more, the turn goes on.
    Time in which a person is asked, or nothing runs at all, does not count. `money` is in the unit of the models'
    prices; the call that passes it is the last, and no closing answer is bought.
    """

    steps: int | None = 8
    tool_calls: int | None = 8
    prompt_tokens: int | None = None
    completion_tokens: int | None = 1024
    seconds: float | None = 120.0
    refusals: int | None = 3
    repeats: int | None = 1
    calls_of: dict[str, int] = {}
    money: float | None = None

    def __post_init__(self) -> None:
        """Refuse limits that could not be kept: at least one step and one refusal, nothing negative."""
        for name, least in _LEAST.items():
            value = getattr(self, name)
            kind, kind_name = ((int, float), "a number") if name in _PARTS else (int, "a whole number")
            if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
                raise ConfigError(f"Budget({name}={value!r:.80}): {name} must be {kind_name}, or None for no limit")
            if value is not None and not least <= value <= _MOST:
                most = "" if value < least else f" and at most {_MOST:,}"
                raise ConfigError(
                    f"Budget({name}={value}): {name} must be at least {least}{most}, or None for no limit"
                )
        if not isinstance(self.calls_of, dict):
            raise ConfigError(f"Budget(calls_of={self.calls_of!r:.80}): it must be like {{'tool': 3}}")
        for tool, calls in self.calls_of.items():
            if isinstance(calls, bool) or not isinstance(calls, int) or not isinstance(tool, str):
                raise ConfigError(f"Budget(calls_of={{{tool!r}: {calls!r:.80}}}): it must be like {{'tool': 3}}")
            if calls < 0:
                raise ConfigError(f"Budget(calls_of={{{tool!r}: {calls}}}): a tool cannot have fewer than 0 calls")


_PARTS = ("seconds", "money")
"""Limits that need not be whole."""

_MOST = 10**15
"""More than anything that runs can use; and far from where floats are not exact any more."""

_LEAST = {
    "steps": 1,
    "tool_calls": 0,
    "prompt_tokens": 1,
    "completion_tokens": 1,
    "seconds": 0,
    "refusals": 1,
    "repeats": 1,
    "money": 0,
}


class Spent(msgspec.Struct, frozen=True, array_like=True):
    """What has been used so far. `started_ms` is when it began, put off by the time that does not count.

    `calls_of` counts the tools that have a limit of their own.
    """

    started_ms: int = 0
    steps: int = 0
    tool_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    refusals: int = 0
    calls_of: tuple[tuple[str, int], ...] = ()
    cost: int = 0


NO_BUDGET = Budget(steps=None, tool_calls=None, completion_tokens=None, seconds=None, refusals=None, repeats=None)


def after_model_call(spent: Spent, usage: Usage) -> Spent:
    """Add one model call."""
    return msgspec.structs.replace(
        spent,
        steps=spent.steps + 1,
        prompt_tokens=spent.prompt_tokens + usage.prompt,
        completion_tokens=spent.completion_tokens + usage.completion,
        cost=spent.cost + usage.cost,
    )


def after_admission(budget: Budget, spent: Spent, tools: Sequence[str], times: int = 1) -> Spent:
    """Add a batch of calls that may run; with `times` -1 give calls back that were refused before they ran."""
    counted = spent.calls_of
    if budget.calls_of:
        count = dict(counted)
        for tool in tools:
            if tool in budget.calls_of:
                count[tool] = count.get(tool, 0) + times
        counted = tuple(sorted(count.items()))
    return msgspec.structs.replace(spent, tool_calls=spent.tool_calls + times * len(tools), calls_of=counted)


def after_answer(spent: Spent, *, refused: bool) -> Spent:
    """Count an answer of the model of which nothing ran, or end the row of such answers."""
    return msgspec.structs.replace(spent, refusals=spent.refusals + 1 if refused else 0)


def after_wait(spent: Spent, wait_ms: int) -> Spent:
    """Leave out time that does not count."""
    return msgspec.structs.replace(spent, started_ms=spent.started_ms + wait_ms)


def calls_left(budget: Budget, spent: Spent, tool: str) -> int | None:
    """How often this tool may still be called; None without a limit of its own."""
    limit = budget.calls_of.get(tool)
    return None if limit is None else max(0, limit - dict(spent.calls_of).get(tool, 0))


def prompt_left(budget: Budget, spent: Spent) -> int | None:
    """Prompt tokens that may still be evaluated, at least 0; None without a limit."""
    return None if budget.prompt_tokens is None else max(0, budget.prompt_tokens - spent.prompt_tokens)


def left_ms(budget: Budget, spent: Spent, now_ms: int) -> int | None:
    """Wall time that is left, in ms, at least 0; None without a limit."""
    if budget.seconds is None:
        return None
    return max(0, spent.started_ms + round(budget.seconds * 1000) - now_ms)


def completion_left(budget: Budget, spent: Spent) -> int | None:
    """Tokens that may still be written, at least 0; None without a limit."""
    if budget.completion_tokens is None:
        return None
    return max(0, budget.completion_tokens - spent.completion_tokens)


def money_left(budget: Budget, spent: Spent) -> int | None:
    """Millionths that may still be spent, at least 0; None without a limit."""
    return None if budget.money is None else max(0, round(budget.money * MONEY_PARTS) - spent.cost)


def budget_described(budget: Budget | None) -> dict[str, Any] | None:
    """The budget as digests are taken over it: a limit that came later is told only where it is set."""
    found: dict[str, Any] | None = msgspec.to_builtins(budget)
    return found if found is None or found["money"] is not None else {k: v for k, v in found.items() if k != "money"}


def limit_before_ask(budget: Budget, spent: Spent, now_ms: int) -> Limit | None:
    """Name the limit that forbids one more ordinary model call, or None.

    One step and `CLOSING_TOKENS` tokens are kept back for the closing answer, unless the budget is so
    small that keeping them back would leave nothing.
    """
    if budget.refusals is not None and spent.refusals >= budget.refusals:
        return "refusals in a row"
    if budget.steps is not None and spent.steps >= max(1, budget.steps - 1):
        return "steps"
    if budget.prompt_tokens is not None and spent.prompt_tokens >= budget.prompt_tokens:
        return "prompt tokens"
    left = completion_left(budget, spent)
    if left is not None and left <= _reserve(budget):
        return "completion tokens"
    if left_ms(budget, spent, now_ms) == 0:
        return "seconds"
    return "money" if money_left(budget, spent) == 0 else None


def limit_before_calls(budget: Budget, spent: Spent, calls: int, now_ms: int) -> Limit | None:
    """Name the limit that forbids this whole batch of calls, or None."""
    if budget.tool_calls is not None and spent.tool_calls + calls > budget.tool_calls:
        return "tool calls"
    if left_ms(budget, spent, now_ms) == 0:
        return "seconds"
    return None


def may_close(budget: Budget, spent: Spent, now_ms: int) -> bool:
    """Whether a closing answer by the model still fits into every limit."""
    return (
        (budget.steps is None or spent.steps < budget.steps)
        and (budget.prompt_tokens is None or spent.prompt_tokens < budget.prompt_tokens)
        and completion_left(budget, spent) != 0
        and left_ms(budget, spent, now_ms) != 0
        and money_left(budget, spent) != 0
    )


def ordinary_tokens(budget: Budget, spent: Spent) -> int | None:
    """Tokens that an ordinary model call may write: what is left less the reserve."""
    left = completion_left(budget, spent)
    return None if left is None else max(0, left - _reserve(budget))


def _reserve(budget: Budget) -> int:
    limit = budget.completion_tokens or 0
    return min(CLOSING_TOKENS, limit // 4)
