"""Words of formulas: what an author of rules writes. Each returns a formula; nothing here runs.

call("pay") & (arg("amount") > 100) & once(returned("fetch"), "5 min")
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from edgeagent.errors import ConfigError
from edgeagent.policy.formula import (
    COUNT_MAX,
    SESSION,
    TURN,
    Acts,
    Argument,
    AtLeast,
    Clock,
    Comparison,
    Confident,
    Formula,
    Happened,
    Historically,
    KOf,
    Once,
    Previously,
    Said,
    Since,
    Untrusted,
    Window,
    as_formula,
)

_WINDOW = re.compile(r"(?:last )?(\d+(?:\.\d+)?) ?(s|seconds|min|minutes|h|hours|events)")
SECONDS_MAX = 1_000_000_000
"""Some 30 years; what is longer is the session."""

_MILLISECONDS = {"s": 1000, "seconds": 1000, "min": 60_000, "minutes": 60_000, "h": 3_600_000, "hours": 3_600_000}


def last_seconds(seconds: float) -> Window:
    """The positions less than this many seconds ago, of the session's own time. Raises ConfigError for 0 or less."""
    if not 0 < seconds <= SECONDS_MAX:
        raise ConfigError(f"last_seconds({seconds}): a window is longer than 0 seconds, and {SECONDS_MAX:,} at most")
    return Window("seconds", max(1, round(seconds * 1000)))


def last_events(events: int) -> Window:
    """This position and the `events` - 1 before it. Raises ConfigError for less than 1."""
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
    """What outsiders may have written came in, here: an answer of a tool not declared `trusted`, or what was heard."""
    return Untrusted()


def tainted(within: Window | str = SESSION) -> Formula:
    """Something untrusted came in at some time. A shorter window forgets what the model still reads.

    Raises ConfigError for a window that there is not.
    """
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
        """The argument is one of these. Raises ConfigError for none."""
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
        """The argument is quoted, by whole words or as a number, from what the user said in this session."""
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
    """`of` held at the position before this one. Raises ConfigError for what is no formula, or no window."""
    return Previously(as_formula(of), window(within))


def once(of: Formula, within: Window | str = SESSION) -> Formula:
    """`of` holds here or held at some earlier position. Raises ConfigError for what is no formula, or no window."""
    return Once(as_formula(of), window(within))


def historically(of: Formula, within: Window | str = SESSION) -> Formula:
    """`of` holds here and held at every earlier position. Raises ConfigError for what is no formula, or no window."""
    return Historically(as_formula(of), window(within))


def since(left: Formula, right: Formula, within: Window | str = SESSION) -> Formula:
    """`right` held at some position (or holds here), and `left` has held at every later one. Raises ConfigError."""
    return Since(as_formula(left), as_formula(right), window(within))


def at_least(n: int, of: Formula, within: Window | str = SESSION) -> Formula:
    """`of` holds at n or more positions, this one included. Raises ConfigError."""
    if not 1 <= n <= COUNT_MAX:
        raise ConfigError(f"at_least({n}, ...): count from 1 to {COUNT_MAX}")
    return AtLeast(as_formula(of), window(within), n)


def k_of(k: int, *parts: Formula) -> Formula:
    """At least k of these hold. Raises ConfigError."""
    if not 1 <= k <= len(parts):
        raise ConfigError(f"k_of({k}, ...) has {len(parts)} formulas: k is at least 1 and at most their number")
    return KOf(k, tuple(as_formula(p) for p in parts))


def _needs_future(name: str) -> NoReturn:
    raise ConfigError(
        f"{name} speaks of what has not happened yet, and a call is judged before it runs. Say it as a deadline: "
        "once(..., last_seconds(n)) on the call that must not come too late, or cooldown and only_between"
    )


def eventually(*_: Formula, **__: Any) -> NoReturn:
    """Refuse: it needs the future. Raises ConfigError with the deadline to write instead."""
    _needs_future("eventually")


def until(*_: Formula, **__: Any) -> NoReturn:
    """Refuse: it needs the future. Raises ConfigError with the deadline to write instead."""
    _needs_future("until")


def always(*_: Formula, **__: Any) -> NoReturn:
    """Refuse: it needs the future (of the past, `historically` speaks). Raises ConfigError."""
    _needs_future("always")


def following(*_: Formula, **__: Any) -> NoReturn:
    """Refuse: it needs the future. Raises ConfigError with the deadline to write instead."""
    _needs_future("following")
