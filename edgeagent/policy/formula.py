"""What may be said about a session's past: formulas as values. Nothing here runs.

Positions are the session's events and its admitted effects, in order. A formula is read at one position and
speaks of that position and of earlier ones, never of later ones. A rule's verdict is the formula's value with
the *pending* effect as the last position, as if it were appended. A refused effect is never appended: it has
not happened. Time is the session's, steady one: a clock that is set changes only what `clock` sees.

    previously f      there is a position before this one, in the window, and f held at it
    once f            f holds here, or held at an earlier position in the window
    historically f    f holds at every position in the window (true when it is the only one and f holds)
    f since g         g held at a position in the window (or holds here), and f has held at all later ones
    at_least(n, f)    f holds at n or more positions of the window

A window always ends here. `session`: every position; `turn`: those of the running turn; `last_seconds(n)`: those
less than n seconds ago; `last_events(n)`: this position and the n - 1 before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from edgeagent.errors import ConfigError

Kind = Literal["called", "returned", "failed", "said", "confirmed", "denied", "heard", "other"]
"""What a position is. `heard` is an outsider's word; of `other` events and effects no formula speaks."""

Unit = Literal["session", "turn", "seconds", "events"]

COUNT_MAX = 1_000
"""The highest n of at_least: a window in seconds or events keeps n time stamps of 8 bytes in the state."""


@dataclass(frozen=True)
class Window:
    """How far back a formula looks. `width` counts turns, milliseconds or positions."""

    unit: Unit
    width: int = 1

    def __repr__(self) -> str:
        match self.unit:
            case "session" | "turn":
                return f"{self.unit!r}"
            case "seconds":
                return f"last_seconds({self.width / 1000:g})"
            case _:
                return f"last_events({self.width})"

    def explain(self) -> str:
        """Return the window as the end of a sentence."""
        match self.unit:
            case "session" | "turn":
                return f"in this {self.unit}"
            case "seconds":
                return f"in the last {self.width / 1000:g} seconds"
            case _:
                return f"in the last {self.width} events"


SESSION = Window("session")
TURN = Window("turn")


class Formula:
    """A statement about a position and its past. Combine with `&`, `|`, `~` and `.implies()`."""

    def __and__(self, other: Formula) -> Formula:
        return And(self, as_formula(other))

    def __or__(self, other: Formula) -> Formula:
        return Or(self, as_formula(other))

    def __invert__(self) -> Formula:
        return Not(self)

    def implies(self, other: Formula) -> Formula:
        """True where this formula is false or `other` is true."""
        return Implies(self, as_formula(other))

    def __bool__(self) -> bool:
        raise ConfigError(f"{self!r} is a formula, not a truth value: combine formulas with &, | and ~")

    def children(self) -> tuple[Formula, ...]:
        """The formulas this one is made of."""
        return ()

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        raise NotImplementedError


def as_formula(value: object) -> Formula:
    """Return the value, which must be a formula. Raises ConfigError with a hint at what was meant."""
    if isinstance(value, Formula):
        return value
    raise ConfigError(f"{value!r} is not a formula; put comparisons in parentheses: call('pay') & (arg('amount') <= 9)")


# -- what a position is --------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Happened(Formula):
    """The position is of this kind and about one of these tools (any tool if there are none)."""

    kind: Kind
    tools: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"{_FUNCTIONS[self.kind]}({', '.join(map(repr, self.tools))})"

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return _HAPPENED[self.kind].format(" or ".join(self.tools) or "any tool")


_FUNCTIONS = {
    "called": "call",
    "returned": "returned",
    "failed": "failed",
    "confirmed": "confirmed",
    "denied": "denied",
}
_HAPPENED = {
    "called": "{} is called",
    "returned": "{} returned",
    "failed": "{} failed",
    "confirmed": "a person said yes to {}",
    "denied": "a person said no to {}",
}


@dataclass(frozen=True, repr=False)
class Said(Formula):
    """The user said something in which `pattern` is found (anything if it is empty)."""

    pattern: str = ""

    def __repr__(self) -> str:
        return f"said({self.pattern!r})" if self.pattern else "said()"

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return f"the user said something like /{self.pattern}/" if self.pattern else "the user said something"


@dataclass(frozen=True, repr=False)
class Untrusted(Formula):
    """Text that outsiders may have written came in: an answer (or a failure) of a tool that is not trusted."""

    def __repr__(self) -> str:
        return "untrusted()"

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return "something untrusted came in"


@dataclass(frozen=True, repr=False)
class Acts(Formula):
    """A tool that does something to the world is called: one that is not declared a read."""

    def __repr__(self) -> str:
        return "acts()"

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return "a tool that is not a read is called"


Comparison = Literal["<", "<=", ">", ">=", "==", "among", "matches", "present", "from_user"]


@dataclass(frozen=True, repr=False)
class Argument(Formula):
    """The call that the position is about has this argument and it compares so; false without call or argument."""

    name: str
    comparison: Comparison
    value: Any = None

    def __repr__(self) -> str:
        match self.comparison:
            case "among":
                return f"arg({self.name!r}).among({', '.join(map(repr, self.value))})"
            case "matches":
                return f"arg({self.name!r}).matches({self.value!r})"
            case "present" | "from_user":
                return f"arg({self.name!r}).{self.comparison}()"
            case _:
                return f"(arg({self.name!r}) {self.comparison} {self.value!r})"

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        match self.comparison:
            case "among":
                return f"{self.name} is one of {', '.join(map(str, self.value))}"
            case "matches":
                return f"{self.name} has the form /{self.value}/"
            case "present":
                return f"{self.name} is given"
            case "from_user":
                return f"{self.name} is quoted from the user"
            case _:
                return f"{self.name} {self.comparison} {self.value}"


@dataclass(frozen=True, repr=False)
class Confident(Formula):
    """The call that the position is about was held to be right with at least this probability; false if not known."""

    at_least: float

    def __repr__(self) -> str:
        return f"confident({self.at_least!r})"

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return f"the model is at least {100 * self.at_least:g} % sure of the call"


@dataclass(frozen=True, repr=False)
class Clock(Formula):
    """The time of day is in [start, end), in minutes after midnight; over midnight when end is not after start."""

    start: int
    end: int
    utc_offset_minutes: int = 0

    def __repr__(self) -> str:
        offset = f", utc_offset_minutes={self.utc_offset_minutes}" if self.utc_offset_minutes else ""
        return f"clock({_hhmm(self.start)!r}, {_hhmm(self.end)!r}{offset})"

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return f"the time is between {_hhmm(self.start)} and {_hhmm(self.end)}{_zone(self.utc_offset_minutes)}"


def _hhmm(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _zone(offset: int) -> str:
    return f" UTC{'-' if offset < 0 else '+'}{_hhmm(abs(offset))}" if offset else " UTC"


# -- connectives ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Not(Formula):
    """The opposite."""

    of: Formula

    def __repr__(self) -> str:
        return f"~{self.of!r}"

    def children(self) -> tuple[Formula, ...]:
        """The formulas this one is made of."""
        return (self.of,)

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return f"not ({self.of.explain()})"


@dataclass(frozen=True, repr=False)
class _Binary(Formula):
    left: Formula
    right: Formula

    def children(self) -> tuple[Formula, ...]:
        """The formulas this one is made of."""
        return (self.left, self.right)


class And(_Binary):
    """Both."""

    def __repr__(self) -> str:
        return f"({self.left!r} & {self.right!r})"

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return f"{_inner(self.left, And)} and {_inner(self.right, And)}"


class Or(_Binary):
    """At least one of the two."""

    def __repr__(self) -> str:
        return f"({self.left!r} | {self.right!r})"

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return f"{_inner(self.left, Or)} or {_inner(self.right, Or)}"


class Implies(_Binary):
    """The second, wherever the first."""

    def __repr__(self) -> str:
        return f"{self.left!r}.implies({self.right!r})"

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return f"if {self.left.explain()} then {self.right.explain()}"


def _inner(formula: Formula, plain: type[_Binary]) -> str:
    text = formula.explain()
    return f"({text})" if isinstance(formula, _Binary) and not isinstance(formula, plain) else text


@dataclass(frozen=True, repr=False)
class KOf(Formula):
    """At least k of several."""

    k: int
    parts: tuple[Formula, ...]

    def __repr__(self) -> str:
        return f"k_of({self.k}, {', '.join(map(repr, self.parts))})"

    def children(self) -> tuple[Formula, ...]:
        """The formulas this one is made of."""
        return self.parts

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return f"at least {self.k} of: {'; '.join(p.explain() for p in self.parts)}"


# -- the past ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class _Past(Formula):
    of: Formula
    within: Window = SESSION

    def children(self) -> tuple[Formula, ...]:
        """The formulas this one is made of."""
        return (self.of,)

    def _end(self) -> str:
        return "" if self.within == SESSION else f", {self.within!r}"


class Previously(_Past):
    """At the position before this one."""

    def __repr__(self) -> str:
        return f"previously({self.of!r}{self._end()})"

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return f"just before, {self.within.explain()}, {self.of.explain()}"


class Once(_Past):
    """Here or at some earlier position."""

    def __repr__(self) -> str:
        return f"once({self.of!r}{self._end()})"

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return f"at some time {self.within.explain()} ({self.of.explain()})"


class Historically(_Past):
    """Here and at every earlier position."""

    def __repr__(self) -> str:
        return f"historically({self.of!r}{self._end()})"

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return f"at all times {self.within.explain()} ({self.of.explain()})"


@dataclass(frozen=True, repr=False)
class AtLeast(_Past):
    """At n or more positions."""

    n: int = 1

    def __repr__(self) -> str:
        return f"at_least({self.n}, {self.of!r}{self._end()})"

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return f"{self.n} times or more {self.within.explain()} ({self.of.explain()})"


@dataclass(frozen=True, repr=False)
class Since(Formula):
    """`left` at every position after the last one at which `right` held."""

    left: Formula
    right: Formula
    within: Window = SESSION

    def __repr__(self) -> str:
        end = "" if self.within == SESSION else f", {self.within!r}"
        return f"since({self.left!r}, {self.right!r}{end})"

    def children(self) -> tuple[Formula, ...]:
        """The formulas this one is made of."""
        return (self.left, self.right)

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        return f"({self.left.explain()}) ever since, {self.within.explain()}, ({self.right.explain()})"


# -- walking -------------------------------------------------------------------------------------------------------


def walk(formula: Formula) -> Iterator[Formula]:
    """Yield every subformula, children before parents, each occurrence."""
    for child in formula.children():
        yield from walk(child)
    yield formula


def tools_of(formulas: Iterable[Formula]) -> tuple[str, ...]:
    """Return the tools that are named, sorted."""
    named = (f.tools for each in formulas for f in walk(each) if isinstance(f, Happened))
    return tuple(sorted({tool for tools in named for tool in tools}))


def speaks_of_calls(formula: Formula) -> bool:
    """Whether it makes a difference to the formula that its position is a call."""
    return any(
        isinstance(f, Acts | Argument | Confident) or (isinstance(f, Happened) and f.kind == "called")
        for f in walk(formula)
    )
