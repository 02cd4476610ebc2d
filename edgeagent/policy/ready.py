"""Ready rules. A rule is a formula that must hold for every pending effect, and what happens when it does not.

    at_most(3, "fetch", per="turn")
    requires_before("pay", confirmed("pay"), within="turn")
    guard("pay", arg("amount") <= 100, because="more than 100 goes through the office")

`because` is shown to the model, to the user and in the audit. Left out, the rule says it in its own words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edgeagent.errors import ConfigError
from edgeagent.policy.formula import COUNT_MAX, SESSION, Formula, Happened, Implies, Not, Untrusted, Window, tools_of
from edgeagent.policy.words import (
    acts,
    at_least,
    call,
    clock,
    confident,
    denied,
    k_of,
    last_seconds,
    once,
    returned,
    since,
    tainted,
    window,
)

Broken = Literal["halt", "refuse", "ask"]
"""What becomes of an effect that breaks a rule, strictest first. With no rule broken it is allowed."""


@dataclass(frozen=True)
class Rule:
    """`formula` must hold for every pending effect as the last position; otherwise `verdict`, `because` of this."""

    name: str
    formula: Formula
    because: str
    verdict: Broken = "refuse"

    def __post_init__(self) -> None:
        """Refuse what could not be judged or not be explained."""
        if not isinstance(self.formula, Formula):
            raise ConfigError(f"rule {self.name}: {self.formula!r} is not a formula")
        if self.verdict not in ("halt", "refuse", "ask"):
            raise ConfigError(f"rule {self.name}: verdict is {self.verdict!r}; it is 'refuse', 'ask' or 'halt'")
        if not self.because.strip():
            raise ConfigError(f"rule {self.name} has an empty `because`: say why, the model and the user read it")

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that the rule names."""
        return tools_of([self.formula])

    def explain(self) -> str:
        """Return the rule as one sentence."""
        end = {"halt": "the session ends", "refuse": "the call is refused", "ask": "a person is asked"}[self.verdict]
        match self.formula:
            case Implies(left=left, right=right):
                text = f"when {left.explain()}, this must hold: {right.explain()}; otherwise {end}"
            case Not(of=of):
                text = f"when {of.explain()}, {end}"
            case _:
                text = f"this must hold: {self.formula.explain()}; otherwise {end}"
        return f"{self.name}: {text}. Because: {self.because}."


def rule(formula: Formula, *, because: str, verdict: Broken = "refuse", name: str = "rule") -> Rule:
    """Any formula as a rule: it must hold at every pending effect. Raises ConfigError for an empty `because`."""
    return Rule(name, formula, because, verdict)


def guard(tool: str | tuple[str, ...], require: Formula, *, because: str = "", verdict: Broken = "refuse") -> Rule:
    """The tool may be called only when `require` holds. Raises ConfigError for what is no formula."""
    why = because or f"{_named(tool)} is only allowed when {require.explain()}"
    return Rule("guard", _call(tool).implies(require), why, verdict)


def requires_before(
    tool: str | tuple[str, ...],
    before: str | Formula,
    *,
    within: Window | str = SESSION,
    because: str = "",
    verdict: Broken = "refuse",
) -> Rule:
    """The tool may be called only after `before`: another tool's result, or anything a formula can say."""
    wanted = returned(before) if isinstance(before, str) else before
    earlier = once(wanted, within)
    why = because or f"{_named(tool)} needs first, {window(within).explain()}: {wanted.explain()}"
    return Rule("requires_before", _call(tool).implies(earlier), why, verdict)


def at_most(n: int, *tools: str, per: Window | str = "turn", because: str = "", verdict: Broken = "refuse") -> Rule:
    """These tools together may be called at most n times in the window (any tool, if none is named).

    Raises ConfigError for a count or a window that there is not.
    """
    if not 0 <= n < COUNT_MAX:
        raise ConfigError(f"at_most({n}, ...): count from 0 to {COUNT_MAX - 1}")
    calls = call(*tools)
    why = because or f"{_named(tools)} may be called at most {n} times {window(per).explain()}"
    return Rule("at_most", calls.implies(~at_least(n + 1, calls, per)), why, verdict)


def never(*tools: str, when: Formula | None = None, because: str = "", verdict: Broken = "refuse") -> Rule:
    """These tools may never be called, or not when `when` holds. Raises ConfigError without either."""
    if not tools and when is None:
        raise ConfigError("never() names neither a tool nor a `when`; it would forbid everything")
    why = because or f"{_named(tools)} is never allowed" + (f" when {when.explain()}" if when is not None else "")
    return Rule("never", ~_calls_when(tools, when), why, verdict)


def confirm_before(*tools: str, when: Formula | None = None, because: str = "") -> Rule:
    """A person must say yes to every single call of these tools, or to those for which `when` holds.

    Raises ConfigError without either.
    """
    if not tools and when is None:
        raise ConfigError("confirm_before() names neither a tool nor a `when`; use when=call() to ask every time")
    why = because or f"{_named(tools)} needs a person's yes"
    return Rule("confirm_before", ~_calls_when(tools, when), why, "ask")


def confirm_below(probability: float, *tools: str, because: str = "") -> Rule:
    """A person must say yes to a call of these tools (any that is not a read, if none is named) that is less probable.

    A call of which the model did not say how sure it is counts as less probable. Raises ConfigError.
    """
    calls = call(*tools) if tools else acts()
    why = because or f"the model is less than {100 * probability:g} % sure that this is the right call"
    return Rule("confirm_below", calls.implies(confident(probability)), why, "ask")


def no_effect_after_untrusted(
    *tools: str, within: Window | str = SESSION, because: str = "", verdict: Broken = "ask"
) -> Rule:
    """After something untrusted came in these tools (any that is not a read, if none is named) need a person's yes."""
    calls = call(*tools) if tools else acts()
    why = because or "something from an untrusted source was read before, and it may have asked for this"
    return Rule("no_effect_after_untrusted", calls.implies(~tainted(within)), why, verdict)


def cooldown(tool: str | tuple[str, ...], seconds: float, *, because: str = "", verdict: Broken = "refuse") -> Rule:
    """After a call of the tool the next one must be `seconds` later. Raises ConfigError for 0 or less."""
    calls = _call(tool)
    why = because or f"{_named(tool)} must rest for {seconds:g} seconds between two calls"
    return Rule("cooldown", calls.implies(~at_least(2, calls, last_seconds(seconds))), why, verdict)


def only_between(
    tool: str | tuple[str, ...],
    start: str | Formula,
    end: str | Formula,
    *,
    utc_offset_minutes: int = 0,
    because: str = "",
    verdict: Broken = "refuse",
) -> Rule:
    """The tool may be called only between two times of day ('08:00', '18:00'), or after `start` and before `end`.

    `utc_offset_minutes` is where the times of day are meant. Raises ConfigError for anything else than two of a kind.
    """
    if isinstance(start, str) and isinstance(end, str):
        allowed = clock(start, end, utc_offset_minutes)
    elif isinstance(start, Formula) and isinstance(end, Formula):
        allowed = since(~end, start)
    else:
        raise ConfigError("only_between: give two times of day like '08:00', or two formulas")
    why = because or f"{_named(tool)} is only allowed when {allowed.explain()}"
    return Rule("only_between", _call(tool).implies(allowed), why, verdict)


def quorum(k: int, tool: str | tuple[str, ...], *parts: Formula, because: str = "", verdict: Broken = "refuse") -> Rule:
    """The tool may be called only when at least k of the formulas hold. Raises ConfigError for a k out of reach."""
    enough = k_of(k, *parts)
    why = because or f"{_named(tool)} needs {enough.explain()}"
    return Rule("quorum", _call(tool).implies(enough), why, verdict)


def lock_after_no(*tools: str, within: Window | str = SESSION, because: str = "") -> Rule:
    """After a person's no to one of these tools, none of them may be called any more in the window."""
    why = because or f"a person has said no to {_named(tools)}"
    return Rule("lock_after_no", call(*tools).implies(~once(denied(*tools), within)), why, "refuse")


def halt_when(when: Formula, *, because: str = "") -> Rule:
    """The session ends before the next effect for which `when` holds.

    Raises ConfigError for a formula that only an event can fulfil: an effect is never one, so the rule would be idle.
    """
    if isinstance(when, Happened | Untrusted) and getattr(when, "kind", "") != "called":
        raise ConfigError(f"halt_when({when!r}) never holds at an effect: write halt_when(once({when!r}))")
    why = because or f"this ends the session: {when.explain()}"
    return Rule("halt_when", ~when, why, "halt")


def _call(tool: str | tuple[str, ...]) -> Formula:
    return call(tool) if isinstance(tool, str) else call(*tool)


def _calls_when(tools: tuple[str, ...], when: Formula | None) -> Formula:
    return call(*tools) if when is None else call(*tools) & when


def _named(tool: str | tuple[str, ...]) -> str:
    return tool if isinstance(tool, str) else " or ".join(tool) or "a tool"
