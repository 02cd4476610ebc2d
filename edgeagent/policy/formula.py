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

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

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

_WINDOW = re.compile(r"(?:last )?(\d+(?:\.\d+)?) ?(s|seconds|min|minutes|h|hours|events)")
_MILLISECONDS = {"s": 1000, "seconds": 1000, "min": 60_000, "minutes": 60_000, "h": 3_600_000, "hours": 3_600_000}


def last_seconds(seconds: float) -> Window:
    """The positions less than this many seconds ago."""
    if not seconds > 0:
        raise ConfigError(f"last_seconds({seconds}): a window must be longer than 0 seconds")
    return Window("seconds", max(1, round(seconds * 1000)))


def last_events(events: int) -> Window:
    """This position and the `events` - 1 before it."""
    if events < 1:
        raise ConfigError(f"last_events({events}): a window holds at least 1 event, the pending one")
    return Window("events", events)


def window(text: Window | str) -> Window:
    """Read a window: `turn`, `session`, `60 s`, `5 min`, `2 h`, `10 events`. Raises ConfigError."""
    if isinstance(text, Window):
        return text
    if text in ("session", "turn"):
        return SESSION if text == "session" else TURN
    found = _WINDOW.fullmatch(text)
    if found is None:
        raise ConfigError(f"window {text!r}: write 'turn', 'session', '60 s', '5 min', '2 h' or '10 events'")
    number, unit = float(found[1]), found[2]
    return last_events(int(number)) if unit == "events" else last_seconds(number * _MILLISECONDS[unit] / 1000)


class Formula:
    """A statement about a position and its past. Combine with `&`, `|`, `~` and `.implies()`."""

    def __and__(self, other: Formula) -> Formula:
        return And(self, _formula(other))

    def __or__(self, other: Formula) -> Formula:
        return Or(self, _formula(other))

    def __invert__(self) -> Formula:
        return Not(self)

    def implies(self, other: Formula) -> Formula:
        """True where this formula is false or `other` is true."""
        return Implies(self, _formula(other))

    def __bool__(self) -> bool:
        raise ConfigError(f"{self!r} is a formula, not a truth value: combine formulas with &, | and ~")

    def children(self) -> tuple[Formula, ...]:
        """The formulas this one is made of."""
        return ()

    def explain(self) -> str:
        """Return the formula as a part of a sentence."""
        raise NotImplementedError


def _formula(value: object) -> Formula:
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


# -- what an author writes -----------------------------------------------------------------------------------------


def call(*tools: str) -> Formula:
    """One of these tools (any, if none is named) is called: the pending call, or one that was let through."""
    return Happened("called", tools)


def acts() -> Formula:
    """A tool that is not declared `effect="read"` is called."""
    return Acts()


def returned(*tools: str) -> Formula:
    """One of these tools gave its result."""
    return Happened("returned", tools)


def failed(*tools: str) -> Formula:
    """One of these tools failed, or was interrupted by a crash so that its effect is unknown."""
    return Happened("failed", tools)


def confirmed(*tools: str) -> Formula:
    """A person answered an open question about one of these tools with yes."""
    return Happened("confirmed", tools)


def denied(*tools: str) -> Formula:
    """A person answered an open question about one of these tools with no, or not at all."""
    return Happened("denied", tools)


def said(pattern: str = "") -> Formula:
    """The user said something in which the regular expression `pattern` is found. Raises ConfigError."""
    _check_pattern("said", pattern)
    return Said(pattern)


def untrusted() -> Formula:
    """An answer of a tool that is not declared `trusted` came in, here."""
    return Untrusted()


def tainted(within: Window | str = SESSION) -> Formula:
    """Something untrusted came in at some time. A shorter window forgets what the model still reads."""
    return Once(Untrusted(), window(within))


def confident(at_least: float) -> Formula:
    """The call was held to be right with at least this probability (0 to 1). Raises ConfigError.

    A call of which the model did not say how sure it is fails this, whatever the number.
    """
    if isinstance(at_least, bool) or not isinstance(at_least, int | float) or not 0 <= at_least <= 1:
        raise ConfigError(f"confident({at_least!r}): a probability is from 0 to 1")
    return Confident(float(at_least))


def clock(start: str, end: str, utc_offset_minutes: int = 0) -> Formula:
    """The time of day is from `start` up to but not including `end`, both `HH:MM`. Raises ConfigError."""
    return Clock(_minutes(start), _minutes(end), utc_offset_minutes)


def _minutes(text: str) -> int:
    found = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", text)
    if found is None:
        raise ConfigError(f"time of day {text!r}: write hours and minutes like '08:30'")
    return int(found[1]) * 60 + int(found[2])


class arg:
    """An argument of the call that a position is about; compare it to get a formula. Nested ones as `to.address`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __lt__(self, value: float) -> Formula:
        return self._ordered("<", value)

    def __le__(self, value: float) -> Formula:
        return self._ordered("<=", value)

    def __gt__(self, value: float) -> Formula:
        return self._ordered(">", value)

    def __ge__(self, value: float) -> Formula:
        return self._ordered(">=", value)

    def __eq__(self, value: object) -> Formula:  # type: ignore[override]  # a comparison that yields a formula
        return Argument(self._name, "==", _plain(self._name, value))

    def __ne__(self, value: object) -> Formula:  # type: ignore[override]  # a comparison that yields a formula
        return self.present() & ~(self == value)

    __hash__ = None  # type: ignore[assignment]  # == does not compare, so it cannot be a key

    def among(self, *values: Any) -> Formula:
        """The argument is one of these."""
        if not values:
            raise ConfigError(f"arg({self._name!r}).among() names no value, so it could never hold")
        return Argument(self._name, "among", tuple(_plain(self._name, v) for v in values))

    def matches(self, pattern: str) -> Formula:
        """The argument is a text and the whole of it matches the regular expression. Raises ConfigError."""
        _check_pattern(f"arg({self._name!r}).matches", pattern)
        return Argument(self._name, "matches", pattern)

    def present(self) -> Formula:
        """The argument is given (or has a default)."""
        return Argument(self._name, "present")

    def from_user(self) -> Formula:
        """The argument is quoted from what the user said in this session."""
        return Argument(self._name, "from_user")

    def _ordered(self, comparison: Comparison, value: object) -> Formula:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise ConfigError(f"arg({self._name!r}) {comparison} {value!r}: only numbers have an order here")
        return Argument(self._name, comparison, value)


def _plain(name: str, value: object) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ConfigError(f"arg({name!r}) is compared with {value!r}: use a text, a number, True, False or None")


def _check_pattern(where: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"{where}({pattern!r}): not a regular expression: {error}") from error


def previously(of: Formula, within: Window | str = SESSION) -> Formula:
    """`of` held at the position before this one."""
    return Previously(_formula(of), window(within))


def once(of: Formula, within: Window | str = SESSION) -> Formula:
    """`of` holds here or held at some earlier position."""
    return Once(_formula(of), window(within))


def historically(of: Formula, within: Window | str = SESSION) -> Formula:
    """`of` holds here and held at every earlier position."""
    return Historically(_formula(of), window(within))


def since(left: Formula, right: Formula, within: Window | str = SESSION) -> Formula:
    """`right` held at some position (or holds here), and `left` has held at every later one."""
    return Since(_formula(left), _formula(right), window(within))


def at_least(n: int, of: Formula, within: Window | str = SESSION) -> Formula:
    """`of` holds at n or more positions, this one included. Raises ConfigError."""
    if not 1 <= n <= COUNT_MAX:
        raise ConfigError(f"at_least({n}, ...): count from 1 to {COUNT_MAX}")
    return AtLeast(_formula(of), window(within), n)


def k_of(k: int, *parts: Formula) -> Formula:
    """At least k of these hold. Raises ConfigError."""
    if not 1 <= k <= len(parts):
        raise ConfigError(f"k_of({k}, ...) has {len(parts)} formulas: k is at least 1 and at most their number")
    return KOf(k, tuple(_formula(p) for p in parts))


def _needs_future(name: str) -> NoReturn:
    raise ConfigError(
        f"{name} speaks of what has not happened yet, and a call is judged before it runs. Say it as a deadline: "
        "once(..., last_seconds(n)) on the call that must not come too late, or cooldown and only_between"
    )


def eventually(*_: Formula, **__: Any) -> NoReturn:
    """Refuse: it needs the future."""
    _needs_future("eventually")


def until(*_: Formula, **__: Any) -> NoReturn:
    """Refuse: it needs the future."""
    _needs_future("until")


def always(*_: Formula, **__: Any) -> NoReturn:
    """Refuse: it needs the future (of the past, `historically` speaks)."""
    _needs_future("always")


def following(*_: Formula, **__: Any) -> NoReturn:
    """Refuse: it needs the future."""
    _needs_future("following")


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
