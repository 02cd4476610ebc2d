"""`make accuracy-gate`: is the right call still made as often as it was? A small part of each set, held to floors.json.

    python -m bench.accuracy.gate [--data-must-be-there] [--threads N] [--write]

A floor is what was measured, less what chance may take: the lower end of its 95 % interval, for each set and for all
together. So a change that costs a case or two passes, and one that breaks something does not; what a change is worth is
told by the whole sets. Cases are those that are reported, never fitted on; only counts are shown. `--write` measures
anew and writes the file. Where a package cannot be had the gate says so and passes, unless the data must be there.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.accuracy.cases import cases_of
from bench.accuracy.engines import Ours
from bench.accuracy.packages import DataMissing
from bench.accuracy.run import measure
from bench.accuracy.tally import Result, wilson
from edgeagent.errors import EdgeAgentError, ExitCode

FLOORS = Path(__file__).parent / "floors.json"

ROWS: Mapping[str, int] = {
    "greenhouse": 12,
    "needle": 12,
    "bfcl:simple_python": 8,
    "bfcl:multiple": 8,
    "bfcl:live_multiple": 8,
    "bfcl:irrelevance": 8,
}
"""How many cases of each set, evenly spread over it: 140 s of CPU on a busy machine."""

ONLY_TOOL = frozenset(("bfcl:live_multiple",))
"""Sets of which the right tool counts: so few of their arguments come out right that a floor would hold nothing."""

MODEL, ALL = "smollm2", "all"

Counts = Mapping[str, tuple[int, int]]
"""By set: how many are right, of how many."""


def floor_of(right: int, rows: int) -> int:
    """The fewest that may be right where so many were: below it is not chance."""
    low, _ = wilson(right, rows)
    return math.ceil(low * rows - 1e-9)


def with_all(counts: Counts) -> Counts:
    """The counts, and those of all sets together."""
    return {**counts, ALL: (sum(right for right, _ in counts.values()), sum(rows for _, rows in counts.values()))}


def missed(now: Counts, before: Counts) -> list[str]:
    """What lies below its floor, or was measured with other rows than the floor was."""
    told = []
    for name, (right, rows) in before.items():
        found, of = now.get(name, (0, 0))
        if of != rows:
            told.append(f"{name}: {of} rows were asked, and its floor is of {rows}; measure anew with --write")
        elif found < floor_of(right, rows):
            told.append(f"{name}: {found} of {rows} right; {floor_of(right, rows)} is the floor ({right} were)")
    return told + [f"{name}: has no floor; measure anew with --write" for name in now.keys() - before.keys()]


def counted(threads: int | None) -> Counts:
    """Ask the model. Raises DataMissing before anything is asked, and EdgeAgentError."""
    cases = {name: cases_of(name, "report", rows) for name, rows in ROWS.items()}
    subject = Ours(MODEL, threads=threads)
    try:
        found = {name: measure({"ours": subject}, name, each)["ours"] for name, each in cases.items()}
    finally:
        subject.close()
    return with_all({name: _counts(name, results) for name, results in found.items()})


def _counts(name: str, results: Sequence[Result]) -> tuple[int, int]:
    return sum(each.right_tool if name in ONLY_TOOL else each.right for each in results), len(results)


def main() -> int:
    """Measure, tell, and end with 0 when everything holds, else with 6."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.accuracy.gate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-must-be-there", action="store_true", help="fail where a package cannot be had")
    parser.add_argument("--threads", type=int, help="default: one for each core; fewer are faster on a busy machine")
    parser.add_argument("--write", action="store_true", help="write what is measured as what floors are made from")
    given, began = parser.parse_args(), time.monotonic()
    try:
        now = counted(given.threads)
    except DataMissing as error:
        print(f"accuracy-gate: NOT CHECKED: {error}", file=sys.stderr)
        return int(ExitCode.ERROR if given.data_must_be_there else ExitCode.DONE)
    except EdgeAgentError as error:
        print(f"accuracy-gate: {error}", file=sys.stderr)
        return int(ExitCode.MODEL)
    if given.write:
        FLOORS.write_text(json.dumps({name: list(counts) for name, counts in now.items()}, indent=1) + "\n")
    before = read_floors()
    for name, (right, rows) in now.items():
        floor = f"floor {floor_of(*before[name])}" if name in before else "no floor"
        print(f"{name:<20} {right:>3} of {rows:>3} right, {floor}")
    print(f"accuracy-gate took {time.monotonic() - began:.0f} s")
    found = missed(now, before)
    if found:
        print("accuracy-gate failed:", *found, sep="\n  ", file=sys.stderr)
    return int(ExitCode.CHECK_FAILED if found else ExitCode.DONE)


def read_floors(file: Path = FLOORS) -> Counts:
    """What was measured when the floors were set."""
    rows: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return {name: (right, of) for name, (right, of) in rows.items()}


if __name__ == "__main__":
    sys.exit(main())
