"""Compare monitors with the definition, exhaustively: every formula up to a size, over every trace up to a length.

    python -m tests.policy.prove           what CI runs
    python -m tests.policy.prove --deep    what a night allows

Formulas are built from two atoms, ~ & | implies, previously once historically since at_least(2), each in four
windows. A letter of a trace is a call, a user's word (a new turn) or something else, 0 or 2 seconds after the one
before. All formulas share one monitor, traces share their prefixes, and the definition looks earlier verdicts up.
After every position the memory also goes through JSON and back and must be the same: so a session that is cut
and resumed at any position continues with the same verdicts.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time

import orjson

from edgeagent.policy.fact import Fact
from edgeagent.policy.formula import SESSION, TURN, Not
from edgeagent.policy.monitor import Monitor
from edgeagent.policy.words import (
    at_least,
    call,
    historically,
    last_events,
    last_seconds,
    once,
    previously,
    said,
    since,
)
from tests.policy.definition import holds

WINDOWS = (SESSION, TURN, last_seconds(3), last_events(2))
ATOMS = (call("a"), said())
LETTERS = tuple(itertools.product(("called", "said", "other"), (0, 2_000)))

RUNS = ((3, 5), (4, 3))
"""Formula size and trace length of each run; the second has 17 times the formulas, on shorter traces."""

RUNS_DEEP = ((3, 6), (4, 4))


def formulas_up_to(size):
    """Return every formula of at most this size (atoms and operators), smaller ones first."""
    by_size = {1: list(ATOMS)}
    for n in range(2, size + 1):
        by_size[n] = [f for part in by_size[n - 1] for f in unary(part)]
        for left in range(1, n - 1):
            for a, b in itertools.product(by_size[left], by_size[n - 1 - left]):
                by_size[n] += binary(a, b)
    return [f for n in sorted(by_size) for f in by_size[n]]


def unary(f):
    yield Not(f)
    for window in WINDOWS:
        yield from (previously(f, window), once(f, window), historically(f, window), at_least(2, f, window))


def binary(a, b):
    yield from (a & b, a | b, a.implies(b))
    for window in WINDOWS:
        yield since(a, b, window)


def following(trace, letter):
    """Return the position that this letter means after the trace."""
    kind, later = letter
    at_ms = (trace[-1].at_ms if trace else 0) + later
    turn = (trace[-1].turn if trace else 0) + (kind == "said")
    return Fact(kind, "a" if kind == "called" else "", at_ms=at_ms, turn=turn)


def compare(formulas, length):
    """Walk every trace up to this length; return the number of verdicts. Raises AssertionError at a difference."""
    monitor = Monitor(formulas)
    number = {id(f): n for n, f in enumerate(formulas)}
    columns = []  # Verdicts of the definition at each position of the current trace.
    verdicts = 0

    def walk(trace, memory):
        nonlocal verdicts
        for letter in LETTERS:
            fact = following(trace, letter)
            longer = (*trace, fact)
            column = []
            columns.append(column)
            for f in formulas:
                column.append(holds(f, longer, lambda g, j: columns[j][number[id(g)]]))
            found = monitor.values(memory, fact)
            if list(found) != column:
                wrong = next(f for f, a, b in zip(formulas, found, column, strict=True) if a != b)
                raise AssertionError(f"{wrong!r} after {[(p.kind, p.at_ms, p.turn) for p in longer]}")
            verdicts += len(column)
            after = monitor.append(memory, fact)
            assert monitor.restored(orjson.loads(orjson.dumps(after))) == after, "memory changed by being saved"
            if len(longer) < length:
                walk(longer, after)
            columns.pop()

    walk((), monitor.start())
    return verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deep", action="store_true", help="larger formulas and longer traces")
    total, began = 0, time.perf_counter()
    for size, length in RUNS_DEEP if parser.parse_args().deep else RUNS:
        formulas = formulas_up_to(size)
        verdicts = compare(formulas, length)
        total += verdicts
        print(
            f"formulas up to size {size}: {len(formulas)}; traces up to length {length}: {verdicts:,} verdicts, equal"
        )
    print(f"{total:,} verdicts in {time.perf_counter() - began:.0f} s, 0 differences")
    return 0


if __name__ == "__main__":
    sys.exit(main())
