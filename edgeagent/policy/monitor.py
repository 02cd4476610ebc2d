"""The running form of formulas: how a bounded memory of the past gives the value of a formula here and now.

Formulas are compiled once into a flat table with one row for each distinct past operator, inner ones first. A
row's memory is a whole number or a short tuple of them, so the memory of all rows is a plain tuple that lives in
the agent's state. A position is appended in one pass over the table, O(size of the formulas).

For each kind and tool of a position the table is specialised once: atoms that cannot hold there are replaced by
False, and rows whose memory then cannot change are left out. Memory does not grow with the session: `bits`.

Stamps. `once f` in a window needs only the *latest* stamp (time, turn or number) of f: if that one is no longer in
the window, no earlier one is. Stamps never go down, so what has left a window never comes back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, assert_never

from edgeagent.errors import ConfigError
from edgeagent.policy.atoms import Bound, Memory, Now, Value, atom_value
from edgeagent.policy.fact import Fact, Signature
from edgeagent.policy.formula import (
    Acts,
    And,
    Argument,
    AtLeast,
    Clock,
    Confident,
    Formula,
    Happened,
    Historically,
    Implies,
    KOf,
    Not,
    Once,
    Or,
    Previously,
    Said,
    Since,
    Untrusted,
    walk,
)

_Plan = tuple[tuple[int, Callable[..., Any]], ...]
"""Slots whose memory may change, in the table's order, and the code that makes the next one."""

Past = Previously | Once | Historically | AtLeast | Since

HEAD = 2
"""Entries of the memory before the first row's."""

_UNITS = {"session": 0, "turn": 1, "seconds": 2, "events": 3}
_STAMP_BITS = (1, 32, 64, 64)


@dataclass(frozen=True)
class Row:
    """One past operator: where its memory is, and how value and next memory follow from its parts' values."""

    formula: Past
    slot: int
    unit: int
    width: int
    value: Callable[[bool, bool, Any, int], bool]
    following: Callable[[bool, bool, Any, int], Any]
    start: Any
    bits: int


class Monitor:
    """Follows several formulas over one session. `acting` are the tools that are not reads."""

    def __init__(self, formulas: Sequence[Formula], acting: Iterable[str] = ()) -> None:
        self.formulas = tuple(formulas)
        self.acting = frozenset(acting)
        # Keyed by text: as values, arg("n") == 1 and arg("n") == True would be the same.
        self.rows: dict[str, Row] = {}
        for formula in self.formulas:
            for part in walk(formula):
                if isinstance(part, Past) and repr(part) not in self.rows:
                    self.rows[repr(part)] = _row(part, HEAD + len(self.rows))
        self._counts = any(row.unit == 3 for row in self.rows.values())
        self._plans: dict[Signature, _Plan] = {}
        self._roots: dict[Signature, tuple[bool | Value, ...]] = {}
        table = "\n".join(self.rows)
        self.fingerprint = int.from_bytes(hashlib.sha256(table.encode()).digest()[:4], "big")

    @property
    def size(self) -> int:
        """The number of rows: distinct past operators."""
        return len(self.rows)

    @property
    def bits(self) -> int:
        """The most memory that the rows ever need."""
        return sum(row.bits for row in self.rows.values()) + 64 * self._counts

    def start(self) -> Memory:
        """Return the memory before the first position."""
        return (self.fingerprint, 0, *(row.start for row in self.rows.values()))

    def restored(self, memory: Any) -> Memory:
        """Return memory as it came out of a decoder in its plain form. Raises ConfigError if it is another table's."""
        if memory is None:
            return self.start()
        plain = tuple(tuple(entry) if isinstance(entry, list | tuple) else entry for entry in memory)
        if len(plain) != HEAD + len(self.rows) or plain[0] != self.fingerprint:
            raise ConfigError("the rules have changed since this session's snapshot: fold its trace again")
        return plain

    def append(self, memory: Memory, fact: Fact) -> Memory:
        """Return the memory after one more position."""
        plan = self._plan_for((fact.kind, fact.tool))
        if not plan and not self._counts:
            return memory
        now = (0, fact.turn, fact.at_ms, memory[1])
        values = [False] * len(memory)
        changed = list(memory)
        for slot, following in plan:
            changed[slot] = following(fact, memory, now, values)
        if self._counts:
            changed[1] += 1
        return tuple(changed)

    def ignores(self, signature: Signature) -> bool:
        """Whether a position of this kind and tool changes nothing."""
        return not self._counts and not self._plan_for(signature)

    def values(self, memory: Memory, fact: Fact) -> tuple[bool, ...]:
        """Return each formula's value at a pending position, as if it were appended."""
        roots = self._roots.get(fact.signature)
        if roots is None:
            roots = self._roots[fact.signature] = tuple(self.compiled(f, fact.signature) for f in self.formulas)
        now = self.now(memory, fact)
        return tuple(root if isinstance(root, bool) else root(fact, memory, now, []) for root in roots)

    def now(self, memory: Memory, fact: Fact) -> Now:
        """Return the stamps of a position that would be appended to this memory."""
        return 0, fact.turn, fact.at_ms, memory[1]

    def compiled(self, formula: Formula, signature: Signature, bound: Bound = "exact") -> bool | Value:
        """Return the formula's value at every pending position of this kind and tool, or the code that finds it.

        With bound `upper` it is true if any arguments could make it true, with `lower` only if all do.
        """
        return self._value(formula, signature, bound, frozenset())

    def _plan_for(self, signature: Signature) -> _Plan:
        plan = self._plans.get(signature)
        return self._specialised(signature) if plan is None else plan

    def _specialised(self, signature: Signature) -> _Plan:
        """Specialise the table: only the rows whose memory such a position can change, inner ones first."""
        plan: list[tuple[int, Callable[..., Any]]] = []
        live: set[int] = set()
        for row in self.rows.values():
            parts = [self._value(p, signature, "exact", frozenset(live)) for p in row.formula.children()]
            if not _is_quiet(row.formula, parts):
                live.add(row.slot)
                plan.append((row.slot, _update(row, *map(as_value, parts))))
        self._plans[signature] = tuple(plan)
        return self._plans[signature]

    def _value(self, f: Formula, s: Signature, bound: Bound, live: frozenset[int]) -> bool | Value:
        """Compile. Rows in `live` have left their value in the list; any other row works from its memory."""
        match f:
            case Acts():
                return s[0] == "called" and s[1] in self.acting
            case Happened() | Said() | Untrusted() | Argument() | Confident() | Clock():
                return atom_value(f, s, bound)
            case Not(of=of):
                return _not(self._value(of, s, _opposite(bound), live))
            case And(left=left, right=right):
                return _and(self._value(left, s, bound, live), self._value(right, s, bound, live))
            case Or(left=left, right=right):
                return _or(self._value(left, s, bound, live), self._value(right, s, bound, live))
            case Implies(left=left, right=right):
                return _or(_not(self._value(left, s, _opposite(bound), live)), self._value(right, s, bound, live))
            case KOf(k=k, parts=parts):
                return _k_of(k, [self._value(p, s, bound, live) for p in parts])
            case Previously() | Once() | Historically() | AtLeast() | Since():
                row = self.rows[repr(f)]
                if row.slot in live:
                    return _left_value(row.slot)
                return _read(row, *(self._value(p, s, bound, live) for p in f.children()))
            case _:
                raise ConfigError(f"{f!r} is not a formula of ours")


# -- rows ----------------------------------------------------------------------------------------------------------
# A stamp is -1 where there is none. A position with stamp m is in the window at stamp s when m >= 0 and s - m < width.


def _row(formula: Past, slot: int) -> Row:
    unit, width = _UNITS[formula.within.unit], formula.within.width
    value, following, start, entries = _operator(formula, width)
    bits = entries * _STAMP_BITS[unit]
    if isinstance(formula, AtLeast) and unit < 2:
        bits = _STAMP_BITS[unit] + formula.n.bit_length()
    return Row(formula, slot, unit, width, value, following, start, bits)


_Operator = tuple[Callable[[bool, bool, Any, int], bool], Callable[[bool, bool, Any, int], Any], Any, int]


def _operator(formula: Past, width: int) -> _Operator:
    """Return value, next memory, first memory and number of stamps; both work on the memory *before* the position."""
    match formula:
        case Previously():
            return (lambda a, b, m, s: m >= 0 and s - m < width), (lambda a, b, m, s: s if a else -1), -1, 1
        case Once():
            return (lambda a, b, m, s: a or (m >= 0 and s - m < width)), (lambda a, b, m, s: s if a else m), -1, 1
        case Historically():  # Remembers when it was last false.
            return (
                (lambda a, b, m, s: a and not (m >= 0 and s - m < width)),
                (lambda a, b, m, s: m if a else s),
                -1,
                1,
            )
        case Since():
            return (
                (lambda a, b, m, s: b or (a and m >= 0 and s - m < width)),
                (lambda a, b, m, s: s if b else (m if a else -1)),
                -1,
                1,
            )
        case AtLeast(n=n, within=within):
            return _counter(n) if within.unit in ("session", "turn") else _ring(n, width)
        case _:
            assert_never(formula)


def _counter(n: int) -> _Operator:
    """Count up to n in one session or turn: (stamp, count)."""

    def counted(a: bool, m: Any, s: int) -> int:
        return (m[1] if m[0] == s else 0) + a

    return (
        lambda a, b, m, s: counted(a, m, s) >= n,
        lambda a, b, m, s: (s, min(n, counted(a, m, s))) if a else m,
        (0, 0),
        1,
    )


def _ring(n: int, width: int) -> _Operator:
    """Keep the last n stamps, oldest first: n positions are in the window when the n-th last one is."""

    def value(a: bool, b: bool, m: Any, s: int) -> bool:
        older = n - a
        return older == 0 or (len(m) >= older and s - m[-older] < width)

    return value, (lambda a, b, m, s: (*m, s)[-n:] if a else m), (), n


def _is_quiet(formula: Past, parts: list[bool | Value]) -> bool:
    """Whether the row's memory stays as it is, whatever it is."""
    match formula:
        case Previously():
            return False
        case Once() | AtLeast():
            return parts[0] is False
        case Historically():
            return parts[0] is True
        case Since():
            return parts[0] is True and parts[1] is False
        case _:
            assert_never(formula)


def _read(row: Row, a: bool | Value, b: bool | Value = False) -> bool | Value:
    """Return the operator's value. Known parts make it a constant, or leave one look at the memory."""
    if isinstance(a, bool) and isinstance(b, bool):
        return _read_known(row, a, b)
    slot, unit, value, left, right = row.slot, row.unit, row.value, as_value(a), as_value(b)
    return lambda fact, memory, now, values: value(
        left(fact, memory, now, values), right(fact, memory, now, values), memory[slot], now[unit]
    )


def _read_known(row: Row, a: bool, b: bool) -> bool | Value:
    slot, unit, width, value = row.slot, row.unit, row.width, row.value
    if not isinstance(row.formula, AtLeast):
        never, just_now = value(a, b, -1, 0), value(a, b, 0, 0)
        if never == just_now:
            return never  # The memory makes no difference.
        if never:
            return lambda fact, memory, now, values: not 0 <= memory[slot] > now[unit] - width
        return lambda fact, memory, now, values: 0 <= memory[slot] > now[unit] - width
    if unit < 2:
        least = row.formula.n - a
        return lambda fact, memory, now, values: (memory[slot][1] if memory[slot][0] == now[unit] else 0) >= least
    return lambda fact, memory, now, values: value(a, b, memory[slot], now[unit])


def _update(row: Row, a: Value, b: Value | None = None) -> Callable[..., Any]:
    slot, unit, value, following = row.slot, row.unit, row.value, row.following
    right = b or _FALSE

    def update(fact: Fact, memory: Memory, now: Now, values: list[bool]) -> Any:
        x, y = a(fact, memory, now, values), right(fact, memory, now, values)
        values[slot] = value(x, y, memory[slot], now[unit])
        return following(x, y, memory[slot], now[unit])

    return update


def _left_value(slot: int) -> Value:
    return lambda fact, memory, now, values: values[slot]


# -- connectives, with constants folded ----------------------------------------------------------------------------


def _opposite(bound: Bound) -> Bound:
    return {"exact": "exact", "upper": "lower", "lower": "upper"}[bound]  # type: ignore[return-value]  # closed table


def _not(a: bool | Value) -> bool | Value:
    if isinstance(a, bool):
        return not a
    return lambda fact, memory, now, values: not a(fact, memory, now, values)


def _and(a: bool | Value, b: bool | Value) -> bool | Value:
    if isinstance(a, bool):
        return b if a else False
    if isinstance(b, bool):
        return a if b else False
    return lambda fact, memory, now, values: a(fact, memory, now, values) and b(fact, memory, now, values)


def _or(a: bool | Value, b: bool | Value) -> bool | Value:
    if isinstance(a, bool):
        return True if a else b
    if isinstance(b, bool):
        return True if b else a
    return lambda fact, memory, now, values: a(fact, memory, now, values) or b(fact, memory, now, values)


def _k_of(k: int, parts: list[bool | Value]) -> bool | Value:
    sure = sum(p is True for p in parts)
    open_ = [p for p in parts if not isinstance(p, bool)]
    if sure >= k or sure + len(open_) < k:
        return sure >= k
    return lambda fact, memory, now, values: sure + sum(p(fact, memory, now, values) for p in open_) >= k


@lru_cache(maxsize=2)
def _constant(value: bool) -> Value:
    return lambda fact, memory, now, values: value


_FALSE = _constant(False)


def as_value(a: bool | Value) -> Value:
    """Return the code for a value that may already be known."""
    return _constant(a) if isinstance(a, bool) else a


def memory_sentence(monitor: Monitor) -> str:
    """Say how much the monitor remembers at most."""
    rows = "1 row" if monitor.size == 1 else f"{monitor.size} rows"
    return f"{rows}, {monitor.bits} bits"
