"""`make bench-gate`: run every benchmark, hold its figures against budgets.json, name the culprit.

    python -m bench.gate [--only WORD] [--json]

A budget is {"limit", "unit", "why"}; a figure above its limit, a budget without a figure and a figure without a
budget all fail. A time that fails is measured once more before it counts, since the machine may have been busy.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.conftest import FIGURES_VARIABLE

HERE = Path(__file__).parent
BUDGETS = HERE / "budgets.json"


@dataclass(frozen=True)
class Budget:
    """The most that a figure may be, in which unit, and why."""

    name: str
    limit: float
    unit: str
    why: str


@dataclass(frozen=True)
class Judgement:
    """One budget with what was measured; None means that nothing was."""

    budget: Budget
    figure: float | None

    @property
    def holds(self) -> bool:
        """Whether the figure is there and within its limit."""
        return self.figure is not None and self.figure <= self.budget.limit

    def line(self) -> str:
        """Figure, limit and slack in one line."""
        mark = "ok  " if self.holds else "FAIL"
        if self.figure is None:
            return f"{mark} {self.budget.name:<34} not measured (limit {self.budget.limit:g} {self.budget.unit})"
        slack = 100 * (1 - self.figure / self.budget.limit) if self.budget.limit else 0.0
        return (
            f"{mark} {self.budget.name:<34} {self.figure:>10.4g} of {self.budget.limit:>8g} {self.budget.unit:<22}"
            f" {slack:>5.0f} % slack"
        )


def read_budgets(file: Path = BUDGETS) -> dict[str, Budget]:
    """The budgets by name."""
    rows = json.loads(file.read_text())
    return {name: Budget(name, row["limit"], row["unit"], row["why"]) for name, row in rows.items()}


def judge(budgets: dict[str, Budget], figures: dict[str, float]) -> tuple[list[Judgement], list[str]]:
    """Each budget with its figure, and the figures that have no budget."""
    return [Judgement(b, figures.get(name)) for name, b in budgets.items()], sorted(set(figures) - set(budgets))


def measure(only: str) -> dict[str, float]:
    """Run the benchmarks (those whose name contains `only`) and return their figures."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "figures.json"
        command = [
            sys.executable,
            "-m",
            "pytest",
            str(HERE),
            "-q",
            "-x",
            "--benchmark-disable",
            "-p",
            "no:cacheprovider",
        ]
        command += ["-k", only] if only else []
        done = subprocess.run(command, env={**os.environ, FIGURES_VARIABLE: str(target)}, cwd=HERE.parent, check=False)
        if done.returncode:
            sys.exit(f"bench-gate: a benchmark failed to run (pytest ended with {done.returncode})")
        figures: dict[str, float] = json.loads(target.read_text())
        return figures


def main() -> None:
    """Measure, print, and end with 0 when everything holds, else with 6."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORD", help="only the benchmarks whose name contains WORD")
    parser.add_argument("--json", action="store_true", help="figures and limits as one JSON object")
    given = parser.parse_args()
    figures = measure(given.only)
    budgets = read_budgets()
    if given.only:
        budgets = {name: b for name, b in budgets.items() if name in figures}
    rows, unknown = judge(budgets, figures)
    if any(not row.holds for row in rows):
        again = measure(given.only)
        rows, unknown = judge(budgets, {name: min(figures[name], again.get(name, figures[name])) for name in figures})
    if given.json:
        print(json.dumps({r.budget.name: {"figure": r.figure, "limit": r.budget.limit} for r in rows}))
    else:
        print(*(row.line() for row in rows), sep="\n")
    culprits = [f"{r.budget.name}: {r.budget.why}" for r in rows if not r.holds]
    culprits += [f"{name}: measured, but budgets.json has no limit for it" for name in unknown]
    if culprits:
        print("bench-gate failed:", *culprits, sep="\n  ", file=sys.stderr)
        sys.exit(6)


if __name__ == "__main__":
    main()
