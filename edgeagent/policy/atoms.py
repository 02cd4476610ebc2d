"""Atoms: what a formula says of one position alone, as code that looks at that position."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, assert_never

from edgeagent.core.quoting import quoted_from_user
from edgeagent.policy.fact import Fact, Signature
from edgeagent.policy.formula import Argument, Clock, Confident, Happened, Said, Untrusted

Memory = tuple[Any, ...]
"""Fingerprint of the table, number of positions (0 if no window counts them), then one entry for each row."""

Now = tuple[int, int, int, int]
"""The stamps of a position: 0 (session), turn, milliseconds, number."""

Bound = Literal["exact", "upper", "lower"]
"""How arguments and confidence are read: as they are; or, when the call is not known yet, as true or as false."""

Value = Callable[[Fact, Memory, Now, list[bool]], bool]
"""A formula's value at the position that is being appended to `memory`; the list holds the rows' values so far."""


def atom_value(
    f: Happened | Said | Untrusted | Argument | Confident | Clock, signature: Signature, bound: Bound
) -> bool | Value:
    kind, tool = signature
    match f:
        case Happened():
            # Without a tool it is what came in above a sub-agent: untrusted, and nothing else.
            return kind == f.kind and (tool in f.tools if f.tools else bool(tool))
        case Said(pattern=pattern):
            if kind != "said" or not pattern:
                return kind == "said"
            search = re.compile(pattern).search
            return lambda fact, memory, now, values: search(fact.text) is not None
        case Untrusted():
            return _untrusted if kind in ("returned", "failed", "heard") else False
        case Argument():
            if not tool or bound != "exact":
                return bool(tool) and bound == "upper"
            return _argument(f)
        case Confident(at_least=at_least):
            if not tool or bound != "exact":
                return bool(tool) and bound == "upper"
            return lambda fact, memory, now, values: fact.confidence is not None and fact.confidence >= at_least
        case Clock():
            return _clock(f)
        case _:
            assert_never(f)


def _untrusted(fact: Fact, memory: Memory, now: Now, values: list[bool]) -> bool:
    return fact.untrusted


def _clock(f: Clock) -> Value:
    start, end, offset = f.start, f.end, f.utc_offset_minutes

    def is_between(fact: Fact, memory: Memory, now: Now, values: list[bool]) -> bool:
        minute = ((fact.at_ms + fact.skew_ms) // 60_000 + offset) % 1440
        return start <= minute < end if start < end else minute >= start or minute < end

    return is_between


def _argument(f: Argument) -> Value:
    holds, path, from_user = _comparison(f), tuple(f.name.split(".")), f.comparison == "from_user"

    def compare(fact: Fact, memory: Memory, now: Now, values: list[bool]) -> bool:
        found: Any = fact.arguments
        for name in path:
            if not isinstance(found, dict) or name not in found:
                return False
            found = found[name]
        return quoted_from_user(found, fact.user_texts) if from_user else holds(found)

    return compare


def _comparison(f: Argument) -> Callable[[Any], bool]:
    value = f.value
    match f.comparison:
        case "<":
            return lambda found: _is_number(found) and found < value
        case "<=":
            return lambda found: _is_number(found) and found <= value
        case ">":
            return lambda found: _is_number(found) and found > value
        case ">=":
            return lambda found: _is_number(found) and found >= value
        case "==":
            return lambda found: _is_same(found, value)
        case "among":
            return lambda found: any(_is_same(found, each) for each in value)
        case "matches":
            fullmatch = re.compile(value).fullmatch
            return lambda found: isinstance(found, str) and fullmatch(found) is not None
        case "present" | "from_user":
            return lambda found: True
        case _:
            assert_never(f.comparison)


def _is_number(found: Any) -> bool:
    return isinstance(found, int | float) and not isinstance(found, bool)


def _is_same(found: Any, value: Any) -> bool:
    # In Python True == 1; in JSON they are two values.
    return isinstance(found, bool) == isinstance(value, bool) and bool(found == value)
