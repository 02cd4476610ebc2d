"""Rules as an operator writes them in edgeagent.toml: tables to rules, and errors that name line and key.

    [[policy.rules]]
    rule = "guard"
    tool = "pay"
    require = { argument = "amount", at_most = 100 }
    because = "more than 100 goes through the office"

A condition is one table: an argument with one comparison; `called`, `returned`, `failed`, `confirmed` or `denied`
with a tool (or a list); `said` with a pattern; `confident` with a probability; `tainted = true`; each of the past ones
may have `within`, and then (or with `times`) it is about the past and not only about the moment. `all`, `any` and `not`
combine conditions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, NoReturn, TypeVar

from edgeagent.errors import ConfigError
from edgeagent.policy import ready
from edgeagent.policy.formula import SESSION, Formula, Window
from edgeagent.policy.ready import Rule
from edgeagent.policy.stays import StaysHere, stays_here
from edgeagent.policy.words import (
    arg,
    at_least,
    call,
    clock,
    confident,
    confirmed,
    denied,
    failed,
    once,
    returned,
    said,
    tainted,
    window,
)

T = TypeVar("T")

Row = Rule | StaysHere
"""What a table makes: a rule over the past, or one that keeps values here."""

HEADER = re.compile(r"\s*\[\[\s*policy\s*\.\s*rules\s*\]\]")


def rules_from_table(policy: Mapping[str, Any], *, text: str = "", file: str = "edgeagent.toml") -> tuple[Row, ...]:
    """Return the rules of the section `policy`. `text` is the whole file, in which lines are found for errors.

    Raises ConfigError naming file, line and key.
    """
    for key in policy:
        if key != "rules":
            raise ConfigError(
                f"{file}, line {_line_of_key(text, key)}: policy.{key} is unknown; write [[policy.rules]]"
            )
    rows = policy.get("rules", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(f"{file}, line {_line_of_key(text, 'rules')}: policy.rules must be tables: [[policy.rules]]")
    return tuple(_Reader(row, n, text, file).rule() for n, row in enumerate(rows))


class _Reader:
    """Reads one table; what is not read at the end is unknown."""

    def __init__(self, row: dict[str, Any], number: int, text: str, file: str) -> None:
        self._row = dict(row)
        self._number, self._text, self._file = number, text, file

    def rule(self) -> Row:
        """Return the rule. Raises ConfigError."""
        name = self._text_of("rule")
        make = RULES.get(name)
        if make is None:
            self.fail("rule", f"there is no rule {name!r}; there are: {', '.join(sorted(RULES))}")
        self._check_keys(name)
        common: dict[str, Any] = {"because": self._text_of("because", "")}
        if "verdict" in self._row:
            common["verdict"] = verdict = self._text_of("verdict")
            if verdict not in ("halt", "refuse", "ask"):
                self.fail("verdict", f"is {verdict!r}; it must be 'refuse', 'ask' or 'halt'")
        try:
            made = make(self, common)
        except ConfigError as error:
            if str(error).startswith(self._file):
                raise
            self.fail("rule", str(error))
        assert not self._row, "a rule reads every key that it has"
        return made

    def _check_keys(self, name: str) -> None:
        """Refuse what the rule has not, before what is missing: the one is often the other, misspelt."""
        if "verdict" in self._row and name in _FIXED_VERDICT:
            self.fail("verdict", f"{name} always gives the same verdict")
        known = (*KEYS[name], "because", *(() if name in _FIXED_VERDICT else ("verdict",)))
        for key in self._row:
            if key not in known:
                self.fail(key, f"the rule {name} has no such key; it has {', '.join(known)}")

    def fail(self, key: str, why: str) -> NoReturn:
        """Raise ConfigError at the key's line."""
        raise ConfigError(f"{self._file}, line {self._line(key)}: policy.rules[{self._number}].{key}: {why}")

    def take(self, key: str, kind: type | tuple[type, ...], kind_name: str, default: Any = ...) -> Any:
        """Return a value of the right kind and mark it as read."""
        if key not in self._row:
            if default is ...:
                self.fail(key, f"is missing: give {kind_name}")
            return default
        value = self._row.pop(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self.fail(key, f"is {value!r}; it must be {kind_name}")
        return value

    def _text_of(self, key: str, default: Any = ...) -> str:
        return str(self.take(key, str, "a text", default))

    def count(self, key: str) -> int:
        """Return a whole number."""
        return int(self.take(key, int, "a whole number"))

    def number(self, key: str) -> float:
        """Return a number."""
        return float(self.take(key, (int, float), "a number"))

    def time(self, key: str) -> str:
        """Return a time of day."""
        text = self._text_of(key)
        self._reading(key, lambda: clock(text, text))
        return text

    def offset(self, key: str) -> int:
        """Return minutes, 0 if they are not given."""
        return int(self.take(key, int, "a number of minutes", 0))

    def tools(self, *, needed: bool = True) -> tuple[str, ...]:
        """Return the tools of `tool`: one, a list, or none."""
        value = self.take("tool", (str, list), "a tool's name or a list of them", ... if needed else [])
        tools = (value,) if isinstance(value, str) else tuple(value)
        if not all(isinstance(t, str) for t in tools) or (needed and not tools):
            self.fail("tool", f"is {value!r}; it must be a tool's name or a list of them")
        return tools

    def kinds(self, key: str) -> tuple[str, ...]:
        """Return kinds of values: one, a list, or both if none is named and no tool is."""
        value = self.take(key, (str, list), "'sensitive', 'tainted' or both", None)
        if value is None:
            return () if "tool" in self._row else ("sensitive", "tainted")
        return (value,) if isinstance(value, str) else tuple(map(str, value))

    def window(self, key: str, default: Window = SESSION) -> Window:
        """Return a window."""
        text = self.take(key, str, "'turn', 'session', '60 s' or '10 events'", None)
        return default if text is None else self._reading(key, lambda: window(text))

    def condition(self, key: str) -> Formula:
        """Return a condition."""
        table = self.take(key, dict, "a condition: a table")
        return self._reading(key, lambda: condition(table))

    def optional_condition(self, key: str) -> Formula | None:
        """Return a condition, or None without one."""
        return self.condition(key) if key in self._row else None

    def conditions(self, key: str) -> tuple[Formula, ...]:
        """Return a list of conditions."""
        tables = self.take(key, list, "a list of conditions")
        return self._reading(key, lambda: tuple(condition(t) for t in tables))

    def tool_or_condition(self, key: str) -> str | Formula:
        """Return a tool's name or a condition."""
        value = self.take(key, (str, dict), "a tool's name or a condition")
        return value if isinstance(value, str) else self._reading(key, lambda: condition(value))

    def _reading(self, key: str, read: Callable[[], T]) -> T:
        try:
            return read()
        except ConfigError as error:
            self.fail(key, str(error))

    def _line(self, key: str) -> int:
        return _line_in_entry(self._text, self._number, key)


_Make = Callable[[_Reader, dict[str, Any]], Row]

_FIXED_VERDICT = ("confirm_before", "confirm_below", "lock_after_no", "halt_when", "stays_here")

RULES: dict[str, _Make] = {
    "at_most": lambda r, c: ready.at_most(r.count("n"), *r.tools(needed=False), per=r.window("per"), **c),
    "confirm_before": lambda r, c: ready.confirm_before(*r.tools(needed=False), when=r.optional_condition("when"), **c),
    "confirm_below": lambda r, c: ready.confirm_below(r.number("probability"), *r.tools(needed=False), **c),
    "cooldown": lambda r, c: ready.cooldown(r.tools(), r.number("seconds"), **c),
    "guard": lambda r, c: ready.guard(r.tools(), r.condition("require"), **c),
    "halt_when": lambda r, c: ready.halt_when(r.condition("when"), **c),
    "lock_after_no": lambda r, c: ready.lock_after_no(*r.tools(), within=r.window("within"), **c),
    "never": lambda r, c: ready.never(*r.tools(needed=False), when=r.optional_condition("when"), **c),
    "no_effect_after_untrusted": lambda r, c: ready.no_effect_after_untrusted(
        *r.tools(needed=False), within=r.window("within"), **c
    ),
    "stays_here": lambda r, c: stays_here(of=r.kinds("of"), tools=r.tools(needed=False), **c),
    "only_between": lambda r, c: ready.only_between(
        r.tools(), r.time("start"), r.time("end"), utc_offset_minutes=r.offset("utc_offset_minutes"), **c
    ),
    "quorum": lambda r, c: ready.quorum(r.count("k"), r.tools(), *r.conditions("of"), **c),
    "requires_before": lambda r, c: ready.requires_before(
        r.tools(), r.tool_or_condition("before"), within=r.window("within"), **c
    ),
}
"""How each rule is made from its table; the names are those of the ready rules."""

KEYS: dict[str, tuple[str, ...]] = {
    "at_most": ("n", "tool", "per"),
    "confirm_before": ("tool", "when"),
    "confirm_below": ("probability", "tool"),
    "cooldown": ("tool", "seconds"),
    "guard": ("tool", "require"),
    "halt_when": ("when",),
    "lock_after_no": ("tool", "within"),
    "never": ("tool", "when"),
    "no_effect_after_untrusted": ("tool", "within"),
    "stays_here": ("of", "tool"),
    "only_between": ("tool", "start", "end", "utc_offset_minutes"),
    "quorum": ("k", "tool", "of"),
    "requires_before": ("tool", "before", "within"),
}
"""The keys of each, beside `rule`, `because` and `verdict`."""


# -- conditions ----------------------------------------------------------------------------------------------------


def condition(table: Any) -> Formula:
    """Return the formula of a condition's table. Raises ConfigError."""
    if not isinstance(table, dict):
        raise ConfigError(f"{table!r} is no condition: write a table like {{ argument = 'amount', at_most = 100 }}")
    kinds = [key for key in table if key in _CONDITIONS]
    if len(kinds) != 1:
        raise ConfigError(f"{table!r}: a condition has exactly one of: {', '.join(_CONDITIONS)}")
    rest = {key: value for key, value in table.items() if key != kinds[0]}
    return _CONDITIONS[kinds[0]](table[kinds[0]], rest)


def _argument(name: Any, rest: dict[str, Any]) -> Formula:
    if len(rest) != 1 or next(iter(rest)) not in _COMPARISONS:
        raise ConfigError(f"argument {name!r} needs exactly one of: {', '.join(_COMPARISONS)}")
    [(comparison, value)] = rest.items()
    return _COMPARISONS[comparison](arg(str(name)), value)


_COMPARISONS: dict[str, Callable[[arg, Any], Formula]] = {
    "at_most": lambda a, v: a <= v,
    "at_least": lambda a, v: a >= v,
    "below": lambda a, v: a < v,
    "above": lambda a, v: a > v,
    "equals": lambda a, v: a == v,
    "one_of": lambda a, v: a.among(*v) if isinstance(v, list) else a.among(v),
    "matches": lambda a, v: a.matches(str(v)),
    "from_user": lambda a, v: a.from_user() if v is True else ~a.from_user(),
}


def _event(of: Callable[..., Formula]) -> Callable[[Any, dict[str, Any]], Formula]:
    def read(value: Any, rest: dict[str, Any]) -> Formula:
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise ConfigError(f"{value!r} is neither a name nor a list of names")
        return _in_past(of(*names), rest)

    return read


def _in_past(moment: Formula, rest: dict[str, Any]) -> Formula:
    unknown = [key for key in rest if key not in ("within", "times")]
    if unknown:
        raise ConfigError(f"{unknown[0]} is unknown here; there are: within, times")
    if not rest:
        return moment
    within, times = window(rest.get("within", SESSION)), rest.get("times", 1)
    if not isinstance(times, int):
        raise ConfigError(f"times is {times!r}; it must be a whole number")
    return once(moment, within) if times == 1 else at_least(times, moment, within)


def _tainted(value: Any, rest: dict[str, Any]) -> Formula:
    within = rest.pop("within", SESSION)
    if rest or not isinstance(value, bool):
        raise ConfigError("write tainted = true, and within if it should not be the session")
    return tainted(within) if value else ~tainted(within)


def _confident(value: Any, rest: dict[str, Any]) -> Formula:
    if rest:
        raise ConfigError("confident stands alone, with a probability from 0 to 1")
    return confident(value)


def _several(join: Callable[[Iterable[Formula]], Formula]) -> Callable[[Any, dict[str, Any]], Formula]:
    def read(value: Any, rest: dict[str, Any]) -> Formula:
        if rest or not isinstance(value, list) or not value:
            raise ConfigError("all and any stand alone, with a list of conditions")
        return join(condition(each) for each in value)

    return read


def _every(parts: Iterable[Formula]) -> Formula:
    return reduce(lambda a, b: a & b, parts)


def _some(parts: Iterable[Formula]) -> Formula:
    return reduce(lambda a, b: a | b, parts)


_CONDITIONS: dict[str, Callable[[Any, dict[str, Any]], Formula]] = {
    "argument": _argument,
    "called": _event(call),
    "returned": _event(returned),
    "failed": _event(failed),
    "confirmed": _event(confirmed),
    "denied": _event(denied),
    "said": _event(said),
    "confident": _confident,
    "tainted": _tainted,
    "all": _several(_every),
    "any": _several(_some),
    "not": lambda value, rest: ~condition(value),
}


# -- lines ---------------------------------------------------------------------------------------------------------


def _line_in_entry(text: str, number: int, key: str) -> int:
    """Return the line (from 1) of a key in the n-th [[policy.rules]], or of the entry's header."""
    lines = text.splitlines()
    headers = [n for n, line in enumerate(lines) if HEADER.match(line)]
    if number >= len(headers):
        return _line_of_key(text, "rules")
    start = headers[number]
    wanted = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]")
    for n in range(start + 1, len(lines)):
        if re.match(r"\s*\[[^\]]", lines[n]) or HEADER.match(lines[n]):
            break
        if wanted.match(lines[n]):
            return n + 1
    return start + 1


def _line_of_key(text: str, key: str) -> int:
    """Return the line of `key` in the section [policy], or of the section, or 1."""
    section = 0
    for n, line in enumerate(text.splitlines(), start=1):
        if re.match(r"\s*\[+\s*policy\b", line):
            section = section or n
        if section and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line):
            return n
    return section or 1
