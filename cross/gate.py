"""Do the figures of what was built for other architectures keep to bench/budgets-cross.json?   gate.py FIGURES.json

Judged as bench.gate judges; only the architectures that were built are looked at. Ends with 6 if one does not hold.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.gate import judge, read_budgets  # noqa: E402  # the folder of the checkout is not installed


def main() -> None:
    """Print each figure beside its limit."""
    figures: dict[str, float] = json.loads(Path(sys.argv[1]).read_text())
    budgets = {n: b for n, b in read_budgets(ROOT / "bench" / "budgets-cross.json").items() if n in figures}
    rows, unknown = judge(budgets, figures)
    print(*(row.line() for row in rows), sep="\n")
    wrong = [f"{row.budget.name}: {row.budget.why}" for row in rows if not row.holds]
    wrong += [f"{name}: measured, but budgets-cross.json has no limit for it" for name in unknown]
    if wrong:
        print("the cross builds grew:", *wrong, sep="\n  ", file=sys.stderr)
        sys.exit(6)


if __name__ == "__main__":
    main()
